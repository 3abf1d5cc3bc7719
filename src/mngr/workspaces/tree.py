"""Uncommitted files of a work tree as a git tree, byte for byte: no filters, no line-end conversion, nothing staged.

Its agent may be at work: a file that was listed may be gone when it is read, and then counts as deleted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Sequence

from mngr import files
from mngr.process import checked
from mngr.records import NamedTuple
from mngr.tools.git import Git

# In every workspace: keeps the directory for outcome and artifacts out of git.
OWN_MARK = ".mngr/task/.gitignore"
NESTED = ".mngr-nested-repository.tar"
# So many files, or bytes, are read from git at once; a larger file never is.
_AT_ONCE = 500
_BYTES_AT_ONCE = 8_000_000
_TRIES = 3
_GONE = (FileNotFoundError, NotADirectoryError)


class Unsaved(NamedTuple):
    """Ignored by git and too large to be kept along."""

    path: str
    megabytes: float


def dirty_tree(git: Git, paths: Sequence[str]) -> str:
    """HEAD's tree with these paths as they are on disk: changed, added or gone. Writes objects only."""
    found = [leaf for path in paths for leaf in _leaves(git.directory, path.rstrip("/"))]
    blobs = _hash_files(git, [path for path in found if _is_plain_file(os.path.join(git.directory, path))])
    head = git.commit_of("HEAD")
    nothing = "0" * len(head or git.must("hash-object", "--stdin", input=b""))
    index = os.path.join(git.must("rev-parse", "--absolute-git-dir"), f"mngr-index-{os.getpid()}-{os.urandom(4).hex()}")
    env = {"GIT_INDEX_FILE": index}
    try:
        lines = b"".join(_index_line(git, path, blobs.get(path), nothing, index + ".tar") for path in found)
        if head:
            git.must("read-tree", head, env=env)
        git.must("update-index", "--replace", "-z", "--index-info", input=lines, env=env)
        return git.must("write-tree", env=env)
    finally:
        for name in (index, index + ".lock", index + ".tar"):
            files.remove_tree(name)


