"""Measure an agent's work in clean checkouts: its test, every test it added or changed, the suite's collection, the
gate command; whether its tests stand without its fix; and what a person should look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mngr.records import NamedTuple
from mngr.tmr import flags, parts
from mngr.tmr.baseline import BROKEN, FAIL, FLAKY, UNKNOWN, Measured, folded
from mngr.tmr.baseline import judge as judge_runs
from mngr.tmr.diagnosis import error_line, of_machine
from mngr.tmr.measurement import Measurement, Pytest, Result, Shell, base_lines, log_tail
from mngr.tmr.measurer import Measurer
from mngr.tmr.objects import Change, Ident, NewCommit, Objects
from mngr.tmr.paths import Kind, Paths
from mngr.tmr.rows import GOOD, NO_BODY, PASSED, Found, Rows, cases, cleared, doubtful
from mngr.tmr.verdict import BLOCKED, FAILED, INTEGRATED, REFUTED, Evidence, judge
from mngr.tools.git import Git

NEW_AGAIN = 2  # a new test is run once, and so many times more
CHANCES = 4
_TEXT_MAX = 500_000


class Ground(NamedTuple):
    """What all tasks of a run are measured against."""

    measurer: Measurer
    git: Git
    base: str
    tests: Mapping[str, Found]
    measured: Mapping[str, Measured]
    paths: Paths
    gate_command: str = ""
    effect_runs: int = 20
    functions: Mapping[str, Measured] = {}

    def before(self, task: str) -> Measured:
        """What its test does without any work; the worst of its cases if it has parameters."""
        return self.functions.get(task) or self.measured.get(task) or Measured(UNKNOWN)

    def found(self, task: str) -> Found | None:
        """Its test, or the first of its cases."""
        return self.tests.get(task) or next((self.tests[case] for case in cases(task, self.tests)), None)


def verify(ground: Ground, *, task: str, slug: str, harvested: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict with everything that led to it, as JSON."""
    tip, claim = harvested["tip"], harvested["outcome"]
    before = ground.before(task)
    done = claim is not None and claim["status"] == "done"
    if tip is None:
        reasons = "; ".join(harvested["problems"]) or "its commits could not be had"
        return _row(*judge(task, before, claim, harvested["outcome_problem"], Evidence(0, problem=reasons)))
    objects = Objects(ground.git)
    trees = objects.facts([ground.base, tip])
    pair = (trees[ground.base].tree, trees[tip].tree)
    changes = objects.changes([pair])[pair]
    targets = objects.blobs(parts.links(changes))
    evidence = Evidence(len(changes), refusals=parts.refusals(changes, targets, ground.paths))
    facts: dict[str, Any] = {"files": [change.path for change in changes], "notes": _notes(ground, claim, tip)}
    if before.verdict == UNKNOWN and done and not evidence.refusals:
        before = _at_base(ground, task, slug)
    if changes and not evidence.refusals:
        evidence, more = _measure(ground, objects, task, slug, tip, changes, before)
        facts.update(more)
        marks = [*_flags(ground, objects, changes, task), *_misclaimed(ground, claim, changes)]
        marks += _late(ground, objects, tip, harvested.get("outcome_at"))
        facts["flags"] = [flag._asdict() for flag in marks]
        evidence = evidence._replace(steering=tuple(flag.path for flag in marks if flag.kind in flags.STEERING))
    elif not changes and done and before.verdict == FAIL:
        before = _measured_again(ground, task, slug, before)
    facts["after"] = evidence.after
    found = _row(*judge(task, before, claim, harvested["outcome_problem"], evidence))
    if found["verdict"] == FAILED and facts.get("broken_by"):
        found = _row(REFUTED, (facts["broken_by"],))
    failure = facts.pop("failure", "") or (evidence.problem if found["verdict"] == FAILED else "")
    if failure and found["verdict"] in (REFUTED, FAILED):
        return {**found, **facts, "verdict": FAILED, "reasons": [failure], "failure": failure}
    if found["verdict"] == BLOCKED:
        facts["blocked"] = claim["blocked_reason"]
    if harvested["uncommitted"] and found["verdict"] not in INTEGRATED:
        found["reasons"].append(f"what it did not commit is kept as `{harvested['uncommitted'][:12]}`")
    return {**found, **facts}


def _at_base(ground: Ground, task: str, slug: str) -> Measured:
    """What its test does without its work, when no baseline has told."""
    done = ground.measurer.must_take(
        Measurement(f"base-{slug}", ground.base, [Pytest("test", tests=[task], paths=_files([task]))])
    )
    rows = done.steps["test"].rows
    own = cases(task, rows.ran)
    return (
        folded({case: judge_runs([rows.ran[case]], None) for case in own})
        if own
        else judge_runs([], *rows.broken[:1] or [None])
    )


