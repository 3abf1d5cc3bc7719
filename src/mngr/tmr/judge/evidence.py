"""Measure an agent's work in clean checkouts: the old tests on the new product, the new tests on the old product, and
both as the agent left them, with every test that it added, changed or could have broken, and the gate command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mngr.tmr.branch import unit
from mngr.tmr.branch.objects import NewCommit, Objects, PathChange, ours
from mngr.tmr.judge.paths import PathKind
from mngr.tmr.judge.verdict import DID_NOT_PASS, Marks, Verdict
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.measure.baseline import BROKEN, FLAKY, PASS, BaselineTest
from mngr.tmr.measure.diagnosis import error_line, of_machine
from mngr.tmr.measure.measurement import Measurement, MeasurementResult, Pytest, Shell, StrengthStep, log_tail
from mngr.tmr.measure.rows import GOOD, NO_BODY, PASSED, Rows, cases, cleared, doubtful, file_of, files_of, worst

AGAIN = 2  # one run says little about a new test, or about one that failed before: it is run this many times more


class Work(NamedTuple):
    """An agent's work on one task: its net change, without the files by which tests are judged, which are taken from
    the base, and the commits that measurements are taken at. `both` is the work as it is; `old_tests` has
    the base's tests on its product, `old_product` its tests on the base's product; each is the same as another where
    nothing of the other half was changed."""

    task: str
    slug: str
    changes: tuple[PathChange, ...]
    split: unit.WorkSplit
    both: str
    old_tests: str
    old_product: str

    @property
    def tests_changed(self) -> bool:
        return self.old_tests != self.both


def work_of(
    base: BaseCommit,
    objects: Objects,
    task: str,
    slug: str,
    tip: str,
    changes: Sequence[PathChange],
    judging: Iterable[str],
) -> Work:
    """The work with its commits, built from the two halves of its change. Files in `judging` stay as at the base."""
    left_out = set(judging)
    kept = tuple(change for change in changes if change.path not in left_out)
    split = unit.split(base.commit, kept, base.paths)
    both = tip if len(kept) == len(changes) else _commit(objects, base, kept, f"{slug} as it is judged")
    in_tests = split.rest is not None and any(
        base.paths.kind(change.path) != PathKind.DOCS for change in split.rest.changes
    )
    old_tests = old_product = both
    if split.implementation is None:
        old_tests = base.commit if in_tests else both
    elif in_tests and split.rest is not None:
        old_tests = _commit(objects, base, split.implementation.changes, f"{slug} with the tests of the base")
        old_product = _commit(objects, base, split.rest.changes, f"{slug} without its product")
    else:
        old_product = base.commit
    return Work(task, slug, tuple(changes), split, both, old_tests, old_product)


def _commit(objects: Objects, base: BaseCommit, changes: Iterable[PathChange], message: str) -> str:
    files = {change.path: change.new for change in changes}
    return objects.write([NewCommit(base.commit, files, f"{message}\n", ours(), ours())])[0]


def measure(base: BaseCommit, work: Work, before: BaselineTest) -> Verdict:
    """Take the measurements that this work needs. When its own commit does not hold, the others are not taken."""
    seen = _at_its_commit(base, work, before)
    if seen.failure or seen.broken_by or seen.problem or seen.marks.t1p1 != PASSED:
        return seen
    return _halves(base, work, before, seen)


def _taken(
    base: BaseCommit, before: BaselineTest, *wanted: Measurement
) -> tuple[Sequence[MeasurementResult], str, str]:
    """The results, what its work broke, and what is wrong with this machine, if so: then they are measured again when
    somebody asks again."""
    results, broken_by = base.measurer.take_all(wanted), ""
    for one, done in zip(wanted, results, strict=True):
        broke, failure = _not_measured(base, done, before)
        if failure:
            base.measurer.forget(one)
            return results, "", failure
        broken_by = broken_by or broke
    return results, broken_by, ""


def _at_its_commit(base: BaseCommit, work: Work, before: BaselineTest) -> Verdict:
    touched = {change.path for change in work.changes}
    tests = [work.task, *(test for test, found in base.tests.items() if found.file in touched)]
    bodies = {test: found.body for test, found in base.tests.items()}
    plain = ("-p", "no:randomly")
    steps: list[Shell | Pytest | StrengthStep] = [
        Pytest("test", tests=tests, base=bodies, again=AGAIN, args=plain, task=work.task)
    ]
    if before.verdict in DID_NOT_PASS:
        steps += _steady(work.task)
    if not work.tests_changed:
        steps += _effect(base, work, before)
    if base.gate_command:
        steps.append(Shell("gate", base.gate_command))
    if work.tests_changed and work.split.implementation is None:
        steps.append(base.strength_step(work.both, None, after="test"))
    wanted = Measurement(f"verify-{work.slug}", work.both, steps)
    [done], broken_by, failure = _taken(base, before, wanted)
    repeated: list[str] = []
    if not failure and not broken_by and not done.problem and "test" in done.steps:
        done, repeated, failure = _repeated(base, done, work, before)
    seen = _seen(base, done, work, before)
    if not work.tests_changed:
        seen = seen._replace(effect=_effected(base, done, seen.cases, seen.marks.t1p1, before))
    return seen._replace(
        broken_by=broken_by,
        failure=failure,
        repeated=tuple(repeated),
        log=done.directory,
        seconds=round(done.seconds, 3),
    )


def _halves(base: BaseCommit, work: Work, before: BaselineTest, seen: Verdict) -> Verdict:
    """The old tests on the new product, and the new tests on the old one, as far as they differ from what is known."""
    touched = sorted({*seen.cases, *seen.new, *seen.changed})
    wanted: dict[str, Measurement] = {}
    own = base.own(work.task)
    if work.tests_changed and work.old_tests != base.commit:
        steps = [Pytest("test", tests=own, paths=files_of(own)), *_effect(base, work, before)]
        steps += _steady(*own) if before.verdict in DID_NOT_PASS else []
        wanted["t0p1"] = Measurement(f"old-tests-{work.slug}", work.old_tests, steps)
    if work.old_product not in (work.both, base.commit):
        steps = [Pytest("test", tests=touched, paths=files_of(touched))]
        wanted["t1p0"] = Measurement(f"old-product-{work.slug}", work.old_product, steps)
    taken, _, failure = _taken(base, before, *wanted.values())
    if failure:
        return seen._replace(failure=failure)
    results = dict(zip(wanted, taken, strict=True))
    at_base = before.runs[-1] if before.runs else before.verdict
    t0p1 = at_base if work.old_tests == base.commit else seen.marks.t1p1
    t1p0 = at_base if work.old_product == base.commit else seen.marks.t1p1
    if "t0p1" in results:
        t0p1 = _own_outcome(base, results["t0p1"], own)
        seen = seen._replace(effect=_effected(base, results["t0p1"], own, t0p1, before))
    alone = True if work.split.implementation and work.split.rest and not work.tests_changed else None
    if "t1p0" in results:
        outcomes = {test: results["t1p0"].rows.outcome(test) for test in touched}
        t1p0 = worst([outcomes[test] for test in seen.cases])
        seen = seen._replace(found=tuple(test for test in touched if outcomes[test] not in GOOD | {"skipped"}))
        alone = not seen.found if not results["t1p0"].problem else None
    return seen._replace(marks=seen.marks._replace(t0p1=t0p1, t1p0=t1p0), stands_alone=alone)


def _steady(*tests: str) -> list[Shell | Pytest]:
    listed = tests if all("::" in test for test in tests) else None  # a file that could not be collected: all of it
    return [Pytest(f"steady-{at + 1}", tests=listed, paths=files_of(tests)) for at in range(AGAIN)]


def _effect(base: BaseCommit, work: Work, before: BaselineTest) -> list[Shell | Pytest]:
    alike = base.alike(work.task, before) if work.split.implementation else []
    return [Pytest("effect", tests=alike, paths=files_of(alike))] if alike else []


def _effected(
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


def _repeated(
    base: BaseCommit, done: MeasurementResult, work: Work, before: BaselineTest
) -> tuple[MeasurementResult, list[str], str]:
    """The result with what failed only by chance counted as passed, what was run again for that, and what is wrong with
    this machine. One failure of its test, of a test that it changed or of the gate command refutes nobody; new tests
    and those that failed before have had their further runs. A test that the work did not touch has two more chances:
    red is what fails every time."""
    step, gate = done.steps["test"], done.steps.get("gate")
    own = set(own_tests(base, done, work.task))
    known = [test for test in step.rows.tests if test in base.tests]
    beside = {test for test in known if test not in own and base.tests[test].body == step.rows.tests[test].body}
    heirs = [test for test in own if test not in base.tests and before.verdict not in DID_NOT_PASS]
    passed = [test for test in known if test not in beside or base.before(test).verdict == PASS]
    tests = doubtful(step.rows, [*sorted(heirs), *passed])
    shell = [Shell("gate", base.gate_command)] if gate is not None and gate.exit_code else []
    if not tests and not shell:
        return done, [], ""
    left = [tests] * AGAIN + [[test for test in tests if test in beside]] * AGAIN
    runs = [Pytest(f"test-{at}", tests=some, paths=files_of(some)) for at, some in enumerate(left, 1) if some]
    [again], _, failure = _taken(base, before, Measurement(f"chance-{work.slug}", work.both, [*runs, *shell], repeat=1))
    if failure:
        return done, tests, failure
    further = [again.steps[run.name].rows for run in runs if run.name in again.steps]
    steps = {**done.steps, "test": step._replace(rows=cleared(step.rows, tests, further, beside))}
    if "gate" in again.steps:
        steps["gate"] = again.steps["gate"]
    return done._replace(steps=steps), [*tests, *(run.name + " command" for run in shell)], ""


def _not_measured(base: BaseCommit, done: MeasurementResult, before: BaselineTest) -> tuple[str, str]:
    """Why the tests could not be run, in two ways: what its work broke, and what is wrong with this machine, which
    says nothing about its work and is to be tried again."""
    bad = [ran.text for step in done.steps.values() for ran in step.rows.ran.values() if not ran.good]
    logs = [log_tail(step) for step in done.steps.values() if step.exit_code not in (0, None) and not step.rows.ran]
    said = next(filter(None, map(of_machine, [done.problem, *logs, *bad])), "")
    if said and not of_machine(before.text):
        return "", said
    if done.lost:
        return "", done.problem
    if done.unprepared:
        alone = Measurement("prepare", base.commit, [])
        at_base = base.measurer.take(alone)
        if at_base.problem:
            base.measurer.forget(alone)
        said = done.problem.partition("): ")[2] or done.problem
        return ("", at_base.problem) if at_base.problem else (f"its work breaks the build: {said}", "")
    for name, each in done.steps.items():
        if each.rows.doubt:
            return f"its test run cannot be believed: {each.rows.doubt}", ""
        if extra := sorted(set(each.changed) - base.dirtied):
            return f"its tests change `{extra[0]}`, which is part of the code they test (step `{name}`)", ""
    step = done.steps.get("test")
    if step is not None and not step.rows.finished and not done.problem:
        what = "does not come to its end" if step.rows.ran else "cannot start"
        return f"pytest {what} with its work: {error_line(log_tail(step))}", ""
    return "", ""


def again_at_base(base: BaseCommit, task: str, slug: str, before: BaselineTest) -> BaselineTest:
    """An agent that changes nothing says that nothing is wrong with a test that failed. That may be so, if it fails now
    and then: it gets a few more chances before the agent is called wrong."""
    steps = [Pytest(f"test-{number + 1}", tests=[task], paths=files_of([task])) for number in range(2 * AGAIN)]
    done = base.measurer.must_take(Measurement(f"again-{slug}", base.commit, steps))
    seen = [step.rows.outcome(task) for step in done.steps.values()]
    return before._replace(verdict=FLAKY if GOOD & set(seen) else before.verdict, runs=(*before.runs, *seen))


def _seen(base: BaseCommit, done: MeasurementResult, work: Work, before: BaselineTest) -> Verdict:
    """What its own commit shows."""
    paths, rows = tuple(change.path for change in work.changes), done.rows
    own = own_tests(base, done, work.task)
    if "test" not in done.steps or (done.problem and not rows.ran):
        return Verdict(files=paths, cases=tuple(own), problem=done.problem or "no test was run")
    again = [found.rows for name, found in done.steps.items() if name.startswith("test-again-")]
    outcomes = {
        test: (rows.outcome(test), *(each.outcome(test) for each in again if test not in base.tests))
        for test, found in rows.tests.items()
        if test not in base.tests or base.tests[test].body != found.body
    }
    broken_files = {file_of(item.id) for item in rows.broken}
    gone = [test for test in base.tests if test not in rows.tests and file_of(test) not in broken_files]
    renamed = _renamed(base, rows, gone)
    after = _own_outcome(base, done, own)
    if "::" in work.task and not own and work.task not in gone:  # all its cases are gone: the test is
        gone = [work.task, *(test for test in gone if test not in cases(work.task, base.tests))]
    known_broken = {file_of(test) for test, each in base.measured.items() if each.verdict == BROKEN}
    gate = done.steps.get("gate")
    return Verdict(
        files=paths,
        tests_changed=work.tests_changed,
        product_changed=work.split.implementation is not None,
        marks=Marks(t0p0=before.runs[0] if before.runs else before.verdict, t1p1=after or rows.outcome(work.task)),
        new=tuple(sorted(outcomes.keys() - base.tests.keys())),
        changed=tuple(sorted(outcomes.keys() & base.tests.keys())),
        outcomes=outcomes,
        lost=tuple(test for test in gone if test not in renamed),
        renamed=tuple(renamed),
        cases=tuple(own),
        broken=tuple(sorted(broken_files - (known_broken - {work.task}))),
        worse=worse(base, rows, own),
        gate_exit=gate.exit_code if gate is not None else None,
        problem=done.problem,
    )


def worse(base: BaseCommit, rows: Rows, own: Sequence[str]) -> Mapping[str, str]:
    """Other tests that passed at the base and were seen to do something else, with what they did."""
    found = {}
    for test, ran in rows.ran.items():
        before = base.measured.get(test)
        if before is not None and before.verdict == PASS and test not in own and ran.outcome not in before.runs:
            found[test] = ran.outcome
    return found


def own_tests(base: BaseCommit, done: MeasurementResult, task: str) -> list[str]:
    """The tests at the agent's commit that are its own: all of its file, its cases, or what it is called there."""
    if "test" not in done.steps:
        return [task]
    found = done.rows.tests
    if "::" not in task:
        return [test for test in found if test.startswith((f"{task}::", f"{task.removesuffix('/__init__.py')}/"))]
    if own := cases(task, found):
        return own
    bodies = {base.tests[case].body for case in cases(task, base.tests)} - {NO_BODY}
    heirs = [test for test, one in found.items() if test not in base.tests and one.body in bodies]
    return heirs or ([] if cases(task, base.tests) and task not in base.tests else [task])


