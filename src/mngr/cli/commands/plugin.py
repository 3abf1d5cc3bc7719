"""`mngr plugin`: what is installed beside mngr, and switching it on and off. Installing is pip's work."""

from __future__ import annotations

import os

from mngr import config, installed, settings_edit
from mngr.cli import extensions
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column
from mngr.config import SCOPES
from mngr.errors import NotFoundError, UsageError
from mngr.hosts.local import LocalHost
from mngr.installed import Plugin
from mngr.names import suggest
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

DESCRIPTION = (
    "A plugin is a Python package that adds verbs and agent types. Install it with pip where mngr is installed "
    "(`pipx inject mngr PACKAGE` when mngr came with pipx) and it is active. One that fails is a warning, and nothing "
    "else is harmed."
)
EXAMPLES = (
    ("mngr plugin list", "what is installed, and what it adds"),
    ("mngr plugin list --active --fields name,version", "only what is on"),
    ("mngr plugin disable hello", "keep it installed, and off"),
    ("mngr plugin enable hello --scope project", "on, for everyone in this project"),
)
FIELDS = ("name", "version", "package", "active", "verbs", "types", "recipes", "problems")


def add_arguments(parser: Parser) -> None:
    shown = parser.add_subcommand("list", "Show the plugins that are installed", default=True)
    shown.add_argument("--active", action="store_true", help="only those that are on")
    shown.add_argument("--fields", metavar="A,B", help=f"show these fields, of {', '.join(FIELDS)}")
    for name, summary in (("enable", "Switch plugins on"), ("disable", "Switch plugins off, without removing them")):
        part = parser.add_subcommand(name, summary)
        part.add_argument("plugins", nargs="+", metavar="PLUGIN", help="a name of `plugin list`")
        part.add_argument("--scope", choices=SCOPES, help="the settings to write it to (default: user)")
        part.add_argument("--dry-run", action="store_true", help="say what would be written, and write nothing")


def run(args: Args, app: App) -> int:
    found = installed.plugins(app.environ)
    return _list(args, app, found) if args.subcommand == "list" else _switch(args, app, found)


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
            Column("ACTIVE", "active", show=lambda row: "yes" if row["active"] else "no"),
            Column("ADDS", "verbs", show=_adds, flexible=True),
        ]
    names = [name.strip() for name in fields.split(",") if name.strip()]
    for name in names:
        if name not in FIELDS:
            raise UsageError(f"a plugin has no field `{name}`", hint=suggest(name, FIELDS, "field"))
    return [
        Column(name.upper(), name, show=(lambda row: "yes" if row["active"] else "no") if name == "active" else None)
        for name in names
    ]


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
        if name not in known:
            hint = suggest(name, tuple(known), "one") or "`mngr plugin list` shows what is installed"
            raise NotFoundError(f"no plugin called `{name}` is installed", hint=hint)
    scope = args.scope or "user"
    path = config.scope_path(scope, app.host_dir, os.getcwd())
    if scope == "user":
        LocalHost(app.host_dir).is_ours()
    rows = []
    for name in names:
        already = bool(installed.active([known[name]], app.settings)) == wanted and not args.scope
        if not already and not args.dry_run:
            settings_edit.set_value(path, f"plugins.{name}.enabled", "true" if wanted else "false", scope=scope)
        rows.append({"name": name, "enabled": wanted, "changed": not already, "path": path, "dry_run": args.dry_run})
        state = "active" if wanted else "off"
        done = f"would be {state} now" if args.dry_run else f"is {state} now"
        app.out.line(f"{name} is {state} already" if already else f"{name} {done}, as {path} says")
    if not app.out.human:
        app.out.emit_rows(rows, ())
    if not args.dry_run:
        _say_who_wins(app, names, wanted)
    return 0


def _say_who_wins(app: App, names: list[str], wanted: bool) -> None:
    settings = extensions.settings(app.environ, app.overrides)
    for name in names:
        value = settings.find(("plugins", name, "enabled"))
        if value is not None and value.value != wanted:
            app.out.warn(f"here {name} is {'active' if value.value else 'off'} nevertheless: `{value.source}` says so")
