"""Changes that make a test notice less: fewer assertions, assertions that prove nothing (always true, never reached, or
caught), skips, longer waits. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mngr.tmr.judge.changed_file import FUNCTIONS, File, Flag, definitions, functions, is_assertion, last_name, parsed

# A person must accept work with one of these.
KINDS = frozenset({"tautology", "unreached", "swallowed", "shared", "patches-all"})
PATCHED = "patched"
_CATCH_ALL = frozenset({"AssertionError", "Exception", "BaseException"})
_ENDS = frozenset({"skip", "exit", "_exit"})
_SKIPS = frozenset({"skip", "skipif", "xfail", "importorskip"})
_WAITS = frozenset({"timeout", "seconds", "sleep", "retries", "reruns", "delay"})


def find(file: File) -> Iterator[Flag]:
    """The flags of one file of tests; none for a language other than Python."""
    if not file.path.endswith(".py"):
        return
    yield from vain_assertions(file)
    yield from _patches_all(file)
    yield from _shared(file)
    before, after = _functions(file.before), _functions(file.after)
    bodies = {new.body for new in after.values()}
    for name, old in before.items():
        if name not in after and old.is_test and old.body not in bodies:
            yield Flag("test-deleted", file.path, f"`{name}` is gone")
    for name, new in after.items():
        old = before.get(name, _Function())
        if new.assertions < old.assertions:
            told = f"`{name}` had {old.assertions} assertions and has {new.assertions}"
            yield Flag("fewer-assertions", file.path, told)
        if name not in before and new.is_test and not new.assertions:
            yield Flag("no-assertion", file.path, f"`{name}` is new and asserts nothing")
        if skips := new.skips - old.skips:
            yield Flag("skip", file.path, f"`{name}` has a new {', '.join(f'`{skip}`' for skip in sorted(skips))}")
        for word in sorted(new.waits.keys() & old.waits.keys()):
            if new.waits[word] > old.waits[word]:
                longer = f"{old.waits[word]:g} to {new.waits[word]:g}"
                yield Flag("longer-timeout", file.path, f"`{name}` has `{word}` raised from {longer}")


def _patches_all(file: File) -> Iterator[Flag]:
    """New lines that change a part of another module for every test that comes later."""
    lines = {number for number, _ in file.added()}
    tree = parsed(file.after) or ast.Module([], [])
    names = [name for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for name in node.names]
    imported = {(name.asname or name.name).partition(".")[0] for name in names}
    for node in ast.walk(tree):
        changed: Sequence[ast.expr] = ()
        if isinstance(node, ast.Assign | ast.Delete):
            changed = [target for target in node.targets if isinstance(target, ast.Attribute | ast.Subscript)]
        elif isinstance(node, ast.Call) and last_name(node.func) in ("setattr", "delattr"):
            changed = node.args[:1]
        for target in changed:
            if target.lineno in lines and _root(target) in imported:
                text = f"`{file.path}` line {target.lineno} changes `{_cut(target)}`, which other tests use too"
                yield Flag("patches-all", file.path, text)


def _root(node: ast.AST) -> str:
    """The name that an expression begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return last_name(node)


def _shared(file: File) -> Iterator[Flag]:
    """Functions that assert something for several tests and do something else now: the other tests, which nobody
    measures for that, may notice less."""
    old, new = functions(file.before), functions(file.after)
    for name, node in old.items():
        if name not in new or node.name.startswith("test") or not _asserts([node]):
            continue
        users = [other for other, one in old.items() if other != name and _uses(one, node.name)]
        shared = len(users) > 1 or not any(one.name.startswith("test") for one in old.values())
        if shared and ast.dump(node) != ast.dump(new[name]):
            yield Flag("shared", file.path, f"`{name}` in `{file.path}` is changed, which other tests use too")


def _uses(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    parts = ast.walk(function)
    return any((part.arg if isinstance(part, ast.arg) else last_name(part)) == name for part in parts)


class _Function(NamedTuple):
    is_test: bool = False
    assertions: int = 0
    skips: frozenset[str] = frozenset()
    waits: Mapping[str, float] = {}
    body: str = ""


def _functions(source: str | None) -> dict[str, _Function]:
    """Every function by its dotted name, and the file itself by `module`. Nothing of a file that does not parse."""
    if (tree := parsed(source)) is None:
        return {}
    top = [node for node in tree.body if not isinstance(node, (*FUNCTIONS, ast.ClassDef))]
    found = {name: _look(name, node) for name, node in definitions(tree.body)}
    return {"module": _look("module", *top), **found}


def _look(name: str, *nodes: ast.AST) -> _Function:
    roots = [one for node in nodes for one in (node.decorator_list if isinstance(node, ast.ClassDef) else [node])]
    parts = [part for root in roots for part in ast.walk(root)]
    calls = [part for part in parts if isinstance(part, ast.Call)]
    given = [(last_name(call.func), call.args[0]) for call in calls if call.args]
    given += [(keyword.arg or "", keyword.value) for call in calls for keyword in call.keywords]
    waits: dict[str, float] = {}
    for word, value in given:
        if word in _WAITS and isinstance(value, ast.Constant) and isinstance(value.value, int | float):
            waits[word] = max(value.value, waits.get(word, 0.0))
    names = {last_name(part) for part in parts if isinstance(part, ast.Attribute | ast.Name)}
    body = "\n".join(ast.dump(part) for node in nodes if isinstance(node, FUNCTIONS) for part in node.body)
    is_test = name.rpartition(".")[2].startswith("test")
    return _Function(is_test, sum(map(is_assertion, parts)), _SKIPS & names, waits, body)


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
            yield _told("tautology", node, f"`{_cut(node)}` is always true")
        elif isinstance(node, ast.Call) and _compares_with_itself(node):
            yield _told("tautology", node, f"`{_cut(node)}` compares a value with itself")
        elif isinstance(node, ast.Try) and _asserts(node.body) and any(_swallows(one) for one in node.handlers):
            yield _told("swallowed", node, "a failed assertion is caught, and the test goes on")
        elif isinstance(node, ast.With | ast.AsyncWith) and _suppresses(node) and _asserts(node.body):
            yield _told("swallowed", node, "a failed assertion is suppressed or expected, and the test goes on")
        elif isinstance(node, ast.If | ast.While) and _constant(node.test) is False and _asserts(node.body):
            yield _told("unreached", node, f"the assertions below `{_cut(node.test)}` never run")
        elif isinstance(node, ast.Call) and (patched := _patches(node)):
            yield _told(PATCHED, node, f"`{patched}` replaces a part of the program under test")
    yield from _cut_short(function, is_test)


def _told(kind: str, node: ast.AST, text: str) -> _Vain:
    source = ast.unparse(node) if kind != "unreached" else text
    return _Vain(kind, getattr(node, "lineno", 0), source, text)


def _cut(node: ast.AST) -> str:
    line = ast.unparse(node).partition("\n")[0]
    return line if len(line) <= 60 else f"{line[:57]}..."


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
                yield _told("unreached", node, f"`{_cut(node)}` comes before assertions")
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
