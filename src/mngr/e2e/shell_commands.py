"""Splits shell text into complete commands: what one types at a prompt until the shell begins to run it.

Reads the syntax only: nothing is expanded. A text that no shell would accept still gives commands, and a word on what
was left open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

# The kinds of pieces that a command is made of. A body is that of a here-document, with its delimiter.
TOKEN, BLANK, NEWLINE, SEPARATOR, BODY = range(5)
Piece = tuple[int, str]


class Command(NamedTuple):
    """A complete command. In `text` continued lines are joined and comments left out; in `comparable` also runs of
    blanks outside quotes are one. `line` counts from 1."""

    text: str
    comparable: str
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
    reader = _Reader(text)
    code = _Code(reader, nested=False)
    code.read()
    return Split(tuple(code.commands), reader.unfinished)


def squeezed(pieces: Iterable[Piece]) -> str:
    """Blanks as one, none at the ends of lines, and no empty lines; bodies of here-documents as they are."""
    done: list[str] = []
    for kind, piece in pieces:
        if kind == BLANK:
            if done and done[-1] not in (" ", "\n"):
                done.append(" ")
            continue
        if kind == NEWLINE:
            if done and done[-1] == " ":
                done.pop()
            if not done or done[-1] in ("\n", " "):
                continue
            if done[-1] in _JOINERS:
                piece = " "
        done.append(piece)
    return "".join(done).strip(" \n")


_BLANKS = re.compile(r"(?:[ \t]|\\\n)+")
_ENDS_IN_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
_COMMENT = re.compile(r"#[^\n]*")
_OPERATORS = re.compile(r";;&|;;|;&|;|&&|&>>|&>|&|\|\||\|&|\||<<<|<<-|<<|<>|<&|<|>>|>&|>\||>|\(|\)")
_FUNCTION_PARENS = re.compile(r"\([ \t]*\)")
_PLAIN_ARGUMENTS = re.compile(r"""(?: (?:[\w./:=@%+,~^-]+|"[^"\\`$\n]*"|'[^'\n]*')(?=[ \t\n]|\Z))+""")
_ARRAY = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=\Z")
_TO_SQUEEZE = re.compile(r"  |[\t\n]")

_OPENERS = {"if": "fi", "while": "done", "until": "done", "for": "done", "select": "done", "case": "esac", "{": "}"}
_FIRST_PHASE = {"case": "subject", "for": "for"}
_BEFORE_A_COMMAND = frozenset(("then", "else", "elif", "do", "!", "time"))
_JOINERS = frozenset(("|", "|&", "&&", "||"))
_REDIRECTIONS = frozenset(("<", ">", ">>", ">&", "<&", ">|", "<>", "&>", "&>>", "<<<"))

# What needs no look inside a word, and before what closes double quotes, braces and parentheses.
_PLAIN = {
    "": re.compile(r"[^ \t\n\\'\"`$;&|<>()]+"),
    '"': re.compile(r"[^\\\"`$]+"),
    "}": re.compile(r"[^\\'\"`$}]+"),
    ")": re.compile(r"[^\\'\"`$()]+"),
}
_SPECIAL = re.compile(r"\\.?|\$?'|`|\"|\$\{|\$\(\(|\$\(|[<>]\(|.", re.DOTALL)
# To the end of what has nothing special in it.
_QUOTED = {
    "'": re.compile(r"[^']*'"),
    "$'": re.compile(r"(?:[^\\']|\\.)*+'", re.DOTALL),
    "`": re.compile(r"(?:[^\\`]|\\.)*+`", re.DOTALL),
}
_DEEPEST = 40


