"""Text of any length kept in bounded memory: its beginning and its end, and how much is missing between them."""

from __future__ import annotations

# Begins the line that stands where text is missing: expectations that something is absent look for it.
CUT = "[mngr.e2e: "


class Kept:
    """Keeps the first `head` and the last `tail` characters of what is added."""

    def __init__(self, head: int, tail: int) -> None:
        self.size = 0
        self._room = self._head_size = head
        self._tail_size = tail
        self._head: list[str] = []
        self._tail: list[str] = []
        self._held = 0

    def add(self, text: str) -> None:
        self.size += len(text)
        if self._room:
            first, text = text[: self._room], text[self._room :]
            self._head.append(first)
            self._room -= len(first)
        if text:
            self._tail.append(text)
            self._held += len(text)
            if self._held > 2 * self._tail_size:
                self._shorten()

    @property
    def left_out(self) -> int:
        return max(0, self.size - self._head_size - self._tail_size)

    def tail(self) -> str:
        """The end, without what is in the beginning."""
        self._shorten()
        return "".join(self._tail)

    def text(self) -> str:
        """Everything, or beginning and end with a line between them that says how much is missing."""
        tail = self.tail()
        if not self.left_out:
            return "".join(self._head) + tail
        return f"{''.join(self._head)}\n{CUT}{self.left_out:,} characters are left out here]\n{tail}"

    def _shorten(self) -> None:
        self._tail = ["".join(self._tail)[-self._tail_size :]]
        self._held = len(self._tail[0])
