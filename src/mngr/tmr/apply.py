"""Three-way application of parts, on objects alone.

A part whose paths nobody else touched is applied without git. Only where two meet does git merge: it wants commits with
a common ancestor, so both sides are wrapped in commits on the part's base.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256

from mngr.records import NamedTuple
from mngr.tmr.objects import Entry, Facts, Ident, NewCommit, Objects
from mngr.tmr.parts import Part
from mngr.tmr.paths import folders

_MESSAGE = "mngr: a candidate for the branch\n"


class State(NamedTuple):
    """What the branch would hold: the base, or a tree that git merged, with `files` put in or (None) taken out. Of the
    paths in `merged` only git knows what is there. `key` tells how it came about."""

    key: str
    files: Mapping[str, Entry | None]
    tree: str = ""
    merged: frozenset[str] = frozenset()


class Clash(NamedTuple):
    """A part does not go onto a state: the paths, and the merge with git's markers in it."""

    paths: tuple[str, ...]
    tree: str


class Applier:
    """Applies parts onto states of one base. Remembers every answer, so the same question costs nothing again."""

    def __init__(self, objects: Objects, base: Facts, parts: Iterable[Part]) -> None:
        self.objects = objects
        self.base = base
        self.start = State(base.id, {})
        self._answers: dict[tuple[str, str], State | Clash] = {}
        self._commits: dict[tuple[str, str], str] = {}
        self._part_commits: dict[str, str] = {}
        self._resolved: dict[str, list[Part]] = {}
        self._parts = {part.id: part for part in parts}
        self._originals = {change.path: change.old for part in self._parts.values() for change in part.changes}
        self._who = Ident("mngr", "mngr@localhost", base.committed_at)

    def apply(self, state: State, part: Part) -> State | Clash:
        """The state with the part on it, or where they clash. An accepted resolution is used when it fits."""
        asked = (state.key, part.id)
        if asked not in self._answers:
            answer = self._once(state, part)
            for resolution in self._resolved.get(part.id, ()) if isinstance(answer, Clash) else ():
                other = self._once(state, resolution)
                if isinstance(other, State):
                    answer = other
                    break
            self._answers[asked] = answer
        return self._answers[asked]

    def resolve(self, part: Part, resolution: Part) -> None:
        """From now on a clash of the part is answered by this one, whose base is the state it was made on."""
        self._resolved[part.id] = [resolution]
        self._answers = {asked: answer for asked, answer in self._answers.items() if asked[1] != part.id}

    def forget(self, part: Part) -> None:
        self._resolved.pop(part.id, None)
        self._answers = {asked: answer for asked, answer in self._answers.items() if asked[1] != part.id}

    def commit(self, state: State, parent: str = "") -> str:
        """A commit of the state, for git and for the gate. The same state gives the same commit."""
        parent = parent or self.base.id
        asked = (state.key, parent)
        if asked not in self._commits:
            tree = state.tree or self.base.tree
            if state.files:
                new = NewCommit(parent, state.files, _MESSAGE, self._who, self._who, tree)
                self._commits[asked] = self.objects.write([new])[0]
            else:
                self._commits[asked] = self.objects.wrap(tree, parent, _MESSAGE, self._who)
        return self._commits[asked]

    def part_commit(self, part: Part) -> str:
        """The part alone on its base. Those that meet others are made all at once, the first time one is wanted."""
        if part.id not in self._part_commits:
            count = Counter(path for other in self._parts.values() for path in other.paths)
            wanted = {id: one for id, one in self._parts.items() if any(count[path] > 1 for path in one.paths)}
            wanted[part.id] = part
            todo = [one for id, one in wanted.items() if id not in self._part_commits]
            made = self.objects.write([self._new(one) for one in todo])
            self._part_commits |= {one.id: commit for one, commit in zip(todo, made, strict=True)}
        return self._part_commits[part.id]

    def known(self, state: State) -> dict[str, Entry | None]:
        """All differences of the state from the base, those that git merged included."""
        if not state.tree:
            return dict(state.files)
        changes = self.objects.changes([(self.base.tree, state.tree)])[self.base.tree, state.tree]
        return {**{change.path: change.new for change in changes}, **state.files}

    def _new(self, part: Part) -> NewCommit:
        files = {change.path: change.new for change in part.changes}
        return NewCommit(part.base, files, _MESSAGE, self._who, self._who)

    def _once(self, state: State, part: Part) -> State | Clash:
        key = sha256(f"{state.key} {part.id}".encode()).hexdigest()
        if self._meets_nobody(state, part):
            return state._replace(
                key=key, files={**state.files, **{change.path: change.new for change in part.changes}}
            )
        ours, theirs = self.commit(state, part.base), self.part_commit(part)
        merge = self.objects.merges([(ours, theirs)])[0]
        if merge.conflicts:
            return Clash(merge.conflicts, merge.tree)
        return State(key, {}, merge.tree, state.merged.union(state.files, part.paths))

    def _meets_nobody(self, state: State, part: Part) -> bool:
        """Every path is as the part found it, or already as it leaves it; no file comes where a directory is."""
        for change in part.changes:
            if change.path in state.merged:
                return False
            before = change.old if part.base == self.base.id else self._originals.get(change.path)
            now = state.files.get(change.path, before)
            if now not in (change.old, change.new):
                return False
        there = {path for path, entry in state.files.items() if entry} | state.merged
        added = [change.path for change in part.changes if change.new and not change.old]
        if not added:
            return True
        inside = {folder for path in there for folder in folders(path)}
        return not any(path in inside or there.intersection(folders(path)) for path in added)
