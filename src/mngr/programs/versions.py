"""The version of an agent's program: asked once for each file, then known until the file changes."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from mngr import json_values
from mngr.errors import MngrError
from mngr.programs.driver import AgentProgram
from mngr.system import process
from mngr.system.files import json_bytes, write_atomic
from mngr.system.state_dir import FORMAT_FILE

FILE = "programs.json"
_SECONDS = 10.0


def check(program: AgentProgram, path: str, host_dir: str) -> None:
    """Raise for a version that is too old or known not to work. One that cannot be read is let through."""
    version = known(path, host_dir)
    if why := unusable(program, version):
        more = "another version" if version in program.broken else "a newer one"
        raise MngrError(
            f"`{program.name}` {version} {why}",
            hint=f"install {more}, {program.tried} is known to work: `{program.install}`",
        )


def unusable(program: AgentProgram, version: str) -> str:
    """Why this version must not be used; empty when it may, or when nobody knows the version."""
    if version in program.broken:
        return f"cannot be used: {program.broken[version]}"
    if version and program.oldest and numbers(version) < numbers(program.oldest):
        return f"is too old: mngr needs {program.oldest} or later"
    return ""


def known(path: str, host_dir: str) -> str:
    """The version of the program at this path; empty when it does not tell."""
    try:
        facts = os.stat(path)
    except OSError:
        return ""
    place = os.path.realpath(path)
    # What a package manager replaces may keep its size and its time; the time of the change of the file it cannot keep.
    identity = [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]
    cached = json_values.file(os.path.join(host_dir, FILE))
    entry = json_values.table(cached.get(place))
    if entry.get("file") == identity and isinstance(entry.get("version"), str):
        return str(entry["version"])
    version = ask(path)
    if version and os.path.exists(os.path.join(host_dir, FORMAT_FILE)):  # only in a directory that is ours
        there = {path: entry for path, entry in cached.items() if os.path.exists(path)}
        there[place] = {"file": identity, "version": version}
        with suppress(OSError):
            write_atomic(os.path.join(host_dir, FILE), json_bytes(there, indent=1))
    return version


def ask(path: str) -> str:
    """What `PROGRAM --version` says."""
    try:
        result = process.run([path, "--version"], timeout=_SECONDS)
    except MngrError:
        return ""
    found = re.search(r"\d+(?:\.\d+)+", result.text) if result.ok else None
    return found[0] if found else ""


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:4])
