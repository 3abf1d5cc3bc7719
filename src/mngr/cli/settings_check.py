"""The settings files as `mngr config` and `mngr doctor` see them: where they are, and what is wrong in them."""

from __future__ import annotations

import os
from importlib import import_module

from mngr import config
from mngr.cli import catalog, plugin_verbs
from mngr.cli.app import App
from mngr.cli.dispatch import command_parser
from mngr.cli.parser import apply_settings
from mngr.config import SCOPES, Settings, Value
from mngr.errors import MngrError, UsageError
from mngr.settings_schema import Layer, read_layer
from mngr.settings_values import Key, format_key

OPTION_SECTIONS = ("commands", "create_templates")


def check(app: App) -> list[Key]:
    """Raise when any settings file, variable or `-S` says something that cannot be, in any section of any of them.
    Returns the keys that are not in force because nobody trusts them."""
    problems: dict[str, MngrError] = {}
    ways_out: list[str] = []
    for scope in SCOPES:
        if path_if_any(app, scope) is not None and (found := problems_of(Settings([layer_of(app, scope)]))):
            problems.update({problem.message: problem for problem in found})
            ways_out.append(way_out(scope))
    problems.update({problem.message: problem for problem in problems_of(app.settings.in_force)})
    refuse(list(problems.values()), *ways_out)
    return app.settings.withheld()


def problems_of(settings: Settings) -> list[MngrError]:
    """What `[commands.*]` and `[create_templates.*]` hold that is no option of its verb, or no value for it."""
    problems: list[MngrError] = []
    for section in OPTION_SECTIONS:
        for name in settings.names(section):
            for key, value in settings.table((section, name)).items():
                try:
                    _check_option((section, name, key), value)
                except UsageError as error:
                    problems.append(error)
    return problems


def _check_option(key: Key, value: Value) -> None:
    entry = entry_of(key)
    if entry is None:
        return  # of a plugin that is not active
    if not getattr(import_module(entry.module), "READS_SETTINGS", True):
        why = f"has no effect: `mngr {entry.name}` takes no defaults from settings"
        raise UsageError(f"`{format_key(key)}`, set in `{value.source}`, {why}")
    apply_settings(command_parser(entry), {key[2]: value}, format_key(key[:2]))


def entry_of(key: Key) -> catalog.Verb | None:
    """The verb whose options a section holds."""
    name = "create" if key[0] == "create_templates" else key[1]
    return catalog.find(name) or next((e for e in plugin_verbs.for_help(os.environ) if e.name == name), None)


def verb_names() -> list[str] | None:
    return plugin_verbs.known_verbs(os.environ)


def refuse(problems: list[MngrError], *ways_out: str) -> None:
    if len(problems) == 1:
        raise UsageError(problems[0].message, hint=joined(problems[0].hint, *ways_out))
    if problems:
        lines = [f"{problem.message}\n  {problem.hint}" if problem.hint else problem.message for problem in problems]
        raise UsageError(f"{len(problems)} settings are wrong:", details="\n".join(lines), hint=joined(*ways_out))


def checked_layer(app: App, scope: str) -> Layer:
    """What the file of one scope sets. Raises when something in it is wrong."""
    found = layer_of(app, scope)
    refuse(problems_of(Settings([found])), way_out(scope))
    return found


def way_out(scope: str) -> str:
    return f"`mngr config edit --scope {scope}` opens the file"


def layer_of(app: App, scope: str) -> Layer:
    """What the file of one scope sets. An error says how to get at the file."""
    source = source_name(app, scope)
    path = config.scope_path(scope, app.host_dir, os.getcwd())
    ignored: list[str] = []
    try:
        layer = read_layer(config.read_file(path, source) or {}, source, verb_names(), ignored)
    except MngrError as error:
        raise UsageError(error.message, hint=joined(error.hint, way_out(scope))) from None
    for text in ignored:
        plugin_verbs.warn_once(text)
    return layer


def path_if_any(app: App, scope: str) -> str | None:
    try:
        return config.scope_path(scope, app.host_dir, os.getcwd())
    except UsageError:
        return None


def source_name(app: App, scope: str) -> str:
    """What a file is called in output and errors, as everywhere."""
    if scope != "user":
        return ".mngr/settings.toml" if scope == "project" else ".mngr/settings.local.toml"
    return config.short(config.scope_path(scope, app.host_dir, os.getcwd()), app.environ.get("HOME") or "")


def joined(*hints: str) -> str:
    return "; ".join(hint for hint in hints if hint)
