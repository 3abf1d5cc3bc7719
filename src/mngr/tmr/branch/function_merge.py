"""Merges two versions of a Python file by function, where git's merge by lines sees a conflict.

Pure. Text is moved, never formatted; only a `from` import that both sides extended is written again. Whenever the two
sides changed the same thing, or a file has a form that cannot be taken apart by lines, there is no merge.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

from mngr.tmr.judge.changed_file import definitions

_IMPORTS = ("import", "from")
_OTHER = "other"
_LINE = 88
T = TypeVar("T")


class _Unmergeable(Exception):
    pass


class _Block(NamedTuple):
    """A statement with the blank lines and comments above it. Of a class, `head` is all before its first member, and
    `members` are the rest."""

    key: tuple[str, ...]
    above: bytes
    code: bytes
    names: tuple[str, ...] = ()  # of a `from` import
    head: bytes = b""
    members: tuple[_Block, ...] = ()


class _Side(NamedTuple):
    blocks: tuple[_Block, ...]
    tail: bytes
    newline: bool  # at the end of the file


def merged(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """The base with the changes of both sides; None when they cannot be told apart by function. What both sides add
    in one place comes in the order ours, theirs."""
    try:
        sides = [_side(text) for text in (base, ours, theirs)]
        blocks = _merged(*(side.blocks for side in sides))
        text = _text(blocks) + _three(*(side.tail for side in sides))
        if _flat(_side(text).blocks) != _flat(blocks):
            return None
    except _Unmergeable:
        return None
    return text if _three(*(side.newline for side in sides)) else text.removesuffix(b"\n").removesuffix(b"\r")


def shadowed(text: bytes) -> frozenset[str]:
    """Functions and classes that a later one of the same name hides: pytest would run only the last."""
    try:
        names = Counter(name for name, _ in definitions(_parsed(text)))
    except _Unmergeable:
        return frozenset()
    twice = {name for name in names if names[name] > 1}
    return frozenset(name for name in twice if not any(name.startswith(f"{other}.") for other in twice))


@lru_cache(maxsize=8)
def _parsed(text: bytes) -> list[ast.stmt]:
    try:
        text.decode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _Unmergeable from error


@lru_cache(maxsize=8)  # the base is asked for again and again, and one side is the result of the merge before
def _side(text: bytes) -> _Side:
    if b"\r" in text.replace(b"\r\n", b""):
        raise _Unmergeable  # Python counts lines there that we do not
    whole = text if text.endswith(b"\n") or not text else text + b"\n"
    lines = [line + b"\n" for line in whole.split(b"\n")[:-1]]
    blocks, end = _blocks(lines, _parsed(whole), 0)
    return _Side(blocks, b"".join(lines[end:]), text.endswith(b"\n") or not text)


def _blocks(lines: Sequence[bytes], nodes: Sequence[ast.stmt], end: int) -> tuple[tuple[_Block, ...], int]:
    """The statements after the first `end` lines, and the line at which the last of them ends."""
    found: dict[tuple[str, ...], _Block] = {}
    for node in nodes:
        start = end
        while not lines[start].strip() or lines[start].lstrip().startswith(b"#"):
            start += 1
        above, end = b"".join(lines[end:start]), node.end_lineno or 0
        last = lines[end - 1][node.end_col_offset :].strip()
        if lines[node.lineno - 1][: node.col_offset].strip() or not start < end or (last and last[:1] != b"#"):
            raise _Unmergeable  # shares a line with another statement
        block = _block(lines, node, start, end)._replace(above=above)
        while block.key in found:
            block = block._replace(key=(*block.key, "again"))
        found[block.key] = block
    return tuple(found.values()), end


def _block(lines: Sequence[bytes], node: ast.stmt, start: int, end: int) -> _Block:
    code = b"".join(lines[start:end])
    match node:
        case ast.ClassDef(name=name, body=[first, *_]):
            decorators = getattr(first, "decorator_list", ())
            inside = min([first.lineno, *(one.lineno for one in decorators)]) - 1
            if inside < node.lineno or (decorators and not lines[inside].lstrip().startswith(b"@")):
                return _Block(("name", name), b"", code)
            members, _ = _blocks(lines, node.body, inside)
            return _Block(("name", name), b"", code, head=b"".join(lines[start:inside]), members=members)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return _Block(("name", name), b"", code)
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return _Block(("name", name), b"", code)
        case ast.Import(names=names):
            return _Block(("import", *map(ast.unparse, names)), b"", code)
        case ast.ImportFrom(names=names):
            module = "." * node.level + (node.module or "")
            return _Block(("from", module), b"", code, names=tuple(map(ast.unparse, names)))
    return _Block((_OTHER, code.decode()), b"", code)


def _merged(base: Sequence[_Block], ours: Sequence[_Block], theirs: Sequence[_Block]) -> tuple[_Block, ...]:
    old, mine, other = ({block.key: block for block in side} for side in (base, ours, theirs))
    for one, two in ((old, mine), (old, other), (mine, other)):
        if [key for key in one if key in two] != [key for key in two if key in one]:
            raise _Unmergeable  # something was moved
    _three(*([key for key in side if key[0] == _OTHER] for side in (old, mine, other)))
    for one, two in ((mine, other), (other, mine)):
        if any(key in two and two[key].code != old[key].code for key in old if key not in one):
            raise _Unmergeable  # removed by one side and changed by the other
    done = [_one(old.get(key), mine[key], other.get(key)) for key in mine if key in other or key not in old]
    for at, block in enumerate(theirs):
        if block.key not in mine and block.key not in old:
            _insert(done, block, theirs[:at], theirs[at + 1 :], old.keys() | other.keys())
    return tuple(done)


def _insert(
    done: list[_Block],
    block: _Block,
    before: Sequence[_Block],
    after: Sequence[_Block],
    known: set[tuple[str, ...]],
) -> None:
    """Put a block after the one that it follows on its side, and after what the other side added there; imports among
    these by their text."""
    keys = [one.key for one in done]
    place = next((keys.index(one.key) + 1 for one in reversed(before) if one.key in keys), 0)
    while place < len(done) and done[place].key not in known:
        if block.key[0] in _IMPORTS and done[place].key[0] in _IMPORTS and done[place].code > block.code:
            break
        place += 1
    if place and not block.above and not before and after:  # was the first: nothing was above it
        lines = after[0].above.splitlines(keepends=True)
        block = block._replace(above=b"".join(line for line in lines if not line.strip()))
    done.insert(place, block)


def _one(old: _Block | None, mine: _Block, other: _Block | None) -> _Block:
    """One statement as both sides want it."""
    if other is None or mine.code == other.code:
        above = mine.above if old is None or other is None else _three(old.above, mine.above, other.above)
        return mine._replace(above=above)
    if old is None:
        return _united((), mine, other)
    mine = mine._replace(above=_three(old.above, mine.above, other.above))
    if other.code == old.code:
        return mine
    if mine.code == old.code:
        return other._replace(above=mine.above)
    if old.members and mine.members and other.members:
        members = _merged(old.members, mine.members, other.members)
        head = _three(old.head, mine.head, other.head)
        return mine._replace(head=head, members=members, code=head + _text(members))
    return _united(old.names, mine, other)


def _united(old: Sequence[str], mine: _Block, other: _Block) -> _Block:
    """A `from` import with the names of both sides."""
    both = mine.code + other.code
    if mine.key[0] != "from" or b"#" in both or b"*" in both or mine.code[:1].isspace():
        raise _Unmergeable
    names = [name for name in mine.names if name in other.names or name not in old]
    names += [name for name in other.names if name not in old and name not in mine.names]
    for key in (_by_type, str.casefold):
        if all(list(side.names) == sorted(side.names, key=key) for side in (mine, other)):
            names.sort(key=key)
            break
    end = "\r\n" if mine.code.endswith(b"\r\n") else "\n"
    line = f"from {mine.key[1]} import {', '.join(names)}"
    if len(line) > _LINE or b"(" in both:
        line = end.join([f"from {mine.key[1]} import (", *(f"    {name}," for name in names), ")"])
    return mine._replace(code=f"{line}{end}".encode(), names=tuple(names))


def _by_type(name: str) -> tuple[int, str]:
    """As ruff and isort sort the names of an import: constants, classes, the rest."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2, name)


def _three(old: T, mine: T, other: T) -> T:
    if mine in (old, other):
        return other
    if other == old:
        return mine
    raise _Unmergeable


def _text(blocks: Sequence[_Block]) -> bytes:
    return b"".join(block.above + block.code for block in blocks)


def _flat(blocks: Sequence[_Block]) -> list[tuple[object, ...]]:
    return [
        (block.key, block.head.strip(), _flat(block.members)) if block.members else (block.key, block.code)
        for block in blocks
    ]
