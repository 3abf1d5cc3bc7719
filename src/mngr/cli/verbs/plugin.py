"""`mngr plugin`: what is installed beside mngr; installing it, and switching it on and off."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mngr import installed
from mngr.cli import plugin_verbs, trust_prompt
from mngr.cli.app import App
from mngr.cli.output.table import Column
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import MngrError, NotFoundError, UsageError
from mngr.installed import Plugin
from mngr.named_tuples import NamedTuple
from mngr.names import is_name, suggest
from mngr.settings import edit as settings_file
from mngr.settings import layers as config
from mngr.settings.layers import SCOPES
from mngr.system import process
from mngr.system.state_dir import StateDir

if TYPE_CHECKING:
    from mngr.plugins import LoadedPlugin

_PIP_SECONDS = 900.0

DESCRIPTION = (
    "A plugin is a Python package that adds verbs, agent types or recipes. `mngr plugin add` installs it with pip into "
    "the environment of mngr and enables it. A plugin that fails to load causes a warning; everything else works."
)
EXAMPLES = (
    ("mngr plugin list", "installed plugins and what they add"),
    ("mngr plugin list --active --fields name,version", "only enabled plugins"),
    ("mngr plugin add mngr-plugin-hello --dry-run", "show what would be installed"),
    ("mngr plugin disable hello", "disable it without uninstalling"),
    ("mngr plugin enable hello --scope project", "enable it for everyone in this project"),
)


class PluginRow(NamedTuple):
    name: str
    version: str
    package: str
    active: bool
    enabled: bool
    verbs: list[str]
    types: list[str]
    recipes: list[str]
    problems: list[str]


class Installed(NamedTuple):
    installed: list[str]
    plugins: list[str]
    dry_run: bool


class Uninstalled(NamedTuple):
    uninstalled: list[str]
    dry_run: bool


class Switched(NamedTuple):
    name: str
    enabled: bool
    changed: bool
    path: str
    dry_run: bool


def results() -> list[Any]:
    return [{"plugins": [PluginRow]}, Installed, Uninstalled, list[Switched]]


def add_arguments(parser: Parser) -> None:
    shown = parser.add_subcommand("list", "Show installed plugins", default=True)
    shown.option("--active", "only enabled plugins")
    shown.option("--fields A,B", f"show these fields, of {', '.join(PluginRow._fields)}")
    more = parser.add_subcommand("add", "Install packages with plugins")
    more.words("names", "PACKAGE", "what pip installs: `mngr-hello`, `mngr-hello>=1.2`, a directory, `git+URL`")
    more.add_dry_run()
    gone = parser.add_subcommand("remove", "Uninstall the packages of plugins")
    gone.words("names", "PLUGIN", "name from `plugin list`, or its package")
    gone.add_dry_run()
    for name, summary in (("enable", "Enable plugins"), ("disable", "Disable plugins without uninstalling them")):
        part = parser.add_subcommand(name, summary)
        part.add_argument("plugins", nargs="+", metavar="PLUGIN", help="name from `plugin list`")
        part.option("--scope", "settings file to change (default: user)", choices=SCOPES)
        part.add_dry_run()


def run(args: Args, app: App) -> int:
    do = {"list": _list, "add": _add, "remove": _remove}.get(args.subcommand, _switch)
    return do(args, app, installed.plugins())


def _add(args: Args, app: App, found: list[Plugin]) -> int:
    if not args.names:
        raise UsageError("no package was named", hint="`mngr plugin add PACKAGE`, a directory, or `git+URL`")
    for name in args.names:
        if name.startswith("-") or not name.strip():
            raise UsageError(f"invalid package name {name!r}", hint="for example `mngr plugin add mngr-hello`")
    if not args.dry_run:
        _run_pip("install", args.names)
    new = [plugin.name for plugin in installed.plugins() if plugin not in found]
    adds = f"; new plugins: {', '.join(new)}" if new else ""
    verb = "would install" if args.dry_run else "installed"
    app.out.emit_object(Installed(args.names, new, args.dry_run), human=f"{verb} {', '.join(args.names)}{adds}")
    if not new and not args.dry_run:
        app.out.note("no new plugin: the package was already installed, or it contains no plugin of mngr")
    return 0


def _remove(args: Args, app: App, found: list[Plugin]) -> int:
    """Uninstalls only packages that contain plugins: mngr itself needs the others."""
    known = {name: plugin.package for plugin in found for name in (plugin.name, plugin.package)}
    names = [name.replace("_", "-") for name in args.names]
    if not names:
        raise UsageError("no plugin was named", hint="`mngr plugin list` shows what is installed")
    for name in names:
        if name not in known:
            raise _not_installed(name, found)
    gone = list(dict.fromkeys(known[name] for name in names))
    if not args.dry_run:
        _run_pip("uninstall", gone)
    verb = "would uninstall" if args.dry_run else "uninstalled"
    app.out.emit_object(Uninstalled(gone, args.dry_run), human=f"{verb} {', '.join(gone)}")
    return 0


def _run_pip(verb: str, packages: Sequence[str]) -> None:
    """Install or uninstall where mngr itself runs, with pip or uv. On failure what was installed before stays."""
    done = process.run([*_pip(verb), *packages], timeout=_PIP_SECONDS)
    if done.exit_code == 0:
        return
    text = done.error_text or done.text
    hint = ""
    if "externally-managed-environment" in text or "externally managed" in text:
        pipx = "inject" if verb == "install" else "uninject"
        hint = f"this Python belongs to the system: use mngr from pipx or uv, then `pipx {pipx} mngr {packages[0]}`"
    raise MngrError(f"cannot {verb} {', '.join(f'`{word}`' for word in packages)}", details=text, hint=hint)


def _pip(verb: str) -> list[str]:
    """pip of this Python, or uv working on it."""
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
        return [sys.executable, "-P", "-m", "pip", verb, *quiet, *(["--yes"] if verb == "uninstall" else [])]
    if process.find_program("uv") is not None:
        return ["uv", "pip", verb, "--quiet", "--python", sys.executable]
    raise MngrError(
        f"cannot {verb} packages: neither pip nor uv is there for `{sys.executable}`",
        hint=f"`{sys.executable} -m ensurepip` installs pip",
    )


def _not_installed(name: str, found: list[Plugin]) -> NotFoundError:
    hint = suggest(name, tuple(plugin.name for plugin in found), "one") or "`mngr plugin list` shows what is installed"
    return NotFoundError(f"plugin `{name}` is not installed", hint=hint)


def _list(args: Args, app: App, found: list[Plugin]) -> int:
    loaded = {one.plugin: one for one in plugin_verbs.load(installed.active(app.settings))}
    rows = [_row(plugin, loaded.get(plugin)) for plugin in found]
    rows = [row for row in rows if row.active or not args.active]
    columns = _columns(args.fields)
    empty = "No plugins found" if not found else "No active plugins found"
    app.out.emit_rows(rows, columns, envelope={"plugins": rows}, known=PluginRow._fields, empty=empty)
    if app.out.human:
        for one in loaded.values():
            for warning in one.warnings():
                app.out.warn(warning)
    return 0


def _row(plugin: Plugin, one: LoadedPlugin | None) -> PluginRow:
    groups = (one.verbs, one.kinds, one.recipes) if one else ((), (), ())
    verbs, types, recipes = ([item.name for item in group] for group in groups)
    on, problems = one is not None, list(one.problems) if one else []
    return PluginRow(plugin.name, plugin.version, plugin.package, on, on, verbs, types, recipes, problems)


def _columns(fields: str | None) -> list[Column]:
    if fields is None:
        return [
            Column("NAME", "name"),
            Column("VERSION", "version"),
            Column("ACTIVE", "active", show=_yes_or_no),
            Column("ADDS", "verbs", show=_adds, flexible=True),
        ]
    names = [name.strip() for name in fields.split(",") if name.strip()]
    for name in names:
        if name not in PluginRow._fields:
            raise UsageError(f"a plugin has no field `{name}`", hint=suggest(name, PluginRow._fields, "field"))
    return [Column(name.upper(), name, show=_yes_or_no if name in ("active", "enabled") else None) for name in names]


def _yes_or_no(row: Any) -> str:
    return "yes" if row["active"] else "no"


def _adds(row: Any) -> str:
    """`verb hello, type greeter`"""
    kinds = (("verb", "verbs"), ("type", "types"), ("recipe", "recipes"))
    return ", ".join(f"{kind} {name}" for kind, field in kinds for name in row[field])


def _switch(args: Args, app: App, found: list[Plugin]) -> int:
    """Change the setting, unless it has that value already and no scope was given."""
    wanted = args.subcommand == "enable"
    known = {plugin.name for plugin in found}
    names = list(dict.fromkeys(name.replace("_", "-") for name in args.plugins))
    for name in names:
        if not is_name(name):
            raise _not_installed(name, found)
        if name not in known:
            missing = _not_installed(name, found)
            app.out.warn(f"{missing.message}; {missing.hint}")
    scope = args.scope or "user"
    path = config.scope_path(scope, app.host_dir, os.getcwd())
    if scope == "user":
        StateDir(app.host_dir).is_ours()
    active = {plugin.name for plugin in installed.active(app.settings)}
    rows = []
    for name in names:
        already = name in known and (name in active) == wanted and not args.scope
        if not already and not args.dry_run:
            with trust_prompt.changed_by_user(app, scope):
                settings_file.set_value(path, f"plugins.{name}.enabled", "true" if wanted else "false", scope=scope)
        rows.append(Switched(name, wanted, not already, path, args.dry_run))
        state = "active" if wanted else "off"
        done = f"{'would be' if args.dry_run else 'is'} {state} {'now' if name in known else 'once it is installed'}"
        app.out.line(f"{name} is {state} already" if already else f"{name} {done}, as {path} says")
    if not app.out.human:
        app.out.emit_rows(rows, ())
    if not args.dry_run:
        _say_who_wins(app, names, wanted)
    return 0


def _say_who_wins(app: App, names: list[str], wanted: bool) -> None:
    settings = plugin_verbs.settings(app.environ, app.overrides)
    for name in names:
        value = settings.trusted_only.find(("plugins", name, "enabled"))
        if value is not None and value.value != wanted:
            app.out.warn(f"here {name} is {'active' if value.value else 'off'} nevertheless: `{value.source}` says so")
