"""Reads the words of shell text: quotes, escapes, expansions. Nothing is expanded, and no text is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

BLANKS = re.compile(r"(?:[ \t]|\\\n)+")
ENDS_IN_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
_PLAIN = re.compile(r"[^ \t\n\\'\"`$;&|<>()]+")
_PLAIN_IN_QUOTES = re.compile(r"[^\\\"`$]+")
_PLAIN_IN_BRACES = re.compile(r"[^\\'\"`$}]+")
_PLAIN_IN_PARENS = re.compile(r"[^\\'\"`$()]+")
_UP_TO_BACKQUOTE = re.compile(r"(?:[^\\`]|\\.)*+`", re.DOTALL)
_UP_TO_QUOTE = re.compile(r"(?:[^\\']|\\.)*+'", re.DOTALL)
_DEEPEST = 40


class Unfinished(NamedTuple):
    """What is still open at the end of the text, and the line where it was opened, counted from 1."""

    what: str
    line: int


class Reader:
    """A place in a text. `nested` reads the commands of a `$(...)` up to past its `)`, and tells whether
    there was one."""

    def __init__(self, text: str, nested: Callable[[Reader], bool]) -> None:
        self.text = text
        self.at = 0
        self.unfinished: Unfinished | None = None
        self._nested = nested
        self._depth = 0

    def left_open(self, what: str, at: int) -> None:
        """Said from the inside outwards: the outermost stays."""
        self.unfinished = Unfinished(what, self.text.count("\n", 0, at) + 1)

    def word(self) -> str:
        """The word that begins here, as written but for continued lines; empty if none does."""
        parts: list[str] = []
        text, end = self.text, len(self.text)
        while self.at < end:
            found = _PLAIN.match(text, self.at)
            if found:
                self.at = found.end()
                parts.append(found.group())
                continue
            began = self.at
            character = text[began]
            if text.startswith("\\\n", began):
                self.at += 2
                continue
            if character in " \t\n;&|()" or (character in "<>" and (parts or not text.startswith("(", began + 1))):
                break
            if character in "<>":
                self.at += 2
                self._code(began)
            else:
                self._quoting(quoted=False)
            parts.append(text[began : self.at])
        return "".join(parts)

    def arithmetic(self) -> str:
        """From the `(` here to the one that closes it."""
        began, count, text = self.at, 0, self.text
        while self.at < len(text):
            found = _PLAIN_IN_PARENS.match(text, self.at)
            if found:
                self.at = found.end()
            elif text[self.at] in "()":
                count += 1 if text[self.at] == "(" else -1
                self.at += 1
                if not count:
                    return text[began : self.at]
            else:
                self._quoting(quoted=False)
        self.left_open("`((`", began)
        return text[began:]

    def _quoting(self, quoted: bool) -> None:
        """Reads one quote, expansion or escaped character. `quoted`: we are inside double quotes."""
        text, at = self.text, self.at
        character = text[at]
        if self._depth >= _DEEPEST:
            self.at = at + 1
        elif character == "\\":
            self.at = min(at + 2, len(text))
        elif character == "'" and not quoted:
            stop = text.find("'", at + 1)
            self._past(stop + 1, "quote `'`")
        elif character == '"':
            self._until('"', _PLAIN_IN_QUOTES, at + 1, quoted=True)
        elif character == "`":
            found = _UP_TO_BACKQUOTE.match(text, at + 1)
            self._past(found.end() if found else 0, "backquote")
        elif text.startswith("$'", at) and not quoted:
            found = _UP_TO_QUOTE.match(text, at + 2)
            self._past(found.end() if found else 0, "quote `$'`")
        elif text.startswith("${", at):
            self._until("}", _PLAIN_IN_BRACES, at + 2, quoted=False)  # bash: inside double quotes too
        elif text.startswith("$((", at):
            self.at = at + 1
            self._deeper(self.arithmetic)
        elif text.startswith("$(", at):
            self.at = at + 2
            self._code(at)
        else:
            self.at = at + 1

    def _past(self, end: int, what: str) -> None:
        if not end:
            self.left_open(what, self.at)
        self.at = end or len(self.text)

    def _until(self, closer: str, plain: re.Pattern[str], at: int, quoted: bool) -> None:
        began, self.at, text = self.at, at, self.text
        while self.at < len(text) and text[self.at] != closer:
            found = plain.match(text, self.at)
            if found:
                self.at = found.end()
            else:
                self._deeper(lambda: self._quoting(quoted))
        if self.at >= len(text):
            self.left_open('quote `"`' if closer == '"' else "`${`", began)
        self.at = min(self.at + 1, len(text))

    def _code(self, began: int) -> None:
        def read() -> None:
            if not self._nested(self):
                self.left_open(f"`{self.text[began : began + 2]}`", began)

        self._deeper(read)

    def _deeper(self, read: Callable[[], object]) -> None:
        self._depth += 1
        read()
        self._depth -= 1
