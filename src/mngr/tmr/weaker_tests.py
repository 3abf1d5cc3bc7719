"""Changes that make a test notice less: fewer or vain assertions, skips, longer waits. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from mngr.records import NamedTuple
from mngr.tmr import vain_assertions
from mngr.tmr.changed_file import File, Flag, is_assertion, last_name, parsed

_SKIPS = frozenset({"skip", "skipif", "xfail", "importorskip"})
_WAITS = frozenset({"timeout", "seconds", "sleep", "retries", "reruns", "delay"})


def find(file: File) -> Iterator[Flag]:
    """The flags of one file of tests; none for a language other than Python."""
    if not file.path.endswith(".py"):
        return
    yield from vain_assertions.find(file)
    before, after = _functions(file.before), _functions(file.after)
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            if old.is_test and not any(other.body == old.body for other in after.values()):
                yield Flag("test-deleted", file.path, f"`{name}` is gone")
            continue
        if new.assertions < old.assertions:
            yield Flag(
                "fewer-assertions", file.path, f"`{name}` had {old.assertions} assertions and has {new.assertions}"
            )
        if skips := new.skips - old.skips:
            yield Flag("skip", file.path, f"`{name}` has a new {', '.join(f'`{skip}`' for skip in sorted(skips))}")
        for word in sorted(new.waits):
            if word in old.waits and new.waits[word] > old.waits[word]:
                longer = f"{old.waits[word]:g} to {new.waits[word]:g}"
                yield Flag("longer-timeout", file.path, f"`{name}` has `{word}` raised from {longer}")
    for name, new in after.items():
        if name not in before and new.is_test and not new.assertions:
            yield Flag("no-assertion", file.path, f"`{name}` is new and asserts nothing")
        if name not in before and new.skips:
            yield Flag(
                "skip", file.path, f"`{name}` is new and has {', '.join(f'`{skip}`' for skip in sorted(new.skips))}"
            )


class _Function(NamedTuple):
    is_test: bool
    assertions: int
    skips: frozenset[str]
    waits: Mapping[str, float]
    body: str


def _functions(source: str | None) -> dict[str, _Function]:
    """Every function by its dotted name, and the file itself by `module`. Nothing of a file that does not parse."""
    if (tree := parsed(source)) is None:
        return {}
    found = {"module": _look("module", [node for node in tree.body if not isinstance(node, _NAMED)])}

    def walk(nodes: Sequence[ast.stmt], prefix: str) -> None:
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                found[f"{prefix}{node.name}"] = _look(node.name, node.decorator_list)
                walk(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[f"{prefix}{node.name}"] = _look(node.name, [node])

    walk(tree.body, "")
    return found


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _look(name: str, nodes: Sequence[ast.AST]) -> _Function:
    assertions, skips = 0, set()
    waits: dict[str, float] = {}
    for node in (found for root in nodes for found in ast.walk(root)):
        assertions += is_assertion(node)
        if isinstance(node, ast.Call):
            called = last_name(node.func)
            for keyword in node.keywords:
                if keyword.arg in _WAITS and (number := _number(keyword.value)) is not None:
                    waits[keyword.arg] = max(number, waits.get(keyword.arg, 0.0))
            if called in _WAITS and node.args and (number := _number(node.args[0])) is not None:
                waits[called] = max(number, waits.get(called, 0.0))
        if isinstance(node, ast.Attribute | ast.Name) and last_name(node) in _SKIPS:
            skips.add(last_name(node))
    bodies = [node.body for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    body = "\n".join(ast.dump(statement) for statements in bodies for statement in statements)
    return _Function(name.startswith("test"), assertions, frozenset(skips), waits, body)


def _number(node: ast.AST) -> float | None:
    good = isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
    return float(node.value) if good and isinstance(node, ast.Constant) else None  # type: ignore[arg-type]
