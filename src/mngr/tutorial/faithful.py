"""Whether the work on a test kept it faithful to the tutorial: its citations, and the cited commands it ran. Pure."""

from __future__ import annotations

from itertools import zip_longest
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


class Faithful(NamedTuple):
    """Why the work is to be refuted, a sentence each, and what a person may want to know, though it speaks against
    nothing."""

    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def judge(base: CitingTest, now: CitingTest) -> Faithful:
    """Hold a test as it is at a commit against the same test at base. A citation may follow its block when that was
    edited. A cited command that the test ran at base, whatever its outcome there, has to be run by a passed case."""
    reasons, notes = list[str](), list[str]()
    gone = [text for text in dict.fromkeys(base.citations) if text not in now.citations]
    come = [text for text in dict.fromkeys(now.citations) if text not in base.citations]
    for old, new in zip_longest(gone, come):
        if new is None:
            reasons.append(f"the citation of {_short(old)} was removed")
        elif old is None and new in now.tutorial:
            notes.append(f"a citation of {_short(new)} was added")
        elif old is None:
            reasons.append(f"{_short(new)} is cited and is not a block of the tutorial")
        elif new in now.tutorial and old not in now.tutorial:
            notes.append(f"the citation follows the edited block: {_short(old)} is now {_short(new)}")
        else:
            why = "and its block is still there" if new in now.tutorial else "which is not a block of the tutorial"
            reasons.append(f"the citation of {_short(old)} was changed to {_short(new)}, {why}")
    for text in dict.fromkeys(now.citations):
        if text in base.citations and text in base.tutorial and text not in now.tutorial:
            reasons.append(f"{_short(text)} is cited and is not a block of the tutorial")
    ran, ran_before = _recorded(now), [one._replace(outcome="passed") for one in _recorded(base)]
    commands = list(dict.fromkeys(command for text in now.citations for command in block(text).commands))
    left = [commands[number] for number in unrun(commands, ran)] if ran else []
    never = {left[number] for number in unrun(left, ran_before)}
    reasons += [f"the cited command `{_first(one)}` is not run any more" for one in left if one not in never]
    notes += [f"the cited command `{_first(one)}` is not run by this test" for one in left if one in never]
    return Faithful(tuple(reasons), tuple(notes))


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
