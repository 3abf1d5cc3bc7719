"""Three-way application of parts, on objects alone.

A part whose paths nobody else touched is applied without git, and so is one that changes other lines of a file than
those before it, or other functions of a test file. Only where two meet does git merge: it wants commits with a common
ancestor, so both sides are wrapped in commits on the part's base.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from hashlib import sha256
from io import BytesIO
from typing import NamedTuple

from mngr.tmr.branch import function_merge
from mngr.tmr.branch.objects import CommitFacts, NewCommit, Objects, PathChange, TreeEntry, ours
from mngr.tmr.branch.unit import ChangePart
from mngr.tmr.judge.paths import folders

_MESSAGE = "mngr: a candidate for the branch\n"
_TEXT_MAX = 1_000_000  # bytes; git merges larger files, whose versions would fill the memory here


class State(NamedTuple):
    """What the branch would hold: the base with `files` put in or (None) taken out. `key` tells how it came about."""

    key: str
    files: Mapping[str, TreeEntry | None]


class Clash(NamedTuple):
    """A part does not go onto a state: the paths, and the merge with git's markers in it. `twice` are functions that
    both sides define, which git merges without a conflict and of which Python would run only one."""

    paths: tuple[str, ...]
    tree: str
    twice: tuple[str, ...] = ()


class Hunk(NamedTuple):
    """This many lines of the base's file, after the first `start` lines, become `added`."""

    path: str
    start: int
    removed: int
    added: bytes


