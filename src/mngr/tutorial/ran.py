"""What the tests of recorded runs really ran, taken from their artifacts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mngr.e2e import artifacts
from mngr.e2e.shell_blocks import normalise
from mngr.e2e.shell_commands import comparable, split
from mngr.errors import NotFoundError
from mngr.records import NamedTuple


class RanTest(NamedTuple):
    """`name` is without parameters. `blocks` are those it said it cites; `commands` are in comparable form. `outcome`
    is empty for a test that was killed."""

    file: str
    name: str
    blocks: frozenset[str]
    commands: frozenset[str]
    outcome: str = "passed"

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


class Ran(NamedTuple):
    runs: tuple[str, ...]
    tests: tuple[RanTest, ...]


def read(directory: str) -> Ran:
    """The tests of a run's directory, or of the newest run below a directory of runs. Raises if there is none."""
    run = artifacts.run(directory)
    if run is None:
        newest = artifacts.runs(directory)[:1]
        if not newest:
            raise NotFoundError(
                f"`{directory}` holds no recorded run of tests",
                hint="run the tests first: `pytest`, with mngr's plugin",
            )
        run = newest[0]
    return Ran((run.name,), tuple(_tests(run)))


def read_every(directory: str) -> Ran:
    """The tests of all runs below a directory of runs, as one measurement leaves them; empty if there is none."""
    found = artifacts.runs(directory)
    return Ran(tuple(run.name for run in found), tuple(test for run in found for test in _tests(run)))


def unrun(commands: Sequence[str], tests: Iterable[RanTest]) -> tuple[int, ...]:
    """Which of the commands none of these tests ran, by number. What a test ran that did not pass does not count."""
    done = frozenset[str]().union(*(test.commands for test in tests if test.passed))
    return tuple(number for number, text in enumerate(commands) if text not in done and comparable(text) not in done)


def read_all(directories: Sequence[str]) -> Ran:
    found = [read(directory) for directory in directories]
    return Ran(tuple(name for one in found for name in one.runs), tuple(test for one in found for test in one.tests))


def _tests(run: artifacts.RunInfo) -> Iterator[RanTest]:
    for test in run.tests():
        yield from map(_test, (test, *test.earlier()))


def _test(test: artifacts.TestInfo) -> RanTest:
    file, _, name = test.node_id.partition("::")
    blocks = frozenset(map(normalise, test.blocks()))
    return RanTest(file, name.partition("[")[0], blocks, _commands(test), test.outcome or "")


def _commands(test: artifacts.TestInfo) -> frozenset[str]:
    """What the shell was given, by complete commands and by the parts of lists that must have run."""
    events = test.events()
    ends = {event.get("number"): event.get("exit_code") for event in events if event.get("type") == "exit"}
    found: set[str] = set()
    for event in events:
        text = event.get("command")
        if event.get("type") not in ("command", "spawn") or not isinstance(text, str):
            continue
        commands = split(normalise(text)).commands
        found.add("\n".join(command.comparable for command in commands))
        for command in commands:
            found.add(command.comparable)
            good = ends.get(event.get("number")) == 0 and command is commands[-1]
            found.update(part.comparable for part in command.parts() if part.sure or good)
    return frozenset(found)
