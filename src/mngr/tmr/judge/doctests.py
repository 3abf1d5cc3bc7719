"""Doctests of modules: a test and what it tests in one file, which are told apart by its docstrings. Pure."""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def with_docs_of(code: str, docs: str) -> str:
    """The code with the docstrings that another version of it has, where both have one. As it is where one of the two
    is no Python."""
    try:
        ours, theirs = dict(_docstrings(ast.parse(code))), dict(_docstrings(ast.parse(docs)))
    except (SyntaxError, ValueError, RecursionError):
        return code
    text, source = (version.encode("utf-8", "surrogateescape") for version in (code, docs))
    for name, node in sorted(ours.items(), key=lambda item: -item[1].lineno):
        if name in theirs:
            (start, end), (begin, stop) = _place(text, node), _place(source, theirs[name])
            text = text[:start] + source[begin:stop] + text[end:]
    return text.decode("utf-8", "surrogateescape")


def as_function(text: str, task: str) -> str:
    """What a doctest of a module or of a text gives and expects, as a test function called `_doctest`."""
    name = task.rpartition("::")[2]
    if task.partition("::")[0].endswith(".py"):
        try:
            found = {one: str(ast.literal_eval(node)) for one, node in _docstrings(ast.parse(text))}
        except (SyntaxError, ValueError, RecursionError):
            found = {}
        own = [one for one in found if f".{name}".endswith(one)]
        text = found[max(own, key=len)] if own else ""
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return ""
    lines = [line for one in examples for line in _lines_of(one.source, one.want.strip())]
    return "\n    ".join(["def _doctest():", *lines, "pass"])


def _lines_of(source: str, want: str) -> list[str]:
    try:
        asked = ast.unparse(ast.parse(source, mode="eval"))
    except SyntaxError:
        return ast.unparse(ast.parse(source)).splitlines() if _parses(source) else []
    return [f"assert ({asked}) == ({want if _parses(f'({want})') else repr(want)})" if want else asked]


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _docstrings(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    waiting: list[tuple[str, _Documented]] = [("", tree)]
    while waiting:
        name, node = waiting.pop()
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            yield name, first.value
        waiting += [(f"{name}.{part.name}", part) for part in node.body if isinstance(part, _Documented)]


def _place(text: bytes, node: ast.expr) -> tuple[int, int]:
    """Where it begins and ends. The parser's columns are bytes."""
    lines = text.split(b"\n")

    def at(line: int, column: int) -> int:
        return sum(len(one) + 1 for one in lines[: line - 1]) + column

    return at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)