def _own_outcome(base: BaseCommit, done: MeasurementResult, own: Sequence[str]) -> str:
    """The worst that its own tests did, of all their runs."""
    names = [name for name in done.steps if name == "test" or name.startswith("steady-")]
    seen = [(test, done.steps[name].rows.outcome(test)) for name in names for test in own]
    outcomes = [_as_before(base, test, outcome) for test, outcome in seen] if len(own) > 1 else [one for _, one in seen]
    return next((outcome for outcome in outcomes if outcome not in GOOD), next(iter(outcomes), ""))


def _as_before(base: BaseCommit, case: str, outcome: str) -> str:
    """The outcome of one case among several: skipped or expected to fail as before is as good as passed."""
    before = base.measured.get(case)
    return PASSED if before is not None and outcome in ("skipped", "xfailed") and outcome in before.runs else outcome


def _renamed(base: BaseCommit, rows: Rows, gone: Sequence[str]) -> list[str]:
    """Tests of the base that are there under another name, or with other parameters: of these, as many as their
    function has new cases. What is more than that is deleted."""
    bodies = {found.body for test, found in rows.tests.items() if test not in base.tests} - {NO_BODY}
    recast: set[str] = set()
    for function in {base.tests[test].function for test in gone} - {""}:
        new = [test for test in cases(function, rows.tests) if test not in base.tests]
        recast.update([test for test in gone if base.tests[test].function == function][: len(new)])
    return [test for test in gone if base.tests[test].body in bodies or test in recast]
