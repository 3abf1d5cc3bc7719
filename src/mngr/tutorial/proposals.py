"""Examples that an agent proposes: read from its file, judged, and put into the script. Pure but for the judge."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mngr.e2e.shell_blocks import ScriptBlock, blocks, normalise
from mngr.e2e.shell_commands import BODY, split

INTERFACE, MALFORMED = "interface", "malformed"
_MOST = 500
_LONGEST = 10_000


class Heading(NamedTuple):
    """A heading that has no example; `line` is its first and `last_line` the one that examples go below."""

    title: str
    line: int
    last_line: int


class Proposal(NamedTuple):
    """One block under a heading. `problem` says why it cannot be kept; `kind` whether that is about the program's
    interface or about the form of the proposal."""

    heading: str
    text: str
    problem: str = ""
    kind: str = ""


def empty_headings(found: Sequence[ScriptBlock]) -> list[Heading]:
    """Headings without an example before the next one. A heading right above one of another style is a chapter's, and
    needs none."""
    empty: list[Heading] = []
    for at, block in enumerate(found):
        if block.kind != "heading":
            continue
        rest = found[at + 1 :]
        below = next((number for number, other in enumerate(rest) if other.kind == "heading"), len(rest))
        chapter = rest and below == 0 and _style(rest[0].text) != _style(block.text)
        if not chapter and not any(other.kind == "example" for other in rest[:below]):
            last = rest[below - 1].last_line if below else block.last_line
            empty.append(Heading(block.section, block.first_line, last))
    return empty


def _style(text: str) -> str:
    """How a heading is marked: by the signs around its words."""
    return re.sub(r"[^#=*~_\n-]+", " ", re.sub(r"[-=#*_~]{3,}", "---", text)).split("\n")[0].strip()


def read(data: bytes) -> tuple[list[Proposal], str]:
    """The proposals of a file, and what is wrong with it if none can be read."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        return [], f"it is not valid JSON: {error}"
    rows = document.get("proposals") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        return [], "it has no list `proposals`"
    found: list[Proposal] = []
    for row in rows[:_MOST]:
        heading, text = (row.get("heading"), row.get("text")) if isinstance(row, dict) else (None, None)
        if not isinstance(heading, str) or not isinstance(text, str):
            shown = json.dumps(row)[:200]
            found.append(Proposal(str(heading or ""), shown, "it needs `heading` and `text`", MALFORMED))
        else:
            texts = [block.text for block in blocks(text[:_LONGEST])] or [""]
            found += [Proposal(heading.strip(), text) for text in texts]
    return found, ""


def judge(
    proposals: Sequence[Proposal],
    headings: Sequence[Heading],
    existing: Sequence[ScriptBlock],
    program: str,
    problem_of: Callable[[str], str],
) -> list[Proposal]:
    """Each with what is wrong with it. `problem_of` looks at one command of the program, and says what is wrong."""
    titles = {_plain(heading.title): heading.title for heading in headings}
    seen = {block.text for block in existing}
    judged: list[Proposal] = []
    for proposal in proposals:
        title = titles.get(_plain(proposal.heading), "")
        problem, kind = proposal.problem, proposal.kind
        if not problem:
            problem, kind = _problem(proposal.text, program, problem_of)
            if not title:
                problem, kind = "no heading without examples has this name", MALFORMED
            elif not problem and proposal.text in seen:
                problem, kind = "the tutorial has this block already", MALFORMED
        seen.add(proposal.text)
        judged.append(Proposal(title or proposal.heading, proposal.text, problem, kind))
    return judged


def _plain(title: str) -> str:
    return " ".join(title.strip(" #").lower().split())


def _problem(text: str, program: str, problem_of: Callable[[str], str]) -> tuple[str, str]:
    parsed = split(text)
    if _CONTROL.search(text):
        return "it holds control characters", MALFORMED
    if parsed.unfinished:
        return f"it ends inside the {parsed.unfinished.what}", MALFORMED
    own = [words for words in simple_commands(text) if words[0] == program]
    if not own:
        return f"it has no command of `{program}`", MALFORMED
    for words in own:
        if problem := problem_of(shlex.join(words)):
            return problem, INTERFACE
    return "", ""


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_SEPARATES = re.compile(r"[;&|()\n]+\Z")
_REDIRECTS = re.compile(r"[<>&|]*[<>][<>&|]*\Z")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*\+?=")
_KEYWORDS = frozenset(
    [
        *("if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in"),
        *("{", "}", "!", "time", "function", "select"),
    ]
)


def simple_commands(text: str) -> list[list[str]]:
    """The words of every command in a text, those in lists, pipes and compound commands included, without assignments
    before it and redirections. Here-documents and comments are left out."""
    found: list[list[str]] = []
    for command in split(text).commands:
        text = "".join(piece for kind, piece in command.pieces if kind != BODY).rstrip()
        lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n")
        lexer.whitespace = " \t\r"
        lexer.whitespace_split = True
        lexer.commenters = ""
        try:
            tokens = list(lexer)
        except ValueError:
            continue
        found += _simple(tokens)
    return found


def _simple(tokens: Sequence[str]) -> list[list[str]]:
    found: list[list[str]] = []
    words: list[str] = []
    target = False
    for token in [*tokens, "\n"]:
        if target:
            target = False
        elif _SEPARATES.match(token):
            found += [words] if words else []
            words = []
        elif _REDIRECTS.match(token):
            target = True
            if words and words[-1].isdigit():
                words.pop()
        elif words or not (token in _KEYWORDS or _ASSIGNS.match(token)):
            words.append(token)
    return found


def insert(script: str, kept: Sequence[tuple[Heading, str]]) -> str:
    """The script with each example below its heading, empty lines around it, in the script's own line ends."""
    newline = "\r\n" if "\r\n" in script else "\n"
    lines = script.split("\n")
    below: dict[int, list[str]] = {}
    for heading, text in kept:
        below.setdefault(heading.last_line, []).append(text)
    for last_line in sorted(below, reverse=True):
        added = [line for text in below[last_line] for line in ("", *normalise(text).split("\n"))]
        if newline == "\r\n":
            added = [f"{line}\r" for line in added]
            if last_line == len(lines):
                lines[last_line - 1] = lines[last_line - 1].removesuffix("\r") + "\r"
        if last_line == len(lines):
            added.append("")
        lines[last_line:last_line] = added
    return "\n".join(lines)
