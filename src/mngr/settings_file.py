"""Changes one key of a settings file and keeps its comments and order. Refuses to write what would not read back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from mngr import files
from mngr.config import parse_toml
from mngr.errors import MngrError, NotFoundError, UsageError
from mngr.names import suggest
from mngr.settings_schema import as_key, known_key, read_layer, text_tree
from mngr.settings_values import Key, describe, format_key, parse_key, put

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_LOCK_SECONDS = 10


def set_value(
    path: str, key: str, value_text: str, *, scope: str = "user", commands: Collection[str] | None = None
) -> None:
    """Set one key, making the file and its directory when absent. On any error the file is as it was."""
    _check_utf8(key)
    _check_utf8(value_text)
    parts = known_key(key, "", commands)
    tree = text_tree(parts, value_text, "", commands)
    if any(len(other) > len(parts) for other in read_layer(tree, "", commands).values or [(*parts, "")]):
        raise UsageError(
            f"`{format_key(parts)}` is a section", hint="set its keys one by one: `mngr config set KEY VALUE`"
        )
    value = _dig(tree, parts)
    with _held(path, scope):
        data = read(path)
        expected = parse_toml(data, path)
        spelled = _spelled(expected, parts, path)
        put(expected, spelled, value)
        _write(path, scope, _edited(data, path, scope, expected, lambda document: _assign(document, spelled, value)))


def unset_value(path: str, key: str, *, scope: str = "user") -> None:
    """Remove one key, or a whole table; a table that this leaves empty goes too. A key need not be a known one."""
    _check_utf8(key)
    with _held(path, scope):
        data = read(path)
        expected = parse_toml(data, path)
        parts = _spelled(expected, parse_key(key), path, strict=False)
        if not _is_set(expected, parts):
            parts = _spelled(expected, as_key(key), path, strict=False)
        if not _is_set(expected, parts):
            there = [format_key(other) for other in _leaves(expected)]
            hint = suggest(format_key(parts), there, "key set there") if there else ""
            raise NotFoundError(f"`{format_key(parts)}` is not set in `{path}`", hint=hint)
        _remove(expected, parts)
        changed = _edited(data, path, scope, expected, lambda document: _remove(document, parts), emptied=parts)
        _write(path, scope, changed)


def _edited(
    data: bytes,
    path: str,
    scope: str,
    expected: dict[str, object],
    change: Callable[[TOMLDocument], None],
    emptied: Key = (),
) -> bytes:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    # tomlkit loses or misplaces keys in some documents (tables out of order, dotted keys), so its work is read back.
    try:
        document = tomlkit.parse(data.decode("utf-8-sig"))
        change(document)
        changed = tomlkit.dumps(document).encode()
        found = parse_toml(changed, path)
        _prune(found, emptied)
        same = _same(found, expected)
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
    table[name] = _item(value)


def _item(value: object) -> Any:
    """Lists and tables stay on one line: as tables of their own they would have to move to the end of the file."""
    import tomlkit

    if isinstance(value, dict):
        table = tomlkit.inline_table()
        for name, inner in value.items():
            table[name] = _item(inner)
        return table
    if isinstance(value, list):
        array = tomlkit.array()
        for inner in value:
            array.append(_item(inner))
        return array
    return tomlkit.item(value)


def _remove(tree: Any, key: Key) -> None:
    table = tree
    for part in key[:-1]:
        table = table[part]
    del table[key[-1]]
    _prune(tree, key)


def _prune(tree: Any, key: Key) -> None:
    """Remove each table on the way to a key that holds nothing more, not even a comment."""
    tables = [tree]
    for part in key[:-1]:
        if part not in tables[-1]:
            break
        tables.append(tables[-1][part])
    for depth in range(len(tables) - 1, 0, -1):
        table = tables[depth]
        commented = hasattr(table, "as_string") and "#" in table.trivia.comment + table.as_string()
        if len(table) > 0 or commented:
            return
        del tables[depth - 1][key[depth - 1]]


def _spelled(tree: dict[str, object], key: Key, path: str, *, strict: bool = True) -> Key:
    """The key as this file writes it: `connect-command` where that is what is there."""
    spelled: Key = ()
    inner: object = tree
    for depth, part in enumerate(key):
        if isinstance(inner, dict):
            if part not in inner and key[0] in ("commands", "create_templates", "plugins") and depth in (1, 2):
                part = next((name for name in inner if name.replace("-", "_") == part.replace("-", "_")), part)
            inner = inner.get(part, {})
        elif strict:
            raise UsageError(f"`{format_key(spelled)}` in `{path}` is {describe(inner)}, so it has no `{part}`")
        spelled = (*spelled, part)
    return spelled


def _dig(tree: object, key: Key) -> object:
    for part in key:
        if not isinstance(tree, dict):
            raise KeyError(part)
        tree = tree[part]
    return tree


def _is_set(tree: object, key: Key) -> bool:
    try:
        _dig(tree, key)
    except KeyError:
        return False
    return True


def _leaves(tree: dict[str, object]) -> Iterator[Key]:
    rest: list[tuple[Key, object]] = [((), tree)]
    while rest:
        key, value = rest.pop()
        if isinstance(value, dict):
            rest.extend(((*key, name), inner) for name, inner in value.items())
        else:
            yield key


def _same(one: object, other: object) -> bool:
    """Equal as TOML: `1`, `1.0` and `true` all differ, and `nan` is itself."""
    return json.dumps(one, sort_keys=True, default=repr) == json.dumps(other, sort_keys=True, default=repr)


def _check_utf8(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{text!r} is not UTF-8 text, so it cannot stand in a settings file") from None


def _held(path: str, scope: str) -> AbstractContextManager[object]:
    """A lock against another `mngr config`; none in a project, which should not gather lock files."""
    if scope != "user" or not os.path.isdir(os.path.dirname(path)):
        return nullcontext()
    return files.locked(f"{path}.lock", timeout=_LOCK_SECONDS, what=f"`{path}`")


def read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise MngrError(f"cannot read `{path}`: {error.strerror}", hint=f"check it: `ls -ld {path}`") from None


def _write(path: str, scope: str, data: bytes) -> None:
    # Settings are often a link into a repository of dotfiles: the file it leads to is what changes.
    target = os.path.realpath(path)
    try:
        if scope == "user":
            files.make_private_dir(os.path.dirname(target))
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
        files.write_atomic(target, data, 0o644 if scope == "project" else 0o600)
    except OSError as error:
        raise files.disk_error(error) or MngrError(f"cannot write `{path}`: {error.strerror}") from None
