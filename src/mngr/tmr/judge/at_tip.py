"""What an agent's work shows at its own commit: its test, every test that it added, changed or could have broken, and
the gate command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mngr.tmr.judge.evidence import AtTip, Trouble
from mngr.tmr.judge.trouble import taken
from mngr.tmr.judge.work import Work
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.measure.baseline import BROKEN, DID_NOT_PASS, FLAKY, PASS, BaselineTest
from mngr.tmr.measure.measurement import Measurement, MeasurementResult, Pytest, Shell, StrengthStep
from mngr.tmr.measure.rows import GOOD, NO_BODY, PASSED, Rows, cases, cleared, doubtful, file_of, files_of

AGAIN = 2  # one run says little about a new test, or about one that failed before: it is run this many times more


def at_its_commit(base: BaseCommit, work: Work, before: BaselineTest) -> tuple[AtTip, str, tuple[str, ...], Trouble]:
    """What was seen, what came of its own test, which tests have the effect of a fix, and what went wrong."""
    tests = [work.task, *work.touched(base)]
    bodies = {test: found.body for test, found in base.tests.items()}
    steps: list[Shell | Pytest | StrengthStep] = [
        Pytest("test", tests=tests, base=bodies, again=AGAIN, args=("-p", "no:randomly"), task=work.task)
    ]
    if before.verdict in DID_NOT_PASS:
        steps += steady(work.task)
    if not work.tests_changed:
        steps += effect_step(base, work, before)
    if base.gate_command:
        steps.append(Shell("gate", base.gate_command))
    if work.tests_changed and work.split.implementation is None and not work.users:
        steps.append(base.strength_step(work.both, None, after="test"))
    [done], trouble = taken(base, before, Measurement(f"verify-{work.slug}", work.both, steps))
    repeated: list[str] = []
    if not trouble and not done.problem and "test" in done.steps:
        done, repeated, trouble = _repeated(base, done, work, before)
    found, after = _seen(base, done, work)
    if not trouble and ("test" not in done.steps or (done.problem and not done.rows.ran)):
        trouble = Trouble(problem=done.problem or "no test was run")
    effect = () if work.tests_changed else effected(base, done, found.cases, after, before)
    found = found._replace(repeated=tuple(repeated), log=done.directory, seconds=round(done.seconds, 3))
    return found, after, effect, trouble._replace(problem=trouble.problem or done.problem)


def steady(*tests: str) -> list[Shell | Pytest]:
    """Further runs of tests that failed before."""
    listed = tests if all("::" in test for test in tests) else None  # a file that could not be collected: all of it
    return [Pytest(f"steady-{at + 1}", tests=listed, paths=files_of(tests)) for at in range(AGAIN)]


def effect_step(base: BaseCommit, work: Work, before: BaselineTest) -> list[Shell | Pytest]:
    alike = base.alike(work.task, before) if work.split.implementation else []
    return [Pytest("effect", tests=alike, paths=files_of(alike))] if alike else []


def effected(
    base: BaseCommit, done: MeasurementResult, own: Sequence[str], outcome: str, before: BaselineTest
) -> tuple[str, ...]:
    """The tests that failed at the base and pass now."""
    found: list[str] = []
    if outcome == PASSED and before.verdict in DID_NOT_PASS:
        failing = base.failing()
        found = [test for test in own if test in failing] or list(own)
    if "effect" in done.steps:
        rows = done.steps["effect"].rows
        found += [test for test in rows.ran if rows.outcome(test) == PASSED and test not in found]
    return tuple(found)


def again_at_base(base: BaseCommit, task: str, slug: str, before: BaselineTest) -> BaselineTest:
    """An agent that changes nothing says that nothing is wrong with a test that failed. That may be so, if it fails now
    and then: it gets a few more chances before the agent is called wrong."""
    steps = [Pytest(f"test-{number + 1}", tests=[task], paths=files_of([task])) for number in range(2 * AGAIN)]
    done = base.measurer.must_take(Measurement(f"again-{slug}", base.commit, steps))
    seen = [step.rows.outcome(task) for step in done.steps.values()]
    return before._replace(verdict=FLAKY if GOOD & set(seen) else before.verdict, runs=(*before.runs, *seen))


def _repeated(
    base: BaseCommit, done: MeasurementResult, work: Work, before: BaselineTest
) -> tuple[MeasurementResult, list[str], Trouble]:
    """The result with what failed only by chance counted as passed, what was run again for that, and what went wrong.
    One failure of its test, of a test that it changed or of the gate command refutes nobody; new tests and those that
    failed before have had their further runs. A test that the work did not touch has two more chances: red is what
    fails every time."""
    step, gate = done.steps["test"], done.steps.get("gate")
    own = set(_own(base, done.rows, work.task))
    known = [test for test in step.rows.tests if test in base.tests]
    beside = {test for test in known if test not in own and base.tests[test].body == step.rows.tests[test].body}
    heirs = [test for test in own if test not in base.tests and before.verdict not in DID_NOT_PASS]
    passed = [test for test in known if test not in beside or base.before(test).verdict == PASS]
    tests = doubtful(step.rows, [*sorted(heirs), *passed])
    shell = [Shell("gate", base.gate_command)] if gate is not None and gate.exit_code else []
    if not tests and not shell:
        return done, [], Trouble()
    left = [tests] * AGAIN + [[test for test in tests if test in beside]] * AGAIN
    runs = [Pytest(f"test-{at}", tests=some, paths=files_of(some)) for at, some in enumerate(left, 1) if some]
    [again], trouble = taken(base, before, Measurement(f"chance-{work.slug}", work.both, [*runs, *shell], repeat=1))
    if trouble.failure:
        return done, tests, Trouble(failure=trouble.failure)
    further = [again.steps[run.name].rows for run in runs if run.name in again.steps]
    steps = {**done.steps, "test": step._replace(rows=cleared(step.rows, tests, further, beside))}
    if "gate" in again.steps:
        steps["gate"] = again.steps["gate"]
    return done._replace(steps=steps), [*tests, *(run.name + " command" for run in shell)], Trouble()


def _seen(base: BaseCommit, done: MeasurementResult, work: Work) -> tuple[AtTip, str]:
    rows = done.rows
    broken_files = {file_of(item.id) for item in rows.broken}
    gone = [test for test in base.tests if test not in rows.tests and file_of(test) not in broken_files]
    renamed = _renamed(base, rows, gone)
    own = _own(base, rows, work.task) if "test" in done.steps else [work.task]
    if "::" in work.task and not own:  # all its cases are gone: the test is
        own = _in_its_place(base, rows, work)
        gone = [work.task, *(test for test in gone if test not in cases(work.task, base.tests))]
    again = [found.rows for name, found in done.steps.items() if name.startswith("test-again-")]
    moved = _moved(base, rows, gone)
    outcomes = {
        test: (rows.outcome(test), *(each.outcome(test) for each in again if test not in base.tests))
        for test, found in rows.tests.items()
        if test not in moved and (test not in base.tests or base.tests[test].body != found.body)
    }
    known_broken = {file_of(test) for test, each in base.measured.items() if each.verdict == BROKEN}
    gate = done.steps.get("gate")
    found = AtTip(
        new=tuple(sorted(outcomes.keys() - base.tests.keys())),
        changed=tuple(sorted(outcomes.keys() & base.tests.keys())),
        outcomes=outcomes,
        lost=tuple(test for test in gone if test not in renamed),
        renamed=tuple(renamed),
        cases=tuple(own),
        users=work.users,
        broken=tuple(sorted(broken_files - (known_broken - {work.task}))),
        worse=_worse(base, rows, own),
        gate_exit=gate.exit_code if gate is not None else None,
    )
    return found, own_outcome(base, done, own) or rows.outcome(work.task)


def _worse(base: BaseCommit, rows: Rows, own: Sequence[str]) -> Mapping[str, str]:
    """Other tests that passed at the base and were seen to do something else, with what they did."""
    found = {}
    for test, ran in rows.ran.items():
        before = base.measured.get(test)
        if before is not None and before.verdict == PASS and test not in own and ran.outcome not in before.runs:
            found[test] = ran.outcome
    return found


def _own(base: BaseCommit, rows: Rows, task: str) -> list[str]:
    """The tests at the agent's commit that are its own: all of its file, its cases, or what it is called there."""
    found = rows.tests
    if "::" not in task:
        return [test for test in found if test.startswith((f"{task}::", f"{task.removesuffix('/__init__.py')}/"))]
    if own := cases(task, found):
        return own
    bodies = {base.tests[case].body for case in cases(task, base.tests)} - {NO_BODY}
    heirs = [test for test, one in found.items() if test not in base.tests and one.body in bodies]
    return heirs or ([] if cases(task, base.tests) else [task])


