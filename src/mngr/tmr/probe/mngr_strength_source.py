"""Source mutants: one small change each of a file of the product, as a range of its text that is replaced. Pure.

Python is changed by its syntax tree, other languages line by line. Help texts, docstrings and annotations stay.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.In: (r"\bin\b", "not in"),
    ast.NotIn: (r"\bnot\s+in\b", "in"),
    ast.Is: (r"\bis\b", "is not"),
    ast.IsNot: (r"\bis\s+not\b", "is"),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
}
_HELP = frozenset({"help", "description", "epilog", "metavar", "usage", "doc", "title"})
_WORD = re.compile(r"[A-Za-z]{2,}")


class Mutant(NamedTuple):
    """`line` is that of the statement it is in; the text says what was changed."""

    line: int
    text: str
    start: int
    end: int
    new: str

    def apply(self, source: str) -> str:
        return source[: self.start] + self.new + source[self.end :]


def mutants(path: str, source: str) -> list[Mutant]:
    """All of a file; none of one that cannot be read as its language."""
    if is_python(path, source):
        try:
            return list(_PythonMutants(source).found())
        except (SyntaxError, ValueError):
            return []
    suffix = os.path.splitext(path)[1]
    return list(_of_lines(source, suffix)) if suffix in _COMMENTS or source.startswith("#!") else []


def is_python(path: str, source: str) -> bool:
    return path.endswith(".py") or re.match(r"#!.*\bpython", source) is not None


class _PythonMutants:
    def __init__(self, source: str) -> None:
        self._source = source
        self._tree = ast.parse(source)
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts
        self._lines = source.splitlines(keepends=True)

    def found(self) -> Iterator[Mutant]:
        for statement in self._tree.body:
            yield from self._statement(statement, inside=False)

    def _at(self, line: int, column: int) -> int:
        """Columns of `ast` count bytes."""
        text = self._lines[line - 1]
        return self._starts[line - 1] + (column if text.isascii() else len(text.encode()[:column].decode()))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _made(self, statement: ast.stmt, kind: str, span: tuple[int, int], new: str) -> Mutant:
        """With as many lines as before, so that the lines after it keep their numbers."""
        old = self._source[slice(*span)]
        text = f"{kind}: {_short(old)} → {_short(new)}" if new.strip() else f"{kind}: {_short(old)}"
        return Mutant(statement.lineno, text, *span, new + "\n" * (old.count("\n") - new.count("\n")))

    def _statement(self, node: ast.stmt, inside: bool) -> Iterator[Mutant]:
        if _is_text(node) or isinstance(node, ast.Import | ast.ImportFrom | ast.Assert | ast.Global | ast.Nonlocal):
            return
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'"):
            return
        span = self._span(node)
        if inside and _can_go(node):
            yield self._made(node, "statement dropped", span, "pass")
        if isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
            yield self._made(node, "returned value", span, "return None")
        if isinstance(node, ast.If | ast.While) and not isinstance(node.test, ast.Constant):
            test = self._span(node.test)
            yield self._made(node, "condition negated", test, f"(not ({self._source[slice(*test)]}))")
        if isinstance(node, ast.AugAssign):
            yield from self._operator(node, node.op, self._span(node.target)[1], self._span(node.value)[0])
        within = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in _parts(node):
            if isinstance(child, ast.stmt):
                yield from self._statement(child, within)
            elif isinstance(child, ast.expr):
                yield from self._expression(node, child)

    def _expression(self, statement: ast.stmt, node: ast.expr) -> Iterator[Mutant]:
        if isinstance(node, ast.Compare):
            left = node.left
            for op, right in zip(node.ops, node.comparators, strict=True):
                pattern, new = _COMPARISONS[type(op)]
                between = (self._span(left)[1], self._span(right)[0])
                yield from self._replaced(statement, "comparison", between, pattern, new)
                left = right
        elif isinstance(node, ast.BinOp):
            yield from self._binary(statement, node)
        elif isinstance(node, ast.BoolOp):
            word, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:], strict=False):
                between = (self._span(left)[1], self._span(right)[0])
                yield from self._replaced(statement, "boolean operator", between, rf"\b{word}\b", new)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            operand = self._source[slice(*self._span(node.operand))]
            kind, new = ("not", f"bool({operand})") if isinstance(node.op, ast.Not) else ("minus", operand)
            yield self._made(statement, f"{kind} dropped", self._span(node), new)
        elif isinstance(node, ast.Call):
            yield from self._arguments(statement, node)
        elif isinstance(node, ast.Constant):
            yield from self._constant(statement, node)
        elif isinstance(node, ast.JoinedStr):
            yield from self._formatted(statement, node)
        for child in _parts(node):
            if isinstance(child, ast.expr):
                yield from self._expression(statement, child)

    def _binary(self, statement: ast.stmt, node: ast.BinOp) -> Iterator[Mutant]:
        formatted = isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant | ast.JoinedStr)
        if not formatted:
            ends = self._span(node.left)[1], self._span(node.right)[0]
            yield from self._operator(statement, node.op, *ends)
        if isinstance(node.op, ast.Add) and not _is_number(node.left) and not _is_number(node.right):
            left, right = (self._source[slice(*self._span(one))] for one in (node.left, node.right))
            yield self._made(statement, "operands swapped", self._span(node), f"({right}) + ({left})")

    def _arguments(self, statement: ast.stmt, node: ast.Call) -> Iterator[Mutant]:
        """Without one of those that have a name and may be left out."""
        for word in node.keywords:
            if word.arg is None or word.arg in _HELP:
                continue
            end = self._span(word.value)[1]
            before = self._source.rfind(word.arg, self._span(node.func)[1], self._span(word.value)[0])
            comma = re.compile(r"\s*,").match(self._source, end)
            yield self._made(statement, "argument dropped", (before, comma.end() if comma else end), "")

    def _operator(self, statement: ast.stmt, op: ast.operator, start: int, end: int) -> Iterator[Mutant]:
        if type(op) in _ARITHMETIC:
            pattern, new = _ARITHMETIC[type(op)]
            yield from self._replaced(statement, "arithmetic", (start, end), pattern, new)

    def _replaced(
        self, statement: ast.stmt, kind: str, span: tuple[int, int], pattern: str, new: str
    ) -> Iterator[Mutant]:
        """The operator between two operands, which may have brackets and comments around it."""
        found = re.compile(pattern).search(self._source, *span)
        if found is not None:
            yield self._made(statement, kind, found.span(), new)

    def _constant(self, statement: ast.stmt, node: ast.Constant) -> Iterator[Mutant]:
        value, span = node.value, self._span(node)
        if isinstance(value, bool):
            yield self._made(statement, "constant", span, str(not value))
        elif isinstance(value, int | float):
            yield self._made(statement, "constant", span, repr(value + 1))
        elif isinstance(value, str) and _WORD.search(value):
            yield self._made(statement, "text", span, repr(_WORD.sub(_other_word, value)))
        elif isinstance(value, str) and value.strip():
            yield self._made(statement, "text", span, repr(f"{value}{value[-1]}"))

    def _formatted(self, statement: ast.stmt, node: ast.JoinedStr) -> Iterator[Mutant]:
        """Each word of an f-string, and what is in its braces."""
        start, end = self._span(node)
        text, depth = self._source[start:end], 0
        opening = re.match(r"[A-Za-z]+", text)
        at = opening.end() if opening else 0
        while at < len(text):
            if text[at] in "{}":
                depth += 1 if text[at] == "{" else -1
            elif text[at] == "\\":
                at += 1
            elif depth == 0 and (word := _WORD.match(text, at)):
                span = (start + at, start + word.end())
                yield self._made(statement, "text", span, _other_word(word))
                at = word.end() - 1
            at += 1
        for part in node.values:
            if isinstance(part, ast.FormattedValue) and self._is_placed(part.value):
                yield from self._expression(statement, part.value)

    def _is_placed(self, node: ast.expr) -> bool:
        """Python before 3.12 does not always know where in an f-string an expression is."""
        try:
            found = ast.parse(self._source[slice(*self._span(node))], mode="eval").body
        except (SyntaxError, IndexError):
            return False
        return ast.dump(found) == ast.dump(node)


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """What is worth changing in a node: not annotations, decorators, help texts and the insides of f-strings."""
    skipped: set[str] = {"annotation", "returns", "decorator_list", "type_params", "bases"}
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.Call):
        yield node.func
        yield from node.args
        yield from (word.value for word in node.keywords if word.arg not in _HELP)
        return
    for name, value in ast.iter_fields(node):
        if name in skipped:
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.stmt | ast.expr):
                yield part
            elif isinstance(part, ast.AST):  # handlers, cases, comprehensions, arguments
                yield from _parts(part)


def _can_go(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return not any(isinstance(target, ast.Name | ast.Tuple) for target in node.targets)
    return isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Delete | ast.Continue | ast.Break)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


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
            yield from _of_line(number, line, start, line.find(comment))
        block = block and "*/" not in code
        start += len(line)


def _of_line(number: int, line: str, start: int, comment: int) -> Iterator[Mutant]:
    texts = [found.span() for found in _QUOTED.finditer(line)]
    end = comment if comment > 0 and not any(low < comment < high for low, high in texts) else len(line)

    def made(kind: str, span: tuple[int, int], new: str) -> Mutant:
        text = f"{kind}: {_short(line[slice(*span)])}" + (f" → {_short(new)}" if new else "")
        return Mutant(number, text, start + span[0], start + span[1], new)

    def plain(span: tuple[int, int]) -> bool:
        return span[1] <= end and not any(low <= span[0] < high for low, high in texts)

    for kind, pattern, new in _CHANGES:
        for found in pattern.finditer(line):
            if plain(found.span()):
                yield made(kind, found.span(), new)
    for found in _NUMBER.finditer(line):
        if plain(found.span()):
            old = found.group()
            yield made("constant", found.span(), str(float(old) + 1) if "." in old else str(int(old) + 1))
    for low, high in texts:
        for word in _WORD.finditer(line, low + 1, high - 1):
            before = line[word.start() - 1]
            if before not in "%\\$" and high <= end:
                yield made("text", word.span(), _other_word(word))
    if _DROPPED.match(line[:end].rstrip()):
        code = line[:end].rstrip()
        yield made("statement dropped", (len(code) - len(code.lstrip()), len(code)), ";")


def noted(source: str, note: str) -> str:
    """Python code that calls `__mngr_ran__(line)` before each statement; `note` is the code that defines it."""

    class Noting(ast.NodeTransformer):
        def generic_visit(self, node: ast.AST) -> ast.AST:
            super().generic_visit(node)
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list) and statements and isinstance(statements[0], ast.stmt):
                    setattr(node, name, _with_notes(statements))
            return node

    tree = Noting().visit(ast.parse(source))
    first = 0
    for number, statement in enumerate(tree.body):
        if _is_text(statement) or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            first = number + 1
    # What was put before the imports of __future__ has to come after them.
    head = [one for one in tree.body[:first] if not ast.unparse(one).startswith("__mngr_ran__(")]
    tree.body[:] = [*head, *ast.parse(note).body, *tree.body[first:]]
    first_line = source.split("\n", 1)[0] + "\n" if source.startswith("#!") else ""
    return first_line + ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _with_notes(statements: list[ast.stmt]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for number, statement in enumerate(statements):
        if number or not _is_text(statement):
            found += ast.parse(f"__mngr_ran__({statement.lineno})").body
        found.append(statement)
    return found
