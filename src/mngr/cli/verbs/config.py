"""`mngr config`: read and change settings. Works on a broken file as far as that file allows."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mngr.cli import plugin_verbs, trust_prompt
from mngr.cli.app import App, safe_option
from mngr.cli.dispatch import command_parser
from mngr.cli.output.table import Column
from mngr.cli.output.terminal import is_terminal
from mngr.cli.parser import settings_check
from mngr.cli.parser.defaults import setting_keys
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import MngrError, NotFoundError, Undecided, UsageError
from mngr.named_tuples import NamedTuple
from mngr.names import nearest, suggest
from mngr.settings import edit as settings_file
from mngr.settings import layers as config
from mngr.settings.layers import SCOPES
from mngr.settings.schema import NO_EFFECT, OPTIONS, Layer, resolve, text_layer
from mngr.settings.values import Key, format_key, parse_key, toml_text
from mngr.system import files
from mngr.system.state_dir import StateDir

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


_VALUE = Column("VALUE", "value", show=lambda row: toml_text(row["value"]), flexible=True)


def _list(args: Args, app: App) -> None:
    if args.scope:
        layer = _layer(app, args.scope)
        settings_check.refuse(app, [layer])
        values = {**layer.values, **layer.untrusted}
        rows = [Setting(format_key(key), values[key], layer.source) for key in sorted(values)]
    else:
        settings_check.check(app)
        rows = [Setting(key, value.value, value.source) for key, value in app.settings.flat().items()]
        trust_prompt.tell_withheld(app)
    columns = [Column("KEY", "key"), _VALUE, Column("SOURCE", "source")]
    empty = f"No settings in {_name(app, args.scope)}" if args.scope else ""
    app.out.emit_rows(rows, columns, envelope={"settings": rows}, known=Setting._fields, empty=empty)


def _get(args: Args, app: App) -> None:
    key = _known_key(args.key)
    found = _layer(app, args.scope).trusted().find(key) if args.scope else app.settings.trusted_only.find(key)
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
    scope, path = _place_to_change(args, app)
    key, _ = resolve(args.key)
    if unknown := settings_check.unknown_command(key, plugin_verbs.known_verbs(os.environ)):
        raise unknown
    for problem in settings_check.problems_of(text_layer(key, args.value, "")):
        raise UsageError(problem.message.replace(", set in ``,", ""), hint=problem.hint)
    with trust_prompt.changed_by_user(app, scope):
        value = settings_file.set_value(path, args.key, args.value, scope=scope)
    app.out.emit_object(
        SettingChange(format_key(key), value, scope, path),
        human=f"set {format_key(key)} = {toml_text(value)} in {_name(app, scope)}",
    )
    if key[0] in NO_EFFECT:
        app.out.note(f"{format_key(key)} has no effect in this version of mngr")
    _say_what_holds(app, key, scope)


def _unset(args: Args, app: App) -> None:
    scope, path = _place_to_change(args, app)
    key = parse_key(args.key)
    try:
        with trust_prompt.changed_by_user(app, scope):
            settings_file.unset_value(path, args.key, scope=scope)
    except NotFoundError as error:
        raise NotFoundError(error.message, hint=_set_elsewhere(app, key, scope) or error.hint) from None
    app.out.emit_object(
        SettingRemoval(format_key(key), scope, path), human=f"removed {format_key(key)} from {_name(app, scope)}"
    )
    _say_what_holds(app, key, scope)


def _edit(args: Args, app: App) -> None:
    scope, path = _place_to_change(args, app)
    chosen = app.environ.get("VISUAL") or app.environ.get("EDITOR")
    if app.asked_headless or not (chosen or is_terminal(app.stdout)):
        why = "this command is headless" if app.asked_headless else "no terminal, and neither VISUAL nor EDITOR is set"
        raise Undecided(
            f"cannot open an editor: {why}",
            hint=f"`mngr config set --scope {scope} KEY VALUE`, or change `{path}` directly",
        )
    before = config.read_bytes(path, path)
    with trust_prompt.changed_by_user(app, scope):
        _run_editor(app, path, scope)
    settings_check.refuse(app, [_layer(app, scope)])
    changed = config.read_bytes(path, path) != before
    done = "is changed and fine" if changed else "is as it was"
    app.out.emit_object(EditedFile(scope, path, changed), human=f"{_name(app, scope)} {done}")


def _path(args: Args, app: App) -> None:
    if args.scope:
        path = config.scope_path(args.scope, app.host_dir, os.getcwd())
        app.out.emit_object(SettingsPath(args.scope, path, os.path.exists(path)), human=path)
        return
    places = _places(app)
    rows = [SettingsPath(scope, places.get(scope), os.path.exists(places.get(scope, ""))) for scope in SCOPES]
    columns = [
        Column("SCOPE", "scope"),
        Column("EXISTS", "exists", show=lambda row: "yes" if row["exists"] else "no"),
        Column("PATH", "path", show=lambda row: row["path"] or "none: this is not a project's directory"),
    ]
    app.out.emit_rows(rows, columns, envelope={"paths": rows})


def _explain(args: Args, app: App) -> None:
    key = _known_key(args.key)
    below = [leaf for leaf in map(parse_key, app.settings.flat()) if leaf[: len(key)] == key]
    rows: list[SettingOrigin] = []
    for leaf in below or [key]:
        values = app.settings.explain(leaf)
        for at, value in enumerate(values, 1):
            if args.scope is None or value.source == _name(app, args.scope):
                wins = at == len(values) and not value.source.endswith("(not trusted)")
                rows.append(SettingOrigin(format_key(leaf), value.source, value.value, wins))
    if not rows:
        raise _not_set(app, key, args.scope)
    columns = [Column("SOURCE", "source"), _VALUE, Column("", "wins", show=lambda row: "wins" if row["wins"] else "")]
    if len(below) > 1:
        columns.insert(0, Column("KEY", "key"))
    app.out.emit_rows(rows, columns, envelope={"key": format_key(key), "values": rows})


def _known_key(text: str) -> Key:
    parse_key(text)
    try:
        key, _ = resolve(text)
        if unknown := settings_check.unknown_command(key, plugin_verbs.known_verbs(os.environ)):
            raise unknown
        return key
    except UsageError as error:
        raise NotFoundError(error.message, hint=error.hint) from None


def _not_set(app: App, key: Key, scope: str | None) -> NotFoundError:
    shown = format_key(key)
    if scope is None and app.settings.untrusted_keys(key):
        return NotFoundError(f"`{shown}` is set only where it is not trusted", hint="`mngr config trust` shows it")
    entry = settings_check.entry_of(key) if key[0] in OPTIONS and len(key) > 2 else None
    if entry is not None and key[2] not in (known := setting_keys(command_parser(entry))):
        hint = suggest(key[2], known, "key") or f"`mngr {entry.name} --help` shows the options"
        return NotFoundError(f"`{shown}` is unknown: `{key[2]}` is not an option of `mngr {entry.name}`", hint=hint)
    hint = f"`mngr config set{f' --scope {scope}' if scope else ''} {shown} VALUE` sets it"
    if key[0] in ("agent_types", "create_templates") and (close := nearest(shown, list(app.settings.flat()))):
        hint = f"the closest key that is set is `{close}`; {hint}"
    return NotFoundError(f"`{shown}` is not set{f' in `{_name(app, scope)}`' if scope else ''}", hint=hint)


def _set_elsewhere(app: App, key: Key, scope: str) -> str:
    for other in _places(app):
        try:
            found = other != scope and _layer(app, other).trusted().find(key)
        except MngrError:
            continue
        if found:
            return f"it is set elsewhere: `mngr config unset --scope {other} {format_key(key)}`"
    return ""


def _say_what_holds(app: App, key: Key, scope: str) -> None:
    """After a change: who else sets this key, and whether all settings can be read now."""
    try:
        settings_check.check(app)
        found = app.settings.trusted_only.find(key)
        trust_prompt.tell_withheld(app, key)
    except MngrError as error:
        app.out.warn(f"{error.message.rstrip(':')}; `mngr config list` says more")
        return
    if found is not None and found.source not in ("default", _name(app, scope)):
        app.out.note(f"here it is {toml_text(found.value)}, set in {found.source}")


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


def _place_to_change(args: Args, app: App) -> tuple[str, str]:
    """The scope that was named, else the project where there is one, else the user; and its file. That of another
    program's state directory is not ours to change."""
    scope = args.scope or ("project" if config.project_root(os.getcwd(), app.host_dir) else "user")
    if scope == "user":
        StateDir(app.host_dir).is_ours()
    return scope, config.scope_path(scope, app.host_dir, os.getcwd())


def _places(app: App) -> dict[str, str]:
    """The files of all scopes that there are here: a home directory has no project."""
    found = {}
    for scope in SCOPES:
        with suppress(UsageError):
            found[scope] = config.scope_path(scope, app.host_dir, os.getcwd())
    return found


def _layer(app: App, scope: str) -> Layer:
    """What the file of one scope sets."""
    ignored: list[str] = []
    layer = config.read_scope(scope, app.host_dir, os.getcwd(), app.environ, ignored, safe_option)
    for text in ignored:
        plugin_verbs.warn_once(text)
    return layer


def _name(app: App, scope: str) -> str:
    return config.source_name(scope, app.host_dir, app.environ)
