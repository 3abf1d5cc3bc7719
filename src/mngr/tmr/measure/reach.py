"""What no test notices: changed lines of the product that none runs, and tests that take much longer than before."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mngr.system import files
from mngr.system.git import Git
from mngr.tmr.measure.measurement import PluginStep
from mngr.tmr.measure.rows import Rows

STEP = "reach"
SECONDS = 60.0
_SLOWER, _SLOWER_BY = 3.0, 0.2
_HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


class Reach(NamedTuple):
    """Of `lines` changed lines of Python that hold anything to run, those that no test runs. `unknown` are changed
    files of the product in other languages; `why` says why not all tests could tell."""

    lines: int = 0
    unreached: Mapping[str, tuple[int, ...]] = {}
    tests: int = 0
    unknown: tuple[str, ...] = ()
    why: str = ""

    @property
    def unreached_count(self) -> int:
        return sum(map(len, self.unreached.values()))

    @property
    def words(self) -> str:
        """For a person: how many, and which."""
        places = [f"`{path}` {_ranges(lines)}" for path, lines in self.unreached.items()]
        who = f"none of the {self.tests} tests that were run" if self.why else "no test"
        return (
            f"{self.unreached_count} of {self.lines} changed lines of the product are run by {who}: {', '.join(places)}"
        )


class Slower(NamedTuple):
    """A test that takes much longer than at the base, in seconds."""

    test: str
    before: float
    after: float

    @property
    def words(self) -> str:
        return f"`{self.test}` takes {self.after:.2f} s, and took {self.before:.2f} s"


def changed_lines(git: Git, old: str, new: str, product: Sequence[str]) -> dict[str, list[int]]:
    """The lines of these files that are new or other than before, by file."""
    if not product:
        return {}
    found: dict[str, list[int]] = {}
    for path in product:
        words = ("diff", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", old, new, "--", f":(top,literal){path}")
        for line in git.run(*words).stdout.splitlines():
            if match := _HUNK.match(line):
                start, count = int(match[1]), int(match[2] or 1)
                found.setdefault(path, []).extend(range(start, start + count))
    return found


def step(lines: Mapping[str, Sequence[int]], first: Sequence[str], seconds: float = SECONDS) -> PluginStep:
    """A step that runs tests until all these lines were run, these tests first, and then all others."""
    python = {path: list(numbers) for path, numbers in lines.items() if path.endswith(".py")}
    return PluginStep(STEP, "mngr_reach", [], {"lines": python, "first": list(first), "seconds": seconds})


def read(directory: str, lines: Mapping[str, Sequence[int]]) -> Reach | None:
    """What a measurement with that step left in its directory; None if it did not come to a result."""
    rows = files.read_lines(files.content(os.path.join(directory, f"{STEP}.rows")))
    unknown = tuple(path for path in lines if not path.endswith(".py"))
    for row in rows:
        try:
            unreached = {path: tuple(map(int, numbers)) for path, numbers in row["unreached"].items()}
            return Reach(sum(row["lines"].values()), unreached, int(row["tests"]), unknown, str(row["why"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    return None


def slower(before: Mapping[str, float], after: Rows) -> list[Slower]:
    """The tests that passed and took three times as long as at the base, and longer by what a person would notice. One
    measurement on a busy machine is no proof: take another one before it is held against anybody."""
    found = [Slower(test, before[test], ran.seconds) for test, ran in after.ran.items() if test in before and ran.good]
    return [one for one in found if one.after > _SLOWER * one.before and one.after - one.before > _SLOWER_BY]


def _ranges(lines: Sequence[int]) -> str:
    found: list[list[int]] = []
    for line in sorted(lines):
        if found and line == found[-1][1] + 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)
