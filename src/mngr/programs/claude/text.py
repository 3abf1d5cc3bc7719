"""How a message reaches Claude Code as plain text, and what the program would take for a command instead. Pure."""

from __future__ import annotations

import re
import unicodedata

from mngr.errors import MngrError
from mngr.programs.driver import Wording, check_utf8

TAB = "    "
# Put before a text that the program would run or obey. The program removes invisible characters, so none would help.
PLAIN = "This is text, not a command:\n"
QUITTING = frozenset({"exit", "quit", ":q", ":q!", ":wq", ":wq!"})

_LINE_ENDS = re.compile("\r\n?|[\u0085\u2028\u2029]")
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"
# A path, `/usr/lib`, is text to the program; `/usr` is a command that it does not know.
_COMMAND = re.compile(r"/(?![^\s/]+/)")


def wording(text: str) -> Wording:
    """In the form that the program would give it by itself: line ends, tabs, composed letters, no blanks around it. The
    program drops a blank at the end of a message. mngr adds one behind a last backslash, which would otherwise
    turn the Enter into a new line."""
    check_utf8(text, "Claude Code")
    bare = unicodedata.normalize("NFC", _LINE_ENDS.sub("\n", text).replace("\t", TAB)).strip()
    if not (shown := _visible(bare)):
        raise MngrError("the message is empty, or has only invisible characters")
    if why := intercepted(shown):
        bare = PLAIN + bare
    altered = f"a line put before it, since it would {why}" if why else ""
    return Wording(f"{bare} " if bare.endswith("\\") else bare, bare, altered)


def intercepted(text: str) -> str:
    """What the program would do with this text; empty when the text would reach the model."""
    if text in QUITTING:
        return "end the program"
    if text.startswith("!"):
        return "be run in a shell"
    return "be taken for a command" if _COMMAND.match(text) else ""


def same(recorded: str, received: str) -> bool:
    """Whether both have the same letters and digits: the program removes most invisible characters. A text without any
    has to be equal."""
    letters = ["".join(filter(str.isalnum, unicodedata.normalize("NFD", text))) for text in (recorded, received)]
    return letters[0] == letters[1] if letters[0] else recorded == received


def _visible(text: str) -> str:
    """Without marks, control and format characters, and letters that are blank."""
    shown = (one for one in text if one == "\n" or unicodedata.category(one)[0] not in "CM")
    return "".join(one for one in shown if one not in _BLANK_LETTERS).strip()