def _in_its_place(base: BaseCommit, rows: Rows, work: Work) -> list[str]:
    """What may stand for its test that is gone: the new tests, else those that passed beside it. Whether they notice
    what it noticed is measured."""
    new = [test for test in rows.tests if test not in base.tests and test in rows.ran]
    file = file_of(work.task)
    beside = [test for test, found in rows.tests.items() if found.file == file and base.before(test).verdict == PASS]
    return new or [test for test in beside if test in rows.ran]


def own_outcome(base: BaseCommit, done: MeasurementResult, own: Sequence[str]) -> str:
    """The worst that its own tests did, of all their runs. New tests have further runs of their own."""
    first = done.steps["test"].rows if "test" in done.steps else Rows()
    new = {test for test in own if test in first.tests and test not in base.tests}
    names = [name for name in done.steps if name == "test" or name.startswith(("steady-", "test-again-"))]
    seen = [
        (test, done.steps[name].rows.outcome(test))
        for name in names
        for test in own
        if name == "test" or name.startswith("test-again-") == (test in new)
    ]
    outcomes = [_as_before(base, test, outcome) for test, outcome in seen] if len(own) > 1 else [one for _, one in seen]
    return next((outcome for outcome in outcomes if outcome not in GOOD), next(iter(outcomes), ""))