class _Reader:
    """A place in a text, from which words are read: quotes, escapes, expansions."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.unfinished: Unfinished | None = None
        self._depth = 0

    def left_open(self, what: str, at: int) -> None:
        """Said from the inside outwards: the outermost stays."""
        self.unfinished = Unfinished(what, self.text.count("\n", 0, at) + 1)

    def word(self) -> str:
        """The word that begins here, as written but for continued lines; empty if none does."""
        parts: list[str] = []
        text, end, plain = self.text, len(self.text), _PLAIN[""]
        while self.at < end:
            began = self.at
            if found := plain.match(text, began):
                self.at = found.end()
            elif text.startswith("\\\n", began):
                self.at += 2
                continue
            elif text[began] in " \t\n;&|()" or (text[began] in "<>" and (parts or text[began + 1 : began + 2] != "(")):
                break
            else:
                self._special(quoted=False)
            parts.append(text[began : self.at])
        return "".join(parts)

    def until(self, closer: str, what: str, began: int) -> str:
        """From where something began to what closes it; in parentheses, there may be others."""
        text, count = self.text, 1
        while count and self.at < len(text):
            if found := _PLAIN[closer].match(text, self.at):
                self.at = found.end()
            elif text[self.at] == closer or (closer == ")" and text[self.at] == "("):
                count += -1 if text[self.at] == closer else 1
                self.at += 1
            else:
                self._special(quoted=closer == '"')
        if count:
            self.left_open(what, began)
        return text[began : self.at]

    def _special(self, quoted: bool) -> None:
        """Past one quote, expansion, escaped or other character. `quoted`: we are inside double quotes."""
        began = self.at
        found = _SPECIAL.match(self.text, began)
        assert found is not None
        opening = found.group()
        if self._depth >= _DEEPEST or (quoted and opening in ("'", "$'")):
            self.at += 1
            return
        self.at = found.end()
        self._depth += 1
        if opening in _QUOTED:
            ended = _QUOTED[opening].match(self.text, self.at)
            self.at = ended.end() if ended else len(self.text)
            if not ended:
                self.left_open("backquote" if opening == "`" else f"quote `{opening}`", began)
        elif opening == '"':
            self.until('"', 'quote `"`', began)
        elif opening == "${":
            self.until("}", "`${`", began)  # bash: with single quotes, inside double quotes too
        elif opening == "$((":
            self.at -= 1
            self.until(")", "`((`", began)
        elif opening in ("$(", "<(", ">(") and not _Code(self, nested=True).read():
            self.left_open(f"`{opening}`", began)
        self._depth -= 1


@dataclass
class _Open:
    """A compound command that is being read: the word that closes it, and how far it got."""

    word: str
    closer: str
    at: int
    phase: str = ""


class _HereDocument(NamedTuple):
    delimiter: str
    literal: bool
    without_tabs: bool
    at: int


class _Code:
    """One stretch of code: the whole text, or the inside of one `$(...)`, which ends at its `)`."""

    def __init__(self, reader: _Reader, nested: bool) -> None:
        self.reader, self.nested = reader, nested
        self.commands: list[Command] = []
        self.pieces: list[Piece] = []
        self.line, self.counted, self.began = 1, 0, 0
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
            if not self.pieces:
                self.began = reader.at
            if character == "\n":
                self._newline()
            elif character in " \t" or text.startswith("\\\n", reader.at):
                self._blanks()
            elif comment := _COMMENT.match(text, reader.at):
                reader.at = comment.end()
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

    def _put(self, kind: int, piece: str) -> None:
        if not self.nested:
            self.pieces.append((kind, piece))

    def _blanks(self) -> None:
        found = _BLANKS.match(self.reader.text, self.reader.at)
        if found:
            self.reader.at = found.end()
            if self.pieces:
                self._put(BLANK, " " if "\\" in found.group() else found.group())

    def _newline(self) -> None:
        if self.pieces:
            if self.pieces[-1][0] == BLANK:
                self.pieces.pop()
            self._put(NEWLINE, "\n")
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
        self._put(TOKEN, word)
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
        elif case and case.phase == "subject":
            case.phase = "head"
        elif case and case.phase == "head":
            case.phase = "pattern" if word == "in" else "head"
        elif case:
            if word == "esac":
                self._close()
        else:
            if self.first:
                self._first_word(word, began)
            # The plain words that follow are most of any script, so they are taken in one step.
            plain = not self.first and not self.stack and not self.defining
            if plain and (found := _PLAIN_ARGUMENTS.match(self.reader.text, self.reader.at)):
                self.pieces.append((TOKEN, found.group()))
                self.reader.at = found.end()
                self.named = False
            if self.reader.text.startswith("(", self.reader.at) and _ARRAY.match(word):
                self._open_group("words")

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

    def _open_group(self, phase: str) -> None:
        self.stack.append(_Open("(", ")", self.reader.at, phase))
        self._put(TOKEN, "(")
        self.reader.at += 1
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
        self._put(SEPARATOR if separator and not self.stack else TOKEN, operator)
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
        elif operator in (";;", ";&", ";;&") and self._top("body"):
            self.stack[-1].phase = "pattern"
        else:
            self.first, self.more = True, operator in _JOINERS
        return False

    def _open_paren(self) -> None:
        reader = self.reader
        function = _FUNCTION_PARENS.match(reader.text, reader.at) if self.named else None
        if function:
            self._put(TOKEN, "()")
            reader.at = function.end()
            self.first = self.more = True
        elif self._top("pattern"):
            self._put(TOKEN, "(")
            reader.at += 1
        elif reader.text.startswith("((", reader.at) and (self.first or self._top("for")):
            reader.at += 1
            self._put(TOKEN, reader.until(")", "`((`", reader.at - 1))
            self.first = self.more = False
        else:
            self._open_group("" if self.first else "words")
        self.named = False

    def _here_operator(self, operator: str, at: int) -> None:
        self._blanks()
        word = self.reader.word()
        if word:
            self._put(TOKEN, word)
            delimiter = re.sub(r"\\(.)|[\"']", r"\1", word, flags=re.DOTALL)
            self.waiting.append(_HereDocument(delimiter, delimiter != word, operator == "<<-", at))

    def _body(self, here: _HereDocument) -> None:
        reader, text, began, joined = self.reader, self.reader.text, self.reader.at, False
        while reader.at < len(text):
            stop = text.find("\n", reader.at) + 1 or len(text) + 1
            line, reader.at = text[reader.at : stop - 1], min(stop, len(text))
            if not joined and (line.lstrip("\t") if here.without_tabs else line) == here.delimiter:
                self._put(BODY, text[began : reader.at])
                return
            joined = not here.literal and bool(_ENDS_IN_BACKSLASH.search(line))
        self._put(BODY, text[began:])
        reader.left_open(f"here-document `{here.delimiter}`", here.at)

    def _finish(self) -> None:
        """The pieces read so far are a command."""
        pieces, self.pieces = self.pieces, []
        while pieces and pieces[-1][0] in (BLANK, NEWLINE):
            pieces.pop()
        if pieces:
            self.line += self.reader.text.count("\n", self.counted, self.began)
            self.counted = self.began
            text = "".join([piece for _, piece in pieces]).rstrip("\n")
            comparable = squeezed(pieces) if _TO_SQUEEZE.search(text) else text
            self.commands.append(Command(text, comparable, self.line, tuple(pieces)))
