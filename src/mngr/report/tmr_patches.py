"""What agents changed, out of the repository: patches and commits of many in few git processes, not without end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mngr.errors import MngrError
from mngr.system import process
from mngr.system.git import Git
from mngr.tmr.branch.objects import Objects

MOST_FILES = 200
MOST_PATCH = 400_000
_MOST_COMMITS = 50
_AT_ONCE = 50
_HEAD = re.compile(rb"^[0-9a-f]{40,64} [0-9a-f]{40,64}\n", re.MULTILINE)
# Bigger files count as binary: git says that they differ, and not how.
_BIG = "core.bigFileThreshold=200k"
_PATCH = (
    *("diff-tree", "--stdin", "-r", "-p", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--submodule=short", "--diff-algorithm=histogram", "-U3"),
)
_LOG = "%H%x00%P%x00%an%x00%at%x00%s"


class Patch(NamedTuple):
    text: str
    note: str = ""


class Pair(NamedTuple):
    """Two commits to compare. `files` is how many differ, as far as is known."""

    old: str
    new: str
    files: int = 0


NOTHING = Patch("")
_GONE = Patch("", "The commits are not in the repository any more.")
_MANY = Patch("", f"More than {MOST_FILES} files differ: too many for this page.")


class Patches:
    """The repository of a run. One that lacks commits, or cannot be read, gives patches that say so."""

    def __init__(self, repo: str, base: str) -> None:
        self._objects = Objects(Git.of_user(repo))
        self._base = base
        self._patches: dict[tuple[str, str], Patch] = {}
        self._commits: dict[str, list[dict[str, Any]]] = {}

    def load(self, pairs: Iterable[Pair]) -> None:
        """Read ahead what `patch` and `commits` will be asked for."""
        wanted = [pair for pair in dict.fromkeys(pairs) if (pair.old, pair.new) not in self._patches]
        self._patches.update({(pair.old, pair.new): _MANY for pair in wanted if pair.files > MOST_FILES})
        small = [pair for pair in wanted if pair.files <= MOST_FILES]
        try:
            for at in range(0, len(small), _AT_ONCE):
                self._load_patches(small[at : at + _AT_ONCE])
            self._load_commits({pair.new for pair in wanted if pair.old == self._base})
        except (MngrError, OSError) as error:
            for pair in wanted:
                self._patches.setdefault((pair.old, pair.new), Patch("", f"It cannot be shown: {error}"))

    def patch(self, pair: Pair) -> Patch:
        if (pair.old, pair.new) not in self._patches:
            self.load([pair])
        return self._patches.get((pair.old, pair.new), _GONE)

    def commits(self, tip: str) -> list[dict[str, Any]]:
        """Those from the base to the tip, oldest first."""
        return self._commits.get(tip, [])

    def _load_patches(self, pairs: Sequence[Pair]) -> None:
        facts = self._objects.facts({commit for pair in pairs for commit in (pair.old, pair.new)})
        trees: dict[tuple[str, str], list[Pair]] = {}
        for pair in pairs:
            if pair.old in facts and pair.new in facts:
                trees.setdefault((facts[pair.old].tree, facts[pair.new].tree), []).append(pair)
            else:
                self._patches[pair.old, pair.new] = _GONE
        if not trees:
            return
        lines = "".join(f"{old} {new}\n" for old, new in trees)
        result = process.checked(self._objects.git.run("-c", _BIG, *_PATCH, input=lines.encode()))
        found = _by_head(result.stdout)
        for ids, members in trees.items():
            for pair in members:
                self._patches[pair.old, pair.new] = _made(found.get(ids, b""))

    def _load_commits(self, tips: set[str]) -> None:
        here = self._objects.facts({*tips, self._base})
        tips = {tip for tip in tips if tip in here and tip != self._base}
        if not tips or self._base not in here:
            return
        asked = "".join(f"{tip}\n" for tip in sorted(tips)) + f"^{self._base}\n"
        words = ("log", "--stdin", "--max-count=20000", f"--format={_LOG}", "--no-show-signature", "--no-color")
        lines = process.checked(self._objects.git.run(*words, input=asked.encode())).stdout.decode(errors="replace")
        known: dict[str, tuple[str, dict[str, Any]]] = {}
        for line in lines.split("\n"):
            parts = line.split("\0")
            if len(parts) == 5 and parts[3].isdigit():
                id, parents, author, at, subject = parts
                made = {"id": id, "author": author[:200], "at": int(at), "subject": subject[:300]}
                known[id] = (parents.partition(" ")[0], made)
        for tip in tips:
            self._commits[tip] = _walk(known, tip)


def _walk(known: Mapping[str, tuple[str, dict[str, Any]]], tip: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while tip in known and len(found) < _MOST_COMMITS:
        tip, commit = known[tip]
        found.append(commit)
    return found[::-1]


def _by_head(data: bytes) -> dict[tuple[str, str], bytes]:
    """The patches behind the lines that name their trees. No line of a patch begins as such a line does."""
    heads = [*_HEAD.finditer(data)]
    ends = [*(head.start() for head in heads[1:]), len(data)]
    found = {}
    for head, end in zip(heads, ends, strict=True):
        old, new = head[0].decode().split()
        found[old, new] = data[head.end() : end]
    return found


def _made(data: bytes) -> Patch:
    if len(data) <= MOST_PATCH:
        return Patch(data.decode(errors="replace"))
    kept = data[: data.rfind(b"\n", 0, MOST_PATCH) + 1].decode(errors="replace")
    return Patch(kept, f"Only the first {MOST_PATCH // 1000} kB of {len(data) / 1e6:.1f} MB are shown.")
