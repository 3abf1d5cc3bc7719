"""Repositories inside a work tree as archives, and back. The entry that holds a blob says that it is such an archive,
and of what; no name does, which an agent could give to its files."""

from __future__ import annotations

import errno
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from typing import IO, cast

from mngr.errors import MngrError
from mngr.system import inside, tree_removal
from mngr.system.git import Git
from mngr.workspace.work.disk import entries
from mngr.workspace.work.git_files import git_dir_of

_KINDS = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE)
# What an operation on a path says when that is gone, or of another kind than a moment before.
_REPLACED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO)


def pack(root: str, path: str, private: str, archive: str) -> bool:
    """Write a directory below `root` to an archive. Git directories of submodules, which are below `root` or below the
    `private` directory of the work tree, are put where their work trees are. False if it is gone."""
    homes = tuple(f"{os.path.realpath(home)}/" for home in (root, private))
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, source in _walk(os.path.join(root, path), path, homes):
            try:
                kind = stat.S_IFMT(os.lstat(source).st_mode)
                if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                    continue  # a pipe, a socket
                member = tar.gettarinfo(source, name)
                if member.isreg():
                    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                    with open(os.open(source, flags), "rb") as file:
                        if not _place_of(file, source).startswith(homes):
                            continue  # an agent has put a link in place of a directory above it
                        member.size = os.fstat(file.fileno()).st_size
                        tar.addfile(member, cast(IO[bytes], _Exactly(file, member.size)))
                else:
                    tar.addfile(member)
            except OSError as error:
                if error.errno not in _REPLACED:
                    raise
                continue
            _forget_members(tar)
    return os.path.isdir(os.path.join(root, path))


def _place_of(file: IO[bytes], path: str) -> str:
    """Where an open file is. On Linux that is known, whatever its path leads to by now."""
    known = f"/proc/self/fd/{file.fileno()}"
    return os.readlink(known) if os.path.lexists(known) else os.path.realpath(path)


def _forget_members(tar: tarfile.TarFile) -> None:
    """They are not needed again, and a large repository has many."""
    tar.__dict__["members"].clear()


class _Exactly:
    """A file that another process may write to: as many bytes as it had, zeros for those that it lost."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left = file, size

    def read(self, size: int = -1) -> bytes:
        size = self._left if size < 0 else min(size, self._left)
        data = self._file.read(size)
        self._left -= size
        return data.ljust(size, b"\0")


def _walk(path: str, name: str, homes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Each file and directory with its name in the archive, a directory before what is in it."""
    waiting = [(path, name)]
    while waiting:
        path, name = waiting.pop()
        if os.path.basename(path) == ".git" and os.path.isfile(path):
            git_dir = git_dir_of(os.path.dirname(path))
            linked = os.path.isfile(os.path.join(git_dir, "commondir"))
            if os.path.realpath(git_dir).startswith(homes) and not linked:
                path = git_dir
        yield name, path
        if os.path.isdir(path) and not os.path.islink(path):
            waiting += [(os.path.join(path, entry), f"{name}/{entry}") for entry in reversed(entries(path))]


def unpack(archive: str, root: str, path: str) -> None:
    """Replace a path below `root` by what an archive has for it. Everything in it is checked first, then written to an
    empty directory that nobody else knows, then moved. Raises if it is not an archive of ours."""
    above, _, name = path.rpartition("/")
    staging = tempfile.mkdtemp(prefix=".mngr-unpack-", dir=root)
    try:
        with tarfile.open(archive, "r:") as tar:
            tar.extraction_filter = staticmethod(lambda member, path: member)  # `_checked` has done it
            for member in _checked(tar, path):
                tar.extract(member, staging)
        made = os.path.join(staging, path)
        config = os.path.join(made, ".git", "config")
        if not any(os.path.islink(one) for one in (os.path.dirname(config), config)) and os.path.isfile(config):
            # The git directory of a submodule names its work tree, which is around it now.
            Git.of_store(staging).run("config", "--file", config, "--unset", "core.worktree")
        with inside.directory(root, above, make=0o777) as fd:
            if inside.facts(root, path) is not None:
                os.rename(name, os.path.join(staging, f"replaced-{os.urandom(4).hex()}"), src_dir_fd=fd)
            os.rename(made, name, dst_dir_fd=fd)
    except (tarfile.TarError, ValueError) as error:
        raise MngrError(f"the archive of the repository `{path}` cannot be read: {error}") from None
    finally:
        tree_removal.remove_tree(staging)


def _checked(tar: tarfile.TarFile, path: str) -> Iterator[tarfile.TarInfo]:
    """The members, each to be written at once: below `path`, of a plain kind, not through a link."""
    directories: set[str] = set(_above(f"{path}/x"))
    regular: set[str] = set()
    for member in tar:
        name = member.name
        parts = name.split("/")
        below = name == path or name.startswith(f"{path}/")
        if not below or any(part in ("", ".", "..") for part in parts) or member.type not in _KINDS:
            raise ValueError(f"`{name}` does not belong there")
        if name != path and os.path.dirname(name) not in directories:
            raise ValueError(f"`{name}` is not in a directory")
        member.mode &= 0o777
        if member.islnk() and member.linkname not in regular:
            raise ValueError(f"`{name}` is a link to another place")
        if member.isdir():
            directories.add(name)
            member.mode |= 0o700
        elif name in directories or name in regular:
            raise ValueError(f"`{name}` is there twice")
        elif member.isreg():
            regular.add(name)
        member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
        _forget_members(tar)
        yield member


def _above(path: str) -> Iterator[str]:
    while path := os.path.dirname(path):
        yield path
