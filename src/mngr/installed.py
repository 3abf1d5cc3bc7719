"""Which plugins are installed beside mngr. Imports none of them.

Reads their entry points itself, in a millisecond, since `mngr --help` asks: importing `importlib.metadata` takes longer
than all of that.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from mngr.named_tuples import NamedTuple
from mngr.names import is_name

if TYPE_CHECKING:
    from mngr.settings.layers import Settings

GROUP = "mngr"


class Plugin(NamedTuple):
    """`target` is what its entry point names: `module` or `module:object`. `package` is what pip calls it."""

    name: str
    target: str
    package: str
    version: str


def plugins() -> list[Plugin]:
    """All plugins that are installed, by name, active or not. As in an import, the first one of a name counts."""
    found: dict[str, Plugin] = {}
    seen = set()
    for path in dict.fromkeys(sys.path):
        try:
            folders = sorted(name for name in os.listdir(path) if name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue
        for folder in folders:
            package, _, version = folder.rpartition(".")[0].partition("-")
            package = package.replace("_", "-").lower()
            if package not in seen:
                seen.add(package)
                for name, target in _entry_points(os.path.join(path, folder, "entry_points.txt")):
                    found.setdefault(name, Plugin(name, target, package, version))
    return [found[name] for name in sorted(found)]


def active(settings: Settings) -> list[Plugin]:
    """Those that no setting disables. What a repository says counts only if it is trusted."""
    trusted_only = settings.trusted_only
    return [plugin for plugin in plugins() if trusted_only.get(("plugins", plugin.name, "enabled"), True)]


def _entry_points(path: str) -> list[tuple[str, str]]:
    """The names and targets of our group in an `entry_points.txt`. In a name, `_` is `-`."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except (OSError, ValueError):
        return []
    section = ""
    points = []
    for line in lines:
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == GROUP and line and line[0] not in "#;":
            name, _, target = line.partition("=")
            name = name.strip().replace("_", "-")
            if is_name(name) and target.strip():
                points.append((name, target.partition("[")[0].strip()))
    return points
