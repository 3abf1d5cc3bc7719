"""The literals in lines that were added to the product, and whether the product compares with them. Text that Python
source puts together from constants (sums, joins, f-strings, codes of characters) is one literal. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mngr.tmr.judge.changed_file import File, last_name, parsed

# Methods and functions that look something up by their arguments.
_LOOKUPS = frozenset(
    {"get", "getenv", "startswith", "endswith", "index", "count", "match", "fullmatch", "search", "pop"}
)
_HASH_COMMENTS = (".py", ".sh", ".rb", ".pl", ".toml", ".yml", ".yaml")
_CONTAINERS = (
    *(ast.Tuple, ast.List, ast.Set, ast.BinOp, ast.JoinedStr, ast.FormattedValue),
    *(ast.MatchOr, ast.MatchValue, ast.keyword),
)
_EXACT = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
_STRINGS = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`[^`]*`')
_COMMENTS = re.compile(r'("(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')|//[^\n]*|/\*.*?\*/', re.DOTALL)
_BESIDE = re.compile(rf"(?:{_STRINGS.pattern})(?:[\s+.]*(?:{_STRINGS.pattern}))*")
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
        return [one for one in _of_python(tree) if one.line in lines]
    return list(_of_text(file))


def code_lines(file: File) -> Iterator[tuple[int, str, str]]:
    """The added lines with their numbers, each as code and as comment."""
    marks = "#" if file.path.endswith(_HASH_COMMENTS) else r"//|/\*|^\s*\*"
    for number, line in file.added():
        bare = _STRINGS.sub(lambda found: "_" * len(found[0]), line)
        found = re.search(marks, bare)
        at = found.start() if found else len(line)
        yield number, line[:at], line[at:]


def _of_python(tree: ast.Module) -> Iterator[Literal]:
    """The literals of a syntax tree, without docstrings. A part of text that is put together is told with all of it,
    once."""

    def visit(node: ast.AST, compared: bool, condition: int) -> Iterator[Literal]:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        text = None if isinstance(node, ast.Name) and not compared else folded(node)
        if text is not None and isinstance(node, ast.expr):
            lines = {node.lineno, node.end_lineno or node.lineno}
            yield from (Literal(line, text, compared, condition) for line in lines)
            return
        if isinstance(node, ast.BoolOp | ast.Compare | ast.Subscript | ast.Call) and not condition:
            condition = _place(node)
        looked_up = _looked_up(node)
        for part in ast.iter_child_nodes(node):
            own = isinstance(node, ast.Dict | ast.match_case) or part is getattr(node, "test", None)
            inside = part in looked_up or (compared and isinstance(node, _CONTAINERS))
            yield from visit(part, inside, _place(part) if own else condition)

    yield from visit(tree, compared=False, condition=0)


def _place(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0)) * 1000 + int(getattr(node, "col_offset", 0)) + 1


def _looked_up(node: ast.AST) -> Sequence[ast.AST]:
    """The parts of a node that something is compared with or looked up by."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others) if any(isinstance(op, _EXACT) for op in ops):
            return [left, *others]
        case ast.Call(func=function, args=given, keywords=named) if last_name(function) in _LOOKUPS:
            return [*given, *named]
        case ast.Dict(keys=keys):
            return [key for key in keys if key is not None]
        case ast.Subscript(slice=part) | ast.match_case(pattern=part) | ast.MatchValue(value=part):
            return [part]
    return []


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

    for found in _BESIDE.finditer(text):
        yield told(found.start(), "".join(_unquoted(one[0]) for one in _STRINGS.finditer(found[0])))
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


def folded(node: ast.AST) -> str | None:
    """The text or number of a constant as text, also of several that are added up; None for anything else."""
    match node:
        case ast.Constant(value=str() | int() | float() as value) if not isinstance(value, bool):
            return str(value)
        case ast.Constant(value=bytes() as data):
            return data.decode("latin-1")
        case ast.JoinedStr(values=parts) if all(isinstance(part, ast.Constant) for part in parts):
            return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, other = folded(left), folded(right)
            return None if one is None or other is None else one + other
    return None
