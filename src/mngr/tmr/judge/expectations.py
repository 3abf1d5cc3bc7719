"""Expected values that a change of tests altered: the same assertion before and after, with another constant. Pure."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mngr.tmr.judge.changed_file import File, functions, is_assertion, last_name, parsed
from mngr.tmr.judge.evidence import ChangedExpectation

_TEXT_MAX = 300
_RECORDED = re.compile(r"(?i)(^|[/._-])(expected|golden|snapshots?|__snapshots__|approved|snap|ambr)([/._-]|$)")


class _Slot(NamedTuple):
    """One place of a function that has expected values: `about` is what is looked at, without constants. `contained`
    is text that has to be somewhere in it."""

    about: str
    line: int
    expected: str
    contained: str = ""


def changed(files: Sequence[File]) -> list[ChangedExpectation]:
    """What tests expected before and expect now, in the order of the files."""
    found: list[ChangedExpectation] = []
    for file in files:
        if file.implementation or file.before is None or file.after is None:
            continue
        if file.path.endswith(".py"):
            found += _of_functions(file)
        elif _RECORDED.search(file.path):
            found += _of_lines(file)
    return found


def _of_functions(file: File) -> Iterator[ChangedExpectation]:
    old, new = _functions(file.before), _functions(file.after)
    for name, after in new.items():
        for was, now in sorted(_pairs(old.get(name, []), after), key=lambda pair: pair[1].line):
            if was.expected != now.expected and not _is_kept(was, now):
                yield ChangedExpectation(file.path, now.line, _cut(was.expected), _cut(now.expected))


def _pairs(before: Sequence[_Slot], after: Sequence[_Slot]) -> Iterator[tuple[_Slot, _Slot]]:
    """Those that look at the same thing, in their order; where there are more or fewer of them now, without those that
    were added or removed."""
    for about in dict.fromkeys(slot.about for slot in after):
        old, new = ([slot for slot in side if slot.about == about] for side in (before, after))
        if len(old) == len(new):
            yield from zip(old, new, strict=True)
            continue
        was, now = ([slot.expected for slot in side] for side in (old, new))
        for tag, start, end, begin, stop in difflib.SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
            if tag == "replace":
                yield from zip(old[start:end], new[begin:stop], strict=False)


def _is_kept(was: _Slot, now: _Slot) -> bool:
    """Whether what had to be there still has to, with more around it."""
    return bool(was.contained) and was.contained in now.expected and "not" not in now.expected.partition("(")[0]


def _of_lines(file: File) -> Iterator[ChangedExpectation]:
    """The first lines of each difference of a recorded answer."""
    old, new = (file.before or "").splitlines(), (file.after or "").splitlines()
    for tag, start, end, begin, stop in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            before, after = " / ".join(old[start:end][:3]), " / ".join(new[begin:stop][:3])
            yield ChangedExpectation(file.path, begin + 1, _cut(before), _cut(after))


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 3]}..."


def _functions(source: str | None) -> dict[str, list[_Slot]]:
    """The slots of every function by its dotted name; those of the file itself by an empty one."""
    tree = parsed(source)
    if tree is None:
        return {}
    found = {name: sorted(_slots(node), key=lambda slot: slot.line) for name, node in functions(source).items()}
    top = [node for node in tree.body if isinstance(node, ast.Assign)]
    used = {part.id for node in tree.body for part in ast.walk(node) if isinstance(part, ast.Name)}
    found[""] = [slot for node in top for slot in _assigned(node, used)]
    return found


def _slots(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Slot]:
    parts = [part for node in ast.walk(function) if is_assertion(node) for part in ast.walk(node)]
    asserted = {part.id for part in parts if isinstance(part, ast.Name)}
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and last_name(decorator.func) == "parametrize" and len(decorator.args) > 1:
            yield from _parameters(decorator)
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and any(_is_constant(one) for one in (node.left, *node.comparators)):
            yield _compared(node)
        elif isinstance(node, ast.Call) and is_assertion(node):
            yield from _called(node)
        elif isinstance(node, ast.Assign):
            yield from _assigned(node, asserted)


def _parameters(decorator: ast.Call) -> Iterator[_Slot]:
    """A slot for each case."""
    names = ast.unparse(decorator.args[0])
    cases = decorator.args[1]
    for case in cases.elts if isinstance(cases, ast.List | ast.Tuple) else [cases]:
        yield _Slot(f"parametrize {names}", case.lineno, ast.unparse(case))


def _compared(node: ast.Compare) -> _Slot:
    sides = [node.left, *node.comparators]
    constants = [side for side in sides if _is_constant(side)]
    about = " ".join(_masked(side) for side in sides if not _is_constant(side))
    op = node.ops[0]
    word = ast.unparse(ast.Compare(ast.Name("_"), [op], [ast.Name("_")])).strip("_ ")
    told = "" if isinstance(op, ast.Eq | ast.In) else f"{word}: " if isinstance(op, ast.NotIn) else f"{word} "
    said = told + ", ".join(ast.unparse(side) for side in constants)
    inside = isinstance(op, ast.In) and _is_constant(node.left)
    return _Slot(about, node.lineno, said, _inner(constants) if inside else "")


def _inner(constants: Sequence[ast.AST]) -> str:
    """The text of a single constant as it is inside its quotes."""
    one = constants[0] if len(constants) == 1 else None
    return repr(one.value)[1:-1] if isinstance(one, ast.Constant) and isinstance(one.value, str) else ""


def _called(node: ast.Call) -> Iterator[_Slot]:
    """`expect(x).to_equal("a")`, `self.assertEqual(x, "a")`, `raises(..., match="a")`. A call without constants has
    none."""
    constants = [part for part in (*node.args, *(one.value for one in node.keywords)) if _is_constant(part)]
    if not constants:
        return
    subject = node.func.value if isinstance(node.func, ast.Attribute) else None
    name = last_name(node.func)
    rest = [part for part in node.args if not _is_constant(part)]
    about = _masked(subject) if subject is not None and name.startswith(("to_", "not_to_")) else name
    said = f"{name}({', '.join(ast.unparse(part) for part in constants)})"
    contained = _inner(constants) if name in ("to_contain", "to_show", "assertIn") else ""
    yield _Slot(" ".join([about, *map(_masked, rest)]), node.end_lineno or node.lineno, said, contained)


def _assigned(node: ast.Assign, used: set[str]) -> Iterator[_Slot]:
    """A constant with a name that is used in assertions, or that says that it is expected."""
    for target in node.targets:
        if isinstance(target, ast.Name) and target.id in used and _is_constant(node.value):
            yield _Slot(f"{target.id} =", node.lineno, ast.unparse(node.value))


def _is_constant(node: ast.AST) -> bool:
    """Whether an expression is made of constants alone."""
    if isinstance(node, ast.Call):
        return last_name(node.func) in ("approx", "date", "datetime", "Decimal", "Path", "set", "dedent") and all(
            _is_constant(part) for part in node.args
        )
    parts = list(ast.walk(node))
    return any(isinstance(part, ast.Constant) for part in parts) and not any(
        isinstance(part, ast.Name | ast.Call | ast.Attribute) for part in parts
    )


def _masked(node: ast.AST) -> str:
    """The source of an expression with its constants left out."""
    tree = parsed(ast.unparse(node)) or ast.Pass()
    for part in ast.walk(tree):
        if isinstance(part, ast.JoinedStr):
            part.values = []
        elif isinstance(part, ast.Constant):
            part.value = None
    return ast.unparse(tree)
