"""The literals of a test and its helpers in the same file: what it gives to the product and what it expects. Pure."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Sequence

from mngr.records import NamedTuple
from mngr.tmr.changed_file import last_name, parsed
from mngr.tmr.folding import folded

# Calls that pass an expected value through; the arguments of all others are given to the product.
_PLAIN = frozenset(
    {"str", "int", "float", "len", "set", "list", "tuple", "dict", "sorted", "bytes", "frozenset", "Decimal", "Path"}
    | {"compile", "dedent", "join", "loads", "dumps", "encode", "approx", "split", "splitlines", "strip", "escape"}
)
# What these are given explains a test to people.
_WORDS_FOR_PEOPLE = frozenset({"write_tutorial_block", "skip", "fail", "xfail", "print"})
_FOR_PEOPLE = frozenset({"comment", "reason", "msg", "message", "id", "ids"})


class TestedLiterals(NamedTuple):
    """`given` are texts, words of commands and numbers that the test gives to the product; `verbs` are those of them
    that are the first argument of a command or an option; `expected` are texts that it expects; `others` is the text of
    its file without it."""

    given: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    expected: frozenset[str] = frozenset()
    others: str = ""


def find(test: str, sources: Sequence[str | None]) -> TestedLiterals:
    """The literals of a test in all versions of its file; the first version is that of the base."""
    name = test.partition("[")[0].rpartition("::")[2] if "::" in test else ""
    reader = _Reader()
    others = ""
    for number, source in enumerate(sources):
        if (tree := parsed(source)) is None:
            continue
        own = list(_own(tree, name))
        for node in own:
            reader.statement(node)
        if number == 0 and source:
            taken = {line for node in own for line in range(_first_line(node), (node.end_lineno or 0) + 1)}
            lines = source.splitlines()
            others = "\n".join(line for at, line in enumerate(lines, 1) if at not in taken)
    given = reader.given - {""}
    return TestedLiterals(frozenset(given), frozenset(reader.verbs), frozenset(reader.expected - {""}), others)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _own(tree: ast.Module, name: str) -> Iterator[ast.stmt]:
    """The statements of a file that belong to a test: itself, and what it uses by name, and so on. Everything for a
    test without a name."""
    if not name:
        yield from tree.body
        return
    by_name: dict[str, list[ast.stmt]] = {}

    def gather(body: Sequence[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                gather(node.body)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                by_name.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    by_name.setdefault(last_name(target), []).append(node)

    gather(tree.body)
    seen: set[str] = set()
    todo = [name]
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        for node in by_name.get(at, []):
            yield node
            for part in ast.walk(node):
                used = part.arg if isinstance(part, ast.arg) else last_name(part)
                if used in by_name and not (used != name and used.startswith("test_")):
                    todo.append(used)


class _Reader:
    def __init__(self) -> None:
        self.given: set[str] = set()
        self.verbs: set[str] = set()
        self.expected: set[str] = set()

    def statement(self, node: ast.AST) -> None:
        self._visit(node, expected=False)

    def _visit(self, node: ast.AST, expected: bool) -> None:
        text = None if isinstance(node, ast.Name) else folded(node, {})
        if text is not None and isinstance(node, ast.expr):
            self._note(text, expected)
        elif isinstance(node, ast.Assert):
            self._visit(node.test, expected=True)
        elif isinstance(node, ast.Call):
            self._call(node, expected)
        elif isinstance(node, ast.Subscript):
            self._visit(node.value, expected)
            self._visit(node.slice, expected=False)
        elif isinstance(node, ast.Assign) and any("expect" in last_name(target).lower() for target in node.targets):
            self._visit(node.value, expected=True)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            for part in ast.iter_child_nodes(node):
                self._visit(part, expected)

    def _call(self, node: ast.Call, expected: bool) -> None:
        name = last_name(node.func)
        if name in _WORDS_FOR_PEOPLE:
            return
        asserts = name.startswith(("assert", "to_", "not_to_"))
        inside = asserts or (expected and name in _PLAIN)
        if isinstance(node.func, ast.Attribute):
            self._visit(node.func.value, expected=expected and not asserts)
        for part in node.args:
            self._visit(part, inside)
        for keyword in node.keywords:
            if keyword.arg not in _FOR_PEOPLE:
                self._visit(keyword.value, inside or keyword.arg == "match")

    def _note(self, text: str, expected: bool) -> None:
        if expected:
            self.expected |= {text.strip(), *(line.strip() for line in text.splitlines())}
            return
        self.given |= {text, text.strip(), *re.findall(r"[^\s,;:=\"'|()\[\]{}<>]+", text)}
        try:
            words = shlex.split(text)
        except ValueError:
            words = text.split()
        self.given |= set(words)
        if len(words) > 1:
            self.verbs |= {words[0], words[1], *(word for word in words if word.startswith("-"))}
