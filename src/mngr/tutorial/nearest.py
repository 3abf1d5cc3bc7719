"""Finds the block that a citation most likely meant, also among thousands."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Sequence
from heapq import nlargest

from mngr.e2e.shell_blocks import ScriptBlock

_WORDS = re.compile(r"[\w./-]+")
_COMPARED = 8
_ENOUGH = 20
_COMMON = 300
_NONE: list[int] = []


class Nearest:
    """Looks first at the words that few blocks have, then compares the best few letter by letter."""

    def __init__(self, blocks: Sequence[ScriptBlock]) -> None:
        self._blocks = blocks
        self._with_word: dict[str, list[int]] = defaultdict(list)
        for number, block in enumerate(blocks):
            for word in set(_WORDS.findall(block.text)):
                self._with_word[word].append(number)

    def to(self, text: str) -> ScriptBlock | None:
        """The block most like the text, or None if none is."""
        scores: defaultdict[int, float] = defaultdict(float)
        for having in sorted((self._with_word.get(word, _NONE) for word in set(_WORDS.findall(text))), key=len):
            if len(scores) >= _ENOUGH and len(having) > _ENOUGH:
                break
            for number in having[:_COMMON]:
                scores[number] += 1 / len(having)
        best: ScriptBlock | None = None
        best_ratio = 0.0
        for number in nlargest(_COMPARED, scores, key=scores.__getitem__):
            ratio = difflib.SequenceMatcher(None, self._blocks[number].text, text, autojunk=False).ratio()
            if ratio > best_ratio:
                best, best_ratio = self._blocks[number], ratio
        return best if best_ratio >= 0.3 else None
