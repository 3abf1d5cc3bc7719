"""Every test of the suite, at the base and at the tip of the branch: which got worse, which better, which are new."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mngr.report.tmr_rows import ReportData, at_tip, linked
from mngr.tmr import baseline

WORSE, BETTER, NEW, STILL, SAME, OPEN = "worse", "better", "new", "still not passing", "passes", "not measured"
UNSTABLE = "unstable"
_ORDER = (WORSE, UNSTABLE, STILL, BETTER, NEW, SAME, OPEN)
_WORDS = {"passed": "pass", "failed": "fail", "skipped": "skip", "xfailed": "xfail", "crashed": "crash"}


def matrix(known: ReportData) -> dict[str, Any]:
    """The tests by file, each as its name, what it did at both ends, how that is called, and the key of its task."""
    files: dict[str, list[list[str]]] = {}
    counts: Counter[str] = Counter()
    moves: Counter[tuple[str, str]] = Counter()
    tests = [*known.measured, *(test for test in known.at_tip if test not in known.measured)]
    renamed = _renamed(known)
    for test in tests:
        if test in renamed and test not in known.at_tip:
            continue
        base = _base(known, test)
        tip = _word(at_tip(known, test) or ("missing" if known.at_tip else ""))
        kind = _kind(base, tip)
        counts[kind] += 1
        moves[base or "new", tip or "not measured"] += 1
        file, _, name = test.partition("::")
        link = linked(test, known.state)["key"]
        files.setdefault(file, []).append([name or file, base, tip, kind, link])
    return {
        "files": [{"name": name, "tests": files[name]} for name in sorted(files)],
        "counts": {kind: counts[kind] for kind in _ORDER if counts[kind]},
        "moves": [[*move, count] for move, count in moves.most_common()],
        "measured": bool(known.at_tip),
    }


def _renamed(known: ReportData) -> set[str]:
    """Tests of the base that work on the branch has under another name."""
    on_branch = {slug for commit in known.integration.get("commits", ()) for slug in commit["slugs"]}
    tasks = [task for task in known.state.tasks.values() if task.slug in on_branch and task.last is not None]
    return {str(test) for task in tasks if task.last for test in (task.last.verdict or {}).get("renamed", ())}


def _base(known: ReportData, test: str) -> str:
    found = known.measured.get(test)
    return "" if found is None else _word(str(found.get("verdict") or ""))


def _word(outcome: str) -> str:
    return _WORDS.get(outcome, outcome)


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
