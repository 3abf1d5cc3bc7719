"""Commits, trees and differences of a repository, read and written in few git processes.

Only objects are made. No index, work tree, HEAD or setting is read or changed, and no ref is left behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha1, sha256
from typing import NamedTuple

from mngr.errors import MngrError
from mngr.system.git import Git
from mngr.system.process import checked

_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_IDENT = re.compile(r"([^<>\0\n]*)<([^<>\0\n]*)> ([0-9]{1,11}) ([+-][0-9]{4})")
_DIFF = ("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=none")
# The same for everyone, whatever their settings say.
_MERGE = (
    "merge.directoryRenames=false",
    "merge.renames=true",
    "merge.renameLimit=7000",
    "merge.renormalize=false",
    "merge.default=text",
)
EMAIL = "mngr@localhost"
# Named in the stream because the format asks for it, and taken back in the same stream: git never makes it.
_NO_REF = "refs/mngr/never-made"


class TreeEntry(NamedTuple):
    """A file in a tree."""

    mode: str
    oid: str


class PathChange(NamedTuple):
    """One path before and after; None is absence. A rename is one path gone and another one come."""

    path: str
    old: TreeEntry | None
    new: TreeEntry | None


class Ident(NamedTuple):
    name: str
    email: str
    at: int
    zone: str = "+0000"

    def line(self) -> str:
        return f"{self.name} <{self.email}> {self.at} {self.zone}"


def ours(at: int = 0) -> Ident:
    """Who makes the commits that are not an agent's."""
    return Ident("mngr", EMAIL, at)


class CommitFacts(NamedTuple):
    """What a commit says of itself. A damaged author is None."""

    id: str
    tree: str
    author: Ident | None
    committed_at: int


class NewCommit(NamedTuple):
    """`parent` is a commit, or the number of an earlier one in the same list. The tree is `tree`, or the parent's, with
    `files` put in or (None) taken out."""

    parent: str | int
    files: Mapping[str, TreeEntry | None]
    message: str
    author: Ident
    committer: Ident
    tree: str | None = None


class Merge(NamedTuple):
    """What a three-way merge gave. With conflicts the tree holds git's markers."""

    tree: str
    conflicts: tuple[str, ...]


class Objects:
    """The objects of one repository."""

    def __init__(self, git: Git) -> None:
        self.git = git
        self._blobs: dict[str, bytes] = {}  # not written yet

    def facts(self, ids: Iterable[str]) -> dict[str, CommitFacts]:
        """Those of the given commits that are there."""
        asked = sorted({id for id in ids if _ID.fullmatch(id)})
        found = self._contents([f"{id}^{{commit}}" for id in asked])
        return {id: _facts(id, found[f"{id}^{{commit}}"]) for id in asked if f"{id}^{{commit}}" in found}

    def blobs(self, ids: Iterable[str]) -> dict[str, bytes]:
        return self._contents(sorted(set(ids)))

    def files(self, commit: str) -> dict[str, TreeEntry]:
        """All files of a commit by path, links and submodules included."""
        lines = self.git.must("ls-tree", "-r", "-z", commit).split("\0")[:-1]
        pairs = ((path, facts.split(" ")) for facts, _, path in (line.partition("\t") for line in lines))
        return {path: TreeEntry(mode, oid) for path, (mode, _, oid) in pairs}

    def sizes(self, ids: Iterable[str]) -> dict[str, int]:
        """How many bytes each of the given objects has, of those that are there."""
        asked = "".join(f"{id}\n" for id in sorted(set(ids)))
        if not asked:
            return {}
        form = "--batch-check=%(objectname) %(objectsize)"
        words = [line.split(" ") for line in self.git.must("cat-file", form, input=asked.encode()).splitlines()]
        return {id: int(size) for id, size in words if size.isdigit()}

    def _contents(self, names: Sequence[str]) -> dict[str, bytes]:
        if not names:
            return {}
        data = checked(
            self.git.run("cat-file", "--batch", input="".join(f"{name}\n" for name in names).encode())
        ).stdout
        found: dict[str, bytes] = {}
        at = 0
        for name in names:
            end = data.index(b"\n", at)
            words = data[at:end].split(b" ")
            at = end + 1
            if len(words) == 3 and words[2].isdigit():
                size = int(words[2])
                found[name] = data[at : at + size]
                at += size + 1
        return found

    def changes(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[PathChange, ...]]:
        """The differences between pairs of trees, in one process."""
        asked = sorted(set(pairs))
        found: dict[tuple[str, str], list[PathChange]] = {pair: [] for pair in asked}
        if not asked:
            return {}
        lines = "".join(f"{old} {new}\n" for old, new in asked)
        data = checked(self.git.run(*_DIFF, input=lines.encode())).stdout
        now: list[PathChange] = []
        at = 0
        while at < len(data):
            if data[at : at + 1] != b":":
                end = data.index(b"\n", at)
                old, new = data[at:end].decode().split(" ")
                now = found[old, new]
                at = end + 1
            else:
                change, at = _raw(data, at)
                now.append(change)
        return {pair: tuple(changes) for pair, changes in found.items()}

    def changed(self, old: str, new: str) -> tuple[PathChange, ...]:
        """The differences between two commits."""
        facts = self.facts([old, new])
        pair = (facts[old].tree, facts[new].tree)
        return self.changes([pair])[pair]

    def merged_as_text(self, paths: Iterable[str]) -> set[str]:
        """Those paths whose attributes do not ask for another kind of merge. `union` differs only in conflicts."""
        asked = "".join(f"{path}\0" for path in sorted(paths)).encode(errors="surrogateescape")
        words = self.git.must("check-attr", "-z", "--stdin", "merge", input=asked).split("\0")
        kinds = zip(words[::3], words[2::3], strict=False)
        return {path for path, kind in kinds if kind in ("unspecified", "set", "text", "union")}

    def merges(self, pairs: Sequence[tuple[str, str]]) -> list[Merge]:
        """Merge commits two by two, each as if alone."""
        if not pairs:
            return []
        lines = "".join(f"{ours} {theirs}\n" for ours, theirs in pairs)
        words = [word for setting in _MERGE for word in ("-c", setting)]
        tokens = checked(
            self.git.run(*words, "merge-tree", "--write-tree", "--stdin", input=lines.encode())
        ).text.split("\0")
        done: list[Merge] = []
        at = 0
        for _ in pairs:
            clean, tree = tokens[at] == "1", tokens[at + 1]
            at += 2
            paths: set[str] = set()
            while not clean and tokens[at]:
                paths.add(tokens[at].partition("\t")[2])
                at += 1
            at += not clean
            while tokens[at]:  # messages: how many paths, the paths, the kind, the words
                at += int(tokens[at]) + 3
            at += 1
            done.append(Merge(tree, tuple(sorted(paths))))
        return done

    def new_blob(self, data: bytes, like: str) -> str:
        """The id, of the same kind as `like`, of content that `write` writes with the first commit that has it."""
        hashed = sha1 if len(like) == 40 else sha256
        id = hashed(b"blob %d\0%b" % (len(data), data)).hexdigest()
        self._blobs[id] = data
        return id

    def write(self, commits: Sequence[NewCommit]) -> list[str]:
        """Make commits and return their ids. The same commits give the same ids."""
        if not commits:
            return []
        stream = [b"feature done\n"]
        held = {entry.oid for commit in commits for entry in commit.files.values() if entry} & self._blobs.keys()
        for id in sorted(held):
            stream.append(b"blob\ndata %d\n%b\n" % (len(self._blobs[id]), self._blobs[id]))
        for number, commit in enumerate(commits, 1):
            stream.append(_commit(number, commit))
        width = len(next((commit.parent for commit in commits if isinstance(commit.parent, str)), "0" * 40))
        stream.append(f"reset {_NO_REF}\nfrom {'0' * width}\n\ndone\n".encode())
        words = ("-c", "core.ignoreCase=false", "fast-import", "--quiet", "--date-format=raw")
        made = self.git.must(*words, input=b"".join(stream), doing="git cannot write the commits").split("\n")
        if len(made) != len(commits):
            raise MngrError(f"git made {len(made)} of {len(commits)} commits")
        for id in held:
            del self._blobs[id]
        return made


