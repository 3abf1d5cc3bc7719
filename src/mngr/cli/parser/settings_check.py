"""What is wrong in the settings, beyond what reading them finds: names and values of options, names of verbs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module

from mngr.cli import catalog, plugin_verbs
from mngr.cli.app import App
from mngr.cli.dispatch import command_parser
from mngr.cli.parser.defaults import set_defaults
from mngr.errors import UsageError
from mngr.names import suggest
from mngr.settings import layers as config
from mngr.settings.layers import SCOPES, Settings, Value
from mngr.settings.schema import OPTIONS, Layer, as_ignored
from mngr.settings.values import Key, format_key


def check(app: App) -> list[Key]:
    """Raise when any settings file, variable or `-S` says something that cannot be, in any section of any of them.
    Returns the keys that are not in force because nobody trusts them."""
    refuse(app, app.settings.layers)
    return app.settings.untrusted_keys()


def refuse(app: App, layers: Sequence[Layer]) -> None:
    """Raise for all that is wrong in these layers together, naming the commands that open the files."""
    problems = {layer.source: found for layer in layers if (found := problems_of(layer))}
    every = [problem for found in problems.values() for problem in found]
    if not every:
        return
    sources = {config.source_name(scope, app.host_dir, app.environ): scope for scope in SCOPES}
    open_them = [f"`mngr config edit --scope {sources[name]}` opens the file" for name in problems if name in sources]
    if len(every) == 1:
        raise UsageError(every[0].message, hint="; ".join(filter(None, [every[0].hint, *open_them])))
    lines = [f"{problem.message}\n  {problem.hint}" if problem.hint else problem.message for problem in every]
    raise UsageError(f"{len(every)} settings are wrong:", details="\n".join(lines), hint="; ".join(open_them))


def problems_of(layer: Layer) -> list[UsageError]:
    """What `[commands.*]` and `[create_templates.*]` hold that is no option of its verb, or no value for it."""
    problems = []
    for key, item in {**layer.values, **layer.untrusted}.items():
        if key[0] in OPTIONS:
            try:
                _check_option(key, Value(item, layer.source))
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
    set_defaults(command_parser(entry), {key[2]: value}, format_key(key[:2]))


def entry_of(key: Key) -> catalog.Verb | None:
    """The verb whose options a section holds."""
    name = "create" if key[0] == "create_templates" else key[1]
    return plugin_verbs.find(name, os.environ)


def unknown_command(key: Key, known: Sequence[str] | None, source: str = "") -> UsageError | None:
    """The error for a key below `commands` that names no verb."""
    if known is None or key[0] != "commands" or len(key) < 2 or key[1] in known:
        return None
    place = f" in `{source}`" if source else ""
    return UsageError(f"unknown key `{format_key(key[:2])}`{place}", hint=suggest(key[1], tuple(known), "command"))


def tell_ignored(settings: Settings, environ: Mapping[str, str], overrides: Sequence[str]) -> None:
    """Warn of what is ignored, since plugins and other versions of mngr may know it. Raises for an unknown verb that
    `-S` names."""
    for text in settings.ignored:
        plugin_verbs.warn_once(text)
    known = plugin_verbs.known_verbs(environ, overrides)
    for name, source in settings.named("commands").items():
        if error := unknown_command(("commands", name), known, source):
            if source == "-S":
                raise error
            plugin_verbs.warn_once(as_ignored(error))
