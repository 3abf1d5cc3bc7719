"""Trees that are being deleted: first moved aside in one step, so that each is there as a whole or not at all, and then
deleted. What cannot be deleted, or what a kill left, stays in the trash of the state directory for `mngr gc`."""

from __future__ import annotations

import errno
import os

from mngr.system import files, tree_removal

ROOM = "trash"
# Of a tree on another file system, which cannot be moved into the trash: it is moved aside where it is.
_SUFFIX = ".mngr-trash"


def place(state_dir: str, name: str) -> str:
    return os.path.join(state_dir, ROOM, name)


def names(state_dir: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(state_dir, ROOM)))
    except FileNotFoundError:
        return []


def set_aside(state_dir: str, path: str, name: str) -> None:
    """Move a tree into the trash under a name that is free there. Absent is fine. If this raises, the tree is where it
    was: something is mounted in it, or its directory does not allow it."""
    if not os.path.lexists(path):
        return
    tree_removal.refuse_mounts(path)
    target = place(state_dir, name)
    files.make_private_dir(os.path.dirname(target))
    if os.path.isdir(path) and not os.path.islink(path) and not os.access(path, os.W_OK):
        os.chmod(path, 0o700)  # a directory that moves gets another parent, which is a change of it
    try:
        os.rename(path, target)
    except FileNotFoundError:
        return  # somebody else removed it at this moment
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        beside = f"{path.rstrip('/')}.{os.urandom(4).hex()}{_SUFFIX}"
        os.symlink(beside, target)
        try:
            os.rename(path, beside)
        except OSError:
            os.unlink(target)
            raise


def delete(state_dir: str, name: str) -> None:
    """Delete what has this name in the trash. Absent is fine. Raises the first error after everything that can be
    deleted is gone."""
    path = place(state_dir, name)
    if os.path.islink(path):
        beside = os.readlink(path)
        if beside.endswith(_SUFFIX):
            tree_removal.remove_tree(beside)
    tree_removal.remove_tree(path)


def discard(state_dir: str, path: str) -> str:
    """Remove a tree: it is gone at once, and deleted then. Returns why not all of it could be deleted, or nothing.
    Raises when it could not be moved aside; then it is as it was."""
    name = f"{os.path.basename(path.rstrip('/'))}.{os.urandom(4).hex()}"
    set_aside(state_dir, path, name)
    return deleted(state_dir, name)


def deleted(state_dir: str, name: str) -> str:
    """Delete what has this name in the trash. Returns why not all of it could be deleted, or nothing."""
    try:
        delete(state_dir, name)
    except OSError as error:
        return f"`{error.filename or place(state_dir, name)}`: {error.strerror}"
    except tree_removal.Mounted as error:
        return error.message
    return ""