def _as_before(base: BaseCommit, case: str, outcome: str) -> str:
    """The outcome of one case among several: skipped or expected to fail as before is as good as passed."""
    before = base.measured.get(case)
    return PASSED if before is not None and outcome in ("skipped", "xfailed") and outcome in before.runs else outcome


def _renamed(base: BaseCommit, rows: Rows, gone: Sequence[str]) -> list[str]:
    """Tests of the base that are there under another name, or with other parameters: of these, as many as their
    function has new cases. What is more is deleted. An heir that does not pass where its test did, is none."""

    def holds(heir: str, test: str) -> bool:
        return rows.outcome(heir) == PASSED or base.before(test).verdict != PASS

    heirs: dict[str, list[str]] = {}
    for test, found in rows.tests.items():
        if test not in base.tests and found.body != NO_BODY:
            heirs.setdefault(found.body, []).append(test)
    recast: set[str] = set()
    for function in {base.tests[test].function for test in gone} - {""}:
        mine = [test for test in gone if base.tests[test].function == function]
        new = [test for test in cases(function, rows.tests) if test not in base.tests and holds(test, mine[0])]
        recast.update(mine[: len(new)])
    same = {test for test in gone if any(holds(heir, test) for heir in heirs.get(base.tests[test].body, ()))}
    return [test for test in gone if test in same or test in recast]


def _moved(base: BaseCommit, rows: Rows, gone: Sequence[str]) -> set[str]:
    """New tests that are tests of the base under another name, which did not pass there either."""
    known = [test for test in gone if test in base.tests and base.before(test).verdict != PASS]
    bodies = {base.tests[test].body for test in known} - {NO_BODY}
    return {test for test, found in rows.tests.items() if test not in base.tests and found.body in bodies}
