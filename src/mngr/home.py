"""Where this user's state lives, and whether it is ours. Touches nothing, and loads nothing: `mngr --help` asks it."""

from __future__ import annotations

import os
from collections.abc import Mapping

FORMAT = "mngr state, format 1\n"
FORMAT_FILE = "format"


def host_dir(environ: Mapping[str, str]) -> str:
    """Where this user's state and settings live: `$MNGR_HOST_DIR`, else `~/.mngr`; absolute."""
    home = environ.get("HOME") or os.path.expanduser("~")
    path = environ.get("MNGR_HOST_DIR") or "~/.mngr"
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return os.path.abspath(os.path.expanduser(path))


def is_marked(directory: str) -> bool:
    """Whether the directory carries our format marker. One that cannot be read does not."""
    try:
        with open(os.path.join(directory, FORMAT_FILE), encoding="utf-8") as file:
            return file.read() == FORMAT
    except (OSError, ValueError):
        return False
