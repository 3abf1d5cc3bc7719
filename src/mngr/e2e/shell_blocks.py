"""The blocks of a tutorial: a shell script divided at its empty lines, and the text of one block as tests cite it."""

from __future__ import annotations

import re
import textwrap
from hashlib import sha256
from itertools import groupby
from typing import NamedTuple

from mngr.e2e.shell_commands import split


class Block(NamedTuple):
    """A block by itself: its text as it is compared, and its commands with continued lines and here-documents joined
    and comments left out."""

    text: str
    commands: tuple[str, ...]


class ScriptBlock(NamedTuple):
    """A block of a script: its `kind` is "example", which a test has to cite, or "heading", "text" or "preamble", which
    need no test. Lines count from 1; `command_lines` has the first line of each command. `section` is the nearest
    heading at or above it. `unfinished` names the quote, here-document or compound command in which the block ends, as
    one that holds an empty line does, and `unfinished_line` where that begins."""

    id: str
    kind: str
    section: str
    first_line: int
    last_line: int
    text: str
    commands: tuple[str, ...]
    command_lines: tuple[int, ...]
    unfinished: str = ""
    unfinished_line: int = 0


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
    for first_line, lines in _runs(script_text.removeprefix("\ufeff").split("\n")):
        text = normalise("\n".join(lines))
        commands, unfinished = split(text)
        setup = all(_SETUP.match(command.text) for command in commands) and (commands or text.startswith("#!"))
        kind = "example" if commands else "text"
        if heading := "" if commands else heading_of(text, first_line == 1):
            kind, section = "heading", heading
        elif setup and not any(one.kind == "example" for one in found):
            kind = "preamble"
        found.append(
            ScriptBlock(
                sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12],
                kind,
                section,
                first_line,
                first_line + len(lines) - 1,
                text,
                tuple(command.text for command in commands),
                tuple(first_line + command.line - 1 for command in commands),
                unfinished.what if unfinished else "",
                first_line + unfinished.line - 1 if unfinished else 0,
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
