"""Source mutants: one small change each of a file of the product.

Python is changed in its syntax tree, other languages line by line. Help texts, docstrings and annotations stay.
"""

from __future__ import annotations

import ast
import copy
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

_PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    *((ast.Eq, ast.NotEq), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div)),
)
_OTHER: dict[type[ast.AST], type[Any]] = dict(
    [*_PAIRS, *((two, one) for one, two in _PAIRS), (ast.FloorDiv, ast.Mult), (ast.Mod, ast.Mult)]
)
_SKIPPED = frozenset({"annotation", "returns", "decorator_list", "type_params", "bases", "format_spec"})
_HELP = frozenset({"help", "description", "epilog", "metavar", "usage", "doc", "title"})
_WORD = re.compile(r"[A-Za-z]{2,}")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Change(NamedTuple):
    """What the fields of a node become; `shown` is what people see of it."""

    line: int
    kind: str
    node: ast.AST
    fields: Mapping[str, Any]
    shown: ast.AST


class Mutant(NamedTuple):
    """`line` is that of the statement it is in; the text says what was changed. The change is one of the syntax tree,
    or all of the new text."""

    line: int
    text: str
    change: Change | str


class Source:
    """A file of the product with all its mutants: none if it cannot be read as its language. `tree` is its syntax tree
    if it is Python."""

    def __init__(self, path: str, text: str) -> None:
        self.text = text
        self.is_python = path.endswith(".py") or re.match(r"#!.*\bpython", text) is not None
        self.tree = ast.Module([], [])
        self.mutants: list[Mutant] = []
        suffix = os.path.splitext(path)[1]
        if self.is_python:
            try:
                self.tree = ast.parse(text)
            except (SyntaxError, ValueError):
                return
            self.mutants = [_mutant(change) for change in _of_tree(self.tree, 0, inside=False)]
        elif suffix in _COMMENTS or text.startswith("#!"):
            self.mutants = list(_of_lines(text, suffix))

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[str]:
        """The new text of the file. As long as the context lasts, the syntax tree is changed too."""
        if isinstance(mutant.change, str):
            yield mutant.change
            return
        with _with_fields(mutant.change):
            yield unparsed(self.tree, self.text)


def _mutant(change: Change) -> Mutant:
    text = f"{change.kind}: {_short(ast.unparse(change.shown))}"
    if change.shown is change.node:
        with _with_fields(change):
            text += f" → {_short(ast.unparse(change.node))}"
    return Mutant(change.line, text, change)


@contextmanager
def _with_fields(change: Change) -> Iterator[None]:
    before = {name: getattr(change.node, name) for name in change.fields}
    try:
        vars(change.node).update(change.fields)
        yield
    finally:
        vars(change.node).update(before)


def unparsed(tree: ast.Module, source: str) -> str:
    """The text of a syntax tree, below the first line of the script that it was."""
    first = source.split("\n", 1)[0] + "\n" if source.startswith("#!") else ""
    return first + ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _of_tree(node: ast.AST, line: int, inside: bool) -> Iterator[Change]:
    """All changes below a node in a statement of this line; `inside` a function."""
    for field, value in ast.iter_fields(node):
        listed = value if isinstance(value, list) else [value]
        for number, part in enumerate(listed if field not in _SKIPPED else ()):
            if not isinstance(part, ast.AST) or _stays(part):
                continue
            at = part.lineno if isinstance(part, ast.stmt) else line
            if inside and _can_go(part):
                without = [*listed[:number], ast.Pass(), *listed[number + 1 :]]
                yield Change(at, "statement dropped", node, {field: without}, part)
            yield from (Change(at, kind, part, fields, part) for kind, fields in _of_node(part))
            yield from _of_tree(part, at, inside or isinstance(part, _FUNCTIONS))


def _of_node(node: ast.AST) -> Iterator[tuple[str, dict[str, Any]]]:
    match node:
        case ast.Return(value=value) if value is not None and ast.unparse(value) != "None":
            yield "returned value", {"value": None}
        case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Constant):
            yield "condition negated", {"test": ast.UnaryOp(ast.Not(), test)}
        case ast.Compare(ops=ops):
            for number, op in enumerate(ops):
                yield "comparison", {"ops": [*ops[:number], _OTHER[type(op)](), *ops[number + 1 :]]}
        case ast.BoolOp(op=op):
            yield "boolean operator", {"op": _OTHER[type(op)]()}
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not dropped", {"operand": ast.UnaryOp(ast.Not(), operand)}
        case ast.UnaryOp(op=ast.USub()):
            yield "minus dropped", {"op": ast.UAdd()}
        case ast.Call(keywords=words):
            for word in words:
                if word.arg is not None and word.arg not in _HELP:
                    yield "argument dropped", {"keywords": [one for one in words if one is not word]}
        case ast.Constant(value=value) if (other := _other_value(value)) is not None:
            yield "text" if isinstance(value, str) else "constant", {"value": other}
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _OTHER and not _formats(node):
        yield "arithmetic", {"op": _OTHER[type(node.op)]()}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and not _has_number(node):
        yield "operands swapped", {"left": node.right, "right": node.left}


def _formats(node: ast.BinOp | ast.AugAssign) -> bool:
    return isinstance(node.op, ast.Mod) and isinstance(getattr(node, "left", None), ast.Constant | ast.JoinedStr)


def _stays(node: ast.AST) -> bool:
    if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
        return True
    if isinstance(node, ast.keyword):
        return node.arg in _HELP
    return _is_text(node) or isinstance(node, ast.Import | ast.ImportFrom | ast.Assert | ast.Global | ast.Nonlocal)


