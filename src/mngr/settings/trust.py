"""What a repository asks for and its user has trusted: kept word for word in the state directory, a file per answer.

A repository is its git directory, which its worktrees share; without git it is the directory itself. It is known by its
path and by a random mark that is written there with the first answer: another repository at that path has none. An
answer holds for exactly the lines that were shown: after any change, wherever it is made, the user is asked again.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterable, Sequence

from mngr.errors import MngrError, Undecided
from mngr.named_tuples import NamedTuple
from mngr.settings.schema import OPTIONS, Layer
from mngr.settings.values import format_key, toml_text
from mngr.system import files, inside, tree_removal

ROOM = "trusted"
MARK = "mngr-trusted"
_MARK_BYTES = 100
_MOST_FILES = 2000


class Claim(NamedTuple):
    """What one file, or one group of files, of the repository at `root` needs trust for: a line for each thing."""

    root: str
    name: str
    lines: tuple[str, ...]


def of_settings(layer: Layer) -> Claim:
    """What is set apart in the settings file of a repository, and all options that it sets: which of them are safe is
    known only where the verbs are."""
    options = {key: item for key, item in layer.values.items() if key[0] in OPTIONS} if layer.untrusted else {}
    shown = {**layer.untrusted, **options}
    return Claim(
        layer.root, layer.source, tuple(f"{format_key(key)} = {toml_text(shown[key])}" for key in sorted(shown))
    )


def of_files(root: str, name: str) -> Claim:
    """A file, or all files of a directory, each with a checksum of what it holds. One that cannot be read has none. A
    link counts with what it leads to, as programs follow it. Raises for too many files."""
    top = os.path.join(root, name)
    lines, waiting, seen = [], [top] if os.path.lexists(top) else [], set()
    while waiting:
        path = waiting.pop()
        shown = toml_text(os.path.relpath(path, root))
        if os.path.islink(path):
            lines.append(f"{shown} -> {toml_text(os.readlink(path))}")
        if not os.path.isdir(path):
            lines.append(f"{shown} {_sum(path)}")
        elif (real := os.path.realpath(path)) not in seen:
            seen.add(real)
            waiting += [os.path.join(path, one) for one in _names(path)]
        if len(lines) > _MOST_FILES:
            raise MngrError(
                f"`{name}` of `{root}` has more than {_MOST_FILES} files, so what it runs or grants cannot be shown",
                hint=f"the last one was `{os.path.relpath(path, root)}`; a link may lead to another place",
            )
    return Claim(root, name, tuple(sorted(lines)))


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _sum(path: str) -> str:
    import hashlib

    try:
        if stat.S_ISCHR(os.stat(path).st_mode):  # to open a device can do something already
            return "not a regular file"
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return "not a regular file"
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return str(error.strerror)


def is_trusted(host_dir: str, claim: Claim) -> bool:
    mark = _mark(claim.root)
    if mark is None:
        return False
    data = _data(claim, mark)
    try:
        with open(_path(host_dir, data), "rb") as file:
            return file.read() == data
    except OSError:
        return False


def remember(host_dir: str, claims: Iterable[Claim]) -> None:
    """Trust these from now on. Twice is safe."""
    for claim in claims:
        data = _data(claim, _mark(claim.root) or _new_mark(claim.root))
        files.make_private_dir(host_dir)
        files.make_private_dir(os.path.join(host_dir, ROOM))
        files.write_atomic(_path(host_dir, data), data)


def forget(host_dir: str, root: str) -> int:
    """Trust nothing of this repository any more. Returns how many answers were removed."""
    room = os.path.join(host_dir, ROOM)
    first = _line(repository(root))
    removed = 0
    for name in os.listdir(room) if os.path.isdir(room) else ():
        path = os.path.join(room, name)
        with open(path, "rb") as file:
            if file.readline() != first:
                continue
        tree_removal.remove_tree(path)
        removed += 1
    return removed


def refused(claims: Sequence[Claim], used: Sequence[str]) -> Undecided:
    """The error for a verb that needs what is not trusted yet."""
    names = " and ".join(f"`{claim.name}`" for claim in claims)
    keys = ", ".join(f"`{key}`" for key in used[:3]) + (", ..." if len(used) > 3 else "")
    return Undecided(
        f"{names} of `{claims[0].root}` sets {keys}, and you have not trusted it",
        details="\n".join(line for claim in claims for line in claim.lines),
        hint="if you want this repository to run and grant these: `mngr config trust`",
    )


def repository(root: str) -> str:
    """The git directory that `root` belongs to. A `.git` that points elsewhere counts only if git made it a worktree,
    which is noted on both sides: an unpacked archive cannot pass for a repository that is trusted."""
    root = os.path.realpath(root)
    own = os.path.join(root, ".git")
    if os.path.islink(own) or not os.path.isfile(own):
        return own if os.path.isdir(own) and not os.path.islink(own) else root
    private = os.path.realpath(os.path.join(root, _first_line(own).removeprefix("gitdir: ")))
    common, back = _first_line(os.path.join(private, "commondir")), _first_line(os.path.join(private, "gitdir"))
    if not common or os.path.realpath(os.path.join(private, back)) != own:
        return root
    return os.path.realpath(os.path.join(private, common))


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline().rstrip("\n")
    except OSError:
        return ""


def _mark(root: str) -> str | None:
    """The mark of a repository; None if nothing of it was ever trusted."""
    try:
        found = inside.read(_marked(root), MARK, _MARK_BYTES)
    except (inside.UnsafePath, OSError):
        return None
    return found.decode(errors="replace") if found else None


def _new_mark(root: str) -> str:
    mark, directory = os.urandom(16).hex(), _marked(root)
    files.make_private_dir(directory)
    inside.write(directory, MARK, mark.encode())
    return mark


def _marked(root: str) -> str:
    """Where the mark is: nothing that a clone brings. Without git there is no such place, and an archive that brings
    a mark does not know the right one."""
    found = repository(root)
    return found if found != os.path.realpath(root) else os.path.join(found, ".mngr")


def _data(claim: Claim, mark: str) -> bytes:
    lines = [_line(repository(claim.root)), _line(mark), _line(claim.name)]
    return b"".join([*lines, *(_encoded(line) for line in claim.lines)])


def _line(text: str) -> bytes:
    """Quoted, so that no path can pass for two lines."""
    return _encoded(toml_text(text))


def _encoded(line: str) -> bytes:
    return line.encode("utf-8", "surrogatepass") + b"\n"


def _path(host_dir: str, data: bytes) -> str:
    # The name only finds the file; what it holds is compared.
    return os.path.join(host_dir, ROOM, f"{zlib.crc32(data):08x}")
