"""What the tests of recorded runs really ran, taken from their artifacts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mngr.e2e import artifacts, code_state
from mngr.e2e.shell_blocks import normalise
from mngr.e2e.shell_commands import SEPARATOR, Command, Piece, split, squeezed
from mngr.errors import NotFoundError

_DOCUMENTATION = (".md", ".rst", ".adoc")


class RecordedTest(NamedTuple):
    """`name` is without parameters. `blocks` are those it said it cites. `outcome` is empty for a test that was
    killed."""

    file: str
    name: str
    blocks: frozenset[str]
    commands: frozenset[str]
    outcome: str = "passed"

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


class RecordedRuns(NamedTuple):
    """`runs` are the names of the runs that count. `stale` says of each other one why it does not; `uncommitted` are
    files that were edited since, and not committed yet."""

    runs: tuple[str, ...]
    tests: tuple[RecordedTest, ...]
    stale: tuple[str, ...] = ()
    uncommitted: tuple[str, ...] = ()


def read(directories: Sequence[str], root: str, script: str = "") -> RecordedRuns:
    """The tests of runs: each directory is one, or has some below it, of which the newest is taken. Raises if there is
    none. A run counts if it is of the code at `root`: the same files, but for documentation and the tutorial `script`,
    which is compared block by block. Edits that are not committed yet do not make it stale."""
    names, tests, stale, uncommitted = list[str](), list[RecordedTest](), list[str](), set[str]()
    for directory in directories:
        run = _newest(directory)
        since = code_state.since(root, run.code) if run.code else None
        if why := _stale(run, since, root, script):
            stale.append(f"the recorded run {run.name} does not count: {why}")
            continue
        names.append(run.name)
        tests += _tests(run)
        uncommitted.update(path for path in (since.uncommitted if since else ()) if _matters(path, script))
    return RecordedRuns(tuple(names), tuple(tests), tuple(stale), tuple(sorted(uncommitted)))


def _newest(directory: str) -> artifacts.RunInfo:
    run = artifacts.run(directory)
    found = [run] if run else artifacts.runs(directory)
    if not found:
        hint = "run the tests first: `pytest`, with mngr's plugin"
        raise NotFoundError(f"`{directory}` holds no recorded run of tests", hint=hint)
    return found[0]


def _stale(run: artifacts.RunInfo, since: code_state.Since | None, root: str, script: str) -> str:
    """Why a run says nothing about the code as it is now; empty if it does, or if there is no repository to ask."""
    if run.code is None:
        return "it has no record of its commit" if code_state.look(root) else ""
    if since is None:
        return ""
    then, now = run.code.commit[:7], since.commit[:7]
    if not since.known:
        return f"it was recorded at {then}, which this repository does not have"
    changed = [path for path in since.committed if _matters(path, script)]
    if not changed:
        return ""
    files = f"{changed[0]} and {len(changed) - 1} more" if len(changed) > 1 else changed[0]
    if then == now:
        return f"it was recorded with uncommitted changes of {files} that are gone"
    return f"it was recorded at {then}, now at {now}, and {files} changed"


def _matters(path: str, script: str) -> bool:
    return not path.endswith(_DOCUMENTATION) and path != os.path.normpath(script)


def read_every(directory: str, place: str = "") -> RecordedRuns:
    """The tests of all runs below a directory of runs, as one measurement leaves them; empty if there is none. `place`
    is where in the repository pytest ran, if not at the top."""
    found = artifacts.runs(directory)
    tests = [test._replace(file=place + test.file) for run in found for test in _tests(run)]
    return RecordedRuns(tuple(run.name for run in found), tuple(tests))


def unrun(commands: Sequence[str], tests: Iterable[RecordedTest]) -> tuple[int, ...]:
    """Which of the commands none of these tests ran, by number. What a test ran that did not pass does not count."""
    done = frozenset[str]().union(*(test.commands for test in tests if test.passed))
    return tuple(number for number, text in enumerate(commands) if text not in done)


def _tests(run: artifacts.RunInfo) -> Iterator[RecordedTest]:
    return map(_test, run.tests())


def _test(test: artifacts.TestInfo) -> RecordedTest:
    file, _, name = test.node_id.partition("::")
    blocks = frozenset(map(normalise, test.blocks()))
    return RecordedTest(file, name.partition("[")[0], blocks, _commands(test), test.outcome or "")


def _commands(test: artifacts.TestInfo) -> frozenset[str]:
    """What the shell was given, by complete commands and by the parts of lists that must have run."""
    events = test.events()
    ends = {event.get("number"): event.get("exit_code") for event in events if event.get("type") == "exit"}
    found: set[str] = set()
    for event in events:
        text = event.get("command")
        if event.get("type") in ("command", "spawn") and isinstance(text, str):
            commands = split(normalise(text)).commands
            for command in commands:
                good = ends.get(event.get("number")) == 0 and command is commands[-1]
                found.update((command.text, *parts(command, good)))
    return frozenset(found)


def parts(command: Command, good: bool) -> list[str]:
    """The commands of a list such as `a; b && c` that must have run: what follows `||` may not have, and what follows
    `&&` has only if the last list came to a `good` end."""
    lists: list[list[list[Piece]]] = [[[]]]
    for kind, piece in command.pieces:
        if kind == SEPARATOR and piece in (";", "&"):
            lists.append([[]])
        elif kind == SEPARATOR and piece in ("&&", "||"):
            lists[-1].append([])
        else:
            lists[-1][-1].append((kind, piece))
    while len(lists) > 1 and not squeezed(lists[-1][-1]):
        lists.pop()
    ran = [each[0] for each in lists]
    if good and (SEPARATOR, "||") not in command.pieces:
        ran += lists[-1][1:]
    return list(filter(None, map(squeezed, ran)))
