"""The tests of a run's suite at the base and at the tip of its branch, and against the run before. Pure, but for
`run_before`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Mapping
from typing import Any, NamedTuple

from mngr.mapreduce import run as runs
from mngr.mapreduce.state import RunState
from mngr.report import run_files
from mngr.report.source import cut, key, one_line
from mngr.tmr.measure import baseline
from mngr.tmr.measure.rows import GOOD
from mngr.tmr.run_view import RunView
from mngr.tmr.words import headline

LISTED_MAX = 400
_TEXT_MAX = 4000
_BAD = (baseline.FAIL, baseline.BROKEN, baseline.FLAKY)
WORSE, BETTER, NEW, STILL, SAME, OPEN = "worse", "better", "new", "still not passing", "passes", "not measured"
UNSTABLE = "unstable"
_ORDER = (WORSE, UNSTABLE, STILL, BETTER, NEW, SAME, OPEN)
_WORDS = {"passed": "pass", "failed": "fail", "skipped": "skip", "xfailed": "xfail", "crashed": "crash"}


class ReportData(NamedTuple):
    """All that the pages are made of. `told` are entries of the ledger that the state does not keep, `logs` the
    directories of measurements, by label. `tests` are those of the base by id, `measured` what each did there,
    `functions` what all cases of one did there, `at_tip` what each did at the tip of the branch; `trends` say how a
    test stands against the run `against`."""

    run: RunView
    told: tuple[Mapping[str, Any], ...] = ()
    logs: Mapping[str, str] = {}
    tests: Mapping[str, Mapping[str, Any]] = {}
    measured: Mapping[str, Mapping[str, Any]] = {}
    at_tip: Mapping[str, str] = {}
    functions: Mapping[str, Mapping[str, Any]] = {}
    trends: Mapping[str, str] = {}
    against: str = ""
    going_on: bool = False
    now: float = 0.0

    @property
    def state(self) -> RunState:
        return self.run.state


def suite(known: ReportData) -> headline.Suite:
    """How the tests did, in a few numbers. A test of the base passes at the tip if it does so as it was there."""
    if not known.at_tip or not known.measured:
        return headline.Suite()
    passed = {test for test, one in known.measured.items() if one.get("verdict") == baseline.PASS}
    good = {test for test, outcome in known.at_tip.items() if outcome in GOOD}
    worse = {test for test in passed if test in known.at_tip and at_tip(known, test) not in GOOD | {baseline.FLAKY}}
    agreed = passed & _agreed(known) - good
    gone = passed.difference(known.at_tip, agreed)  # renamed or removed: as it was, it may pass
    as_was = (good | gone).intersection(known.measured).difference(known.run.branch.not_passing)
    return headline.Suite(
        before=len(passed),
        after=len(as_was),
        worse=len(worse - agreed),
        changed=len(good - as_was),
        loosened=len(passed & good - as_was),
        agreed=len(agreed),
    )


def _agreed(known: ReportData) -> set[str]:
    """The tests that refuted work breaks which a person accepted."""
    return {test for task in known.run.tasks if task.overruled and task.place.commits for test in task.breaks}


def before(known: ReportData, task: str) -> Mapping[str, Any]:
    """What its test did at the base; the worst of its cases if it has parameters."""
    return known.functions.get(task) or known.measured.get(task, {})


def at_tip(known: ReportData, test: str) -> str:
    """What a test did at the tip of the branch: `flaky` for one that passed at the base, failed there and passed again,
    which the gate does not count."""
    outcome = known.at_tip.get(test, "")
    passed = known.measured.get(test, {}).get("verdict") == baseline.PASS
    excused = test in known.run.branch.excused and test not in _agreed(known)
    unstable = passed and outcome not in GOOD and excused
    return baseline.FLAKY if unstable else outcome


def before_and_after(known: ReportData) -> dict[str, Any]:
    """How many tests did what at the base, and at the tip of the branch as its gate measured them."""
    after: Counter[str] = Counter()
    for outcome in known.at_tip.values():
        after["pass" if outcome in GOOD else "skipped" if outcome == "skipped" else "fail"] += 1
    return {
        "before": dict(Counter(str(one.get("verdict")) for one in known.measured.values())),
        "after": dict(after) if known.at_tip else None,
        "new": len(set(known.at_tip) - set(known.tests)),
        "failing": [linked(test, known.state) for test in dict.fromkeys(known.run.branch.excused)],
    }


def clusters(known: ReportData) -> list[dict[str, Any]]:
    """Tests that did not pass at the base, put together by how they failed; the biggest cluster first."""
    found: dict[str, list[str]] = {}
    for test, one in known.measured.items():
        if one.get("verdict") in _BAD:
            found.setdefault(str(one.get("signature") or "") or f"no words ({one.get('verdict')})", []).append(test)
    by_id = {task.id: task for task in known.run.tasks}
    made = []
    for signature, tests in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))[:LISTED_MAX]:
        words = Counter(by_id[id].word for test in tests if (id := _task_of(test, by_id)) in by_id)
        made.append(
            {
                "signature": one_line(signature),
                "count": len(tests),
                "tests": [linked(test, known.state) for test in tests[:LISTED_MAX]],
                "verdicts": {word.replace(" ", "-"): count for word, count in words.items()},
                "passing": sum(known.at_tip.get(test) in GOOD for test in tests) if known.at_tip else None,
                "example": cut(str(known.measured[tests[0]].get("text") or "")[-_TEXT_MAX:]),
            }
        )
    return made


def matrix(known: ReportData) -> dict[str, Any]:
    """The tests by file, each as its name, what it did at both ends, how that is called, and the key of its task."""
    files: dict[str, list[list[str]]] = {}
    counts: Counter[str] = Counter()
    there = [task for task in known.run.tasks if task.place.commits]
    renamed = {test for task in there for test in task.evidence.replaced} - set(known.at_tip)
    for test in dict.fromkeys([*known.measured, *known.at_tip]):
        if test in renamed:
            continue
        base, tip = (
            _WORDS.get(word, word)
            for word in (
                str(known.measured.get(test, {}).get("verdict") or ""),
                at_tip(known, test) or ("missing" if known.at_tip else ""),
            )
        )
        kind = _kind(base, tip)
        counts[kind] += 1
        file, _, name = test.partition("::")
        files.setdefault(file, []).append([name or file, base, tip, kind, linked(test, known.state)["key"]])
    return {
        "files": [{"name": name, "tests": files[name]} for name in sorted(files)],
        "counts": {kind: counts[kind] for kind in _ORDER if counts[kind]},
        "measured": bool(known.at_tip),
    }


def _kind(base: str, tip: str) -> str:
    passes = tip in ("pass", "xfail")
    if not tip or base == baseline.UNKNOWN:
        return OPEN
    if not base:
        return NEW if passes else WORSE
    if tip == baseline.FLAKY:
        return UNSTABLE
    if base == "pass":
        return SAME if passes else WORSE
    if base == "skip" and tip == "skip":
        return SAME
    return BETTER if passes else STILL


def run_before(repo: str, directory: str) -> tuple[str, Mapping[str, Mapping[str, Any]]]:
    """The last run of the repository before this one that measured something, and what each test did there."""
    places = [os.path.realpath(place) for place in runs.all_of(repo)]
    own = os.path.realpath(directory)
    for place in reversed(places[: places.index(own)] if own in places else ()):
        if tests := measured_in(place):
            return os.path.basename(place), tests
    return "", {}


def measured_in(place: str) -> Mapping[str, Mapping[str, Any]]:
    kept = run_files.document(place, "baseline.json")
    tests = kept.get("tests") if isinstance(kept, dict) else None
    return tests if isinstance(tests, dict) else {}


def trends(measured: Mapping[str, Mapping[str, Any]], earlier: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """How each test that was measured now stands against an earlier run."""
    found = {}
    for test, one in measured.items() if earlier else ():
        was_bad, bad = earlier.get(test, {}).get("verdict") in _BAD, one.get("verdict") in _BAD
        if test not in earlier:
            found[test] = "new test"
        elif bad:
            found[test] = "still failing" if was_bad else "newly failing"
        elif was_bad and one.get("verdict") == baseline.PASS:
            found[test] = "no longer failing"
    return found


def _task_of(test: str, tasks: Container[str]) -> str:
    """The task of a test: its own, or that of the function whose case it is."""
    return test if test in tasks else test.partition("[")[0]


def linked(test: str, state: RunState) -> dict[str, str]:
    """A test with the page of its task, where it has one."""
    task = state.tasks.get(_task_of(test, state.tasks))
    return {"name": test, "key": key(task.slug) if task is not None and "role" not in task.data else ""}
