"""Finds in test files which tutorial blocks they cite. Reads the files; runs and imports nothing of them.

A citation is a call of `write_tutorial_block("...")` on whatever name the fixture has, or the section `Tutorial block:`
in the docstring of a test.
"""

from __future__ import annotations

import ast
import gc
import os
import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mngr.e2e.shell_blocks import normalise
from mngr.errors import NotFoundError

METHOD = "write_tutorial_block"
_SECTION = re.compile(r"(?m)^[ \t]*Tutorial block:[ \t]*\r?$")
_MARK = re.compile(rb"write_tutorial_block|Tutorial block:")
_TEST_FILE = re.compile(r"(?:test_.*|.*_test|conftest)\.py\Z")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PASSED_OVER = frozenset(("__pycache__", "node_modules", "venv", "site-packages"))


class Citation(NamedTuple):
    """`text` is normalised. `test` is the name as pytest has it, such as `TestList::test_empty`, without parameters.
    `escaped`: the literal is written with backslashes that Python took for its own."""

    text: str
    file: str
    line: int
    test: str
    escaped: bool = False


class Unreadable(NamedTuple):
    """A place where a citation may be that cannot be read."""

    file: str
    line: int
    message: str
    hint: str = ""


class Found(NamedTuple):
    citations: tuple[Citation, ...]
    unreadable: tuple[Unreadable, ...]


def find(paths: Sequence[str], root: str = ".") -> Found:
    """The citations in files and in all Python files below directories. Files are named relative to `root`. One that is
    not valid Python is reported, and the others are read."""
    with _no_collecting():
        return _find(paths, root)


class _no_collecting:  # noqa: N801 (used like a function)
    """Python's collector of cycles finds none in syntax trees, and takes half of the time looking."""

    def __enter__(self) -> None:
        self.enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self.enabled:
            gc.enable()


def _find(paths: Sequence[str], root: str) -> Found:
    citations: list[Citation] = []
    unreadable: list[Unreadable] = []
    files = list(dict.fromkeys(name for path in paths for name in _files(os.path.normpath(os.path.join(root, path)))))
    for path in files:
        name = os.path.relpath(path, root)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            unreadable.append(Unreadable(name, 1, f"cannot be read: {error.strerror}"))
            continue
        marked = _MARK.search(data) is not None
        if marked or _TEST_FILE.match(os.path.basename(path)):
            more, problems = in_source(data, name, marked)
            citations += more
            unreadable += problems
    return Found(tuple(citations), tuple(unreadable))


def _files(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield path
        return
    if not os.path.isdir(path):
        raise NotFoundError(f"there are no tests at `{path}`", hint="name them: `--tests DIR`")
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _PASSED_OVER
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        )
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".py"))


