"""The blocks of a tutorial: a shell script divided at its empty lines, and the text of one block as tests cite it."""

from __future__ import annotations

import re
import textwrap
from hashlib import sha256
from itertools import groupby
from typing import NamedTuple

from mngr.e2e.shell_commands import Unfinished, split


class Block(NamedTuple):
    """A block by itself: its text as it is compared, and its commands with continued lines and here-documents joined
    and comments left out."""

    text: str
    commands: tuple[str, ...]


class ScriptBlock(NamedTuple):
    """A block of a script. Lines count from 1; `command_lines` has the first line of each command. `heading` is set
    if the block is one; `section` is the nearest heading at or above it. `unfinished` is set if the block ends inside
    a quote, a here-document or a compound command, as one that holds an empty line does."""

    id: str
    text: str
    section: str
    first_line: int
    last_line: int
    commands: tuple[str, ...]
    comment_only: bool
    preamble: bool
    command_lines: tuple[int, ...]
    heading: str
    unfinished: Unfinished | None

    @property
    def example(self) -> bool:
        """Whether a test has to cite it."""
        return not (self.comment_only or self.preamble)


def block(text: str) -> Block:
    """One block from the text of a citation, however it is indented. Text with empty lines inside is accepted."""
    text = normalise(text)
    return Block(text, tuple(command.text for command in split(text).commands))


def normalise(text: str) -> str:
    """The text as it is compared: without common indentation, blanks at the ends of lines, and empty lines around it;
    lines end in a newline only."""
    if not _TO_NORMALISE.search(text):
        return text
    return textwrap.dedent("\n".join([line.rstrip(_BLANK) for line in text.split("\n")])).strip("\n")


def blocks(script_text: str) -> list[ScriptBlock]:
    """All blocks of a script, in order: each run of non-empty lines is one, whatever is in it."""
    found: list[ScriptBlock] = []
    section = ""
    examples = False
    for first_line, lines in _runs(script_text.removeprefix("\ufeff").split("\n")):
        text = normalise("\n".join(lines))
        parsed = split(text)
        commands = tuple(command.text for command in parsed.commands)
        heading = "" if commands else heading_of(text, first_line == 1)
        section = heading or section
        preamble = not examples and all(_SETUP.match(command) for command in commands)
        preamble = preamble and (bool(commands) or (first_line == 1 and text.startswith("#!")))
        examples = examples or bool(commands and not preamble)
        found.append(
            ScriptBlock(
                id=sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12],
                text=text,
                section=section,
                first_line=first_line,
                last_line=first_line + len(lines) - 1,
                commands=commands,
                comment_only=not commands,
                preamble=preamble,
                command_lines=tuple(first_line + command.line - 1 for command in parsed.commands),
                heading=heading,
                unfinished=parsed.unfinished,
            )
        )
    return found


_BLANK = " \t\r"  # a script with the line ends of Windows has a `\r` at the end of each
_TO_NORMALISE = re.compile(r"\A[ \t\r\n]|[ \t\r]\n|[ \t\r\n]\Z")
_SETUP = re.compile(r"(?:set|shopt)(?:\s|\Z)")
_RULE = re.compile(r"#+[ \t]*[-=#*_~]{3,}[-=#*_~ \t]*\Z|#{3,}\Z")
_COMMENT = re.compile(r"(#+)[ \t]*(.*?)[ \t#]*\Z")
_SENTENCE_ENDS = (".", ":", ";", ",", "!", "?")


def heading_of(text: str, begins_the_script: bool = False) -> str:
    """The title in a block of comments, or nothing if it is prose. A title is framed by a line of `###`, `# ---` or
    `# ===`, or begins with `##`, or is a comment that stands alone on one line and does not end like a sentence."""
    lines = text.split("\n")
    if begins_the_script and lines[0].startswith("#!"):
        lines = lines[1:]
    framed = any(_RULE.match(line) for line in lines)
    lines = [line for line in lines if not _RULE.match(line)]
    found = _COMMENT.match(lines[0]) if lines else None
    if not found or not found.group(2):
        return ""
    title = found.group(2)
    alone = len(lines) == 1 and not title.endswith(_SENTENCE_ENDS)
    return title if framed or len(found.group(1)) > 1 or alone else ""


def _runs(lines: list[str]) -> list[tuple[int, list[str]]]:
    """Each run of non-empty lines, with the number of its first."""
    runs: list[tuple[int, list[str]]] = []
    for empty, group in groupby(enumerate(lines, 1), key=lambda numbered: not numbered[1].strip(_BLANK)):
        numbered = list(group)
        if not empty:
            runs.append((numbered[0][0], [line for _, line in numbered]))
    return runs
