"""What the measured tests of a project say together: changes that no test noticed. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mngr.records import NamedTuple
from mngr.tmr.strength_rows import SURVIVED, Measured


class Unnoticed(NamedTuple):
    """A change that no test noticed, and where it was made: a command, or a file of the product."""

    where: str
    change: str
    tests: tuple[str, ...]


def unnoticed(found: Mapping[str, Measured]) -> list[Unnoticed]:
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


def not_run(found: Collection[Measured]) -> bool:
    """Whether no test runs a line of the product that was measured: then the tests use another copy of it."""
    known = [one for one in found if one.lines is not None]
    return bool(known) and not any(one.lines for one in known)