def _measure(
    ground: Ground, objects: Objects, task: str, slug: str, tip: str, changes: Sequence[Change], before: Measured
) -> tuple[Evidence, dict[str, Any]]:
    steps: list[Shell | Pytest] = [
        Pytest("test", tests=[task], base=base_lines(ground.tests), again=NEW_AGAIN, args=("-p", "no:randomly"))
    ]
    if before.verdict == FLAKY:
        steps += [Pytest(f"steady-{at + 1}", tests=[task], paths=_files([task])) for at in range(NEW_AGAIN)]
    shared = _shared(ground, task, before)
    if shared:
        steps.append(Pytest("effect", tests=shared, paths=_files(shared)))
    if ground.gate_command:
        steps.append(Shell("gate", ground.gate_command))
    wanted = Measurement(f"verify-{slug}", tip, steps)
    done = ground.measurer.take(wanted)
    broken_by, failure = _not_measured(ground, done, before)
    if failure:
        ground.measurer.forget(wanted)
    repeated: list[str] = []
    if not broken_by and not failure and not done.problem and "test" in done.steps:
        done, repeated, failure = _repeated(ground, done, task, slug, tip, before)
    evidence = _evidence(ground, done, task, len(changes))
    split = parts.split(ground.base, changes, ground.paths)
    own = _cases(ground, done, task)
    bad = {test for test, one in ground.measured.items() if one.verdict in (FAIL, BROKEN)}
    effect = []
    if evidence.after == PASSED and before.verdict in (FAIL, BROKEN):
        effect = [test for test in own if test in bad] or [task]
    if shared and "effect" in done.steps:
        effect += [test for test in shared if done.steps["effect"].rows.outcome(test) == PASSED]
    facts: dict[str, Any] = {
        "log": done.directory,
        "new": sorted(evidence.new),
        "changed": sorted(evidence.changed),
        "lost": list(evidence.lost),
        "renamed": list(evidence.renamed),
        "gate_exit": evidence.gate_exit,
        "seconds": round(done.seconds, 3),
        "implementation": split.implementation is not None,
        "effect": effect if split.implementation is not None else None,
        "mended": effect if split.implementation is None else [],
        "stands_alone": None,
        "cases": own if own != [task] else [],
        "repeated": repeated,
        "broken_by": broken_by,
        "failure": failure,
    }
    if split.implementation and split.rest and not failure:
        touched = sorted({*own, *evidence.new, *evidence.changed})
        facts["stands_alone"] = _stands_alone(ground, objects, slug, split.rest, touched)
    return evidence, facts


def _repeated(
    ground: Ground, done: Result, task: str, slug: str, tip: str, before: Measured
) -> tuple[Result, list[str], str]:
    """The result with what failed only by chance counted as passed, what was run again for that, and what is wrong with
    this machine. One failure of its test, of a test that it changed or of the gate command refutes nobody; new tests
    and flaky ones have had their further runs."""
    step, gate = done.steps["test"], done.steps.get("gate")
    own = _cases(ground, done, task) if before.verdict != FLAKY else []
    known = [(test, found) for test, found in step.rows.tests.items() if test in ground.tests]
    tests = doubtful(step.rows, [test for test, one in known if test in own or one.body != ground.tests[test].body])
    names = [f"test-{number + 1}" for number in range(NEW_AGAIN)] if tests else []
    steps: list[Shell | Pytest] = [Pytest(name, tests=tests, paths=_files(tests)) for name in names]
    if gate is not None and gate.exit_code:
        steps.append(Shell("gate", ground.gate_command))
    if not steps:
        return done, [], ""
    wanted = Measurement(f"chance-{slug}", tip, steps, repeat=1)
    again = ground.measurer.take(wanted)
    _, failure = _not_measured(ground, again, before)
    if failure:
        ground.measurer.forget(wanted)
    further = [again.steps[name].rows for name in names if name in again.steps]
    found = {**done.steps, "test": step._replace(rows=cleared(step.rows, tests, further))}
    if "gate" in again.steps:
        found["gate"] = again.steps["gate"]
    return done._replace(steps=found), [*tests, *["gate command"] * ("gate" in again.steps)], failure