def ident(line: str) -> Ident | None:
    """`Name <email> seconds zone`, as it can be written again; None for anything else."""
    found = _IDENT.fullmatch(line)
    if not found:
        return None
    name, email, at, zone = found.groups()
    sane = int(zone[1:3]) < 14 and int(zone[3:]) < 60
    return Ident(name.strip(), email.strip(), int(at), zone if sane else "+0000")


def _facts(id: str, data: bytes) -> CommitFacts:
    head = data.decode(errors="replace").split("\n\n", 1)[0]
    fields = dict(line.split(" ", 1) for line in reversed(head.split("\n")) if " " in line and line[0] != " ")
    committer = ident(fields.get("committer", ""))
    return CommitFacts(id, fields["tree"], ident(fields.get("author", "")), committer.at if committer else 0)


def _raw(data: bytes, at: int) -> tuple[PathChange, int]:
    """One record of `--raw -z`: `:mode mode oid oid status NUL path NUL`."""
    middle = data.index(b"\0", at)
    end = data.index(b"\0", middle + 1)
    old_mode, new_mode, old, new, _ = data[at + 1 : middle].decode().split(" ")
    path = data[middle + 1 : end].decode(errors="surrogateescape")
    before = TreeEntry(old_mode, old) if old.strip("0") else None
    return PathChange(path, before, TreeEntry(new_mode, new) if new.strip("0") else None), end + 1


def _commit(number: int, commit: NewCommit) -> bytes:
    message = commit.message.encode(errors="surrogateescape")
    parent = f":{commit.parent + 1}" if isinstance(commit.parent, int) else commit.parent
    lines = [
        f"commit {_NO_REF}\nmark :{number}\n".encode(),
        f"author {commit.author.line()}\ncommitter {commit.committer.line()}\n".encode(errors="replace"),
        b"data %d\n%b\n" % (len(message), message),
        f"from {parent}\n".encode(),
    ]
    if commit.tree:
        lines.append(f'M 040000 {commit.tree} ""\n'.encode())
    gone = [path for path, entry in sorted(commit.files.items()) if entry is None]
    lines += [b"D %b\n" % _quoted(path) for path in gone]  # first: a file may come where a directory was
    for path, entry in sorted(commit.files.items()):
        if entry is not None:
            lines.append(b"M %b %b %b\n" % (entry.mode.encode(), entry.oid.encode(), _quoted(path)))
    lines.append(f"\nget-mark :{number}\n".encode())
    return b"".join(lines)


def _quoted(path: str) -> bytes:
    data = path.encode(errors="surrogateescape")
    return b'"' + data.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