def ignored(git: Git, *, megabytes: float) -> tuple[list[str], list[Unsaved]]:
    """Files that git ignores: those small enough to be kept, and the directories or files that are not."""
    text = git.must("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    kept: list[str] = []
    left: list[Unsaved] = []
    entries = list(filter(None, text.split("\0")))
    # Inside a directory that ignores itself, git lists what it has already listed with the directory.
    whole = {entry for entry in entries if entry.endswith("/")}
    for entry in entries:
        if any(entry[: at + 1] in whole for at, letter in enumerate(entry[:-1]) if letter == "/"):
            continue
        found, size = _measure(git.directory, entry.rstrip("/"), megabytes * 1e6)
        if found == [OWN_MARK]:
            continue
        if size > megabytes * 1e6:
            left.append(Unsaved(entry, size / 1e6))
        else:
            kept += found
    return kept, left


def convertible(git: Git) -> list[str]:
    """Tracked files that may have other bytes on disk than in git although git calls them unchanged: line ends. Not
    those that go through a program (`filter`), which keeps the real content elsewhere."""
    rules = git.must("ls-files", "-z", "--", ":(glob)**/.gitattributes")
    own_rules = git.must("rev-parse", "--path-format=absolute", "--git-path", "info/attributes")
    settings = git.run("config", "--get-regexp", r"^core\.(autocrlf|eol|attr)").text
    if not (rules or settings or os.path.exists(own_rules)):
        return []  # nothing converts, so reading every file is saved
    return list(filter(None, git.must("ls-files", "-z", "--", ":(attr:!filter)").split("\0")))


def write_raw(git: Git, commit: str, paths: Sequence[str], changed: Collection[str]) -> None:
    """Give these files the bytes that the commit has, also where a checkout would convert them. To git they stay
    unchanged, except those that were `changed`."""
    kept: dict[str, tuple[str, str]] = {}
    for line in filter(None, git.must("ls-tree", "-r", "-z", commit).split("\0") if paths else ()):
        facts, _, path = line.partition("\t")
        kept[path] = (facts.split(" ")[0], facts.split(" ")[2])
    wanted = [path for path in paths if path in kept and _is_plain_file(os.path.join(git.directory, path))]
    there = _hash_files(git, wanted)
    other = [path for path in wanted if there.get(path) != kept[path][1]]
    _write_all(git, git.directory, [_Kept(*kept[path], path) for path in other], ())
    # git takes a file of another size for a changed one, without a look at its content.
    same = "".join(f"{path}\0" for path in other if path not in changed)
    git.must("update-index", "-z", "--stdin", input=os.fsencode(same))


def private_files(directory: str, paths: Sequence[str]) -> list[str]:
    """Those that only their owner may read: secrets, mostly. git knows no such thing."""
    found = []
    for leaf in (leaf for path in paths for leaf in _leaves(directory, path.rstrip("/"))):
        seen = look(os.path.join(directory, leaf))
        if seen and stat.S_ISREG(seen.st_mode) and not seen.st_mode & 0o077:
            found.append(leaf)
    return found


def prune(directory: str, names: Collection[str], spare: Sequence[str]) -> None:
    """Delete every file that is not one of `names`, with the directories that are empty without it. What is below
    `spare` stays, and so do git's own files, pipes and sockets."""
    packed = {name.removesuffix(NESTED) for name in names if name.endswith(NESTED)}
    spared = {".git", os.path.dirname(OWN_MARK), *packed, *(path.rstrip("/") for path in spare)}
    gone = []
    for root, directories, plain in os.walk(directory):
        inside = os.path.relpath(root, directory)
        below = [os.path.normpath(os.path.join(inside, name)) for name in directories]
        links = [path for path in below if os.path.islink(os.path.join(directory, path))]
        directories[:] = [name for name, path in zip(directories, below, strict=True) if path not in spared]
        for path in [*links, *(os.path.normpath(os.path.join(inside, name)) for name in plain)]:
            full = os.path.join(directory, path)
            if path not in names and path not in spared and (os.path.islink(full) or os.path.isfile(full)):
                gone.append(path)
    for path in gone:
        _remove(directory, path)


def write_files(git: Git, commit: str, parent: str, directory: str, private: Collection[str] = ()) -> int:
    """Put the files that `commit` changed over `parent` into a directory, byte for byte; those in `private` readable
    by their owner only. Returns how many."""
    fields = git.must("diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", parent, commit).split("\0")
    changes = [
        (facts.removeprefix(":").split(" "), path) for facts, path in zip(fields[0::2], fields[1::2], strict=False)
    ]
    # What is gone goes first: a file may stand where a directory was.
    for (*_, change), path in changes:
        if change == "D":
            _remove(directory, path)
    _write_all(git, directory, [_Kept(facts[1], facts[3], path) for facts, path in changes if facts[4] != "D"], private)
    return len(changes)


class _Kept(NamedTuple):
    """A file as git holds it."""

    mode: str
    blob: str
    path: str

    def permissions(self, private: Collection[str]) -> int:
        return (0o755 if self.mode == "100755" else 0o644) & (0o700 if self.path in private else 0o777)


def _write_all(git: Git, directory: str, wanted: Sequence[_Kept], private: Collection[str]) -> None:
    sizes = _sizes(git, [one.blob for one in wanted])
    batch: list[_Kept] = []
    room = _BYTES_AT_ONCE
    for one in wanted:
        size = sizes[one.blob]
        if size > _BYTES_AT_ONCE:
            _write_large(git, directory, one, one.permissions(private))
            continue
        if len(batch) == _AT_ONCE or size > room:
            _write_batch(git, directory, batch, private)
            batch, room = [], _BYTES_AT_ONCE
        batch.append(one)
        room -= size
    _write_batch(git, directory, batch, private)


def _write_batch(git: Git, directory: str, batch: Sequence[_Kept], private: Collection[str]) -> None:
    contents = _contents(git, [one.blob for one in batch])
    for one in batch:
        data = contents[one.blob]
        if one.path.endswith(NESTED):
            _unpack(git, directory, one.path, "-", data)
            continue
        target = _cleared(directory, one.path)
        if one.mode == "120000":
            os.symlink(os.fsdecode(data), target)
        else:
            files.write_atomic(target, data, one.permissions(private))


def _write_large(git: Git, directory: str, one: _Kept, permissions: int) -> None:
    """By git itself into a draft, which becomes the file."""
    draft = os.path.join(directory, f".mngr-{os.getpid()}-{os.urandom(4).hex()}.draft")
    files.write_new(draft, b"", permissions)
    try:
        checked(git.run("cat-file", "blob", one.blob, into=draft), f"`{one.path}` could not be written")
        if one.path.endswith(NESTED):
            _unpack(git, directory, one.path, draft)
        else:
            os.replace(draft, _cleared(directory, one.path))
    finally:
        files.remove_tree(draft)


def _unpack(git: Git, directory: str, path: str, archive: str, data: bytes | None = None) -> None:
    files.remove_tree(os.path.join(directory, path.removesuffix(NESTED)))
    unpack = ["tar", "-xf", archive, "-C", directory]
    checked(git.runner.run(unpack, timeout=600, input=data), "a nested repository could not be unpacked")


def _cleared(directory: str, path: str) -> str:
    """The place of a file, with nothing there and a directory around it."""
    target = os.path.join(directory, path)
    files.remove_tree(target)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    return target


def _remove(directory: str, path: str) -> None:
    """Delete a file and the directories that are empty without it."""
    files.remove_tree(os.path.join(directory, path))
    while path := os.path.dirname(path):
        try:
            os.rmdir(os.path.join(directory, path))
        except OSError:
            return


def _leaves(directory: str, path: str) -> list[str]:
    """The path itself, or everything below it when it is a directory that is not a repository of its own."""
    full = os.path.join(directory, path)
    if os.path.islink(full) or not os.path.isdir(full) or _is_repository(full) or os.path.basename(path) == ".git":
        return [path]
    try:
        names = sorted(os.listdir(full))
    except _GONE:
        return [path]
    return [leaf for name in names for leaf in _leaves(directory, os.path.join(path, name))]


def _index_line(git: Git, path: str, blob: str | None, nothing: str, archive: str) -> bytes:
    """A line for `git update-index --index-info -z` that makes the index hold what is on disk at this path. `archive`
    is a file to use meanwhile."""
    full = os.path.join(git.directory, path)
    mode, name = "100755" if os.access(full, os.X_OK) else "100644", path
    target = _link_target(full)
    if target is not None:
        mode, blob = "120000", _hash(git, os.fsencode(target))
    elif os.path.isdir(full):
        # git would keep only a pointer to a repository inside the work tree, so it goes in whole, as an archive.
        packed = git.runner.run(["tar", "-cf", archive, "-C", git.directory, "--", path], timeout=600)
        if packed.ok or os.path.isdir(full):
            checked(packed, f"the nested repository `{path}` could not be packed")
            mode, name = "100644", path + NESTED
            blob = git.must("hash-object", "-w", "--no-filters", "--", archive)
    if blob is None:
        mode, blob = "0", nothing  # gone from disk; a socket or pipe, too, holds nothing to keep
    return f"{mode} {blob}\t".encode() + os.fsencode(name) + b"\0"


def _hash_files(git: Git, paths: Sequence[str]) -> dict[str, str]:
    """Store plain files as blobs, all in one call; the odd path that no list of lines can hold goes alone."""
    listed = [path for path in paths if "\n" not in git.directory + path and not path.endswith("\r")]
    alone = set(paths).difference(listed)
    blobs = {}
    for path in alone:
        result = git.run("hash-object", "-w", "--no-filters", "--", os.path.join(git.directory, path))
        if result.ok or _is_plain_file(os.path.join(git.directory, path)):
            blobs[path] = checked(result).text
    tries_left = _TRIES
    while listed:
        names = b"".join(os.fsencode(os.path.join(git.directory, path)) + b"\n" for path in listed)
        result = git.run("hash-object", "-w", "--no-filters", "--stdin-paths", input=names)
        present = [path for path in listed if _is_plain_file(os.path.join(git.directory, path))]
        tries_left -= present == listed  # what was gone may be there again
        if result.ok or not tries_left:
            blobs.update(zip(listed, checked(result).text.split("\n"), strict=True))
            break
        listed = present  # an agent at work removed one while we read
    return blobs


def _sizes(git: Git, blobs: Sequence[str]) -> dict[str, int]:
    if not blobs:
        return {}
    lines = git.must("cat-file", "--batch-check=%(objectsize)", input="".join(f"{blob}\n" for blob in blobs).encode())
    return dict(zip(blobs, map(int, lines.split("\n")), strict=True))


def _contents(git: Git, blobs: Sequence[str]) -> dict[str, bytes]:
    if not blobs:
        return {}
    data = checked(git.run("cat-file", "--batch", input="".join(f"{blob}\n" for blob in blobs).encode())).stdout
    found: dict[str, bytes] = {}
    at = 0
    for blob in blobs:
        end = data.index(b"\n", at)
        size = int(data[at:end].split(b" ")[2])
        found[blob] = data[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
    return found


def _hash(git: Git, data: bytes) -> str:
    return git.must("hash-object", "-w", "--no-filters", "--stdin", input=data)


def _is_plain_file(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)


def _is_repository(path: str) -> bool:
    return os.path.exists(os.path.join(path, ".git"))


def look(path: str) -> os.stat_result | None:
    """What is there, a link as itself; None when it is gone."""
    try:
        return os.lstat(path)
    except _GONE:
        return None


def _link_target(path: str) -> str | None:
    """None for what is no link, or gone."""
    try:
        return os.readlink(path) if os.path.islink(path) else None
    except _GONE:
        return None


def _size(path: str) -> float:
    seen = look(path)
    return float(seen.st_size) if seen else 0.0


def _measure(directory: str, entry: str, limit: float) -> tuple[list[str], float]:
    """The files below an entry and their size, counting no further than the limit."""
    full = os.path.join(directory, entry)
    if os.path.islink(full) or not os.path.isdir(full):
        return [entry], _size(full)
    found: list[str] = []
    size = 0.0
    for root, directories, names in os.walk(full):
        if _is_repository(root):
            found.append(os.path.relpath(root, directory))
            directories[:] = []
            size += _whole_size(root)
            names = []
        for name in names:
            path = os.path.join(root, name)
            size += _size(path)
            found.append(os.path.relpath(path, directory))
        found += [
            os.path.relpath(os.path.join(root, name), directory)
            for name in directories
            if os.path.islink(os.path.join(root, name))
        ]
        if size > limit:
            size = _whole_size(full)
            break
    return found, size


def _whole_size(directory: str) -> float:
    return sum(_size(os.path.join(root, name)) for root, _, names in os.walk(directory) for name in names)
