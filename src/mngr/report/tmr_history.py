"""A run against the earlier ones of its repository: which failures are new, which recur, which are gone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mngr.files import read_lines
from mngr.mapreduce import ledger
from mngr.mapreduce import run as runs
from mngr.report import run_files
from mngr.tmr import baseline

NEW, FIXED, RECURRING, FRESH = "newly failing", "no longer failing", "still failing", "new test"
_MOST_RUNS = 5
_MOST_LEDGER = 100_000_000
_BAD = (baseline.FAIL, baseline.BROKEN, baseline.FLAKY)


class Past(NamedTuple):
    """An earlier run: what each test did at its base, and what came of each task."""

    id: str
    began_at: str
    measured: Mapping[str, str]
    verdicts: Mapping[str, str]


def earlier(repo: str, directory: str) -> list[Past]:
    """The runs of the repository that began before this one and measured something, the latest first."""
    places = runs.all_of(repo)
    own = [at for at, place in enumerate(places) if os.path.realpath(place) == os.path.realpath(directory)]
    before = places[: own[0]] if own else ()
    found = []
    for place in reversed(before):
        past = _read(place)
        if past is not None and past.measured:
            found.append(past)
        if len(found) >= _MOST_RUNS:
            break
    return found


def trends(measured: Mapping[str, Mapping[str, Any]], past: Sequence[Past]) -> dict[str, str]:
    """How each test that was measured now stands against the last time it was measured before. Pure."""
    if not past:
        return {}
    found = {}
    for test, one in measured.items():
        before = next((run.measured[test] for run in past if test in run.measured), None)
        bad = one.get("verdict") in _BAD
        if before is None:
            found[test] = FRESH
        elif bad:
            found[test] = RECURRING if before in _BAD else NEW
        elif before in _BAD and one.get("verdict") == baseline.PASS:
            found[test] = FIXED
    return found


def story(test: str, past: Sequence[Past]) -> list[dict[str, str]]:
    """What earlier runs knew of a test, the latest first. Pure."""
    return [
        {
            "run": run.id,
            "began_at": run.began_at,
            "before": run.measured.get(test, ""),
            "verdict": run.verdicts.get(test, ""),
        }
        for run in past
        if test in run.measured or test in run.verdicts
    ]


def _read(place: str) -> Past | None:
    data = run_files.read(place, ledger.FILE, most=_MOST_LEDGER)
    if data is None:
        return None
    first: Mapping[str, Any] = next(iter(read_lines(data.partition(b"\n")[0])), {})
    if first.get("recipe") != "tmr":
        return None
    verdicts: dict[str, str] = {}
    for line in data.split(b"\n"):
        if b'"type": "verdict"' in line[:80]:
            for entry in read_lines(line):
                verdicts[str(entry.get("task"))] = str((entry.get("data") or {}).get("verdict") or "")
    kept = run_files.document(place, "baseline.json")
    tests = kept.get("tests") if isinstance(kept, dict) else None
    measured = {test: str(one.get("verdict")) for test, one in tests.items()} if isinstance(tests, dict) else {}
    return Past(str(first.get("run") or os.path.basename(place)), str(first.get("at") or ""), measured, verdicts)
