"""What was typed and pasted, from the bytes of a terminal: messages, Ctrl-C, Ctrl-D. Pure; knows no terminal."""

from collections.abc import Iterator
from typing import NamedTuple

INTERRUPT = "interrupt"
END = "end"
REPORT = "report"  # the terminal's answer to our question whether it has come this far

_PASTE_BEGINS = b"\x1b[200~"
_PASTE_ENDS = b"\x1b[201~"
_PARAMETERS = frozenset(range(0x20, 0x40))


class Message(NamedTuple):
    """One submitted text as it was received, without its last newlines."""

    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode(errors="surrogateescape")


class Composer:
    """Collects the text before Enter. Enter inside a bracketed paste is part of the text."""

    def __init__(self) -> None:
        self.draft = bytearray()
        self.pasting = False
        self._held = b""

    def feed(self, data: bytes) -> Iterator[Message | str]:
        """What these bytes complete, each before the bytes after it are looked at: the caller may clear the draft then.
        An escape sequence that is cut off is held until its rest comes."""
        data = self._held + data
        self._held = b""
        at = 0
        while at < len(data):
            if self.pasting:
                at = self._paste(data, at)
            elif data[at] == 0x1B:
                at, found = self._escape(data, at)
                yield from found
            else:
                yield from self._key(data[at])
                at += 1

    def finish(self) -> Iterator[Message | str]:
        """The input has ended: what was not submitted is a message too."""
        self.draft += self._held
        self._held = b""
        yield from self._submit()
        yield END

    def _paste(self, data: bytes, at: int) -> int:
        end = data.find(_PASTE_ENDS, at)
        if end >= 0:
            self.draft += data[at:end]
            self.pasting = False
            return end + len(_PASTE_ENDS)
        keep = _cut_off(data[at:], _PASTE_ENDS)
        end = len(data) - keep
        self.draft += data[at:end]
        self._held = data[end:]
        return len(data)

    def _escape(self, data: bytes, at: int) -> tuple[int, list[str]]:
        """Pass over one escape sequence (arrows, focus); an Escape by itself means nothing."""
        if data.startswith(_PASTE_BEGINS, at):
            self.pasting = True
            return at + len(_PASTE_BEGINS), []
        end = at + 1
        if end < len(data) and data[end] not in b"[O":
            return end, []
        end += 1
        while end < len(data) and data[end] in _PARAMETERS:
            end += 1
        if end >= len(data):
            self._held = data[at:]
            return len(data), []
        return end + 1, [REPORT] if data[end : end + 1] == b"n" else []

    def _key(self, key: int) -> Iterator[Message | str]:
        if key in b"\r\n":
            yield from self._submit()
        elif key == 0x03:
            yield INTERRUPT
        elif key == 0x04:
            yield END
        elif key in b"\x7f\x08":
            while self.draft and self.draft.pop() & 0xC0 == 0x80:  # all bytes of the last character
                pass
        elif key == 0x15:
            self.draft.clear()
        else:
            self.draft.append(key)

    def _submit(self) -> list[Message | str]:
        """Enter on nothing does nothing, so that a sender may press it again."""
        data = bytes(self.draft).rstrip(b"\r\n")
        self.draft.clear()
        return [Message(data)] if data else []


def shorten(text: str, width: int) -> str:
    """The first line and how many follow, on one row of the screen, without anything that could move the cursor."""
    import unicodedata

    first, *rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    more = f" (+{len(rest)} line{'s' if len(rest) > 1 else ''})" if rest else ""
    room = max(1, width - len(more))
    shown: list[str] = []
    for char in plain(first[: room + 1]):
        room -= 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if room < 0:
            shown[-1:] = ["…"]
            break
        shown.append(char)
    return "".join(shown) + more


def plain(text: str) -> str:
    """Text that shows as text: control characters, except newlines, and bytes that are no text become `?`."""
    return "".join(c if c.isprintable() or c == "\n" else " " if c == "\t" else "?" for c in text)


def _cut_off(data: bytes, mark: bytes) -> int:
    """How many last bytes could be the beginning of the mark."""
    return next((n for n in range(min(len(data), len(mark) - 1), 0, -1) if data.endswith(mark[:n])), 0)
