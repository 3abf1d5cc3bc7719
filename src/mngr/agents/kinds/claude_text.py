"""How a message reaches Claude Code as plain text: its normal form, and what it would take for something else. Pure."""

from __future__ import annotations

import re
import unicodedata

from mngr.agents.kinds.driver import Wording
from mngr.errors import MngrError

TAB = "    "
# Stands before what would be run or obeyed. Nothing invisible can: the program takes that out.
PLAIN = "This is text, not a command:\n"
QUITTING = frozenset({"exit", "quit", ":q", ":q!", ":wq", ":wq!"})

_LINE_ENDS = re.compile("\r\n?|[\u0085\u2028\u2029]")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Those that the program leaves alone, or most of them: inside emoji, and where Persian and Indic words need them.
_PICTURE = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa"
    "\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2604\u260e\u2611\u2614\u2615\u2618\u261d\u2620\u2622\u2623"
    "\u2626\u262a\u262e\u262f\u2638-\u263a\u2640\u2642\u2648-\u2653\u265f\u2660\u2663\u2665\u2666\u2668\u267b\u267e"
    "\u267f\u2692-\u2697\u2699\u269b\u269c\u26a0\u26a1\u26a7\u26aa\u26ab\u26b0\u26b1\u26bd\u26be\u26c4\u26c5\u26c8"
    "\u26ce\u26cf\u26d1\u26d3\u26d4\u26e9\u26ea\u26f0-\u26f5\u26f7-\u26fa\u26fd\u2702\u2705\u2708-\u270d\u270f\u2712"
    "\u2714\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763\u2764\u2795-\u2797"
    "\u27a1\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299"
    "\U0001f300-\U0001f5ff\U0001f600-\U0001f64f\U0001f680-\U0001f6c5\U0001f900-\U0001f9ff]"
)
_NEEDED = re.compile(
    f"(?<={_PICTURE})\ufe0f"
    f"|(?<={_PICTURE})\u200d(?={_PICTURE})"
    f"|(?<={_PICTURE}\ufe0f)\u200d(?={_PICTURE})"
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    "|(?<=[\u0620-\u064a\u066e-\u06d3])\u200c(?=[\u0620-\u064a\u066e-\u06d3])"
    "|(?<=[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d])[\u200c\u200d](?=[\u0904-\u0939\u0985-\u0d3a])"
)
# A path, `/usr/lib`, is text to the program; `/usr` is a command that it does not know.
_COMMAND = re.compile(r"/(?![^\s/]+/)")


def wording(text: str) -> Wording:
    """A blank at the end, which the program drops, keeps a backslash there from taking the Enter for a new line."""
    if any("\ud800" <= one <= "\udfff" for one in text):
        raise MngrError("the message is not UTF-8, and Claude Code would not take it as it is")
    said = []
    lines = _LINE_ENDS.sub("\n", text)
    if lines != text:
        said.append("other line ends made newlines")
    spread = lines.replace("\t", TAB)
    if spread != lines:
        said.append("tabs made four blanks")
    visible = _visible(spread)
    if visible != spread:
        said.append("invisible characters dropped")
    composed = visible
    while (again := _visible(unicodedata.normalize("NFC", composed))) != composed:
        composed = again
    if composed != visible:
        said.append("letters with separate accents composed (NFC)")
    bare = composed.strip()
    if not bare:
        raise MngrError("the message is empty, or nothing in it can be seen")
    if bare != composed:
        said.append("blanks at its ends dropped")
    if why := intercepted(bare):
        bare = PLAIN + bare
        said.append(f"a line put before it, since it would {why}")
    return Wording(f"{bare} " if bare.endswith("\\") else bare, bare, ", ".join(said))


def intercepted(text: str) -> str:
    """What would become of this text, in words; empty when it would reach the model."""
    if text in QUITTING:
        return "end the program"
    if text.startswith("!"):
        return "be run in a shell"
    return "be taken for a command" if _COMMAND.match(text) else ""


def _visible(text: str) -> str:
    if not _INVISIBLE.search(text):
        return text
    needed = {found.start() for found in _NEEDED.finditer(text)}
    return "".join(one for at, one in enumerate(text) if at in needed or not _INVISIBLE.match(one))
