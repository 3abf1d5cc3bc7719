"""Tests once more in other surroundings: which of them pass here and not there, what that depends on, and whether it
did so before anybody changed anything."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mngr.system import files
from mngr.tmr.measure import rows
from mngr.tmr.measure.measurement import PluginStep
from mngr.tmr.measure.rows import RanTest, Rows

STEP = "surroundings"
# What is changed, in words, by the name of the group that the probe gives it.
WORDS = {
    "place": "the path of the checkout, of temporary files and the dates of files",
    "process": "the name, the arguments, the parent and the terminal of the process",
    "environment": "variables of the environment, the home and the seed of hashes",
    "clock": "the day",
    "traces": "names in the stack of calls and the handlers of the root logger",
}


class Surroundings(NamedTuple):
    """What came of each test in other surroundings. `again` has a second run of those that did not pass there, `alone`
    their runs with one of the changes each; `unchanged` is their run in such a process with nothing changed."""

    there: Rows = Rows()
    again: Rows | None = None
    alone: Mapping[str, Rows] = {}
    unchanged: Rows | None = None

    def causes(self, test: str) -> tuple[str, ...]:
        """Which changes are enough, by themselves, for a test not to pass; none if it takes several of them."""
        return tuple(group for group, found in self.alone.items() if test in found.ran and not found.ran[test].good)


class Dependence(NamedTuple):
    """A test that passes here and not in other surroundings: what it did there, and which changes make it so."""

    test: str
    outcome: str
    said: str
    causes: tuple[str, ...]

    @property
    def words(self) -> str:
        """What it depends on, for a person."""
        return " and ".join(WORDS[cause] for cause in self.causes) or "several of its surroundings together"


def step(tests: Sequence[str]) -> PluginStep:
    """A step that runs these tests once more, after all others: it leaves no file in the copy that it runs in."""
    return PluginStep(STEP, "mngr_surroundings", list(tests))


def read(directory: str) -> Surroundings | None:
    """What a measurement with that step left in its directory; None if it did not come to a result, or to one that
    cannot be believed."""
    runs: dict[tuple[str, ...], list[Mapping[str, object]]] = {}
    for row in files.read_lines(files.content(os.path.join(directory, f"{STEP}.rows"))):
        varied = row.get("varied")
        if isinstance(varied, list):
            runs.setdefault(tuple(map(str, varied)), []).append(row)
    found = {varied: rows.gathered(each) for varied, each in runs.items()}
    there = found.get(tuple(WORDS), Rows())
    if not there.finished or there.doubt:
        return None
    alone = {varied[0]: each for varied, each in found.items() if len(varied) == 1 and not each.doubt}
    return Surroundings(there, found.get((*WORDS, "again")), alone, found.get(()))


def differing(here: Rows, found: Surroundings) -> list[Dependence]:
    """The tests that pass here and not there."""
    different = []
    for test, ran in found.there.ran.items():
        if test not in here.ran or not here.ran[test].good or ran.good:
            continue
        by_chance = found.again is not None and test in found.again.ran and found.again.ran[test].good
        unchanged = found.unchanged.ran.get(test) if found.unchanged is not None else None
        if by_chance or (unchanged is not None and not unchanged.good):
            continue  # not by anything that was changed
        different.append(Dependence(test, ran.outcome, ran.signature, found.causes(test)))
    return different


def new(different: Iterable[Dependence], before: Mapping[str, RanTest], there: Surroundings | None) -> list[Dependence]:
    """Those that do not come from the base: `before` is what the base's own tests do there as it is, and `there` what
    they do in other surroundings. A test that fails in both, but not in the same way, depends on them already."""
    if there is None:
        return list(different)
    return [one for one in different if not _depends(before.get(one.test), there.there.ran.get(one.test))]


def _depends(here: RanTest | None, there: RanTest | None) -> bool:
    if here is None or there is None or there.good:
        return False
    return here.good or here.signature != there.signature