def in_source(source: bytes, name: str, marked: bool = True) -> tuple[list[Citation], list[Unreadable]]:
    """The citations of one file. `marked` is whether it can hold any at all: else only its syntax is looked at."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except SyntaxError as error:
        return [], [Unreadable(name, error.lineno or 1, f"not valid Python: {error.msg}")]
    except (ValueError, RecursionError, MemoryError) as error:
        return [], [Unreadable(name, 1, f"not valid Python: {error}")]
    if not marked:
        return [], []
    reader = _Reader(source, name)
    reader.body(tree.body, (), {})
    return reader.citations, reader.unreadable


class _Reader:
    """Walks down to the marked lines only: a file of ten thousand tests is read in a second."""

    def __init__(self, source: bytes, name: str) -> None:
        self.name = name
        self.lines = source.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        self.marks = [
            number for number, line in enumerate(self.lines, 1) if METHOD in line or "Tutorial block:" in line
        ]
        self.citations: list[Citation] = []
        self.unreadable: list[Unreadable] = []

    def body(self, statements: Sequence[ast.stmt], scope: tuple[str, ...], names: dict[str, ast.expr | None]) -> None:
        names = {**names, **_assigned(statements)}
        renamed = any(isinstance(value, ast.Attribute) and value.attr == METHOD for value in names.values())
        for statement in statements:
            if not (renamed or self._marked(statement)):
                continue
            for node in _nodes(statement):
                if isinstance(node, _DEFINITIONS):
                    inner = (*scope, node.name)
                    if node.name.startswith("test"):
                        self._docstring(node, inner)
                    self.body(node.body, inner, names)
                elif isinstance(node, ast.Call) and _is_citation(node.func, names):
                    self._call(node, scope, names)

    def _marked(self, statement: ast.stmt) -> bool:
        at = bisect_left(self.marks, statement.lineno)
        return at < len(self.marks) and self.marks[at] <= (statement.end_lineno or statement.lineno)

    def _call(self, call: ast.Call, scope: tuple[str, ...], names: dict[str, ast.expr | None]) -> None:
        given = call.args[0] if call.args else next((word.value for word in call.keywords), None)
        text = _literal(given, names)
        if text is None:
            self.unreadable.append(
                Unreadable(
                    self.name,
                    call.lineno,
                    f"`{_shown(scope)}` cites a block not by a literal",
                    hint='write the text of the block in place: `write_tutorial_block("""...""")`',
                )
            )
            return
        segment = "\n".join(self.lines[call.lineno - 1 : call.end_lineno])
        escaped = "\\" in segment and "\\" not in text
        self.citations.append(Citation(normalise(text), self.name, call.lineno, "::".join(scope), escaped))

    def _docstring(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scope: tuple[str, ...]) -> None:
        first = node.body[0]
        if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)):
            return
        text = first.value.value
        if not isinstance(text, str):
            return
        text = text.replace("\r\n", "\n")
        written = self.lines[first.lineno - 1 : first.end_lineno]
        # Python joins continued lines, so the line of a section is looked up in the file, not counted in the text.
        places = [first.lineno + at for at, line in enumerate(written) if _SECTION.search(line.lstrip("rR\"'"))]
        for number, section in enumerate(_SECTION.finditer(text)):
            header = section.group()
            indent = first.col_offset if section.start() == 0 else len(header) - len(header.lstrip())
            line = places[number] if number < len(places) else first.lineno
            cited = _indented(text[section.end() :].split("\n")[1:], indent)
            if cited:
                escaped = "\\" in "\n".join(written) and "\\" not in text
                self.citations.append(Citation(normalise(cited), self.name, line, "::".join(scope), escaped))
            else:
                message = f"`{_shown(scope)}` has an empty section `Tutorial block:`"
                hint = "indent the text of the block below it"
                self.unreadable.append(Unreadable(self.name, line, message, hint))


def _indented(lines: list[str], indent: int) -> str:
    """The first run of non-empty lines, as far as they are indented deeper than the section's name."""
    taken: list[str] = []
    for line in lines:
        blank = not line.strip()
        if (blank and not taken) or (not blank and len(line) - len(line.lstrip(" \t")) > indent):
            taken += [] if blank else [line]
        else:
            break
    return "\n".join(taken)


def _shown(scope: tuple[str, ...]) -> str:
    return "::".join(scope) or "the module"


def _nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """What is in a statement, in its order, up to the definitions in it; of a citation by itself without a walk."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr == METHOD:
            yield call
            return
    left: list[ast.AST] = [statement]
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, _DEFINITIONS):
            left.extend(reversed(list(ast.iter_child_nodes(node))))


def _is_citation(function: ast.expr, names: dict[str, ast.expr | None]) -> bool:
    if isinstance(function, ast.Name):
        bound = names.get(function.id)
        return isinstance(bound, ast.Attribute) and bound.attr == METHOD
    return isinstance(function, ast.Attribute) and function.attr == METHOD


def _assigned(statements: Sequence[ast.stmt]) -> dict[str, ast.expr | None]:
    """Names with what was assigned to them; None for a name that is assigned twice."""
    found: dict[str, ast.expr | None] = {}
    for statement in statements:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(statement, ast.Assign | ast.AnnAssign):
                found[target.id] = None if target.id in found else statement.value
    return found


def _literal(node: ast.expr | None, names: dict[str, ast.expr | None], depth: int = 0) -> str | None:
    """The text of a literal, of literals added up, or of a name for one."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = [_literal(part, names) if isinstance(part, ast.Constant) else None for part in node.values]
        return None if None in parts else "".join(part or "" for part in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _literal(node.left, names, depth), _literal(node.right, names, depth)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Name) and depth < 5:
        return _literal(names.get(node.id), names, depth + 1)
    return None
