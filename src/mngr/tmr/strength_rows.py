"""What `mngr_strength` wrote, read: which edits and mutants each test noticed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mngr import files

KILLED, SURVIVED, TIMEOUT, UNCLEAR = "killed", "survived", "timeout", "unclear"
NOT_ASKED = "not asked for"


class MeasuredCommand(NamedTuple):
    """`digest` is the same for the same output, whatever its numbers are; empty without output."""

    text: str
    digest: str


class Tried(NamedTuple):
    """One change, and what came of it. `file` and `line` are those of a source mutant."""

    text: str
    result: str
    file: str = ""
    line: int = 0


class MeasuredTest(NamedTuple):
    """One test. Edits are named by the number of their command and their own id. `no_edits` and `no_mutants` say why
    there are none; `lines` are those of the product that it runs, by file, if that is known; `spoiled` is what came of
    it with a spoiled product, which is tried when nothing else makes it fail; `done` is whether that is all."""

    test: str
    outcome: str = ""
    seconds: float = 0.0
    commands: tuple[MeasuredCommand, ...] = ()
    edits: Mapping[tuple[int, str], Tried] = {}
    no_edits: str = NOT_ASKED
    mutants: Mapping[str, Tried] = {}
    no_mutants: str = NOT_ASKED
    lines: Mapping[str, frozenset[int]] | None = None
    spoiled: str = ""
    done: bool = False

    @property
    def tried(self) -> list[Tried]:
        """Time-outs and what could not be decided prove nothing either way."""
        return [one for one in (*self.edits.values(), *self.mutants.values()) if one.result in (KILLED, SURVIVED)]

    @property
    def kills(self) -> int:
        return sum(one.result == KILLED for one in self.tried)

    @property
    def only_reads_output(self) -> bool:
        """Whether it notices what commands print, and no mutant: these may be commands of another program. A test of a
        failure, which a spoiled product has too, is known by its looking at an exit code or at text that is not
        there."""
        killed = [id for (_, id), one in self.edits.items() if one.result == KILLED]
        reads = any(id.startswith("stdout ") and id != "stdout line added" for id in killed)
        return reads and not any(one.result == KILLED for one in self.mutants.values())

    @property
    def measured(self) -> bool:
        return self.outcome == "passed" and not (self.no_edits and self.no_mutants)


def _as_it_is(value: Any) -> Any:
    return value


_READ: Mapping[str, Callable[[Any], Any]] = {
    "commands": lambda rows: tuple(MeasuredCommand(*row) for row in rows),
    "edits": lambda rows: {(number, id): Tried(text, result) for number, id, text, result in rows},
    "mutants": lambda rows: {id: Tried(*facts) for id, *facts in rows},
    "lines": lambda lines: {file: frozenset(numbers) for file, numbers in lines.items()},
}


def read(data: bytes) -> dict[str, MeasuredTest]:
    """All tests, by id. Torn lines are passed over."""
    found: dict[str, MeasuredTest] = {}
    for row in files.read_lines(data):
        test = row.get("id")
        if isinstance(test, str):
            facts = {name: _READ.get(name, _as_it_is)(row[name]) for name in MeasuredTest._fields if name in row}
            found[test] = found.get(test, MeasuredTest(test))._replace(**facts)
    return found


def in_directory(path: str) -> dict[str, MeasuredTest]:
    """What a measurement left in its directory; nothing if it measured no strength."""
    return read(files.content(os.path.join(path, "strength.noticed")))


def joined(test: str, cases: Sequence[MeasuredTest]) -> MeasuredTest:
    """Several cases as one test: their commands one after another; a mutant is killed if one of them kills it."""
    if len(cases) == 1:
        return cases[0]._replace(test=test)
    commands: list[MeasuredCommand] = []
    edits: dict[tuple[int, str], Tried] = {}
    mutants: dict[str, Tried] = {}
    lines: dict[str, frozenset[int]] = {}
    for case in cases:
        edits.update({(number + len(commands), id): one for (number, id), one in case.edits.items()})
        commands += case.commands
        for id, one in case.mutants.items():
            if id not in mutants or mutants[id].result != KILLED:
                mutants[id] = one
        for file, executed in (case.lines or {}).items():
            lines[file] = lines.get(file, frozenset()) | executed
    worst = next((case.outcome for case in cases if case.outcome != "passed"), "passed")
    known = all(case.lines is not None for case in cases)
    return MeasuredTest(
        test=test,
        outcome=worst,
        seconds=sum(case.seconds for case in cases),
        commands=tuple(commands),
        edits=edits,
        no_edits=_common(case.no_edits for case in cases),
        mutants=mutants,
        no_mutants=_common(case.no_mutants for case in cases),
        lines=lines if known else None,
        spoiled=next((case.spoiled for case in cases if case.spoiled != "passed"), "passed"),
    )


def repeated(first: MeasuredTest, again: MeasuredTest) -> MeasuredTest:
    """What was tried twice counts if it came out the same both times, and is unclear otherwise."""

    def both(one: Tried, other: Tried | None) -> Tried:
        return one if other is None or other.result == one.result else one._replace(result=UNCLEAR)

    return first._replace(
        edits={key: both(one, again.edits.get(key)) for key, one in first.edits.items()},
        mutants={key: both(one, again.mutants.get(key)) for key, one in first.mutants.items()},
        seconds=first.seconds + again.seconds,
    )


def _common(reasons: Iterable[str]) -> str:
    """Empty as soon as one case was measured."""
    listed = list(reasons)
    return "" if "" in listed else "; ".join(dict.fromkeys(listed))


class Unnoticed(NamedTuple):
    """A change that no test noticed, and where it was made: a command, or a file of the product."""

    where: str
    change: str
    tests: tuple[str, ...]


def unnoticed(found: Mapping[str, MeasuredTest]) -> list[Unnoticed]:
    """Changes that every test missed that ran the same command with the same output, or the changed line."""
    tried: dict[tuple[str, str, str], list[tuple[str, str, str]]] = {}
    for test, one in found.items():
        for (number, id), edit in one.edits.items():
            command = one.commands[number]
            where = f"`{command.text}`"
            tried.setdefault((where, command.digest, id), []).append((test, edit.text, edit.result))
        for id, mutant in one.mutants.items():
            tried.setdefault((mutant.file, "", id), []).append((test, mutant.text, mutant.result))
    missed = []
    for (where, _, _), results in tried.items():
        if {result for _, _, result in results} == {SURVIVED}:
            missed.append(Unnoticed(where, results[0][1], tuple(test for test, _, _ in results)))
    return sorted(missed, key=lambda one: (not one.where.startswith("`"), one.where))


def not_run(found: Collection[MeasuredTest]) -> bool:
    """Whether no test runs a line of the product that was measured: then the tests use another copy of it."""
    known = [one for one in found if one.lines is not None]
    return bool(known) and not any(one.lines for one in known)
