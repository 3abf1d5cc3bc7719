"""`mngr plugin`: what is installed beside mngr; installing it, and switching it on and off."""

from __future__ import annotations

import os

from mngr import config, installed, settings_edit
from mngr.cli import extensions, trusting
from mngr.cli import plugin_packages as packages
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column
from mngr.config import SCOPES
from mngr.errors import NotFoundError, UsageError
from mngr.hosts.local import LocalHost
from mngr.installed import Plugin
from mngr.names import is_name, suggest
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

DESCRIPTION = (
    "A plugin is a Python package that adds verbs and agent types. `mngr plugin add` installs it with pip where mngr "
    "is installed, and it is active. One that fails is a warning, and nothing else is harmed."
)
EXAMPLES = (
    ("mngr plugin list", "what is installed, and what it adds"),
    ("mngr plugin list --active --fields name,version", "only what is on"),
    ("mngr plugin add mngr-plugin-hello --dry-run", "what would be installed"),
    ("mngr plugin disable hello", "keep it installed, and off"),
    ("mngr plugin enable hello --scope project", "on, for everyone in this project"),
)
FIELDS = ("name", "version", "package", "active", "enabled", "verbs", "types", "recipes", "problems")


def add_arguments(parser: Parser) -> None:
    shown = parser.add_subcommand("list", "Show the plugins that are installed", default=True)
    shown.add_argument("--active", action="store_true", help="only those that are on")
    shown.add_argument("--fields", metavar="A,B", help=f"show these fields, of {', '.join(FIELDS)}")
    more = parser.add_subcommand("add", "Install packages with plugins, where mngr is installed")
    gone = parser.add_subcommand("remove", "Uninstall the packages of plugins")
    more.add_argument(
        "names", nargs="*", metavar="PACKAGE", help="a package, such as `mngr-hello` or `mngr-hello>=1.2`"
    )
    gone.add_argument("names", nargs="*", metavar="PLUGIN", help="a name of `plugin list`, or its package")
    more.add_argument("--path", action="append", metavar="DIR", help="a package in a directory (can be repeated)")
    more.add_argument("--git", action="append", metavar="URL", help="a package in a git repository (can be repeated)")
    gone.add_argument("--path", action="append", metavar="DIR", help="the package in a directory (can be repeated)")
    for part in (more, gone):
        part.add_argument("--dry-run", action="store_true", help="show what would change, without changing it")
    for name, summary in (("enable", "Switch plugins on"), ("disable", "Switch plugins off, without removing them")):
        part = parser.add_subcommand(name, summary)
        part.add_argument("plugins", nargs="+", metavar="PLUGIN", help="a name of `plugin list`")
        part.add_argument("--scope", choices=SCOPES, help="the settings to write it to (default: user)")
        part.add_argument("--dry-run", action="store_true", help="say what would be written, and write nothing")


def run(args: Args, app: App) -> int:
    found = installed.plugins(app.environ)
    do = {"list": _list, "add": _add, "remove": _remove}.get(args.subcommand, _switch)
    return do(args, app, found)


def _add(args: Args, app: App, found: list[Plugin]) -> int:
    words = packages.requirements(args.names, args.path, args.git)
    if not words:
        raise UsageError("no package was named", hint="`mngr plugin add PACKAGE`, `--path DIR` or `--git URL`")
    if not args.dry_run:
        packages.install(words)
    asked = [word for word in words if word != "-e"]
    new = [plugin.name for plugin in installed.plugins(app.environ) if plugin not in found]
    adds = f"; new plugins: {', '.join(new)}" if new else ""
    verb = "would install" if args.dry_run else "installed"
    app.out.emit_object(
        {"installed": asked, "plugins": new, "dry_run": args.dry_run}, human=f"{verb} {', '.join(asked)}{adds}"
    )
    if not new and not args.dry_run:
        app.out.note("no new plugin came with it: it was there before, or the package is not a plugin of mngr")
    return 0


