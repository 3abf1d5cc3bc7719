"""The version of an agent's program: asked once for each file, then known until the file changes."""

from __future__ import annotations

import json
import os
import re

from mngr import process
from mngr.agents.kinds.driver import Program
from mngr.errors import MngrError
from mngr.files import json_bytes, write_atomic

FILE = "programs.json"
_SECONDS = 10.0


def check(program: Program, path: str, host_dir: str) -> None:
    """Raise for a version that is too old or known not to work. One that cannot be read is let through."""
    version = known(path, host_dir)
    if version in program.broken:
        raise MngrError(
            f"`{program.name}` {version} cannot be used: {program.broken[version]}",
            hint=f"install another version, {program.tried} is known to work: `{program.install}`",
        )
    if version and program.oldest and numbers(version) < numbers(program.oldest):
        raise MngrError(
            f"`{program.name}` {version} is too old: mngr needs {program.oldest} or later", hint=f"`{program.install}`"
        )


def known(path: str, host_dir: str) -> str:
    """The version of the program at this path; empty when it does not tell."""
    facts = os.stat(path)
    key = f"{os.path.realpath(path)} {facts.st_size} {facts.st_mtime_ns}"
    file = os.path.join(host_dir, FILE)
    try:
        with open(file, "rb") as stream:
            cached = json.load(stream)
    except (OSError, ValueError):
        cached = {}
    if isinstance(cached, dict) and isinstance(cached.get(key), str):
        return str(cached[key])
    version = ask(path)
    if version and os.path.isdir(host_dir):
        same = os.path.realpath(path)
        kept = {name: value for name, value in cached.items() if not name.startswith(f"{same} ")} if cached else {}
        write_atomic(file, json_bytes({**kept, key: version}, indent=1))
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
