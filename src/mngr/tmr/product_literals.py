"""The literals in lines that were added to the product, and whether the product compares with them. Text that Python
source puts together from constants (sums, joins, f-strings, codes of characters) is one literal. Pure."""

from __future__ import annotations

import ast
import base64
import codecs
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mngr.tmr.changed_file import File, last_name, parsed

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

_LENGTH_MAX = 10_000
_DECODERS: Mapping[str, Callable[[str], str]] = {
    "chr": lambda text: chr(int(text)),
    "str": lambda text: text,
    "decode": lambda text: text,
    "encode": lambda text: text,
    "lower": str.lower,
    "upper": str.upper,
    "strip": str.strip,
    "title": str.title,
    "fromhex": lambda text: bytes.fromhex(text).decode("latin-1"),
    "unhexlify": lambda text: bytes.fromhex(text).decode("latin-1"),
    "b64decode": lambda text: base64.b64decode(text).decode("latin-1"),
    "urlsafe_b64decode": lambda text: base64.urlsafe_b64decode(text).decode("latin-1"),
}


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
        return [one for one in _PythonLiterals(tree).literals() if one.line in lines]
    return list(_of_text(file))


def code_lines(file: File) -> Iterator[tuple[int, str, str]]:
    """The added lines with their numbers, each as code and as comment."""
    marks = "#" if file.path.endswith(_HASH_COMMENTS) else r"//|/\*|^\s*\*"
    for number, line in file.added():
        bare = _STRINGS.sub(lambda found: "_" * len(found[0]), line)
        found = re.search(marks, bare)
        at = found.start() if found else len(line)
        yield number, line[:at], line[at:]


class _PythonLiterals:
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


def constants(tree: ast.AST) -> dict[str, ast.expr]:
    """What names are set to, where that happens once."""
    found: dict[str, ast.expr] = {}
    twice: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            twice |= {name} & found.keys()
            found[name] = node.value
    return {name: value for name, value in found.items() if name not in twice}


def folded(node: ast.AST | None, known: Mapping[str, ast.expr], depth: int = 0) -> str | None:
    """The text that an expression makes of constants alone; None if it needs anything else. A date is written as in
    ISO 8601."""
    if depth > 20 or node is None:
        return None
    try:
        text = _folded(node, lambda part: folded(part, known, depth + 1), known)
    except (ValueError, TypeError, OverflowError, IndexError, LookupError):
        return None
    return text if text is None or len(text) <= _LENGTH_MAX else None


def _folded(node: ast.AST, fold: Callable[[ast.AST], str | None], known: Mapping[str, ast.expr]) -> str | None:
    if isinstance(node, ast.Constant):
        return _constant_text(node.value)
    if isinstance(node, ast.Name):
        return fold(known[node.id]) if node.id in known else None
    if isinstance(node, ast.FormattedValue):
        return fold(node.value)
    if isinstance(node, ast.JoinedStr):
        return _joined_text(node.values, fold)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        numbers = [side.value for side in (node.left, node.right) if isinstance(side, ast.Constant)]
        if len(numbers) == 2 and all(type(one) is int for one in numbers):
            return str(sum(numbers))  # type: ignore[arg-type]  # both are integers
        return _joined_text([node.left, node.right], fold)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return _sliced(fold(node.value), node.slice)
    return _called(node, fold) if isinstance(node, ast.Call) else None


def _constant_text(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _joined_text(nodes: Sequence[ast.AST], fold: Callable[[ast.AST], str | None], between: str = "") -> str | None:
    parts = [fold(node) for node in nodes]
    return None if None in parts else between.join(part for part in parts if part is not None)


def _sliced(text: str | None, cut: ast.Slice) -> str | None:
    ends = [ast.literal_eval(part) if part is not None else None for part in (cut.lower, cut.upper, cut.step)]
    return text[slice(*ends)] if text is not None else None


def _called(node: ast.Call, fold: Callable[[ast.AST], str | None]) -> str | None:
    of = node.func.value if isinstance(node.func, ast.Attribute) else None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    first = node.args[0] if node.args else None
    if name in ("date", "datetime") and len(node.args) >= 3:
        year, month, day = (ast.literal_eval(part) for part in node.args[:3])
        return f"{year:04d}-{month:02d}-{day:02d}"
    if name == "fromisoformat" and first is not None:
        return fold(first)
    if name == "join" and isinstance(first, ast.List | ast.Tuple) and of is not None:
        between = fold(of)
        return None if between is None else _joined_text(first.elts, fold, between)
    if name in ("bytes", "bytearray") and isinstance(first, ast.List | ast.Tuple):
        return bytes(ast.literal_eval(part) for part in first.elts).decode("latin-1")
    if name == "decode" and getattr(of, "id", "") == "codecs" and first is not None and len(node.args) == 2:
        text, how = fold(first), fold(node.args[1]) or ""
        return codecs.decode(text, "rot13") if text is not None and how.startswith("rot") else text
    if name not in _DECODERS:
        return None
    given = first if name in ("chr", "str", "fromhex", "unhexlify") or name.endswith("b64decode") else of
    text = fold(given) if given is not None else None
    return _DECODERS[name](text) if text is not None else None
