"""What was typed and pasted, from the bytes of a terminal: messages, Ctrl-C, Ctrl-D. Pure; knows no terminal."""

import re
from collections.abc import Iterator

INTERRUPT, END = "interrupt", "end"
REPORT = "report"  # the terminal's answer to our question whether it has come this far

_PASTE_BEGINS = b"\x1b[200~"
# A bracketed paste, another escape sequence (arrows, focus), an Escape by itself, text, one key. What fits none of
# these is cut off: its rest comes later.
_PIECE = re.compile(
    rb"\x1b\[200~(?P<paste>.*?)\x1b\[201~|(?!\x1b\[200~)\x1b[\[O][ -?]*(?P<final>[^ -?])|\x1b(?=[^\[O])"
    rb"|(?P<key>[^\x00-\x1f\x7f]+|[^\x1b])",
    re.DOTALL,
)
_SIGNS = {b"\x03": INTERRUPT, b"\x04": END}


class Composer:
    """Collects the text before Enter. Enter inside a bracketed paste is part of the text."""

    def __init__(self) -> None:
        self.draft = bytearray()
        self._held = b""

    @property
    def pasting(self) -> bool:
        return self._held.startswith(_PASTE_BEGINS)

    def feed(self, data: bytes) -> Iterator[bytes | str]:
        """What these bytes complete, messages as bytes, each before the bytes after it are looked at: the caller may
        clear the draft then."""
        data, self._held, at = self._held + data, b"", 0
        while at < len(data):
            piece = _PIECE.match(data, at)
            if piece is None:
                self._held = data[at:]
                return
            at = piece.end()
            if piece["paste"]:
                self.draft += piece["paste"]
            elif piece["final"] == b"n":
                yield REPORT
            elif piece["key"]:
                yield from self._key(piece["key"])

    def finish(self) -> Iterator[bytes | str]:
        """The input has ended: what was not submitted is a message too."""
        self.draft += self._held.removeprefix(_PASTE_BEGINS)
        self._held = b""
        yield from self._submit()
        yield END

    def _key(self, key: bytes) -> Iterator[bytes | str]:
        if key in (b"\r", b"\n"):
            yield from self._submit()
        elif key in _SIGNS:
            yield _SIGNS[key]
        elif key in (b"\x7f", b"\x08"):
            while self.draft and self.draft.pop() & 0xC0 == 0x80:  # all bytes of the last character
                pass
        elif key == b"\x15":
            self.draft.clear()
        else:
            self.draft += key

    def _submit(self) -> Iterator[bytes]:
        """Enter on nothing does nothing, so that a sender may press it again."""
        data = bytes(self.draft).rstrip(b"\r\n")
        self.draft.clear()
        if data:
            yield data


def shorten(text: str, width: int) -> str:
    """The first line and how many follow, on one row of the screen, without anything that could move the cursor."""
    first, *rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    more = f" (+{len(rest)} line{'s' if len(rest) > 1 else ''})" if rest else ""
    room = max(1, width - len(more))
    return plain(first if len(first) <= room else first[: room - 1] + "…") + more


def plain(text: str) -> str:
    """Text that shows as text: control characters, except newlines, and bytes that are no text become `?`."""
    return "".join(c if c.isprintable() or c == "\n" else " " if c == "\t" else "?" for c in text)
