"""Whether the work on a test kept it faithful to the tutorial: its citations, and the cited commands it ran. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mngr.e2e.shell_blocks import block
from mngr.tutorial.ran import RecordedRuns, RecordedTest, unrun


class CitingTest(NamedTuple):
    """A test at one commit: its node id, with or without parameters; the texts that it cites; the texts of the
    tutorial's blocks; and what was recorded there. All texts are normalised, as `citations` and `shell_blocks` have
    them."""

    id: str
    citations: tuple[str, ...]
    tutorial: frozenset[str]
    ran: RecordedRuns | None = None


class ChangedCitation(NamedTuple):
    """`is_block`: the new text is a block of the tutorial at the commit. `was_edited`: the old text is a block no more,
    so the tutorial itself was changed. Both hold for a citation that follows its block."""

    before: str
    after: str
    is_block: bool
    was_edited: bool

    @property
    def follows(self) -> bool:
        return self.is_block and self.was_edited


class Faithful(NamedTuple):
    """`unknown` are kept or added citations that are not a block of the tutorial, and were not cited like that at base.
    `unrun` are commands of the blocks cited now that no passed case of the test ran; `lost` those among them that the
    test ran at base, whatever its outcome there. Both are empty if nothing was recorded."""

    removed: tuple[str, ...] = ()
    changed: tuple[ChangedCitation, ...] = ()
    added: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    unrun: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the work is to be refuted, a sentence each."""
        found = [f"the citation of {_short(text)} was removed" for text in self.removed]
        for one in self.changed:
            if not one.follows:
                why = "which is not a block of the tutorial" if not one.is_block else "and its block is still there"
                found.append(f"the citation of {_short(one.before)} was changed to {_short(one.after)}, {why}")
        found += [f"{_short(text)} is cited and is not a block of the tutorial" for text in self.unknown]
        found += [f"the cited command `{_first(command)}` is not run any more" for command in self.lost]
        return tuple(found)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person may want to know, though it speaks against nothing."""
        found = [
            f"the citation follows the edited block: {_short(one.before)} is now {_short(one.after)}"
            for one in self.changed
            if one.follows
        ]
        found += [f"a citation of {_short(text)} was added" for text in self.added if text not in self.unknown]
        others = [command for command in self.unrun if command not in self.lost]
        return (*found, *(f"the cited command `{_first(command)}` is not run by this test" for command in others))


def judge(base: CitingTest, now: CitingTest) -> Faithful:
    """Hold a test as it is at a commit against the same test at base."""
    before, after = dict.fromkeys(base.citations), dict.fromkeys(now.citations)
    gone = [text for text in before if text not in after]
    come = [text for text in after if text not in before]
    pairs = _pairs(gone, come)
    ran, ran_before = _recorded(now), [one._replace(outcome="passed") for one in _recorded(base)]
    commands = list(dict.fromkeys(command for text in after for command in block(text).commands))
    left = [commands[number] for number in unrun(commands, ran)] if ran else []
    never = {left[number] for number in unrun(left, ran_before)}
    return Faithful(
        removed=tuple(text for text in gone if text not in pairs),
        changed=tuple(
            ChangedCitation(old, new, new in now.tutorial, old not in now.tutorial) for old, new in pairs.items()
        ),
        added=tuple(text for text in come if text not in pairs.values()),
        unknown=tuple(
            text
            for text in after
            if text not in now.tutorial and text not in pairs.values() and (text not in before or text in base.tutorial)
        ),
        unrun=tuple(left),
        lost=tuple(command for command in left if command not in never),
    )


def _pairs(gone: Sequence[str], come: Sequence[str]) -> dict[str, str]:
    """Which new citation took the place of which old one: the most alike first."""
    from difflib import SequenceMatcher

    alike = [
        (-SequenceMatcher(None, old, new, autojunk=False).ratio(), at, number)
        for at, old in enumerate(gone)
        for number, new in enumerate(come)
    ]
    found: dict[int, int] = {}
    for _, at, number in sorted(alike):
        if at not in found and number not in found.values():
            found[at] = number
    return {gone[at]: come[number] for at, number in sorted(found.items())}


def _recorded(test: CitingTest) -> list[RecordedTest]:
    """All recorded cases and attempts of the test."""
    file, _, name = test.id.partition("::")
    name = name.partition("[")[0]
    return [one for one in (test.ran.tests if test.ran else ()) if one.name == name and one.file == file]


def _short(text: str) -> str:
    """A block by the first command of it, or by its first line."""
    commands = block(text).commands
    return f"`{_first(commands[0] if commands else text)}`"


def _first(text: str) -> str:
    line, newline, _ = text.partition("\n")
    return f"{line} ..." if newline else line
