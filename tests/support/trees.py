"""A directory as a value: every path in bytes with what it is, to be compared with another."""

import os
from pathlib import Path

Tree = dict[bytes, tuple[str, bytes]]


def tree(directory: str | Path, *, skip: tuple[str, ...] = (".git", ".mngr")) -> Tree:
    """All files below a directory: kind (`file`, `program`, `link`) and content. `skip` names entries of the top."""
    top = os.fsencode(directory)
    found: Tree = {}
    for root, directories, names in os.walk(top):
        if root == top:
            directories[:] = [name for name in directories if os.fsdecode(name) not in skip]
            names = [name for name in names if os.fsdecode(name) not in skip]
        for name in [*names, *(name for name in directories if os.path.islink(os.path.join(root, name)))]:
            path = os.path.join(root, name)
            found[os.path.relpath(path, top)] = _entry(path)
    return found


def _entry(path: bytes) -> tuple[str, bytes]:
    if os.path.islink(path):
        return "link", os.readlink(path)
    with open(path, "rb") as file:
        content = file.read()
    return ("program" if os.stat(path).st_mode & 0o100 else "file"), content
