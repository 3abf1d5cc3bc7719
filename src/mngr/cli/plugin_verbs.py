"""The verbs that plugins add. Without plugins all of this is one look at what is installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mngr import installed
from mngr.cli import catalog
from mngr.cli.catalog import Verb
from mngr.cli.output.terminal import visible_lines
from mngr.errors import MngrError

if TYPE_CHECKING:
    from mngr.plugins import LoadedPlugin
    from mngr.settings.layers import Settings


_told: set[str] = set()


def warn_once(text: str) -> None:
    if text not in _told:
        _told.add(text)
        sys.stdout.flush()
        sys.stderr.write(f"warning: {visible_lines(text)}\n")


def silent(text: str) -> None:
    """In place of `warn_once`, for completion."""


def entries(
    environ: Mapping[str, str], overrides: Sequence[str] = (), warn: Callable[[str], None] = warn_once
) -> tuple[Verb, ...]:
    """The verbs of active plugins. `warn` is told what is wrong with a plugin. Raises when the settings, which say what
    is active, cannot be read."""
    if not installed.plugins():
        return ()
    added = []
    for one in load(installed.active(settings(environ, overrides))):
        for problem in one.warnings():
            warn(problem)
        for verb in one.verbs:
            facts = (verb.name, catalog.PLUGINS, verb.summary, tuple(verb.aliases))
            added.append(Verb(*facts, module=verb.module, plugin=one.plugin.name))
    return tuple(added)


def for_help(
    environ: Mapping[str, str], overrides: Sequence[str] = (), warn: Callable[[str], None] = warn_once
) -> tuple[Verb, ...]:
    """The same, and none at all where the settings cannot be read: help works then too."""
    try:
        return entries(environ, overrides, warn)
    except (MngrError, OSError):
        return ()


def find(
    word: str,
    environ: Mapping[str, str],
    overrides: Sequence[str] = (),
    warn: Callable[[str], None] = warn_once,
) -> Verb | None:
    """The verb of this name or alias: ours, else one of a plugin."""
    added = () if catalog.find(word) else for_help(environ, overrides, warn)
    return catalog.find(word) or next((entry for entry in added if word in (entry.name, *entry.aliases)), None)


def known_verbs(environ: Mapping[str, str], overrides: Sequence[str] = ()) -> list[str] | None:
    """The names that `[commands.*]` may have. None where nobody can tell: the verbs of a plugin that is disabled or
    broken are not known, and what the settings say about them is no mistake."""
    names = [entry.name for entry in catalog.VERBS]
    found = installed.plugins()
    if not found:
        return names
    active = installed.active(settings(environ, overrides))
    loaded = load(active)
    if len(active) < len(found) or any(one.problems for one in loaded):
        return None
    return [*names, *(verb.name for one in loaded for verb in one.verbs)]


def settings(environ: Mapping[str, str], overrides: Sequence[str] = ()) -> Settings:
    """All settings, without a look at which verbs exist."""
    from mngr.settings import layers as config

    return config.load(host_dir=config.host_dir(environ), cwd=os.getcwd(), environ=environ, overrides=overrides)


def load(active: Sequence[installed.Plugin]) -> list[LoadedPlugin]:
    """What each of these plugins adds, less what mngr itself has under the same name."""
    if not active:
        return []
    from mngr import plugins
    from mngr.programs.kind import BUILTIN

    ours = [("verb", word) for entry in catalog.VERBS for word in (entry.name, *entry.aliases)]
    ours += [("agent type", name) for name in BUILTIN]
    return plugins.without_taken(plugins.load(active), dict.fromkeys(ours, "mngr itself"))
