"""What tests notice: reads what `mngr_strength` measured, and compares two versions of a test. Is it stronger?

A kill is an edit or mutant with which the test fails. Only the same edit of the same command, or the same mutant, can
show that a version is weaker. What only one of them runs counts for that one, and is for a person when both have some.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mngr.json_values import plain
from mngr.system import files

KILLED, SURVIVED, TIMEOUT, UNCLEAR = "killed", "survived", "timeout", "unclear"
NOT_ASKED = "not asked for"
STRONGER, SAME, WEAKER, MIXED = "stronger", "same", "weaker", "mixed"
CANNOT_FAIL, NOT_MEASURED = "cannot fail", "not measured"
_LISTED_MAX = 40
_CHANGES_MIN, _KILLS_MIN = 5, 3
# How well two commands fit: the very same, with the same output, and so on. Below `_EXACT` a lost kill is not certain.
_EXACT = 60.0


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


class Strength(NamedTuple):
    """`gained` and `lost` are kills, in words. `why` says why nothing was measured, or what the word rests on.
    `again` are the ids of what has to be tried again until a lost kill counts."""

    word: str
    before: tuple[int, int]
    after: tuple[int, int]
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    how: str = ""
    seconds: float = 0.0
    why: str = ""
    again: tuple[str, ...] = ()

    @property
    def few(self) -> bool:
        """Whether so few changes were tried that no difference says nothing, and one lost kill is for a person."""
        return min(self.before[1], self.after[1]) < _CHANGES_MIN

    @property
    def says_little(self) -> bool:
        """Whether it is no proof that a test notices as much as before."""
        return self.word == NOT_MEASURED or (self.word == SAME and (self.few or self.after[0] < _KILLS_MIN))

    def as_json(self) -> dict[str, Any]:
        """For the ledger: the first of the kills, and nothing of what is to be tried again."""
        bare = self._replace(gained=self.gained[:_LISTED_MAX], lost=self.lost[:_LISTED_MAX], again=())
        return {**plain(bare), "seconds": round(self.seconds, 3)}


class _Difference(NamedTuple):
    """One change: what came of it before and after, and its ids there, empty where it was not tried. Only a `certain`
    one can show that a version is weaker."""

    text: str
    old: str
    new: str
    before: str
    after: str
    certain: bool = True


def compare(before: MeasuredTest | None, after: MeasuredTest | None) -> Strength:
    """A new test has nothing before it. A test that fails with a spoiled product can fail, whatever was measured."""
    if after is None or not after.measured:
        return Strength(NOT_MEASURED, _bar(before), _bar(after), why=_why_not(after))
    tried: list[_Difference] = []
    if before is not None and before.measured:
        tried = [*_of_edits(before, after), *_of_mutants(before, after)]
    gained = [one for one in tried if (one.old, one.new) == (SURVIVED, KILLED)]
    lost = [one for one in tried if (one.old, one.new) == (KILLED, SURVIVED)]
    if not after.kills and after.spoiled in ("", "passed"):
        word = CANNOT_FAIL
    elif before is None:
        word = STRONGER
    elif not before.measured:
        word = NOT_MEASURED
    elif lost:
        word = MIXED if gained or not any(one.certain for one in lost) else WEAKER
    else:
        word = STRONGER if gained else SAME
    return Strength(
        word,
        _bar(before),
        _bar(after),
        gained=tuple(dict.fromkeys(one.text for one in gained)),
        lost=tuple(dict.fromkeys(one.text for one in lost)),
        how=_how(after),
        seconds=after.seconds + (before.seconds if before is not None else 0.0),
        why=_why_not(before) if word == NOT_MEASURED else _basis(word, after),
        again=tuple(dict.fromkeys(id for one in lost for id in (one.before, one.after) if id)),
    )


def _of_edits(before: MeasuredTest, after: MeasuredTest) -> Iterator[_Difference]:
    """In commands that only one version runs, the other noticed nothing."""
    if before.no_edits or after.no_edits:
        return
    partner = dict(aligned(before.commands, after.commands))
    exact = {old for old, new in partner.items() if _fit(before.commands[old], after.commands[new]) >= _EXACT}
    # Nothing new is run: then what is not run any more is certainly not noticed.
    only_fewer = len(exact) == len(partner) == len(after.commands)
    for (number, id), tried in before.edits.items():
        text = f"`{before.commands[number].text}`: {tried.text}"
        if number not in partner:
            yield _Difference(text, tried.result, SURVIVED, f"{number} {id}", "", only_fewer)
        elif (other := after.edits.get((partner[number], id))) is not None:
            ids = (f"{number} {id}", f"{partner[number]} {id}")
            yield _Difference(text, tried.result, other.result, *ids, number in exact)
    known = set(partner.values())
    for (number, id), tried in after.edits.items():
        if number not in known:
            text = f"`{after.commands[number].text}`: {tried.text}"
            yield _Difference(text, SURVIVED, tried.result, "", f"{number} {id}")


def _of_mutants(before: MeasuredTest, after: MeasuredTest) -> Iterator[_Difference]:
    """A mutant in a line that a test does not run survives."""
    if before.no_mutants or after.no_mutants:
        return
    for id in dict.fromkeys((*before.mutants, *after.mutants)):
        tried = before.mutants.get(id) or after.mutants[id]
        results = [_result(side, id, tried) for side in (before, after)]
        ids = [id if id in side.mutants else "" for side in (before, after)]
        yield _Difference(tried.text, results[0], results[1], ids[0], ids[1])


def _result(side: MeasuredTest, id: str, tried: Tried) -> str:
    if id in side.mutants:
        return side.mutants[id].result
    runs_it = side.lines is None or tried.line in side.lines.get(tried.file, frozenset())
    return "" if runs_it else SURVIVED


def aligned(before: Sequence[MeasuredCommand], after: Sequence[MeasuredCommand]) -> list[tuple[int, int]]:
    """Which command of one version is which of the other: those that fit best first, in their order."""
    fits = [(_fit(one, other), old, new) for old, one in enumerate(before) for new, other in enumerate(after)]
    found: dict[int, int] = {}
    for fit, old, new in sorted(fits, key=lambda one: (-one[0], *one[1:])):
        if fit and old not in found and new not in found.values():
            found[old] = new
    return sorted(found.items())


def _fit(one: MeasuredCommand, other: MeasuredCommand) -> float:
    """0 when the two have nothing to do with each other."""
    same_output = one.digest == other.digest
    if one.text == other.text:
        return 100.0 if same_output else _EXACT
    ours, theirs = _words(one.text), _words(other.text)
    alike = sum(word in theirs for word in ours) / max(len(ours), len(theirs), 1)
    if _program(ours) == _program(theirs):
        return (40.0 if same_output and one.digest else 10.0) + 10 * alike
    return 20.0 if same_output and one.digest else 0.0


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _program(words: Sequence[str]) -> tuple[str, ...]:
    """The program and its verb, if the second word looks like one."""
    verb = words[1:2] if len(words) > 1 and words[1].isalpha() else []
    return tuple([os.path.basename(word) for word in words[:1]] + list(verb))


def _bar(side: MeasuredTest | None) -> tuple[int, int]:
    return (side.kills, len(side.tried)) if side is not None else (0, 0)


def _how(side: MeasuredTest) -> str:
    ways = [] if side.no_edits else ["output edits"]
    return " and ".join(ways if side.no_mutants else [*ways, "source mutants"])


def _why_not(side: MeasuredTest | None) -> str:
    if side is None:
        return "it was not measured"
    if side.outcome != "passed":
        return f"without a change it {side.outcome or 'did not run'}"
    return f"output edits: {side.no_edits}; source mutants: {side.no_mutants}"


def _basis(word: str, after: MeasuredTest) -> str:
    if word == CANNOT_FAIL:
        confirmed = "it passes with a spoiled product" if after.spoiled else "not tried with a spoiled product"
        return f"nothing made it fail; {confirmed}"
    if word != SAME:
        return ""
    counts = {"output edits": len(after.edits), "source mutants": len(after.mutants)}
    return "no difference seen with " + " and ".join(f"{n} {what}" for what, n in counts.items() if n)


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
