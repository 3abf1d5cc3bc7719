"""Three-way application of parts, on objects alone.

A part whose paths nobody else touched is applied without git, and so is one that changes other lines of a file than
those before it, or other functions of a test file. Only where two meet does git merge: it wants commits with a common
ancestor, so both sides are wrapped in commits on the part's base.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from io import BytesIO
from typing import NamedTuple

from mngr.tmr import function_merge
from mngr.tmr.objects import CommitFacts, Hunk, NewCommit, Objects, PathChange, TreeEntry, ours
from mngr.tmr.parts import ChangePart
from mngr.tmr.paths import folders

_MESSAGE = "mngr: a candidate for the branch\n"
_TEXT_MAX = 1_000_000  # bytes; git merges larger files, whose versions would fill the memory here


class State(NamedTuple):
    """What the branch would hold: the base, or a tree that git merged, with `files` put in or (None) taken out. Of the
    paths in `merged` only git knows what is there. `key` tells how it came about."""

    key: str
    files: Mapping[str, TreeEntry | None]
    tree: str = ""
    merged: frozenset[str] = frozenset()


class Clash(NamedTuple):
    """A part does not go onto a state: the paths, and the merge with git's markers in it. `twice` are functions that
    both sides define, which git merges without a conflict and of which Python would run only one."""

    paths: tuple[str, ...]
    tree: str
    twice: tuple[str, ...] = ()


class Applier:
    """Applies parts onto states of one base. Remembers every answer, so the same question costs nothing again. `parts`
    are those of this base, each with a tree that holds it; `by_function` says which files are merged by function."""

    def __init__(
        self,
        objects: Objects,
        base: CommitFacts,
        parts: Mapping[ChangePart, str],
        by_function: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self.objects = objects
        self.base = base
        self.start = State(base.id, {})
        self._answers: dict[tuple[str, str], State | Clash] = {}
        self._commits: dict[tuple[str, str], str] = {}
        self._part_commits: dict[str, str] = {}
        self._resolved: dict[str, ChangePart] = {}
        self._trees = parts
        self._originals = {change.path: change.old for part in parts for change in part.changes}
        count = Counter(path for part in parts for path in part.paths)
        self._common = {path for path in count if count[path] > 1}
        self._by_function = {path for path in self._common if by_function(path)}
        self._texts: dict[str, list[bytes]] = {}
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

    def resolve(self, part: ChangePart, resolution: ChangePart) -> None:
        """From now on a clash of the part is answered by this one, whose base is the state it was made on."""
        self._resolved[part.id] = resolution
        self._answers = {asked: answer for asked, answer in self._answers.items() if asked[1] != part.id}

    def forget(self, part: ChangePart) -> None:
        self._resolved.pop(part.id, None)
        self._answers = {asked: answer for asked, answer in self._answers.items() if asked[1] != part.id}

    def commit(self, state: State, parent: str = "") -> str:
        """A commit of the state, for git and for the gate. The same state gives the same commit."""
        parent = parent or self.base.id
        asked = (state.key, parent)
        if asked not in self._commits:
            new = NewCommit(parent, state.files, _MESSAGE, self._who, self._who, state.tree or self.base.tree)
            self._commits[asked] = self.objects.write([new])[0]
        return self._commits[asked]

    def part_commit(self, part: ChangePart) -> str:
        """The part alone on its base. Those that meet others are made all at once, the first time one is wanted."""
        if part.id not in self._part_commits:
            wanted = {
                one.id: one for one in (*self._trees, part) if self._common.intersection(one.paths) or one is part
            }
            todo = [one for id, one in wanted.items() if id not in self._part_commits]
            files = [{change.path: change.new for change in one.changes} for one in todo]
            news = zip(todo, files, strict=True)
            made = self.objects.write([NewCommit(one.base, new, _MESSAGE, self._who, self._who) for one, new in news])
            self._part_commits |= {one.id: commit for one, commit in zip(todo, made, strict=True)}
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

    def same(self, one: State, other: State) -> bool:
        """Whether two states hold the same files."""
        return one.files == other.files if one.tree == other.tree else self.known(one) == self.known(other)

    def known(self, state: State) -> dict[str, TreeEntry | None]:
        """All differences of the state from the base, those that git merged included."""
        if not state.tree:
            return dict(state.files)
        changes = self.objects.changes([(self.base.tree, state.tree)])[self.base.tree, state.tree]
        return {**{change.path: change.new for change in changes}, **state.files}

    def _once(self, state: State, part: ChangePart) -> State | Clash:
        key = sha256(f"{state.key} {part.id}".encode()).hexdigest()
        files = self._without_git(state, part)
        if files is not None:
            after = state._replace(key=key, files={**state.files, **files})
            return self._hidden(state, part, after) or after
        ours, theirs = self.commit(state, part.base), self.part_commit(part)
        merge = self.objects.merges([(ours, theirs)])[0]
        merged = self._conflicts_by_function(state, part, merge.conflicts) if merge.conflicts else {}
        if merged is None:
            return Clash(merge.conflicts, merge.tree)
        return State(key, merged, merge.tree, state.merged.union(state.files, part.paths))

    def _without_git(self, state: State, part: ChangePart) -> dict[str, TreeEntry | None] | None:
        """What the part makes of its paths when each is as the part found it, already as it leaves it, or changed in
        other lines; and no file comes where a directory is. None when git has to merge."""
        files: dict[str, TreeEntry | None] = {}
        for change in part.changes:
            if change.path in state.merged:
                return None
            before = change.old if part.base == self.base.id else self._originals.get(change.path)
            now = state.files.get(change.path, before)
            if now in (change.old, change.new):
                files[change.path] = change.new
            elif part.base == self.base.id and (both := self._lines(change, now) or self._functions(change, now)):
                files[change.path] = both  # by function where the lines of both touch
            else:
                return None
        there = {path for path, entry in state.files.items() if entry} | state.merged
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
        now, changes = self.known(state), {change.path: change for change in part.changes}
        files = {path: self._functions(changes[path], now.get(path)) for path in paths if path in changes}
        return {**files} if all(files.values()) and len(files) == len(paths) else None

    def _functions(self, change: PathChange, now: TreeEntry | None) -> TreeEntry | None:
        path, old, new = change
        if path not in self._by_function or not now or not new or now.mode != new.mode:
            return None
        if old and (old.mode != now.mode or path not in self._merged_as_text):
            return None
        base = self._content(old.oid) if old else b""
        text = function_merge.merged(base, self._content(now.oid), self._content(new.oid))
        return None if text is None or len(text) > _TEXT_MAX else self._made(path, text, new)

    def _hidden(self, state: State, part: ChangePart, after: State) -> Clash | None:
        """A clash where the part and the state define a function each that the other does not know."""
        twice: dict[str, frozenset[str]] = {}
        for change in part.changes if part.base == self.base.id else ():
            now, made = state.files.get(change.path), after.files[change.path]
            if change.path in self._by_function and now and change.new and made and made not in (now, change.new):
                ours, theirs, both = (self._content(entry.oid) for entry in (now, change.new, made))
                shadowed = function_merge.shadowed
                twice[change.path] = shadowed(both) - shadowed(ours) - shadowed(theirs)
        paths = tuple(path for path, names in twice.items() if names)
        if not paths:
            return None
        commit = self.commit(after)
        names = sorted({name for path in paths for name in twice[path]})
        return Clash(paths, self.objects.facts([commit])[commit].tree, tuple(names))

    def _made(self, path: str, text: bytes, like: TreeEntry) -> TreeEntry:
        made = TreeEntry(like.mode, self.objects.new_blob(text, like=like.oid))
        if path in self._by_function:
            self._contents[made.oid] = text
        return made

    def _content(self, oid: str) -> bytes:
        if oid not in self._contents:
            self._contents |= self.objects.blobs([oid])
        return self._contents[oid]

    @cached_property
    def _contents(self) -> dict[str, bytes]:
        """Versions of the files that are merged by function: all that agents made are read at once."""
        changes = (change for part in self._trees for change in part.changes if change.path in self._by_function)
        return self.objects.blobs(entry.oid for change in changes for entry in (change.old, change.new) if entry)

    def _lines(self, change: PathChange, now: TreeEntry | None) -> TreeEntry | None:
        """None when the lines touch, and when one of the sides is no text."""
        path, old, new = change
        if not old or not now or not new or not old.mode == now.mode == new.mode:
            return None
        ours, theirs = self._edits.get((path, now.oid)), self._edits.get((path, new.oid))
        if not ours or not theirs or path not in self._merged_as_text:
            return None
        if path not in self._texts:
            self._texts[path] = BytesIO(self.objects.blobs([old.oid])[old.oid]).readlines()
        text = _spliced(self._texts[path], ours | theirs)
        if text is None or len(text) > _TEXT_MAX:
            return None
        made = self._made(path, text, old)
        self._edits[path, made.oid] = ours | theirs
        return made

    @cached_property
    def _edits(self) -> dict[tuple[str, str], frozenset[Hunk]]:
        """What blobs change of the base's, by path and blob: those of several parts at first, then mixtures of them."""
        found: dict[tuple[str, str], set[Hunk]] = defaultdict(set)
        meeting = [(part, tree) for part, tree in self._trees.items() if self._common.intersection(part.paths)]
        hunks = self.objects.hunks([(self.base.tree, tree) for _, tree in meeting], self._common)
        for part, tree in meeting:
            blobs = {change.path: change.new.oid for change in part.changes if change.new}
            for hunk in hunks[self.base.tree, tree]:
                if hunk.path in blobs:
                    found[hunk.path, blobs[hunk.path]].add(hunk)
        return {asked: frozenset(hunks) for asked, hunks in found.items()}

    @cached_property
    def _merged_as_text(self) -> set[str]:
        return self.objects.merged_as_text(self._common)


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