def _remove(args: Args, app: App, found: list[Plugin]) -> int:
    """Only packages that bring plugins: mngr itself needs the others."""
    known = {name: plugin.package for plugin in found for name in (plugin.name, plugin.package)}
    wanted = [name.replace("_", "-") for name in args.names] + [packages.package_of(path) for path in args.path]
    if not wanted:
        raise UsageError("no plugin was named", hint="`mngr plugin list` shows what is installed")
    for name in wanted:
        if name not in known:
            raise _not_installed(name, found)
    gone = list(dict.fromkeys(known[name] for name in wanted))
    if not args.dry_run:
        packages.uninstall(gone)
    verb = "would uninstall" if args.dry_run else "uninstalled"
    app.out.emit_object({"uninstalled": gone, "dry_run": args.dry_run}, human=f"{verb} {', '.join(gone)}")
    return 0


def _not_installed(name: str, found: list[Plugin]) -> NotFoundError:
    hint = suggest(name, tuple(plugin.name for plugin in found), "one") or "`mngr plugin list` shows what is installed"
    return NotFoundError(f"no plugin called `{name}` is installed", hint=hint)


def _list(args: Args, app: App, found: list[Plugin]) -> int:
    active = installed.active(found, app.settings)
    loaded = {one.plugin.name: one for one in extensions.load(active)}
    rows: list[dict[str, Any]] = []
    for plugin in found:
        one = loaded.get(plugin.name)
        rows.append(
            {
                "name": plugin.name,
                "version": plugin.version,
                "package": plugin.package,
                "active": one is not None,
                "enabled": one is not None,
                "verbs": [command.name for command in one.commands] if one else [],
                "types": [kind.name for kind in one.kinds] if one else [],
                "recipes": [recipe.name for recipe in one.recipes] if one else [],
                "problems": list(one.problems) if one else [],
            }
        )
    rows = [row for row in rows if row["active"] or not args.active]
    columns = _columns(args.fields)
    empty = "No plugins found" if not found else "No active plugins found"
    app.out.emit_rows(rows, columns, envelope={"plugins": rows}, known=FIELDS, empty=empty)
    if app.out.human:
        for one in loaded.values():
            for warning in one.warnings():
                app.out.warn(warning)
    return 0


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
        if name not in FIELDS:
            raise UsageError(f"a plugin has no field `{name}`", hint=suggest(name, FIELDS, "field"))
    return [Column(name.upper(), name, show=_yes_or_no if name in ("active", "enabled") else None) for name in names]


def _yes_or_no(row: Any) -> str:
    return "yes" if row["active"] else "no"


def _adds(row: Any) -> str:
    """`verb hello, type greeter`"""
    kinds = (("verb", "verbs"), ("type", "types"), ("recipe", "recipes"))
    return ", ".join(f"{kind} {name}" for kind, field in kinds for name in row[field])


def _switch(args: Args, app: App, found: list[Plugin]) -> int:
    """Write the setting, except where nothing would change and no scope was named."""
    wanted = args.subcommand == "enable"
    known = {plugin.name: plugin for plugin in found}
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
        LocalHost(app.host_dir).is_ours()
    rows = []
    for name in names:
        active = name in known and bool(installed.active([known[name]], app.settings))
        already = name in known and active == wanted and not args.scope
        if not already and not args.dry_run:
            with trusting.changed_by_user(app, path):
                settings_edit.set_value(path, f"plugins.{name}.enabled", "true" if wanted else "false", scope=scope)
        rows.append({"name": name, "enabled": wanted, "changed": not already, "path": path, "dry_run": args.dry_run})
        state = "active" if wanted else "off"
        done = f"{'would be' if args.dry_run else 'is'} {state} {'now' if name in known else 'once it is installed'}"
        app.out.line(f"{name} is {state} already" if already else f"{name} {done}, as {path} says")
    if not app.out.human:
        app.out.emit_rows(rows, ())
    if not args.dry_run:
        _say_who_wins(app, names, wanted)
    return 0


def _say_who_wins(app: App, names: list[str], wanted: bool) -> None:
    settings = extensions.settings(app.environ, app.overrides)
    for name in names:
        value = settings.in_force.find(("plugins", name, "enabled"))
        if value is not None and value.value != wanted:
            app.out.warn(f"here {name} is {'active' if value.value else 'off'} nevertheless: `{value.source}` says so")