def _not_measured(ground: Ground, done: Result, before: Measured) -> tuple[str, str]:
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
        alone = Measurement("prepare", ground.base, [])
        at_base = ground.measurer.take(alone)
        if at_base.problem:
            ground.measurer.forget(alone)
        return ("", at_base.problem) if at_base.problem else (f"its work breaks the build: {_said(done)}", "")
    step = done.steps.get("test")
    if step is not None and not step.rows.ran and not step.rows.finished and not done.problem:
        return f"pytest cannot start with its work: {error_line(log_tail(step))}", ""
    return "", ""


def _said(done: Result) -> str:
    return done.problem.partition("): ")[2] or done.problem


def _measured_again(ground: Ground, task: str, slug: str, before: Measured) -> Measured:
    """An agent that changes nothing says that nothing is wrong with a test that failed. That may be so, if it fails now
    and then: it gets a few more chances before the agent is called wrong."""
    steps = [Pytest(f"test-{number + 1}", tests=[task], paths=_files([task])) for number in range(CHANCES)]
    done = ground.measurer.must_take(Measurement(f"again-{slug}", ground.base, steps))
    seen = [step.rows.outcome(task) for step in done.steps.values()]
    return before._replace(verdict=FLAKY if GOOD & set(seen) else before.verdict, runs=(*before.runs, *seen))


def _evidence(ground: Ground, done: Result, task: str, changed_files: int) -> Evidence:
    step = done.steps.get("test")
    if step is None or (done.problem and not step.rows.ran):
        return Evidence(changed_files, problem=done.problem or "no test was run")
    rows = step.rows
    again = [found.rows for name, found in done.steps.items() if name.startswith("test-again-")]
    outcomes = {
        test: (rows.outcome(test), *(each.outcome(test) for each in again if test not in ground.tests))
        for test, found in rows.tests.items()
        if test not in ground.tests or ground.tests[test].body != found.body
    }
    heirs: dict[str, list[str]] = {}
    for test, found in rows.tests.items():
        if test not in ground.tests and found.body != NO_BODY:
            heirs.setdefault(found.body, []).append(test)
    broken_files = {item.id.partition("::")[0] for item in rows.broken}
    gone = [test for test in ground.tests if test not in rows.tests and test.partition("::")[0] not in broken_files]
    recast = _recast(ground, rows, gone)
    renamed = [test for test in gone if ground.tests[test].body in heirs or test in recast]
    own = _cases(ground, done, task)
    steady = [found.rows for name, found in done.steps.items() if name.startswith("steady-")]
    seen = [
        *((test, rows.outcome(test)) for test in own),
        *((test, each.outcome(test)) for each in steady for test in own),
    ]
    after = _worst(
        [_as_before(ground, test, outcome) for test, outcome in seen] if len(own) > 1 else [one for _, one in seen]
    )
    if "::" in task and not own and task not in gone:  # all its cases are gone: the test is
        gone = [task, *(test for test in gone if test not in cases(task, ground.tests))]
    known_broken = {test.partition("::")[0] for test, each in ground.measured.items() if each.verdict == BROKEN}
    gate = done.steps.get("gate")
    return Evidence(
        changed_files,
        after=after or rows.outcome(task),
        new={test: seen for test, seen in outcomes.items() if test not in ground.tests},
        changed={test: seen for test, seen in outcomes.items() if test in ground.tests},
        lost=tuple(test for test in gone if test not in renamed),
        renamed=tuple(renamed),
        broken=tuple(sorted(broken_files - (known_broken - {task}))),
        gate_exit=gate.exit_code if gate is not None else None,
        problem=done.problem,
    )


def _cases(ground: Ground, done: Result, task: str) -> list[str]:
    """The tests at the agent's commit that are its own: all of its file, its cases, or what it is called there."""
    step = done.steps.get("test")
    if step is None:
        return [task]
    found = step.rows.tests
    if "::" not in task:
        return [test for test in found if test.startswith((f"{task}::", f"{task.removesuffix('/__init__.py')}/"))]
    if own := cases(task, found):
        return own
    bodies = {ground.tests[case].body for case in cases(task, ground.tests)} - {NO_BODY}
    heirs = [test for test, one in found.items() if test not in ground.tests and one.body in bodies]
    return heirs or ([] if cases(task, ground.tests) and task not in ground.tests else [task])


def _recast(ground: Ground, rows: Rows, gone: Sequence[str]) -> set[str]:
    """Cases that are there with other parameters: as many as their function has new ones. What is more than that is
    deleted."""
    found: set[str] = set()
    for function in {ground.tests[test].function for test in gone} - {""}:
        new = [test for test in cases(function, rows.tests) if test not in ground.tests]
        found.update([test for test in gone if ground.tests[test].function == function][: len(new)])
    return found


