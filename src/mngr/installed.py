"""Which plugins are installed beside mngr, found once and remembered in the state directory. Imports none of them.

Loads next to nothing, since `mngr --help` asks it: `importlib.metadata` alone would take as long as that does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from mngr.home import host_dir, is_marked
from mngr.names import is_name

if TYPE_CHECKING:
    from mngr.config import Settings

GROUP = "mngr"
CACHE = "plugins.json"
_ENDINGS = (".dist-info", ".egg-info")


class Plugin(NamedTuple):
    """`target` is what its entry point names: `module` or `module:object`. `package` is what pip calls it."""

    name: str
    target: str
    package: str
    version: str


class Room(NamedTuple):
    """A directory that modules are imported from, with the packages installed in it."""

    path: str
    changed_ns: int
    packages: tuple[str, ...]


def plugins(environ: Mapping[str, str]) -> list[Plugin]:
    """All plugins that are installed, by name, active or not. Writes what it found into a state directory of ours, and
    creates none."""
    rooms = look()
    mark = fingerprint(rooms)
    directory = host_dir(environ)
    known = _remembered(directory, mark)
    if known is None:
        known = find(rooms)
        if is_marked(directory):
            _remember(directory, mark, known)
    return known


def active(found: list[Plugin], settings: Settings) -> list[Plugin]:
    """Those that no setting disables. What a repository says counts only if it is trusted."""
    in_force = settings.in_force
    return [p for p in found if in_force.get(("plugins", p.name, "enabled"), True)]


def look() -> list[Room]:
    """What can be imported from, at the cost of one directory listing each."""
    rooms = []
    for path in dict.fromkeys(sys.path):
        try:
            changed_ns = os.stat(path).st_mtime_ns
            names = tuple(sorted(name for name in os.listdir(path) if name.endswith(_ENDINGS)))
        except OSError:
            continue
        if names:
            rooms.append(Room(path, changed_ns, names))
    return rooms


def fingerprint(rooms: list[Room]) -> str:
    """Another text as soon as a package comes, goes or changes its version."""
    from zlib import crc32

    return f"{crc32(repr([tuple(room) for room in rooms]).encode('utf-8', 'surrogateescape')):08x}"


def find(rooms: list[Room]) -> list[Plugin]:
    """Read the entry points of every package. As in an import, the first one of a name counts."""
    found: dict[str, Plugin] = {}
    seen = set()
    for room in rooms:
        for folder in room.packages:
            package, _, version = folder.rpartition(".")[0].partition("-")
            package = package.replace("_", "-").lower()
            if package not in seen:
                seen.add(package)
                for name, target in _entry_points(os.path.join(room.path, folder, "entry_points.txt")):
                    found.setdefault(name, Plugin(name, target, package, version))
    return [found[name] for name in sorted(found)]


def _entry_points(path: str) -> list[tuple[str, str]]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError):
        return []
    return parse(text)


def parse(text: str) -> list[tuple[str, str]]:
    """The names and targets of our group in an `entry_points.txt`. In a name, `_` is `-`."""
    section = ""
    points = []
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == GROUP and line and line[0] not in "#;":
            name, _, target = line.partition("=")
            name = name.strip().replace("_", "-")
            if is_name(name) and target.strip():
                points.append((name, target.partition("[")[0].strip()))
    return points


def _remembered(directory: str, mark: str) -> list[Plugin] | None:
    """What was found the last time, if the same packages are installed now."""
    try:
        with open(os.path.join(directory, CACHE), encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError):
        return None
    if text == _empty(mark):
        return []  # the usual case, told without loading `json`
    import json

    try:
        value = json.loads(text)
        if value["installed"] == mark:
            return [Plugin(*map(str, row)) for row in value["plugins"]]
    except (ValueError, TypeError, KeyError):
        pass
    return None


def _remember(directory: str, mark: str, found: list[Plugin]) -> None:
    """Kept for the next time. A disk that takes nothing costs only that next time."""
    from mngr import files

    data = files.json_bytes({"installed": mark, "plugins": found}) if found else _empty(mark).encode()
    try:
        files.write_atomic(os.path.join(directory, CACHE), data)
    except OSError:
        pass


def _empty(mark: str) -> str:
    return f'{{"installed": "{mark}", "plugins": []}}\n'
