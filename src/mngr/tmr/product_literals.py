"""The literals in lines that were added to the product, and whether the product compares with them. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from mngr.records import NamedTuple
from mngr.tmr.changed_file import File, last_name, parsed
from mngr.tmr.folding import constants, folded

# Methods and functions that look something up by their arguments.
_LOOKUPS = frozenset(
    {"get", "getenv", "startswith", "endswith", "index", "count", "match", "fullmatch", "search", "pop"}
)
_HASH_COMMENTS = (".py", ".sh", ".rb", ".pl", ".toml", ".yml", ".yaml")
_EXACT = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
_STRINGS = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`[^`]*`')
_COMMENTS = re.compile(r'("(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')|//[^\n]*|/\*.*?\*/', re.DOTALL)
_CHARACTERS = re.compile(r"'(?:[^'\\\n]|\\.)'(?:\s*,\s*'(?:[^'\\\n]|\\.)'){2,}")
_BETWEEN = re.compile(r"[\s+.]*")
_COMPARING = re.compile(
    r"[!=]=|\b(?:str(?:n|case|ncase)?cmp|memcmp|strstr|fnmatch|equals\w*|contains|case|match|when|getenv|env|in|eq"
    r"|startsWith|starts_with|has_prefix|HasPrefix|EqualFold|indexOf|lookup|get)\b|=~|=>|\[\s*[\"']"
)
_NUMBERS = re.compile(r"(?:[!=]=|\bcase)\s*(-?\d+)\b|\b(\d+)\s*[!=]=")


class Literal(NamedTuple):
    """`compared` says that the product compares with the text or looks something up by it; `condition` is the same for
    literals of one condition."""

    line: int
    text: str
    compared: bool
    condition: int = 0


def find(file: File) -> list[Literal]:
    """The literals on the added lines, each as often as it is there."""
    lines = {number for number, _ in file.added()}
    tree = parsed(file.after) if file.path.endswith(".py") else None
    if tree is not None:
        return [one for one in _Python(tree).literals() if one.line in lines]
    return list(_of_text(file))


def code_lines(file: File) -> Iterator[tuple[int, str, str]]:
    """The added lines with their numbers, each as code and as comment."""
    marks = "#" if file.path.endswith(_HASH_COMMENTS) else r"//|/\*|^\s*\*"
    for number, line in file.added():
        bare = _STRINGS.sub(lambda found: "_" * len(found[0]), line)
        found = re.search(marks, bare)
        at = found.start() if found else len(line)
        yield number, line[:at], line[at:]


class _Python:
    """The literals of a syntax tree. A part of text that is put together is told with all of it, once."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.known: Mapping[str, ast.expr] = constants(tree)
        self.found: list[Literal] = []

    def literals(self) -> list[Literal]:
        self._visit(self.tree, compared=False, condition=0)
        return self.found

    def _visit(self, node: ast.AST, compared: bool, condition: int) -> None:
        text = None if isinstance(node, ast.Name) and not compared else folded(node, self.known)
        if text is not None and isinstance(node, ast.expr):
            last = node.end_lineno or node.lineno
            self.found += [Literal(line, text, compared, condition) for line in {node.lineno, last}]
            return
        if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
            self._visit(node.test, compared, _place(node.test))
            for part in ast.iter_child_nodes(node):
                if part is not node.test:
                    self._visit(part, compared=False, condition=condition)
            return
        if isinstance(node, ast.BoolOp | ast.Compare | ast.Subscript | ast.Call) and not condition:
            condition = _place(node)
        for part, looked_up in _parts(node):
            here = _place(part) if isinstance(node, ast.Dict | ast.match_case) else condition
            self._visit(part, looked_up or (compared and isinstance(node, _CONTAINERS)), here)


def _place(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0)) * 1000 + int(getattr(node, "col_offset", 0)) + 1


_CONTAINERS = (ast.Tuple, ast.List, ast.Set, ast.BinOp, ast.JoinedStr, ast.FormattedValue, ast.MatchOr, ast.MatchValue)


def _parts(node: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """The parts of a node, each with whether something is compared with it or looked up by it."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for number, side in enumerate(sides):
            near = node.ops[max(0, number - 1) : number + 1]
            yield side, any(isinstance(op, _EXACT) for op in near)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                yield key, True
            yield value, False
    elif isinstance(node, ast.Subscript):
        yield node.value, False
        yield node.slice, True
    elif isinstance(node, ast.Call):
        yield node.func, False
        for part in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield part, last_name(node.func) in _LOOKUPS
    elif isinstance(node, ast.match_case):
        yield node.pattern, True
        yield from ((part, False) for part in (*([node.guard] if node.guard else []), *node.body))
    elif isinstance(node, ast.MatchValue):
        yield node.value, True
    else:
        docs = _docstring(node)
        yield from ((part, False) for part in ast.iter_child_nodes(node) if part is not docs)


def _docstring(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
        first = node.body[0]
        return first if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else None
    return None


def _of_text(file: File) -> Iterator[Literal]:
    """The literals of another language: strings, beside each other as one, characters in a list, compared numbers."""
    block: list[tuple[int, str]] = []
    for number, line in [*file.added(), (-1, "")]:
        if block and number != block[-1][0] + 1:
            yield from _of_block(block[0][0], "\n".join(text for _, text in block))
            block = []
        block.append((number, line))


def _of_block(first: int, text: str) -> Iterator[Literal]:
    def blanked(found: re.Match[str]) -> str:
        return found[1] or re.sub(r"[^\n]", " ", found[0])

    text = _COMMENTS.sub(blanked, text)
    lines = text.split("\n")

    def told(at: int, literal: str) -> Literal:
        number = text.count("\n", 0, at)
        bare = lines[number]
        return Literal(first + number, literal, bool(_COMPARING.search(bare)), first + number)

    for found in _CHARACTERS.finditer(text):
        yield told(found.start(), "".join(_unquoted(one) for one in re.findall(r"'(?:[^'\\\n]|\\.)'", found[0])))
    start, end, made = -1, -1, ""
    for found in _STRINGS.finditer(text):
        if start >= 0 and _BETWEEN.fullmatch(text, end, found.start()):
            made, end = made + _unquoted(found[0]), found.end()
            continue
        if start >= 0:
            yield told(start, made)
        start, end, made = found.start(), found.end(), _unquoted(found[0])
    if start >= 0:
        yield told(start, made)
    for found in _NUMBERS.finditer(text):
        line = first + text.count("\n", 0, found.start())
        yield Literal(line, found[1] or found[2], compared=True, condition=line)


def _unquoted(literal: str) -> str:
    """The text of a string constant as C and its relatives write it."""
    inside = literal[1:-1]
    try:
        return inside.encode("latin-1", "backslashreplace").decode("unicode_escape") if "\\" in inside else inside
    except (UnicodeDecodeError, ValueError):
        return inside
