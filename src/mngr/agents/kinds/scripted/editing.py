"""Edits of files in the agent's work directory. One that cannot be made as written changes nothing."""

import os

from mngr.errors import MngrError


def write(path: str, text: str) -> None:
    _put(path, text, "wb")


def append(path: str, text: str) -> None:
    _put(path, text, "ab")


def replace(path: str, old: str, new: str) -> None:
    with open(path, "rb") as file:
        data = file.read()
    wanted = to_bytes(old)
    count = data.count(wanted)
    if count != 1:
        raise MngrError(f"the old text occurs {count} times in `{path}`, not once", details=old)
    with open(path, "wb") as file:
        file.write(data.replace(wanted, to_bytes(new)))


def delete(path: str) -> None:
    os.unlink(path)


def to_bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _put(path: str, text: str, mode: str) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, mode) as file:
        file.write(to_bytes(text))
