"""What the tests of recorded runs really ran, taken from their artifacts."""

from __future__ import annotations

from collections.abc import Sequence

from mngr.e2e import artifacts
from mngr.e2e.shell_blocks import normalise
from mngr.e2e.shell_commands import split
from mngr.errors import NotFoundError
from mngr.records import NamedTuple


class RanTest(NamedTuple):
    """`name` is without parameters. `blocks` are those it said it cites; `commands` are in comparable form."""

    file: str
    name: str
    blocks: frozenset[str]
    commands: frozenset[str]


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
    return Ran((run.name,), tuple(_test(attempt) for test in run.tests() for attempt in (test, *test.earlier())))


def read_all(directories: Sequence[str]) -> Ran:
    found = [read(directory) for directory in directories]
    return Ran(tuple(name for one in found for name in one.runs), tuple(test for one in found for test in one.tests))


def _test(test: artifacts.TestInfo) -> RanTest:
    file, _, name = test.node_id.partition("::")
    return RanTest(file, name.partition("[")[0], frozenset(map(normalise, test.blocks())), _commands(test))


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
