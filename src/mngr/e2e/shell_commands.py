"""Splits shell text into complete commands: what one types at a prompt until the shell begins to run it.

Reads the syntax only. A text that no shell would accept still gives commands, and a word on what was left open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from mngr.e2e.shell_words import BLANKS, ENDS_IN_BACKSLASH, Reader, Unfinished


class Part(NamedTuple):
    """One command of a list such as `a; b && c`. `sure`: it runs whenever the list does; else if the list ends in 0."""

    comparable: str
    sure: bool


class Command(NamedTuple):
    """A complete command. In `text` continued lines are joined and comments left out; in `comparable` also runs of
    blanks outside quotes are one. `line` counts from 1."""

    text: str
    comparable: str
    line: int
    pieces: tuple[tuple[int, str], ...]

    def without_bodies(self) -> str:
        """The command without the texts of its here-documents."""
        return "".join(piece for kind, piece in self.pieces if kind != _BODY).rstrip()

    def parts(self) -> tuple[Part, ...]:
        """The commands of the list that this is, as far as they must have run."""
        return _parts(self.pieces) if _TO_PART.search(self.text) else (Part(self.comparable, True),)


class Split(NamedTuple):
    commands: tuple[Command, ...]
    unfinished: Unfinished | None


def split(text: str) -> Split:
    """The commands of a text, in order. What is open at its end belongs to the last one."""
    reader = Reader(text, _read_nested)
    code = _Code(reader, nested=False)
    code.read()
    return Split(tuple(code.commands), reader.unfinished)


def comparable(text: str) -> str:
    """A text as it is compared: two that differ only in continued lines, blanks and comments are then equal."""
    return "\n".join(command.comparable for command in split(text).commands)


def _read_nested(reader: Reader) -> bool:
    return _Code(reader, nested=True).read()


_OPERATORS = re.compile(r";;&|;;|;&|;|&&|&>>|&>|&|\|\||\|&|\||<<<|<<-|<<|<>|<&|<|>>|>&|>\||>|\(|\)")
_FUNCTION_PARENS = re.compile(r"\([ \t]*\)")
_PLAIN_ARGUMENTS = re.compile(r"""(?: (?:[\w./:=@%+,~^-]+|"[^"\\`$\n]*"|'[^'\n]*')(?=[ \t\n]|\Z))+""")
_ARRAY = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=\Z")

_OPENERS = {"if": "fi", "while": "done", "until": "done", "for": "done", "select": "done", "case": "esac", "{": "}"}
_FIRST_PHASE = {"case": "subject", "for": "for"}
_BEFORE_A_COMMAND = frozenset(("then", "else", "elif", "do", "!", "time"))
_JOINERS = frozenset(("|", "|&", "&&", "||"))
_CASE_ENDS = frozenset((";;", ";&", ";;&"))
_REDIRECTIONS = frozenset(("<", ">", ">>", ">&", "<&", ">|", "<>", "&>", "&>>", "<<<"))

_TO_SQUEEZE = re.compile(r"  |[\t\n]")
_TO_PART = re.compile(r"[;&]|\|\|")

_TOKEN, _BLANK, _NEWLINE, _SEPARATOR, _BODY = range(5)


class _Open:
    """A compound command that is being read: the word that closes it, and how far it got."""

    __slots__ = ("at", "closer", "phase", "word")

    def __init__(self, word: str, closer: str, at: int, phase: str = "") -> None:
        self.word = word
        self.closer = closer
        self.at = at
        self.phase = phase


class _HereDocument(NamedTuple):
    delimiter: str
    literal: bool
    without_tabs: bool
    at: int


class _Code:
    """One stretch of code: the whole text, or the inside of one `$(...)`, which ends at its `)`."""

    def __init__(self, reader: Reader, nested: bool) -> None:
        self.reader = reader
        self.nested = nested
        self.commands: list[Command] = []
        self.pieces: list[tuple[int, str]] = []
        self.line, self.counted = 1, 0
        self.stack: list[_Open] = []
        self.waiting: list[_HereDocument] = []
        self.first = True  # the next word is a command's first
        self.more = False  # the command goes on after a newline
        self.named = False  # the last word was a command's first: `()` makes it a function
        self.defining = False  # the next word is the name of a function
        self.target = False  # the next word belongs to a redirection

    def read(self) -> bool:
        """Up to the end of the text, or past the `)` that ends this stretch: then true."""
        reader, text, end = self.reader, self.reader.text, len(self.reader.text)
        while reader.at < end:
            character = text[reader.at]
            if character == "\n":
                self._newline()
            elif character in " \t" or text.startswith("\\\n", reader.at):
                self._blanks()
            elif character == "#":
                stop = text.find("\n", reader.at)
                reader.at = end if stop < 0 else stop
            elif character in ";&|<>()" and not text.startswith(("<(", ">("), reader.at):
                if self._operator():
                    return True
            else:
                self._word()
        if self.waiting:
            reader.left_open(f"here-document `{self.waiting[0].delimiter}`", self.waiting[0].at)
        if self.stack:
            reader.left_open(f"`{self.stack[0].word}`", self.stack[0].at)
        self._finish()
        return False

    def _top(self, *phases: str) -> _Open | None:
        """The innermost compound command, if it is in one of these phases."""
        return self.stack[-1] if self.stack and self.stack[-1].phase in phases else None

    def _put(self, kind: int, piece: str, began: int) -> None:
        if not self.nested:
            if not self.pieces:
                self.line += self.reader.text.count("\n", self.counted, began)
                self.counted = began
            self.pieces.append((kind, piece))

    def _blanks(self) -> None:
        began = self.reader.at
        found = BLANKS.match(self.reader.text, began)
        assert found is not None
        self.reader.at = found.end()
        if self.pieces:
            self._put(_BLANK, " " if "\\" in found.group() else found.group(), began)

    def _newline(self) -> None:
        if self.pieces:
            if self.pieces[-1][0] == _BLANK:
                self.pieces.pop()
            self._put(_NEWLINE, "\n", self.reader.at)
        self.reader.at += 1
        for here in self.waiting:
            self._body(here)
        self.waiting = []
        self.named = self.target = False
        self.first = not self._top("words")
        if not self.stack and not self.more:
            self._finish()

    def _word(self) -> None:
        began = self.reader.at
        word = self.reader.word()
        self._put(_TOKEN, word, began)
        self.more = self.named = False
        case = self._top("subject", "head", "pattern")
        if self.target:
            self.target = False
        elif self.defining:
            self.defining = False
            self.first = self.more = self.named = True
        elif self._top("words"):
            if word == self.stack[-1].closer:
                self._close()
        elif case:
            self._word_of_case(case, word)
        else:
            if self.first:
                self._first_word(word, began)
            if not self.first and not self.stack and not self.defining:
                self._arguments()
            if self.reader.text.startswith("(", self.reader.at) and _ARRAY.match(word):
                self._open("(", ")", "words")

    def _arguments(self) -> None:
        """Takes in one step the plain words that follow; they are most of any script."""
        found = _PLAIN_ARGUMENTS.match(self.reader.text, self.reader.at)
        if found:
            self.pieces.append((_TOKEN, found.group()))
            self.reader.at = found.end()
            self.named = False

    def _word_of_case(self, case: _Open, word: str) -> None:
        if case.phase == "subject":
            case.phase = "head"
        elif case.phase == "head" and word == "in":
            case.phase = "pattern"
        elif case.phase == "pattern" and word == "esac":
            self._close()

    def _first_word(self, word: str, began: int) -> None:
        self.first = False
        if word in _OPENERS:
            self.stack.append(_Open(word, _OPENERS[word], began, _FIRST_PHASE.get(word, "")))
            self.first = word in ("if", "while", "until", "{")
        elif word == "[[":
            self.stack.append(_Open(word, "]]", began, "words"))
        elif word in _BEFORE_A_COMMAND:
            self.first = True
        elif self.stack and word == self.stack[-1].closer:
            self._close()
        else:
            self.defining = word == "function"
            self.named = not self.defining

    def _open(self, word: str, closer: str, phase: str) -> None:
        self.stack.append(_Open(word, closer, self.reader.at, phase))
        self._put(_TOKEN, word, self.reader.at)
        self.reader.at += len(word)
        self.more = False

    def _close(self) -> None:
        self.stack.pop()
        self.first = self.more = False

    def _operator(self) -> bool:
        """Reads one operator; true if it was the `)` that ends this stretch of code."""
        reader = self.reader
        found = _OPERATORS.match(reader.text, reader.at)
        assert found is not None
        operator, began = found.group(), reader.at
        if operator == "(":
            self._open_paren()
            return False
        reader.at = found.end()
        pattern = self._top("pattern")
        closes = bool(self.stack) and self.stack[-1].closer == ")"
        if operator == ")" and self.nested and not (closes or pattern):
            return True
        separator = operator in _JOINERS or operator in (";", "&")
        self._put(_SEPARATOR if separator and not self.stack else _TOKEN, operator, began)
        self.named = False
        if operator == ")":
            if closes:
                self._close()
            elif pattern:
                pattern.phase, self.first = "body", True
        elif self._top("words", "pattern"):
            pass
        elif operator in ("<<", "<<-"):
            self._here_operator(operator, began)
        elif operator in _REDIRECTIONS:
            self.target = True
        elif operator in _CASE_ENDS and self._top("body"):
            self.stack[-1].phase = "pattern"
        else:
            self.first, self.more = True, operator in _JOINERS
        return False

    def _open_paren(self) -> None:
        reader = self.reader
        function = _FUNCTION_PARENS.match(reader.text, reader.at) if self.named else None
        if function:
            self._put(_TOKEN, "()", reader.at)
            reader.at = function.end()
            self.first = self.more = True
        elif self._top("pattern"):
            self._put(_TOKEN, "(", reader.at)
            reader.at += 1
        elif reader.text.startswith("((", reader.at) and (self.first or self._top("for")):
            began = reader.at
            self._put(_TOKEN, reader.arithmetic(), began)
            self.first = self.more = False
        else:
            self._open("(", ")", "" if self.first else "words")
        self.named = False

    def _here_operator(self, operator: str, at: int) -> None:
        reader = self.reader
        if BLANKS.match(reader.text, reader.at):
            self._blanks()
        began = reader.at
        word = reader.word()
        if word:
            self._put(_TOKEN, word, began)
            delimiter = re.sub(r"\\(.)|[\"']", r"\1", word, flags=re.DOTALL)
            self.waiting.append(_HereDocument(delimiter, delimiter != word, operator == "<<-", at))

    def _body(self, here: _HereDocument) -> None:
        reader, text, began, joined = self.reader, self.reader.text, self.reader.at, False
        while reader.at < len(text):
            stop = text.find("\n", reader.at)
            stop = len(text) if stop < 0 else stop
            line = text[reader.at : stop]
            reader.at = min(stop + 1, len(text))
            if not joined and (line.lstrip("\t") if here.without_tabs else line) == here.delimiter:
                self._put(_BODY, text[began : reader.at], began)
                return
            joined = not here.literal and bool(ENDS_IN_BACKSLASH.search(line))
        self._put(_BODY, text[began:], began)
        reader.left_open(f"here-document `{here.delimiter}`", here.at)

    def _finish(self) -> None:
        """The pieces read so far are a command."""
        pieces, self.pieces = self.pieces, []
        while pieces and pieces[-1][0] in (_BLANK, _NEWLINE):
            pieces.pop()
        if pieces:
            text = "".join([piece for _, piece in pieces]).rstrip("\n")
            comparable = _squeezed(pieces) if _TO_SQUEEZE.search(text) else text
            self.commands.append(Command(text, comparable, self.line, tuple(pieces)))


def _squeezed(pieces: Iterable[tuple[int, str]]) -> str:
    """Blanks as one, none at the ends of lines, and no empty lines; bodies of here-documents as they are."""
    squeezed: list[str] = []
    for kind, piece in pieces:
        if kind == _BLANK:
            if squeezed and squeezed[-1] not in (" ", "\n"):
                squeezed.append(" ")
            continue
        if kind == _NEWLINE:
            if squeezed and squeezed[-1] == " ":
                squeezed.pop()
            if not squeezed or squeezed[-1] in ("\n", " "):
                continue
            if squeezed[-1] in _JOINERS:
                piece = " "
        squeezed.append(piece)
    return "".join(squeezed).strip(" \n")


def _parts(pieces: Iterable[tuple[int, str]]) -> tuple[Part, ...]:
    """The commands between `;`, `&`, `&&` and newlines outside of compound commands, as far as they must have run:
    what follows `||` may not have, and what follows `&&` has only if the last list came to a good end."""
    lists: list[list[list[tuple[int, str]]]] = [[[]]]
    doubtful: set[int] = set()
    for kind, piece in pieces:
        if kind == _SEPARATOR and piece in (";", "&"):
            lists.append([[]])
        elif kind == _SEPARATOR and piece in ("&&", "||"):
            lists[-1].append([])
            if piece == "||":
                doubtful.add(len(lists) - 1)
        else:
            lists[-1][-1].append((kind, piece))
    while len(lists) > 1 and not _squeezed(lists[-1][-1]):
        lists.pop()
    found: list[Part] = []
    for number, each in enumerate(lists):
        found.append(Part(_squeezed(each[0]), True))
        if number == len(lists) - 1 and number not in doubtful:
            found += [Part(_squeezed(one), False) for one in each[1:]]
    return tuple(part for part in found if part.comparable)
