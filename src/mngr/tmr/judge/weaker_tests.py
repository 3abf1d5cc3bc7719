"""Changes that make a test notice less in ways that its strength may not show: assertions that prove nothing (always
true, never reached, or caught), and skips. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mngr.tmr.judge.bent_code import cut
from mngr.tmr.judge.changed_file import FUNCTIONS, File, Flag, definitions, functions, is_assertion, last_name, parsed

# A person must accept work with one of these.
KINDS = frozenset({"tautology", "unreached", "swallowed"})
PATCHED = "patched"
_CATCH_ALL = frozenset({"AssertionError", "Exception", "BaseException"})
_ENDS = frozenset({"skip", "exit", "_exit"})
_SKIPS = frozenset({"skip", "skipif", "xfail", "importorskip"})


def find(file: File) -> Iterator[Flag]:
    """The flags of one file of tests; none for a language other than Python."""
    if not file.path.endswith(".py"):
        return
    yield from vain_assertions(file)
    before, after = _skips(file.before), _skips(file.after)
    for name, skips in after.items():
        if new := skips - before.get(name, frozenset()):
            yield Flag("skip", file.path, f"`{name}` has a new {', '.join(f'`{skip}`' for skip in sorted(new))}")


def unmeasured(file: File) -> Iterator[Flag]:
    """Tests that a file has no more, under any name, and tests that assert less: for work whose strength nobody
    measures."""
    before, after = functions(file.before), functions(file.after)
    bodies = {_body(node) for node in after.values()}
    for name, node in before.items():
        if name not in after and node.name.startswith("test") and _body(node) not in bodies:
            yield Flag("test-deleted", file.path, f"`{name}` is gone")
        elif (then := _assertions(node)) > (now := _assertions(after.get(name, node))):
            yield Flag("fewer-assertions", file.path, f"`{name}` had {then} assertions and has {now}")


def _body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return "\n".join(map(ast.dump, function.body))


def _assertions(node: ast.AST) -> int:
    return sum(map(is_assertion, ast.walk(node)))


def _skips(source: str | None) -> dict[str, frozenset[str]]:
    """The ways in which each function or class is skipped by its dotted name, and the file itself by `module`."""
    if (tree := parsed(source)) is None:
        return {}
    top = [node for node in tree.body if not isinstance(node, (*FUNCTIONS, ast.ClassDef))]
    found = {"module": _names(top) & _SKIPS}
    for name, node in definitions(tree.body):
        found[name] = _names(node.decorator_list if isinstance(node, ast.ClassDef) else [node]) & _SKIPS
    return found


def _names(nodes: Sequence[ast.AST]) -> frozenset[str]:
    parts = [part for node in nodes for part in ast.walk(node)]
    return frozenset(last_name(part) for part in parts if isinstance(part, ast.Attribute | ast.Name))


class _Vain(NamedTuple):
    """`source` is what tells it from another of its kind in the same function."""

    kind: str
    line: int
    source: str
    text: str


def vain_assertions(file: File) -> Iterator[Flag]:
    """For each that its functions did not have before."""
    before = functions(file.before)
    for name, node in functions(file.after).items():
        known = [one[::2] for one in _vain(before[name])] if name in before else []
        for one in _vain(node):
            if one[::2] in known:
                known.remove(one[::2])
            else:
                yield Flag(one.kind, file.path, f"`{name}`, line {one.line}: {one.text}")


def _vain(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Vain]:
    is_test = function.name.startswith("test")
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and _always_true(node.test):
            yield _told("tautology", node, f"`{cut(node)}` is always true")
        elif isinstance(node, ast.Call) and _compares_with_itself(node):
            yield _told("tautology", node, f"`{cut(node)}` compares a value with itself")
        elif isinstance(node, ast.Try) and _asserts(node.body) and any(_swallows(one) for one in node.handlers):
            yield _told("swallowed", node, "a failed assertion is caught, and the test goes on")
        elif isinstance(node, ast.With | ast.AsyncWith) and _suppresses(node) and _asserts(node.body):
            yield _told("swallowed", node, "a failed assertion is suppressed or expected, and the test goes on")
        elif isinstance(node, ast.If | ast.While) and _constant(node.test) is False and _asserts(node.body):
            yield _told("unreached", node, f"the assertions below `{cut(node.test)}` never run")
        elif isinstance(node, ast.Call) and (patched := _patches(node)):
            yield _told(PATCHED, node, f"`{patched}` replaces a part of the program under test")
    yield from _cut_short(function, is_test)


def _told(kind: str, node: ast.AST, text: str) -> _Vain:
    source = ast.unparse(node) if kind != "unreached" else text
    return _Vain(kind, getattr(node, "lineno", 0), source, text)


def _asserts(nodes: Sequence[ast.AST]) -> bool:
    return any(is_assertion(node) for root in nodes for node in ast.walk(root))


def _constant(node: ast.expr) -> bool | None:
    """Whether an expression without names is true; None if it has names."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        value = _constant(node.operand)
        return None if value is None else not value
    try:
        return bool(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _always_true(test: ast.expr) -> bool:
    if _constant(test):
        return True
    if isinstance(test, ast.Tuple):
        return bool(test.elts)
    if isinstance(test, ast.BoolOp):
        each = [_always_true(value) for value in test.values]
        return any(each) if isinstance(test.op, ast.Or) else all(each)
    if isinstance(test, ast.Compare):
        return _true_comparison(test)
    return isinstance(test, ast.Call) and last_name(test.func) == "isinstance" and last_name(test.args[-1]) == "object"


def _true_comparison(test: ast.Compare) -> bool:
    """A value compared with itself, two constants, or a length that is not negative. A call may answer otherwise when
    it is made again, but nobody compares two calls to learn that."""
    left, right, op = test.left, test.comparators[0], test.ops[0]
    if len(test.ops) > 1:
        return False
    if isinstance(op, ast.Eq | ast.Is | ast.LtE | ast.GtE) and ast.dump(left) == ast.dump(right):
        return not any(isinstance(part, ast.Call) for part in ast.walk(left))
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        return True
    is_length = isinstance(left, ast.Call) and last_name(left.func) == "len"
    return is_length and isinstance(op, ast.GtE) and isinstance(right, ast.Constant) and right.value == 0


def _compares_with_itself(node: ast.Call) -> bool:
    """`expect(x).to_equal(x)`, and `expect(True).to_be(True)`."""
    name, subject = last_name(node.func), node.func.value if isinstance(node.func, ast.Attribute) else None
    if not (name.startswith("to_") and isinstance(subject, ast.Call) and len(subject.args) == len(node.args) == 1):
        return False
    given, wanted = subject.args[0], node.args[0]
    same = ast.dump(given) == ast.dump(wanted) and not any(isinstance(part, ast.Call) for part in ast.walk(given))
    return last_name(subject.func) == "expect" and same


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Whether a failed assertion ends here: nothing in the handler raises, fails or asserts."""
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if handler.type is not None and not any(one is not None and last_name(one) in _CATCH_ALL for one in types):
        return False
    parts = [part for root in handler.body for part in ast.walk(root)]
    fails = any(isinstance(part, ast.Call) and last_name(part.func) == "fail" for part in parts)
    return not fails and not any(isinstance(part, ast.Raise) or is_assertion(part) for part in parts)


def _suppresses(node: ast.With | ast.AsyncWith) -> bool:
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and last_name(call.func) in ("suppress", "raises"):
            return any(last_name(one) in _CATCH_ALL for one in call.args)
    return False


def _patches(node: ast.Call) -> str:
    """How a call replaces a part of the program; or nothing."""
    name = ast.unparse(node.func)
    if name.endswith(("monkeypatch.setattr", "monkeypatch.setitem", "monkeypatch.syspath_prepend")):
        return name
    parts = name.split(".")
    return name if parts[0] in ("mock", "patch", "mocker", "unittest") and "patch" in parts else ""


def _cut_short(function: ast.FunctionDef | ast.AsyncFunctionDef, is_test: bool) -> Iterator[_Vain]:
    """Assertions below a `return`, in the same block or in one around it. Only a test is held to a `return` that
    depends on something: helpers have good reasons for it."""

    def walk(body: Sequence[ast.stmt], later: bool) -> Iterator[_Vain]:
        for number, node in enumerate(body):
            rest = body[number + 1 :]
            follows = later or _asserts(rest)
            if _ends(node) and (_asserts(rest) or (follows and is_test)):
                yield _told("unreached", node, f"`{cut(node)}` comes before assertions")
                return
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                continue
            for inside in ("body", "orelse", "finalbody"):
                yield from walk(getattr(node, inside, []), follows)
            for handler in getattr(node, "handlers", []):
                yield from walk(handler.body, follows)

    yield from walk(function.body, later=False)


def _ends(node: ast.stmt) -> bool:
    if isinstance(node, ast.Return):
        return True
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and last_name(call.func) in _ENDS and not call.keywords
