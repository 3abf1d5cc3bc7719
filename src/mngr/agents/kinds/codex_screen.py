"""Reads the screen of Codex, with its escape sequences: what stands in the input box, and whether it asks. Pure."""

from __future__ import annotations

import re

from mngr.agents.kinds.driver import plain

_INPUT = re.compile(r"^(?:\x1b\[[0-9;]*m)*([›!])(?:\x1b\[[0-9;]*m)* ?(.*)$", re.MULTILINE)
_DIM = re.compile(r"\x1b\[(?:[0-9;]*;)?2m")
_EMPTY = "for shortcuts"  # shown below an empty input box alone
_ASKING = re.compile(r"to confirm or \S+ to cancel|to submit answer")


def asks(screen: str) -> bool:
    return bool(_ASKING.search(plain(screen)))


def typed(screen: str) -> str:
    """What is in the input box; its first line, if there are several. One Ctrl-C clears it, and ends the program when
    it is empty: in doubt it is empty."""
    boxes = _INPUT.findall(screen)
    if not boxes or asks(screen):
        return ""
    sign, rest = boxes[-1]
    if _DIM.match(rest) or _EMPTY in "\n".join(screen.rstrip().split("\n")[-3:]):
        return ""
    return plain(rest).strip() or sign.strip("›")
