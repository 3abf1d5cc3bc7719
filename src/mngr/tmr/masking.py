"""Takes the values of variables out of the files that agents and tests left in the directory of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence

from mngr import secrets
from mngr.system import files

_MOST_BYTES = 1 << 30
# Of the rows of a measurement: what a test is known by must be the same everywhere.
_NAMES = frozenset(
    {"id", "ids", "file", "files", "function", "name", "names", "path", "paths", "place", "tests", "type", "outcome"}
)
_ROWS = (".rows", ".noticed")


def mask_files(directory: str, values: Sequence[str], keep: Collection[str] = ()) -> None:
    """Mask the values, in all their forms, in every plain file below a directory but those with a name to `keep`. One
    that is too large to be read is removed. Twice is safe."""
    forms = [form.encode(errors="surrogateescape") for form in secrets.forms(tuple(values))]
    for place, _, names in os.walk(directory) if forms else ():
        for name in names:
            path = os.path.join(place, name)
            if name in keep or os.path.islink(path) or not os.path.isfile(path):
                continue
            if os.path.getsize(path) > _MOST_BYTES:
                os.unlink(path)
                continue
            data = files.read_plain(path, _MOST_BYTES)
            if any(form in data for form in forms):
                masked = _rows(data, values) if name.endswith(_ROWS) else _masked(data, forms)
                files.write_atomic(path, masked, mode=os.stat(path).st_mode & 0o777)


def _masked(data: bytes, forms: Sequence[bytes]) -> bytes:
    """In a binary file everything keeps its place."""
    binary = b"\0" in data
    for form in forms:
        data = data.replace(form, b"*" * len(form) if binary else secrets.MASK.encode())
    return data


def _rows(data: bytes, values: Sequence[str]) -> bytes:
    """JSON lines, with the names in them as they are. Torn lines are left out, as readers do."""
    rows = files.read_lines(data)
    return b"".join(json.dumps(secrets.mask_fields(row, values, keep=_NAMES)).encode() + b"\n" for row in rows)