class Applier:
    """Applies parts onto states of one base. Remembers every answer, so the same question costs nothing again. `parts`
    are those of this base; `by_function` says which files are merged by function."""

    def __init__(
        self,
        objects: Objects,
        base: CommitFacts,
        parts: Sequence[ChangePart],
        by_function: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self.objects = objects
        self.base = base
        self.start = State(base.id, {})
        self._answers: dict[tuple[str, str], State | Clash] = {}
        self._commits: dict[tuple[str, str], str] = {}
        self._part_commits: dict[str, str] = {}
        self._resolved: dict[str, ChangePart] = {}
        self._parts = parts
        self._originals = {change.path: change.old for part in parts for change in part.changes}
        count = Counter(path for part in parts for path in part.paths)
        self._common = {path for path in count if count[path] > 1}
        self._by_function = {path for path in self._common if by_function(path)}
        self._who = ours(base.committed_at)

    def apply(self, state: State, part: ChangePart) -> State | Clash:
        """The state with the part on it, or where they clash. An accepted resolution is used when it fits."""
        asked = (state.key, part.id)
        if asked not in self._answers:
            answer = self._once(state, part)
            if isinstance(answer, Clash) and part.id in self._resolved:
                resolved = self._once(state, self._resolved[part.id])
                answer = resolved if isinstance(resolved, State) else answer
            self._answers[asked] = answer
        return self._answers[asked]

    def resolve(self, part: ChangePart, resolution: ChangePart | None) -> None:
        """From now on a clash of the part is answered by this one, whose base is the state it was made on; by none if
        None."""
        self._resolved.pop(part.id, None)
        if resolution is not None:
            self._resolved[part.id] = resolution
        self._answers = {asked: answer for asked, answer in self._answers.items() if asked[1] != part.id}

    def commit(self, state: State, parent: str = "") -> str:
        """A commit of the state, for git and for the gate. The same state gives the same commit."""
        asked = (state.key, parent or self.base.id)
        if asked not in self._commits:
            new = NewCommit(asked[1], state.files, _MESSAGE, self._who, self._who, self.base.tree)
            self._commits[asked] = self.objects.write([new])[0]
        return self._commits[asked]

    def part_commit(self, part: ChangePart) -> str:
        """The part alone on its base. Those that meet others are made all at once, the first time one is wanted."""
        if part.id not in self._part_commits:
            meeting = [one for one in self._parts if self._common.intersection(one.paths)]
            todo = {one.id: one for one in (*meeting, part) if one.id not in self._part_commits}
            files = [{change.path: change.new for change in one.changes} for one in todo.values()]
            news = zip(todo.values(), files, strict=True)
            made = self.objects.write([NewCommit(one.base, new, _MESSAGE, self._who, self._who) for one, new in news])
            self._part_commits |= dict(zip(todo, made, strict=True))
        return self._part_commits[part.id]

    def shared(self, parts: Mapping[str, ChangePart]) -> dict[str, list[str]]:
        """For each part, by name, the names of the earlier ones that hold some of its very changes: to revert those
        takes these away too."""
        owned: dict[tuple[object, ...], str] = {}
        found: dict[str, list[str]] = {}
        for name, part in parts.items():
            blobs = [(change.path, change.new.oid) for change in part.changes if change.new]
            own = {*part.changes, *(hunk for asked in blobs for hunk in self._edits.get(asked, ()))}
            found[name] = sorted({owned[thing] for thing in own if thing in owned})
            for thing in own:
                owned.setdefault(thing, name)
        return found

    def _once(self, state: State, part: ChangePart) -> State | Clash:
        key = sha256(f"{state.key} {part.id}".encode()).hexdigest()
        files = self._without_git(state, part)
        if files is None:
            merge = self.objects.merges([(self.commit(state, part.base), self.part_commit(part))])[0]
            both = self._conflicts_by_function(state, part, merge.conflicts) if merge.conflicts else {}
            if both is None:
                return Clash(merge.conflicts, merge.tree)
            pair = (self.base.tree, merge.tree)
            merged = {change.path: change.new for change in self.objects.changes([pair])[pair]}
            files = {**{path: self._originals.get(path) for path in state.files}, **merged, **both}
        after = State(key, {**state.files, **files})
        return self._hidden(state, part, after) or after

    def _without_git(self, state: State, part: ChangePart) -> dict[str, TreeEntry | None] | None:
        """What the part makes of its paths when each is as the part found it, already as it leaves it, or changed in
        other lines; and no file comes where a directory is. None when git has to merge."""
        files: dict[str, TreeEntry | None] = {}
        for change in part.changes:
            now = state.files.get(change.path, self._originals.get(change.path))
            if now in (change.old, change.new):
                files[change.path] = change.new
            elif part.base == self.base.id and (both := self._lines(change, now) or self._functions(change, now)):
                files[change.path] = both  # by function where the lines of both touch
            else:
                return None
        there = {path for path, entry in state.files.items() if entry}
        added = [change.path for change in part.changes if change.new and not change.old]
        if added:
            inside = {folder for path in there for folder in folders(path)}
            if any(path in inside or there.intersection(folders(path)) for path in added):
                return None
        return files

    def _conflicts_by_function(
        self, state: State, part: ChangePart, paths: Sequence[str]
    ) -> dict[str, TreeEntry | None] | None:
        """The files that git cannot merge, merged by function; None when one of them cannot."""
        if part.base != self.base.id or not self._by_function.issuperset(paths):
            return None
        changes = {change.path: change for change in part.changes}
        files = {path: self._functions(changes[path], state.files.get(path)) for path in paths if path in changes}
        return {**files} if all(files.values()) and len(files) == len(paths) else None

    def _functions(self, change: PathChange, now: TreeEntry | None) -> TreeEntry | None:
        path, old, new = change
        if path not in self._by_function or not now or not new or now.mode != new.mode:
            return None
        if old and (old.mode != now.mode or path not in self._merged_as_text):
            return None
        base = self._content(old.oid) if old else b""
        text = function_merge.merged(base, self._content(now.oid), self._content(new.oid))
        return None if text is None or len(text) > _TEXT_MAX else self._made(text, new)

    def _hidden(self, state: State, part: ChangePart, after: State) -> Clash | None:
        """A clash where the part and the state each define a function of the same name: Python would run one."""
        twice: dict[str, frozenset[str]] = {}
        for path, _, new in part.changes if part.base == self.base.id else ():
            now, made = state.files.get(path), after.files.get(path)
            if path in self._by_function and now and new and made and made not in (now, new):
                ours, theirs, both = (function_merge.shadowed(self._content(one.oid)) for one in (now, new, made))
                twice |= {path: new_names} if (new_names := both - ours - theirs) else {}
        if not twice:
            return None
        commit = self.commit(after)
        names = sorted(frozenset().union(*twice.values()))
        return Clash(tuple(twice), self.objects.facts([commit])[commit].tree, tuple(names))

    def _lines(self, change: PathChange, now: TreeEntry | None) -> TreeEntry | None:
        """None when the lines touch, and when one of the sides is no text."""
        path, old, new = change
        if not old or not now or not new or not old.mode == now.mode == new.mode:
            return None
        ours, theirs = self._edits.get((path, now.oid)), self._edits.get((path, new.oid))
        if not ours or not theirs or path not in self._merged_as_text:
            return None
        text = _spliced(_lines_of(self._content(old.oid)), ours | theirs)
        if text is None or len(text) > _TEXT_MAX:
            return None
        made = self._made(text, old)
        self._edits[path, made.oid] = ours | theirs
        return made

    def _made(self, text: bytes, like: TreeEntry) -> TreeEntry:
        made = TreeEntry(like.mode, self.objects.new_blob(text, like=like.oid))
        self._contents[made.oid] = text
        return made

    def _content(self, oid: str) -> bytes:
        if oid not in self._contents:
            self._contents |= self.objects.blobs([oid])
        return self._contents[oid]

    @cached_property
    def _contents(self) -> dict[str, bytes]:
        """Versions of the files that several parts change: all that agents made are read at once."""
        changes = [change for part in self._parts for change in part.changes if change.path in self._common]
        sizes = self.objects.sizes(entry.oid for change in changes for entry in (change.old, change.new) if entry)
        return self.objects.blobs(oid for oid, size in sizes.items() if size <= _TEXT_MAX)

    @cached_property
    def _edits(self) -> dict[tuple[str, str], frozenset[Hunk]]:
        """What blobs change of the base's, by path and blob: those of several parts at first, then mixtures of them."""
        changes = {change for part in self._parts for change in part.changes if change.path in self._common}
        found = {}
        for path, old, new in changes:
            texts = [self._contents.get(entry.oid) for entry in (old, new) if entry and entry.mode.startswith("100")]
            if new and len(texts) == 2 and all(text is not None and b"\0" not in text for text in texts):
                found[path, new.oid] = frozenset(_hunks(path, *(_lines_of(text or b"") for text in texts)))
        return found

    @cached_property
    def _merged_as_text(self) -> set[str]:
        return self.objects.merged_as_text(self._common)


def _lines_of(text: bytes) -> list[bytes]:
    return BytesIO(text).readlines()


def _hunks(path: str, old: list[bytes], new: list[bytes]) -> Iterable[Hunk]:
    for what, start, end, begin, stop in SequenceMatcher(None, old, new).get_opcodes():
        if what != "equal":
            yield Hunk(path, start, end - start, b"".join(new[begin:stop]))


def _spliced(lines: Sequence[bytes], hunks: Iterable[Hunk]) -> bytes | None:
    """The lines with the hunks in them. As in git's merge, an unchanged line must be between two: otherwise None."""
    done: list[bytes] = []
    end = -1
    for hunk in sorted(hunks, key=lambda hunk: hunk.start):
        if hunk.start <= end:
            return None
        done += [*lines[max(end, 0) : hunk.start], hunk.added]
        end = hunk.start + hunk.removed
    return b"".join([*done, *lines[max(end, 0) :]])
