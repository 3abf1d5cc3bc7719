"""Finds in test files which tutorial blocks they cite. Reads the files; runs and imports nothing of them.

A citation is a call of `write_tutorial_block("...")` on whatever name the fixture has, or the section `Tutorial block:`
in the docstring of a test.
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mngr.e2e.shell_blocks import normalise
from mngr.errors import NotFoundError
from mngr.system.files import read_followed

_MOST_BYTES = 10_000_000
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
    sources: dict[str, bytes] = {}
    unreadable: list[Unreadable] = []
    files = list(dict.fromkeys(name for path in paths for name in _files(os.path.normpath(os.path.join(root, path)))))
    for path in files:
        name = os.path.relpath(path, root)
        try:
            sources[name] = read_followed(path, _MOST_BYTES)[:_MOST_BYTES]
        except OSError as error:
            unreadable.append(Unreadable(name, 1, f"cannot be read: {error.strerror}"))
    found = in_sources(sources)
    return found._replace(unreadable=tuple(sorted((*unreadable, *found.unreadable))))


def in_sources(sources: Mapping[str, bytes]) -> Found:
    """The citations in these files, by name."""
    citations: list[Citation] = []
    unreadable: list[Unreadable] = []
    for name, data in sources.items():
        marked = _MARK.search(data) is not None
        if marked or _TEST_FILE.match(os.path.basename(name)):
            more, problems = in_source(data, name, marked)
            citations += more
            unreadable += problems
    return Found(tuple(citations), tuple(unreadable))


def is_searched(file: str, places: Sequence[str]) -> bool:
    """Whether `find` would read a file of these names of the same root."""
    for place in map(os.path.normpath, places):
        inner = file if place == "." else file.removeprefix(f"{place}/")
        folders = inner.split("/")[:-1]
        skipped = any(name.startswith(".") or name in _PASSED_OVER for name in folders)
        if file == place or ((place == "." or inner != file) and inner.endswith(".py") and not skipped):
            return True
    return False


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
        reader = _Reader(source, name)
        if marked:
            reader.visit(tree)
    except SyntaxError as error:
        return [], [Unreadable(name, error.lineno or 1, f"not valid Python: {error.msg}")]
    except (ValueError, RecursionError, MemoryError) as error:
        return [], [Unreadable(name, 1, f"not valid Python: {error}")]
    return reader.citations, reader.unreadable


class _Reader(ast.NodeVisitor):
    def __init__(self, source: bytes, name: str) -> None:
        self.citations: list[Citation] = []
        self.unreadable: list[Unreadable] = []
        self._name = name
        self._lines = source.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        self._scope: list[str] = []

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, _DEFINITIONS):
            self._scope.append(node.name)
            first = node.body[0]
            if node.name.startswith("test") and isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                self._read_docstring(first, first.value.value)
            self.generic_visit(node)
            self._scope.pop()
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == METHOD:
            self._read_call(node)
        self.generic_visit(node)

    def _read_call(self, call: ast.Call) -> None:
        given = call.args[0] if call.args else next((word.value for word in call.keywords), None)
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            self._cite(given.value, call, call.lineno)
        else:
            hint = 'write the text of the block in place: `write_tutorial_block("""...""")`'
            self._refuse("cites a block not by a literal", call.lineno, hint)

    def _read_docstring(self, node: ast.Expr, text: object) -> None:
        text = text.replace("\r\n", "\n") if isinstance(text, str) else ""
        for section in _SECTION.finditer(text):
            header = section.group()
            indent = node.col_offset if section.start() == 0 else len(header) - len(header.lstrip())
            line = node.lineno + text.count("\n", 0, section.start())
            if cited := _indented(text[section.end() :].split("\n")[1:], indent):
                self._cite(cited, node, line)
            else:
                hint = "indent the text of the block below it"
                self._refuse("has an empty section `Tutorial block:`", line, hint)

    def _cite(self, text: str, node: ast.expr | ast.stmt, line: int) -> None:
        written = "\n".join(self._lines[node.lineno - 1 : node.end_lineno])
        escaped = "\\" in written and "\\" not in text
        self.citations.append(Citation(normalise(text), self._name, line, "::".join(self._scope), escaped))

    def _refuse(self, what: str, line: int, hint: str) -> None:
        self.unreadable.append(Unreadable(self._name, line, f"`{'::'.join(self._scope) or 'the module'}` {what}", hint))


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
