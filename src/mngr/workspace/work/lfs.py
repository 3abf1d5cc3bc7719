"""Objects of Git LFS: files of commits that git itself does not have, in the git directory of a copy."""

from __future__ import annotations

import hashlib
import os
import re
import stat

from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.system import inside
from mngr.workspace.plan import WORKTREE
from mngr.workspace.work.disk import entries
from mngr.workspace.work.git_files import common_dir_of

_PLACE = "lfs/objects"
_NAME = re.compile(r"[0-9a-f]{64}")
_CHUNK = 1 << 20


def own_objects(git_dir: str, record: Record) -> tuple[str, ...]:
    """The names of those that only the repository of the copy has. A worktree shares the user's."""
    if record.workspace.transfer == WORKTREE:
        return ()
    top = f"{git_dir}/{_PLACE}"
    names = [name for one in entries(top) for two in entries(f"{top}/{one}") for name in entries(f"{top}/{one}/{two}")]
    there = common_dir_of(record.workspace.repo or "")
    return tuple(name for name in names if _NAME.fullmatch(name) and not os.path.exists(f"{there}/{_path(name)}"))


def keep(git_dir: str, common_dir: str, names: tuple[str, ...]) -> None:
    """Copy objects to another repository. They are named by what they hold, so nothing there is changed."""
    for name in names:
        target = f"{common_dir}/{_path(name)}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        draft = f"{target}.{os.urandom(4).hex()}.draft"
        try:
            if not _copy(git_dir, name, draft):
                raise MngrError(f"the object `{name}` of Git LFS in `{git_dir}` is damaged")
            os.replace(draft, target)
        finally:
            if os.path.exists(draft):
                os.unlink(draft)


def _copy(git_dir: str, name: str, target: str) -> bool:
    """Whether what was copied is what its name says."""
    found = hashlib.sha256()
    with inside.directory(git_dir, os.path.dirname(_path(name))) as directory:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    with open(source, "rb") as file, open(target, "xb") as copy:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            return False
        while data := file.read(_CHUNK):
            found.update(data)
            copy.write(data)
    return found.hexdigest() == name


def _path(name: str) -> str:
    return f"{_PLACE}/{name[:2]}/{name[2:4]}/{name}"
