"""Where this user's state lives. Touches nothing."""

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
