"""`mngr config`: read and change settings. Works on a broken file as far as that file allows."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from mngr import config, files, settings_file
from mngr.cli import trust_prompt
from mngr.cli.app import App
from mngr.cli.defaults import setting_keys
from mngr.cli.dispatch import command_parser
from mngr.cli.parser import Args, Parser
from mngr.cli.settings_check import (
    OPTION_SECTIONS,
    check,
    checked_layer,
    entry_of,
    layer_of,
    path_if_any,
    problems_of,
    source_name,
    verb_names,
)
from mngr.cli.table import Column
from mngr.cli.terminal import is_terminal
from mngr.config import SCOPES, Settings, Value
from mngr.errors import MngrError, NotFoundError, Undecided, UsageError
from mngr.hosts.host import Host
from mngr.names import nearest, suggest
from mngr.settings_schema import NO_EFFECT, known_key, read_layer, text_tree
from mngr.settings_values import Key, format_key, parse_key, toml_text

# It has to repair files that other verbs cannot read.
READS_SETTINGS = False

DESCRIPTION = (
    "Settings come from the user's file, the project's file, your own file in the project (`local`), variables and "
    "`-S`, the later winning. `mngr help settings` shows what they can hold."
)
EXAMPLES = (
    ("mngr config list", "all values, each with its source; finds mistakes"),
    ("mngr config get tmux.session_prefix", "one value"),
    ("mngr config set --scope user commands.create.type codex", "a default for an option, in all projects"),
    ("mngr config set commands.create.transfer git-mirror", "for everyone in this project"),
    ("mngr config unset --scope user commands.create.type", "remove it again"),
    ("mngr config explain commands.create.type", "every source of the value, and the one in force"),
    ("mngr config trust", "let this project's settings run commands and grant permissions, once you have read them"),
)


class Setting(NamedTuple):
    key: str
    value: Any
    source: str


class SettingChange(NamedTuple):
    key: str
    value: Any
    scope: str
    path: str


class SettingRemoval(NamedTuple):
    key: str
    scope: str
    path: str


class EditedFile(NamedTuple):
    scope: str
    path: str
    changed: bool


class SettingsPath(NamedTuple):
    scope: str
    path: str | None
    exists: bool


class SettingOrigin(NamedTuple):
    """`wins`: whether this is the value in force."""

    key: str
    source: str
    value: Any
    wins: bool


def results() -> list[Any]:
    paths, origins = {"paths": [SettingsPath]}, {"key": str, "values": [SettingOrigin]}
    changes = [SettingChange, SettingRemoval, EditedFile]
    return [{"settings": [Setting]}, Setting, *changes, SettingsPath, paths, origins, *trust_prompt.results()]


def add_arguments(parser: Parser) -> None:
    parser.option(
        "--scope",
        "one file only (default for set, unset and edit: project inside a project, otherwise user)",
        choices=SCOPES,
    )
    parser.add_subcommand("list", "Show all values with their sources, and check every key", default=True)
    get = parser.add_subcommand("get", "Print one value")
    get.add_argument("key", metavar="KEY", help="such as `commands.create.type`, or a whole section")
    put = parser.add_subcommand("set", "Set one value, keeping the rest of the file as it is")
    put.add_argument("key", metavar="KEY", help="such as `commands.create.type`")
    put.add_argument("value", metavar="VALUE", help='text, a number, true or false, or a list such as \'["a", "b"]\'')
    unset = parser.add_subcommand("unset", "Remove one value or a whole section from a file")
    unset.add_argument("key", metavar="KEY", help="any key in the file, also one that is a mistake")
    parser.add_subcommand("edit", "Open a settings file in $VISUAL, $EDITOR or vi, and check it afterwards")
    parser.add_subcommand("path", "Print where the settings files are")
    explain = parser.add_subcommand("explain", "Show everything that sets a value, and what wins")
    explain.add_argument("key", metavar="KEY", help="such as `commands.create.type`, or a whole section")
    trust_prompt.add_subcommands(parser)


def run(args: Args, app: App) -> int:
    do: Callable[[Args, App], None] = {
        "list": _list,
        "get": _get,
        "set": _set,
        "unset": _unset,
        "edit": _edit,
        "path": _path,
        "explain": _explain,
        "trust": trust_prompt.trust_here,
        "untrust": trust_prompt.untrust_here,
    }[args.subcommand]
    do(args, app)
    return 0


def _list(args: Args, app: App) -> None:
    if args.scope:
        layer = checked_layer(app, args.scope)
        found = {format_key(key): Value(layer.values[key], layer.source) for key in sorted(layer.values)}
    else:
        check(app)
        found = app.settings.flat()
        trust_prompt.tell_withheld(app)
    rows = [Setting(key, value.value, value.source) for key, value in found.items()]
    columns = [Column("KEY", "key"), _VALUE, Column("SOURCE", "source")]
    empty = f"No settings in {source_name(app, args.scope)}" if args.scope else ""
    app.out.emit_rows(rows, columns, envelope={"settings": rows}, known=Setting._fields, empty=empty)


def _get(args: Args, app: App) -> None:
    key = _known_key(args.key)
    if args.scope:
        layers = Settings([layer_of(app, args.scope)]).explain(key)
        found = next((value for value in layers if value.source != "default"), None)
    else:
        found = _merged(app).find(key)
    if found is None:
        raise _not_set(app, key, args.scope)
    if not app.out.human:
        app.out.emit_object(Setting(format_key(key), found.value, found.source))
        return
    text = found.value if isinstance(found.value, str) else toml_text(found.value)
    if app.out.columns is None:
        app.out.raw(f"{text}\n".encode("utf-8", "surrogateescape"))  # a script wants it as it is
    else:
        app.out.line(text)


def _set(args: Args, app: App) -> None:
    scope = _scope_to_change(args, app)
    path = _path_to_change(app, scope)
    key = known_key(args.key, "", verb_names())
    layer = read_layer(text_tree(key, args.value, "", verb_names()), "", verb_names())
    for problem in problems_of(Settings([layer])):
        raise UsageError(problem.message.replace(", set in ``,", ""), hint=problem.hint)
    with trust_prompt.changed_by_user(app, path):
        _changing(
            scope,
            lambda: settings_file.set_value(path, args.key, args.value, scope=scope, commands=verb_names()),
        )
    value = layer.values.get(key)
    app.out.emit_object(
        SettingChange(format_key(key), value, scope, path),
        human=f"set {format_key(key)} = {toml_text(value)} in {source_name(app, scope)}",
    )
    if key[0] in NO_EFFECT:
        app.out.note(f"{format_key(key)} has no effect in this version of mngr")
    _say_what_holds(app, key, scope)


def _unset(args: Args, app: App) -> None:
    scope = _scope_to_change(args, app)
    path = _path_to_change(app, scope)
    key = parse_key(args.key)
    try:
        with trust_prompt.changed_by_user(app, path):
            _changing(scope, lambda: settings_file.unset_value(path, args.key, scope=scope))
    except NotFoundError as error:
        raise NotFoundError(error.message, hint=_set_elsewhere(app, key, scope) or error.hint) from None
    app.out.emit_object(
        SettingRemoval(format_key(key), scope, path),
        human=f"removed {format_key(key)} from {source_name(app, scope)}",
    )
    _say_what_holds(app, key, scope)


def _edit(args: Args, app: App) -> None:
    scope = _scope_to_change(args, app)
    path = _path_to_change(app, scope)
    chosen = app.environ.get("VISUAL") or app.environ.get("EDITOR")
    if app.asked_headless or not (chosen or is_terminal(app.stdout)):
        why = "this command is headless" if app.asked_headless else "no terminal, and neither VISUAL nor EDITOR is set"
        raise Undecided(
            f"cannot open an editor: {why}",
            hint=f"`mngr config set --scope {scope} KEY VALUE`, or change `{path}` directly",
        )
    before = settings_file.read(path)
    with trust_prompt.changed_by_user(app, path):
        _run_editor(app, path, scope)
    checked_layer(app, scope)
    changed = settings_file.read(path) != before
    app.out.emit_object(
        EditedFile(scope, path, changed),
        human=f"{source_name(app, scope)} is changed and fine"
        if changed
        else f"{source_name(app, scope)} is as it was",
    )


def _path(args: Args, app: App) -> None:
    if args.scope:
        path = config.scope_path(args.scope, app.host_dir, os.getcwd())
        app.out.emit_object(SettingsPath(args.scope, path, os.path.exists(path)), human=path)
        return
    rows = []
    for scope in SCOPES:
        place = path_if_any(app, scope)
        rows.append(SettingsPath(scope, place, place is not None and os.path.exists(place)))
    columns = [
        Column("SCOPE", "scope"),
        Column("EXISTS", "exists", show=lambda row: "yes" if row["exists"] else "no"),
        Column("PATH", "path", show=lambda row: row["path"] or "none: this is not a project's directory"),
    ]
    app.out.emit_rows(rows, columns, envelope={"paths": rows})


def _explain(args: Args, app: App) -> None:
    key = _known_key(args.key)
    settings = _merged(app)
    below = [leaf for leaf in map(parse_key, settings.flat()) if leaf[: len(key)] == key]
    rows: list[SettingOrigin] = []
    for leaf in below or [key]:
        values = settings.explain(leaf)
        for at, value in enumerate(values, 1):
            wins = at == len(values)
            if args.scope is None or value.source == source_name(app, args.scope):
                rows.append(SettingOrigin(format_key(leaf), value.source, value.value, wins))
    if not rows:
        raise _not_set(app, key, args.scope)
    columns = [Column("SOURCE", "source"), _VALUE, Column("", "wins", show=lambda row: "wins" if row["wins"] else "")]
    if len(below) > 1:
        columns.insert(0, Column("KEY", "key"))
    app.out.emit_rows(rows, columns, envelope={"key": format_key(key), "values": rows})


_VALUE = Column("VALUE", "value", show=lambda row: toml_text(row["value"]), flexible=True)


def _merged(app: App) -> Settings:
    """All settings; a mistake in a file is reported with the way to fix it."""
    for scope in SCOPES:
        if path_if_any(app, scope) is not None:
            layer_of(app, scope)
    return app.settings.in_force


def _known_key(text: str) -> Key:
    key = parse_key(text)
    try:
        return known_key(key, "", verb_names())
    except UsageError as error:
        raise NotFoundError(error.message, hint=error.hint) from None


def _not_set(app: App, key: Key, scope: str | None) -> NotFoundError:
    shown = format_key(key)
    if scope is None and (untrusted := trust_prompt.set_only_there(app, key)):
        return untrusted
    entry = entry_of(key) if key[0] in OPTION_SECTIONS and len(key) > 2 else None
    if entry is not None:
        parser = command_parser(entry)
        if key[2] not in setting_keys(parser):
            hint = suggest(key[2], setting_keys(parser), "key") or f"`{parser.prog} --help` shows the options"
            return NotFoundError(f"`{shown}` is unknown: `{key[2]}` is not an option of `{parser.prog}`", hint=hint)
    place = f" in `{source_name(app, scope)}`" if scope else ""
    in_scope = f" --scope {scope}" if scope else ""
    hint = f"`mngr config set{in_scope} {shown} VALUE` sets it"
    if key[0] in ("agent_types", "create_templates"):
        close = nearest(shown, list(app.settings.flat()))
        hint = f"the closest key that is set is `{close}`; {hint}" if close else hint
    return NotFoundError(f"`{shown}` is not set{place}", hint=hint)


def _set_elsewhere(app: App, key: Key, scope: str) -> str:
    for other in SCOPES:
        if other == scope or path_if_any(app, other) is None:
            continue
        try:
            values = Settings([layer_of(app, other)]).explain(key)
        except MngrError:
            continue
        if any(value.source != "default" for value in values):
            return f"it is set elsewhere: `mngr config unset --scope {other} {format_key(key)}`"
    return ""


def _say_what_holds(app: App, key: Key, scope: str) -> None:
    """After a change: who else sets this key, and whether all settings can be read now."""
    try:
        check(app)
        found = app.settings.in_force.find(key)
        trust_prompt.tell_withheld(app, key)
    except MngrError as error:
        app.out.warn(f"{error.message.rstrip(':')}; `mngr config list` says more")
        return
    if found is not None and found.source not in ("default", source_name(app, scope)):
        app.out.note(f"here it is {toml_text(found.value)}, set in {found.source}")


def _changing(scope: str, change: Callable[[], None]) -> None:
    """Change a file, saying what to do when it is too broken for that."""
    try:
        change()
    except UsageError as error:
        raise UsageError(
            error.message, hint=error.hint or f"fix it first: `mngr config edit --scope {scope}`"
        ) from None


def _run_editor(app: App, path: str, scope: str) -> None:
    """Open the file; a directory that was made for it and stays empty is removed again."""
    from mngr.cli.editor import run_editor

    parent = os.path.dirname(path)
    made = not os.path.isdir(parent)
    try:
        files.make_private_dir(parent) if scope == "user" else os.makedirs(parent, exist_ok=True)
    except OSError as error:
        raise MngrError(f"cannot create `{parent}`: {error.strerror}", hint=f"check it: `ls -ld {parent}`") from None
    try:
        run_editor(app, path, f"choose one: `EDITOR=nano mngr config edit --scope {scope}`")
    finally:
        if made and not os.listdir(parent):
            os.rmdir(parent)


def _scope_to_change(args: Args, app: App) -> str:
    """The scope that was named, else the project where there is one, else the user."""
    return args.scope or ("project" if config.project_root(os.getcwd(), app.host_dir) else "user")


def _path_to_change(app: App, scope: str) -> str:
    """The file of a scope; that of another program's state directory is not ours to change."""
    if scope == "user":
        Host(app.host_dir).is_ours()
    return config.scope_path(scope, app.host_dir, os.getcwd())
