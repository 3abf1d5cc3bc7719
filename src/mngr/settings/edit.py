"""Changes one key of a settings file and keeps its comments and order. Refuses to write what would not read back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from mngr.errors import MngrError, NotFoundError, UsageError
from mngr.names import suggest
from mngr.settings.layers import naming_the_editor, parse_toml, read_bytes
from mngr.settings.schema import as_key, resolve, text_layer
from mngr.settings.values import Key, format_key, parse_key, put, toml_text
from mngr.system import files, inside

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_LOCK_SECONDS = 10


def set_value(path: str, key: str, text: str, *, scope: str = "user") -> object:
    """Set one key, making the file and its directory when absent. Returns the value. On any error the file is as it
    was."""
    try:
        f"{key}{text}".encode()
    except UnicodeEncodeError:
        raise UsageError(f"{key} = {text!r} is not UTF-8 text, so it cannot stand in a settings file") from None
    parts, _ = resolve(key)
    layer = text_layer(parts, text, "")
    found = layer.find(parts)
    if found is None or any(len(leaf) > len(parts) for leaf in layer.values):
        raise UsageError(
            f"`{format_key(parts)}` is a section", hint="set its keys one by one: `mngr config set KEY VALUE`"
        )
    with _held(path, scope):
        data = read_bytes(path, path)
        with naming_the_editor(scope):
            expected = parse_toml(data, path)
        spelled = _spelled(expected, parts)
        put(expected, spelled, found.value)
        _write(path, scope, _edited(data, path, scope, expected, lambda tree: _assign(tree, spelled, found.value)))
    return found.value


def unset_value(path: str, key: str, *, scope: str = "user") -> None:
    """Remove one key, or a whole table; a table that this leaves empty goes too. A key need not be a known one."""
    with _held(path, scope):
        data = read_bytes(path, path)
        with naming_the_editor(scope):
            expected = parse_toml(data, path)
        there = dict(_leaves(expected))
        ways = [_spelled(expected, parts) for parts in (parse_key(key), as_key(key))]
        found = next((parts for parts in ways if _has(expected, parts)), None)
        if found is None:
            hint = suggest(format_key(ways[-1]), list(map(format_key, there)), "key set there") if there else ""
            raise NotFoundError(f"`{format_key(ways[-1])}` is not set in `{path}`", hint=hint)
        _remove(expected, found)
        _write(path, scope, _edited(data, path, scope, expected, lambda tree: _remove(tree, found)))


def _edited(
    data: bytes, path: str, scope: str, expected: dict[str, object], change: Callable[[TOMLDocument], None]
) -> bytes:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    # tomlkit loses or misplaces keys in some documents (tables out of order, dotted keys), so its work is read back.
    try:
        document = tomlkit.parse(data.decode("utf-8-sig"))
        change(document)
        changed = tomlkit.dumps(document).encode()
        same = dict(_leaves(parse_toml(changed, path))) == dict(_leaves(expected))
    except (TOMLKitError, MngrError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        same = False
        changed = b""
    if not same:
        raise MngrError(
            f"cannot change `{path}` without disturbing the rest of it",
            hint=f"edit it by hand: `mngr config edit --scope {scope}`",
        )
    return changed


def _assign(document: TOMLDocument, key: Key, value: object) -> None:
    import tomlkit
    from tomlkit.items import AoT, InlineTable, Table

    table: Any = document
    for depth, part in enumerate(key[:-1]):
        if part not in table:
            inline = isinstance(table, InlineTable)
            table[part] = tomlkit.inline_table() if inline else tomlkit.table(is_super_table=depth < len(key) - 2)
        table = table[part]
    name = key[-1]
    if name in table and isinstance(table[name], Table | AoT):
        del table[name]
    if isinstance(table, Table) and table.is_super_table():
        # Its header is written from now on, and would repeat the comment of the first table in it.
        table.trivia.comment = table.trivia.comment_ws = ""
    # Lists and tables stay on one line: as tables of their own they would have to move to the end of the file.
    table[name] = tomlkit.value(toml_text(value))


def _remove(tree: Any, key: Key) -> None:
    """Remove the key, and each table on the way to it that holds nothing more, not even a comment."""
    tables = [tree]
    for part in key[:-1]:
        tables.append(tables[-1][part])
    for table, part in reversed(list(zip(tables, key, strict=True))):
        del table[part]
        commented = hasattr(table, "trivia") and "#" in table.trivia.comment + table.as_string()
        if len(table) > 0 or commented:
            return


def _spelled(tree: object, key: Key) -> Key:
    """The key as this file writes it: `connect-command` where that is what is there."""
    spelled: Key = ()
    for part in key:
        names = tree if isinstance(tree, dict) else {}
        if part not in names and key[0] in ("commands", "create_templates", "plugins"):
            part = next((name for name in names if name.replace("-", "_") == part.replace("-", "_")), part)
        spelled, tree = (*spelled, part), names.get(part)
    return spelled


def _has(tree: object, key: Key) -> bool:
    for part in key:
        if not isinstance(tree, dict) or part not in tree:
            return False
        tree = tree[part]
    return True


def _leaves(tree: dict[str, object]) -> Iterator[tuple[Key, str]]:
    """Each value as text, by its key: `1`, `1.0` and `true` all differ, and `nan` is itself."""
    rest: list[tuple[Key, object]] = [((), tree)]
    while rest:
        key, value = rest.pop()
        if isinstance(value, dict):
            rest.extend(((*key, name), inner) for name, inner in value.items())
        else:
            yield key, repr(value)


def _held(path: str, scope: str) -> AbstractContextManager[object]:
    """A lock against another `mngr config`; none in a project, which should not gather lock files."""
    if scope != "user" or not os.path.isdir(os.path.dirname(path)):
        return nullcontext()
    return files.locked(f"{path}.lock", timeout=_LOCK_SECONDS, what=f"`{path}`")


def _write(path: str, scope: str, data: bytes) -> None:
    """Replace the file that the path leads to: a user's settings are often a link into a repository of dotfiles. Those
    of a project lead nowhere else."""
    try:
        if scope == "user":
            target = os.path.realpath(path)
            files.make_private_dir(os.path.dirname(target))
            files.write_atomic(target, data)
        else:
            root = os.path.dirname(os.path.dirname(path))
            place = inside.resolve(root, path)
            inside.make_directory(root, os.path.dirname(place))
            inside.write(root, place, data, 0o644 if scope == "project" else 0o600)
    except OSError as error:
        raise files.disk_error(error) or MngrError(f"cannot write `{path}`: {error.strerror}") from None
