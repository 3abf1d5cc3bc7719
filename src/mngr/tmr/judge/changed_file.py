"""One changed file, the lines that were added to it, and a flag for a person who looks at it. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LINES_MAX = 20_000


class Flag(NamedTuple):
    """`kind` is one word for counting, `text` says it to a person, with the place."""

    kind: str
    path: str
    text: str


class File(NamedTuple):
    """One changed file; None for a side on which it does not exist. `implementation` says whether its path is one of
    the product. What is `unread` was not looked at: it is a link, or very large."""

    path: str
    before: str | None
    after: str | None
    implementation: bool
    unread: bool = False

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def added(self) -> list[tuple[int, str]]:
        """The lines that only the new side has, with their numbers."""
        import difflib

        old, new = (self.before or "").splitlines(), (self.after or "").splitlines()
        if not old:
            return list(enumerate(new, 1))
        blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if len(old) < _LINES_MAX else []
        return [
            (at + 1, new[at])
            for tag, _, _, start, end in blocks
            if tag in ("insert", "replace")
            for at in range(start, end)
        ]


def parsed(source: str | None) -> ast.Module | None:
    """The syntax tree of Python source; None if it does not parse."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def definitions(nodes: Sequence[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """Classes and functions by their dotted names, those of classes included, in the order of the source."""
    for node in nodes:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield f"{prefix}{node.name}", node
        if isinstance(node, ast.ClassDef):
            yield from definitions(node.body, f"{prefix}{node.name}.")


def functions(source: str | None) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of Python source by their dotted names; none if it does not parse."""
    tree = parsed(source)
    found = definitions(tree.body if tree else [])
    return {name: node for name, node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def settings(name: str, text: str | None) -> Mapping[str, Any] | None:
    """The tables of a file of settings, by the form that its name tells; empty if it does not exist, None if it cannot
    be read."""
    import configparser
    import json
    import tomllib

    try:
        if name.endswith(".json"):
            return dict(json.loads(text or "{}"))
        if name.endswith(".toml"):
            return tomllib.loads(text or "")
        reader = configparser.RawConfigParser(strict=False)
        reader.read_string(text or "")
        return {section: dict(reader[section]) for section in reader.sections()}
    except (ValueError, TypeError, RecursionError, configparser.Error):
        return None


def last_name(node: ast.AST) -> str:
    """`c` of `a.b.c`; empty for what is not a name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_assertion(node: ast.AST) -> bool:
    """Whether a node asserts something: `assert`, `expect(x).to_equal(y)`, `self.assertEqual(x, y)`, `raises(...)`."""
    if isinstance(node, ast.Call):
        return last_name(node.func).startswith(("assert", "to_", "not_to_")) or last_name(node.func) == "raises"
    return isinstance(node, ast.Assert)
