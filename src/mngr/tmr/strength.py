"""Is a changed test stronger? Compares what two versions of a test noticed. Pure; `mngr_strength` measures.

A kill is an edit or mutant with which the test fails. Only the same edit of the same command, or the same mutant, can
show that a version is weaker. What only one of them runs counts for that one, and is for a person when both have some.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mngr.json_values import plain
from mngr.tmr.strength_rows import KILLED, SURVIVED, MeasuredCommand, MeasuredTest, Tried

STRONGER, SAME, WEAKER, MIXED = "stronger", "same", "weaker", "mixed"
CANNOT_FAIL, NOT_MEASURED = "cannot fail", "not measured"
_LISTED_MAX = 40
# How well two commands fit: the very same, with the same output, and so on. Below `_EXACT` a lost kill is not certain.
_EXACT = 60.0


class Strength(NamedTuple):
    """`gained` and `lost` are kills, in words. `why` says why nothing was measured, or what the word rests on.
    `again` are the ids of what has to be tried again, before and after, until a lost kill counts."""

    word: str
    before: tuple[int, int]
    after: tuple[int, int]
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    how: str = ""
    seconds: float = 0.0
    why: str = ""
    again: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def as_json(self) -> dict[str, Any]:
        """For the ledger: the first of the kills, and nothing of what is to be tried again."""
        bare = self._replace(gained=self.gained[:_LISTED_MAX], lost=self.lost[:_LISTED_MAX], again=((), ()))
        return {**plain(bare), "seconds": round(self.seconds, 3)}


class _Difference(NamedTuple):
    text: str
    certain: bool
    before: str  # its id there, empty if it was not tried there
    after: str


def compare(before: MeasuredTest | None, after: MeasuredTest | None, *, spoiled_passes: bool | None = None) -> Strength:
    """A new test has nothing before it. `spoiled_passes` is whether the test passes with a spoiled product, if somebody
    tried beside the measurement itself: a test that fails with that can fail, whatever was measured."""
    if after is None or not after.measured:
        return Strength(NOT_MEASURED, _bar(before), _bar(after), why=_why_not(after))
    if spoiled_passes is None and after.spoiled:
        spoiled_passes = after.spoiled == "passed"
    gained: list[_Difference] = []
    lost: list[_Difference] = []
    if before is not None and before.measured:
        gained, lost = _differences(before, after)
        word = _word(gained, lost)
    else:
        can_fail = bool(after.kills) or spoiled_passes is False
        word = STRONGER if can_fail and before is None else NOT_MEASURED
    if not after.kills and spoiled_passes is not False:
        word = CANNOT_FAIL
    return Strength(
        word,
        _bar(before),
        _bar(after),
        gained=tuple(dict.fromkeys(one.text for one in gained)),
        lost=tuple(dict.fromkeys(one.text for one in lost)),
        how=_how(after),
        seconds=after.seconds + (before.seconds if before is not None else 0.0),
        why=_why_not(before) if word == NOT_MEASURED else _basis(word, after, spoiled_passes),
        again=(
            tuple(dict.fromkeys(one.before for one in lost if one.before)),
            tuple(dict.fromkeys(one.after for one in lost if one.after)),
        ),
    )


def _word(gained: Sequence[_Difference], lost: Sequence[_Difference]) -> str:
    if any(one.certain for one in lost):
        return MIXED if gained else WEAKER
    if lost:
        return MIXED
    return STRONGER if gained else SAME


def _differences(before: MeasuredTest, after: MeasuredTest) -> tuple[list[_Difference], list[_Difference]]:
    gained: list[_Difference] = []
    lost: list[_Difference] = []
    for change in (*_of_edits(before, after), *_of_mutants(before, after)):
        one, old, new = change
        if (old, new) == (SURVIVED, KILLED):
            gained.append(one)
        elif (old, new) == (KILLED, SURVIVED):
            lost.append(one)
    return gained, lost


_Change = tuple[_Difference, str, str]


def _of_edits(before: MeasuredTest, after: MeasuredTest) -> Iterator[_Change]:
    """What came of each edit before and after. In commands that only one version runs, the other noticed nothing."""
    if before.no_edits or after.no_edits:
        return
    pairs = aligned(before.commands, after.commands)
    partner = dict(pairs)
    # Nothing new is run: then what is not run any more is certainly not noticed.
    only_fewer = len(pairs) == len(after.commands) and all(
        _fit(before.commands[old], after.commands[new]) >= _EXACT for old, new in pairs
    )
    for (number, id), tried in before.edits.items():
        text = f"`{before.commands[number].text}`: {tried.text}"
        if number not in partner:
            yield _Difference(text, only_fewer, f"{number} {id}", ""), tried.result, SURVIVED
        elif (other := after.edits.get((partner[number], id))) is not None:
            certain = _fit(before.commands[number], after.commands[partner[number]]) >= _EXACT
            difference = _Difference(text, certain, f"{number} {id}", f"{partner[number]} {id}")
            yield difference, tried.result, other.result
    known = set(partner.values())
    for (number, id), tried in after.edits.items():
        if number not in known:
            text = f"`{after.commands[number].text}`: {tried.text}"
            yield _Difference(text, True, "", f"{number} {id}"), SURVIVED, tried.result


def _of_mutants(before: MeasuredTest, after: MeasuredTest) -> Iterator[_Change]:
    """A mutant in a line that a test does not run survives."""
    if before.no_mutants or after.no_mutants:
        return
    for id in dict.fromkeys((*before.mutants, *after.mutants)):
        tried = before.mutants.get(id) or after.mutants[id]
        old, new = _result(before, id, tried), _result(after, id, tried)
        sides = [id if id in side.mutants else "" for side in (before, after)]
        yield _Difference(tried.text, True, sides[0], sides[1]), old, new


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


def _basis(word: str, after: MeasuredTest, spoiled_passes: bool | None) -> str:
    if word == CANNOT_FAIL:
        confirmed = "it passes with a spoiled product" if spoiled_passes else "not tried with a spoiled product"
        return f"nothing made it fail; {confirmed}"
    if word != SAME:
        return ""
    counts = {"output edits": len(after.edits), "source mutants": len(after.mutants)}
    return "no difference seen with " + " and ".join(f"{n} {what}" for what, n in counts.items() if n)
