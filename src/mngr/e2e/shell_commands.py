"""Splits shell text into complete commands: what one types at a prompt until the shell begins to run it.

Reads the syntax only: nothing is expanded. A text that no shell would accept still gives commands, and a word on what
was left open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

# The kinds of pieces that a command is made of. A body is that of a here-document, with its delimiter.
TOKEN, BLANK, NEWLINE, SEPARATOR, BODY = range(5)
Piece = tuple[int, str]


class Command(NamedTuple):
    """A complete command. In `text` continued lines are joined, comments left out, and blanks outside quotes are one:
    commands that differ in nothing else are equal. `line` counts from 1."""

    text: str
    line: int
    pieces: tuple[Piece, ...]


class Unfinished(NamedTuple):
    """What is still open at the end of the text, and the line where it was opened, counted from 1."""

    what: str
    line: int


class Split(NamedTuple):
    commands: tuple[Command, ...]
    unfinished: Unfinished | None


def split(text: str) -> Split:
    """The commands of a text, in order. What is open at its end belongs to the last one."""
    return _Splitter(text).split()


def squeezed(pieces: Iterable[Piece]) -> str:
    """Blanks as one, none around lines, and no empty lines; bodies of here-documents as they are."""
    done = [""]
    for kind, piece in pieces:
        if kind not in (BLANK, NEWLINE) or not (done[-1] in ("", " ") or done[-1].endswith("\n")):
            done.append(" " if kind == NEWLINE and done[-1] in _JOINERS else piece)
    return "".join(done).strip(" \n")


_BLANKS = re.compile(r"(?:[ \t]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_OPERATOR = re.compile(r";;&|;;|;&|;|&&|&>>|&>|&|\|\||\|&|\||<<<|<<-|<<|<>|<&|<|>>|>&|>\||>|\(|\)")
_REDIRECTS = re.compile("[<>]")
_JOINERS = frozenset(("|", "|&", "&&", "||"))
_COMPOUND = {"if": "fi", "while": "done", "until": "done", "for": "done", "select": "done", "case": "esac", "{": "}"}
_BEFORE_A_COMMAND = frozenset(("if", "while", "until", "{", "then", "else", "elif", "do", "!", "time"))
_ENDS_IN_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")

# What stands in a word, and what opens a stretch with other rules up to what closes it.
_CLOSER = {'"': '"', "${": "}", "$(": ")", "<(": ")", ">(": ")", "(": ")"}
_OPENS_A_WORD = ("((", "<(", ">(")
_WHOLE = r"\\.|\$'(?:[^\\']|\\.)*+'|'[^']*'|`(?:[^\\`]|\\.)*+`"
_WORD = re.compile(rf"[^ \t\n\\'\"`$;&|<>()]+|{_WHOLE}|\$[({{]|[<>]\(|\$'|.", re.DOTALL)
_INSIDE = re.compile(rf"[^\\'\"`$<>(){{}}]+|{_WHOLE}|\$[({{]|[<>]\(|\$'|.", re.DOTALL)
_IN_QUOTES = re.compile(r"[^\\\"`$]+|\\.|`(?:[^\\`]|\\.)*+`|\$[({]|.", re.DOTALL)
_NEVER_CLOSED = {"'": "quote `'`", "$'": "quote `$'`", "`": "backquote"}


class _HereDocument(NamedTuple):
    delimiter: str
    literal: bool
    without_tabs: bool
    at: int


class _Splitter:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._commands: list[Command] = []
        self._pieces: list[Piece] = []
        self._began = self._counted = 0
        self._line = 1
        self._compound: list[tuple[str, str, int]] = []  # what is being read: its word, what closes it, its place
        self._waiting: list[_HereDocument] = []
        self._first = True  # the next word is a command's first
        self._joined = False  # the command goes on after a newline
        self._unfinished: Unfinished | None = None

    def split(self) -> Split:
        text = self._text
        while self._at < len(text):
            if not self._pieces:
                self._began = self._at
            if text[self._at] == "\n":
                self._newline()
            elif found := _BLANKS.match(text, self._at):
                self._at = found.end()
                self._put(BLANK, " ")
            elif found := _COMMENT.match(text, self._at):
                self._at = found.end()
            elif not text.startswith(_OPENS_A_WORD, self._at) and (found := _OPERATOR.match(text, self._at)):
                self._operator(found.group())
            else:
                self._take_word()
        if self._waiting:
            self._left_open(f"here-document `{self._waiting[0].delimiter}`", self._waiting[0].at)
        if self._compound:
            self._left_open(f"`{self._compound[0][0]}`", self._compound[0][2])
        self._finish()
        return Split(tuple(self._commands), self._unfinished)

    def _left_open(self, what: str, at: int) -> None:
        """Said from the inside outwards: the outermost stays."""
        self._unfinished = Unfinished(what, self._text.count("\n", 0, at) + 1)

    def _put(self, kind: int, piece: str) -> None:
        if self._pieces or kind not in (BLANK, NEWLINE):
            self._pieces.append((kind, piece))

    def _newline(self) -> None:
        if self._pieces and self._pieces[-1][0] == BLANK:
            self._pieces.pop()
        self._put(NEWLINE, "\n")
        self._at += 1
        for here in self._waiting:
            self._body(here)
        self._waiting = []
        self._first = True
        if not self._compound and not self._joined:
            self._finish()

    def _take_word(self) -> None:
        began = self._at
        word = self._word()
        self._put(TOKEN, word)
        self._joined = False
        closer = self._compound[-1][1] if self._compound else ""
        if word == closer and (self._first or closer == "]]"):
            self._compound.pop()
            self._first = False
        elif self._first:
            if word in _COMPOUND or word == "[[":
                self._compound.append((word, _COMPOUND.get(word, "]]"), began))
            self._first = word in _BEFORE_A_COMMAND

    def _word(self) -> str:
        """The word that begins here, as written but for continued lines. `((...))` is one."""
        text, parts = self._text, list[str]()
        while self._at < len(text) and text[self._at] not in " \t\n;&|)":
            began, found = self._at, _WORD.match(text, self._at)
            assert found is not None
            part = found.group()
            if part[0] in "<>(" and (parts or not text.startswith(_OPENS_A_WORD, began)):
                break
            self._at = found.end()
            if part in _CLOSER or part in _NEVER_CLOSED:
                self._stretch(part, began)
            if part != "\\\n":
                parts.append(text[began : self._at])
        return "".join(parts)

    def _stretch(self, opening: str, began: int) -> None:
        """To the end of a quote or an expansion, with all that is nested in it."""
        if opening in _NEVER_CLOSED:
            self._at = len(self._text)
            self._left_open(_NEVER_CLOSED[opening], began)
            return
        stack = [opening]
        while stack and self._at < len(self._text):
            quoted = stack[-1] == '"'
            found = (_IN_QUOTES if quoted else _INSIDE).match(self._text, self._at)
            assert found is not None
            part, self._at = found.group(), found.end()
            if part == _CLOSER[stack[-1]]:
                stack.pop()
            elif part in _CLOSER and (part[0] == "$" or not quoted):
                stack.append(part)
            elif part in _NEVER_CLOSED and (part == "`" or not quoted):
                self._at = len(self._text)
        if stack:
            self._left_open('quote `"`' if opening == '"' else f"`{opening}`", began)

    def _operator(self, operator: str) -> None:
        began = self._at
        self._at += len(operator)
        separates = operator in _JOINERS or operator in (";", "&")
        self._put(SEPARATOR if separates and not self._compound else TOKEN, operator)
        if operator == "(":
            self._compound.append(("(", ")", began))
        elif operator == ")" and self._compound and self._compound[-1][1] == ")":  # else it ends a pattern of `case`
            self._compound.pop()
        elif operator in ("<<", "<<-"):
            self._here_document(operator, began)
        self._joined = operator in _JOINERS
        self._first = self._first or not _REDIRECTS.search(operator)

    def _here_document(self, operator: str, at: int) -> None:
        if found := _BLANKS.match(self._text, self._at):
            self._at = found.end()
            self._put(BLANK, " ")
        if word := self._word():
            self._put(TOKEN, word)
            delimiter = re.sub(r"\\(.)|[\"']", r"\1", word, flags=re.DOTALL)
            self._waiting.append(_HereDocument(delimiter, delimiter != word, operator == "<<-", at))

    def _body(self, here: _HereDocument) -> None:
        text, began, joined = self._text, self._at, False
        while self._at < len(text):
            stop = text.find("\n", self._at) + 1 or len(text) + 1
            line, self._at = text[self._at : stop - 1], min(stop, len(text))
            if not joined and (line.lstrip("\t") if here.without_tabs else line) == here.delimiter:
                self._put(BODY, text[began : self._at])
                return
            joined = not here.literal and bool(_ENDS_IN_BACKSLASH.search(line))
        self._put(BODY, text[began:])
        self._left_open(f"here-document `{here.delimiter}`", here.at)

    def _finish(self) -> None:
        """The pieces read so far are a command."""
        pieces, self._pieces = self._pieces, []
        if pieces:
            self._line += self._text.count("\n", self._counted, self._began)
            self._counted = self._began
            self._commands.append(Command(squeezed(pieces), self._line, tuple(pieces)))