def _as_before(ground: Ground, case: str, outcome: str) -> str:
    """The outcome of one case among several: skipped or expected to fail as before is as good as passed."""
    before = ground.measured.get(case)
    return PASSED if before is not None and outcome in ("skipped", "xfailed") and outcome in before.runs else outcome


def _worst(outcomes: Sequence[str]) -> str:
    """The first that is bad; else the first."""
    return next((outcome for outcome in outcomes if outcome not in GOOD), next(iter(outcomes), ""))


def _shared(ground: Ground, task: str, own: Measured) -> list[str]:
    """Other tests that failed in the same way: this work may be the fix of them all."""
    if own.verdict != FAIL or not own.signature:
        return []
    same = [test for test, each in ground.measured.items() if each.verdict == FAIL and each.signature == own.signature]
    return [test for test in same if test not in cases(task, same)][: ground.effect_runs]


def _stands_alone(ground: Ground, objects: Objects, slug: str, rest: parts.Part, tests: Sequence[str]) -> bool | None:
    """Whether the tests pass with the work beside the implementation alone; None when that could not be measured."""
    ident = Ident("mngr", "mngr@localhost", 0)
    files = {change.path: change.new for change in rest.changes}
    commit = objects.write([NewCommit(ground.base, files, f"{slug} without its fix\n", ident, ident)])[0]
    done = ground.measurer.take(
        Measurement(f"alone-{slug}", commit, [Pytest("test", tests=tests, paths=_files(tests))])
    )
    if done.problem or "test" not in done.steps:
        return None
    rows = done.steps["test"].rows
    return all(rows.outcome(test) in GOOD | {"skipped"} for test in tests)


def _files(tests: Sequence[str]) -> list[str]:
    return sorted({test.partition("::")[0] for test in tests})


def _flags(ground: Ground, objects: Objects, changes: Sequence[Change], task: str) -> list[flags.Flag]:
    sides = [entry.oid for change in changes for entry in (change.old, change.new) if entry and entry.mode != "120000"]
    blobs = objects.blobs(sides)
    kind = ground.paths.kind

    def text(entry: Any) -> str | None:
        if entry is None or len(blobs.get(entry.oid, b"")) > _TEXT_MAX:
            return None
        return blobs.get(entry.oid, b"").decode(errors="replace")

    changed = [
        flags.File(change.path, text(change.old), text(change.new), kind(change.path) == Kind.IMPLEMENTATION)
        for change in changes
    ]
    given = ground.measurer.environment
    return flags.find(changed, test=task, commands=(given.prepare, given.test_command, ground.gate_command))


def _misclaimed(ground: Ground, claim: Mapping[str, Any] | None, changes: Sequence[Change]) -> Iterator[flags.Flag]:
    """Without a claim there is nothing to hold against its work."""
    if claim is None:
        return
    paths = [change.path for change in changes if ground.paths.kind(change.path) == Kind.IMPLEMENTATION]
    yield from flags.misclaimed(claim["changes"], paths)


def _notes(ground: Ground, claim: Mapping[str, Any] | None, tip: str) -> list[str]:
    """What is odd about the claim, and says nothing about the work: a misspelt value, the id of an amended commit."""
    if claim is None:
        return []
    claimed = [change["commit"] for change in claim["changes"] if change["commit"]]
    commits = (
        ground.git.must("rev-list", tip, f"^{ground.base}", doing="cannot list its commits").split() if claimed else []
    )
    strange = [one for one in claimed if not any(commit.startswith(one) for commit in commits)]
    return [*claim.get("notes", ()), *(f"claimed commit `{one[:12]}` is not among its commits" for one in strange)]


def _late(ground: Ground, objects: Objects, tip: str, outcome_at: float | None) -> Iterator[flags.Flag]:
    """Commits after the outcome file: they are measured and used like the others, but its claim does not know them."""
    if outcome_at is None:
        return
    commits = ground.git.must("rev-list", tip, f"^{ground.base}", doing="git could not list its commits").split()
    facts = objects.facts(commits)
    late = [commit for commit in commits if commit in facts and facts[commit].committed_at > int(outcome_at)]
    if late:
        text = f"{len(late)} of {len(commits)} commits are later than its outcome file, the last {late[0][:12]}"
        yield flags.Flag("late", "", text)


def _row(verdict: str, reasons: tuple[str, ...]) -> dict[str, Any]:
    return {"verdict": verdict, "reasons": list(reasons), "flags": []}