def _can_go(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        return not any(isinstance(target, ast.Name | ast.Tuple) for target in node.targets)
    return isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Delete | ast.Continue | ast.Break)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _has_number(node: ast.BinOp) -> bool:
    return any(isinstance(one, ast.Constant) and isinstance(one.value, int | float) for one in (node.left, node.right))


def _other_value(value: Any) -> Any:
    """None for a constant that stays."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str) and value.strip():
        return _WORD.sub(_other_word, value) if _WORD.search(value) else f"{value}{value[-1]}"
    return None


def _other_word(word: re.Match[str]) -> str:
    return "".join(chr(ord(c) + 1) if c not in "zZ" else chr(ord(c) - 25) for c in word.group())


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:59] + "…"


# Comments of languages that are changed line by line: what begins one that ends with the line.
_C_LIKE = ".c .h .cc .cpp .cxx .hpp .rs .go .java .js .mjs .cjs .ts .tsx .cs .kt .swift .php .scala .zig .d"
_COMMENTS = {
    **dict.fromkeys(_C_LIKE.split(), "//"),
    **dict.fromkeys((".sh", ".bash", ".rb", ".pl", ".awk"), "#"),
    ".lua": "--",
}
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
_CHANGES: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("comparison", re.compile(r"(?<![=!<>])==(?!=)"), "!="),
    ("comparison", re.compile(r"!=(?!=)"), "=="),
    ("comparison", re.compile(r"(?<=[\w)\] ])<=(?=[\w(\s-])"), "<"),
    ("comparison", re.compile(r"(?<=[\w)\] ])>=(?=[\w(\s-])"), ">"),
    ("comparison", re.compile(r"(?<= )<(?= )"), "<="),
    ("comparison", re.compile(r"(?<= )>(?= )"), ">="),
    ("boolean operator", re.compile(r"&&"), "||"),
    ("boolean operator", re.compile(r"\|\|"), "&&"),
    ("arithmetic", re.compile(r"(?<= )\+(?= )"), "-"),
    ("arithmetic", re.compile(r"(?<= )-(?= )"), "+"),
    ("arithmetic", re.compile(r"(?<= )\*(?= )"), "/"),
    ("arithmetic", re.compile(r"(?<= )/(?= )"), "*"),
    ("not dropped", re.compile(r"(?<=[( ])!(?=[\w(])"), ""),
)
_NUMBER = re.compile(r"(?<![\w.\"%])\d+(?:\.\d+)?(?![\w.])")
_DROPPED = re.compile(
    r"^\s*(?!return|break|case|goto|else|using|import|package|use |let |var |const |static )"
    r"[\w.:>*\[\]-]+\s*(?:\(|[-+*/|&]?=(?!=)).*;\s*$"
)


def _of_lines(source: str, suffix: str) -> Iterator[Mutant]:
    """Operators, numbers, texts and whole statements, in lines that are neither comments nor directives."""
    comment, start, block = _COMMENTS.get(suffix, "#"), 0, False
    for number, line in enumerate(source.splitlines(keepends=True), 1):
        code = line.strip()
        block = block or (comment == "//" and code.startswith("/*"))
        if not block and code and not code.startswith((comment, "#", "/*", "*")):
            for kind, low, high, new in _of_line(line, line.find(comment)):
                text = f"{kind}: {_short(line[low:high])}" + (f" → {_short(new)}" if new else "")
                made = source[: start + low] + new + source[start + high :]
                yield Mutant(number, text, made)
        block = block and "*/" not in code
        start += len(line)


def _of_line(line: str, comment: int) -> Iterator[tuple[str, int, int, str]]:
    """The kind of each change, the place in the line, and the new text there."""
    texts = [found.span() for found in _QUOTED.finditer(line)]
    end = comment if comment > 0 and not any(low < comment < high for low, high in texts) else len(line)
    changes = [(kind, found, new) for kind, pattern, new in _CHANGES for found in pattern.finditer(line)]
    for found in _NUMBER.finditer(line):
        changes.append(("constant", found, str(float(found[0]) + 1) if "." in found[0] else str(int(found[0]) + 1)))
    for kind, found, new in changes:
        if found.end() <= end and not any(low <= found.start() < high for low, high in texts):
            yield kind, *found.span(), new
    for low, high in texts:
        for word in _WORD.finditer(line, low + 1, high - 1):
            if line[word.start() - 1] not in "%\\$" and high <= end:
                yield "text", *word.span(), _other_word(word)
    code = line[:end].rstrip()
    if _DROPPED.match(code):
        yield "statement dropped", len(code) - len(code.lstrip()), len(code), ";"


def noted(tree: ast.Module, note: str) -> ast.Module:
    """A copy of the tree that calls `__mngr_ran__(line)` before each statement; `note` is the code that defines it."""
    tree = copy.deepcopy(tree)
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(statements, list):
                setattr(node, name, [one for statement in statements for one in _with_note(statement)])
    head = [number for number, statement in enumerate(tree.body, 1) if number == 1 or _is_future(statement)]
    first = head[-1] if head and (_is_text(tree.body[0]) or _is_future(tree.body[0])) else 0
    tree.body[first:first] = ast.parse(note).body
    return ast.fix_missing_locations(tree)


def _with_note(statement: ast.stmt) -> list[ast.stmt]:
    if _is_text(statement) or _is_future(statement):
        return [statement]
    return [*ast.parse(f"__mngr_ran__({statement.lineno})").body, statement]


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
