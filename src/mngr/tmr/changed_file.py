"""One changed file, the lines that were added to it, and a flag for a person who looks at it. Pure."""

from __future__ import annotations

import ast

from mngr.records import NamedTuple

_LINES_MAX = 20_000


class Flag(NamedTuple):
    """`kind` is one word for counting, `text` says it to a person, with the place."""

    kind: str
    path: str
    text: str


class File(NamedTuple):
    """One changed file; None for a side on which it does not exist. `implementation` is how its path is classified,
    `build` says that a build file of the base includes it."""

    path: str
    before: str | None
    after: str | None
    implementation: bool
    build: bool = False

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
