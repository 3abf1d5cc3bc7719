"""The source of one test: the literals that it gives to the product, and its code with others, in which assertions
record what they compare and do not judge it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import mngr_generality_variants as variants

NOTE = "__mngr_note__"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SET_UP = ("setUp", "setup_method", "setup_class", "setUpClass", "setup", "setup_function", "setup_module")
# Methods of unittest that run what they are given.
_RUN = ("assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex", "assertLogs", "assertNoLogs")
_OPTIONS = ("match", "timeout", "encoding", "errors", "mode")

Function = Any  # one of _FUNCTIONS


class TestSource:
    """`used` are the functions of its file that the test is, calls or has for fixtures, by their first lines."""

    def __init__(self, text: str, name: str, line: int) -> None:
        self._text = text
        tree = ast.parse(text)
        functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
        first = [one for one in functions if one.name == name and _first(one) <= line <= one.lineno]
        named: dict[str, list[Function]] = {}
        for one in functions:
            named.setdefault(one.name, []).append(one)
        methods = [one for part in ast.walk(tree) if isinstance(part, ast.ClassDef) for one in part.body]
        left: list[Function] = [*first, *(one for one in methods if getattr(one, "name", "") in _SET_UP)]
        self.found = bool(first)
        self.used: dict[int, Function] = {}
        self.names: set[str] = set()
        while left:
            one = left.pop()
            if one.lineno not in self.used:
                self.used[one.lineno] = one
                names = set(_names(one))
                self.names |= names
                left += [other for name in names for other in named.get(name, ())]
        self.expected = set().union(*map(_only_compared, self.used.values()), set())
        self.constants = dict(_constants(tree, self.names - self.expected))

    def given(self) -> Iterator[Any]:
        """The values of the literals that reach the product."""
        for one in self.used.values():
            for node in _literals(one, self.expected):
                yield node.value
        yield from self.constants.values()

    def changed(self, literals: Mapping[str, str]) -> ast.Module:
        """The whole file again, with these literals in the functions that the test uses."""
        tree = ast.parse(self._text)
        for node in [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]:
            if node.lineno in self.used:
                for literal in _literals(node, self.expected):
                    literal.value = variants.applied(literal.value, literals)
                node.body = [_Recording().visit(statement) for statement in node.body]
        return ast.fix_missing_locations(tree)


def _first(one: Function) -> Any:
    return min(node.lineno for node in (one, *one.decorator_list))


def _names(one: Function) -> Iterator[str]:
    for node in ast.walk(one):
        for name in ("id", "attr", "arg"):
            if isinstance(found := getattr(node, name, None), str):
                yield found


def _constants(tree: ast.Module, names: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Plain values of the module that the test uses by their names."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            try:
                value = ast.literal_eval(statement.value)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                continue
            if name in names and len(statement.targets) == 1:
                yield name, value


def _literals(one: Function, expected: Collection[str]) -> Iterator[ast.Constant]:
    """Those that a function gives: no documentation, no index, and nothing that is only compared with."""
    parts: list[ast.AST] = [*one.body, one.args]
    nodes = [inner for part in parts for inner in ast.walk(part)]
    left_out = {id(inner) for node in nodes for part in _no_input(node, expected) for inner in ast.walk(part)}
    for node in nodes:
        if isinstance(node, ast.Constant) and id(node) not in left_out:
            yield node


def _no_input(node: ast.AST, expected: Collection[str]) -> Sequence[ast.AST]:
    """Parts of this node whose literals are nothing that the test gives."""
    if isinstance(node, ast.Subscript):
        return [node.slice]
    if isinstance(node, ast.FormattedValue):
        return [node.format_spec] if node.format_spec is not None else []
    documents = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    option = isinstance(node, ast.keyword) and node.arg in _OPTIONS
    if documents or option or (isinstance(node, ast.Assign) and _assigns(node) & set(expected)):
        return [node.value]  # type: ignore[attr-defined]
    return [operand for operand in _compared(node) if _is_literal(operand)]


def _assigns(node: ast.Assign) -> set[str]:
    return {target.id for target in node.targets if isinstance(target, ast.Name)}


def _compared(node: ast.AST) -> list[ast.expr]:
    """What an assertion compares, if this is one, or the arguments of a method of unittest that asserts."""
    if isinstance(node, ast.Assert):
        compares = [inner for inner in ast.walk(node.test) if isinstance(inner, ast.Compare)]
        return [operand for one in compares for operand in (one.left, *one.comparators)]
    return list(node.args) if isinstance(node, ast.Call) and _asserts(node) else []


def _asserts(node: ast.Call) -> bool:
    function = node.func
    return isinstance(function, ast.Attribute) and function.attr.startswith("assert") and function.attr not in _RUN


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return isinstance(node, ast.Call) and bool(node.args) and all(map(_is_literal, node.args)) and _is_wrapper(node)
    return True


def _is_wrapper(node: ast.Call) -> bool:
    """Whether it says how to compare a value, such as `pytest.approx(3)`."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ("approx", "Decimal", "Fraction", "date", "datetime", "set", "frozenset", "dict", "bytes")


def _only_compared(one: Function) -> set[str]:
    """Names of which the test uses nothing but their comparison: what it expects."""
    compared = {id(operand) for node in ast.walk(one) for operand in _compared(node)}
    loads: dict[str, list[bool]] = {}
    for node in ast.walk(one):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads.setdefault(node.id, []).append(id(node) in compared)
    return {name for name, each in loads.items() if all(each)} & _given_names(one)


def _given_names(one: Function) -> set[str]:
    """Parameters, and names that get nothing but literals: not what a product returned."""
    arguments = {arg.arg for arg in (*one.args.args, *one.args.kwonlyargs)}
    assigned = [node for node in ast.walk(one) if isinstance(node, ast.Assign)]
    others = {name for node in assigned if not _is_literal(node.value) for name in _assigns(node)}
    return (arguments | {name for node in assigned for name in _assigns(node)}) - others


class _Recording(ast.NodeTransformer):
    """Assertions that note what they compare."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.copy_location(ast.Expr(_noted(_Operands().visit(node.test))), node)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if isinstance(node.value, ast.Call) and _asserts(node.value):
            arguments: list[ast.expr] = [_noted(argument) for argument in node.value.args]
            return ast.copy_location(ast.Expr(ast.Tuple(arguments, ast.Load())), node)
        return node


class _Operands(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        node.left = _noted(node.left)
        node.comparators = [_noted(operand) for operand in node.comparators]
        return node


def _noted(node: ast.expr) -> ast.expr:
    if isinstance(node, (ast.Starred, ast.Constant)):
        return node
    return ast.copy_location(ast.Call(ast.Name(NOTE, ast.Load()), [node], []), node)
