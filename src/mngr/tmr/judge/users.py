"""Which tests of the base use a helper or fixture that a change of test code alters: these may notice less since, and
nobody changed them. By names, through other helpers too. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from mngr.tmr.judge.changed_file import File, last_name, parsed
from mngr.tmr.measure.rows import CollectedTest

# What pytest calls for every test, whoever names it.
_FOR_ALL = ("pytest_", "setup", "teardown", "setUp", "tearDown")


def users(changed: Sequence[File], sources: Mapping[str, str], tests: Mapping[str, CollectedTest]) -> list[str]:
    """The tests that run something of the changed files that is no test of its own. `sources` are all files of test
    code at the base."""
    names: set[str] = set()
    found: set[str] = set()
    for file in changed:
        old, new = _parts(file.before), _parts(file.after)
        altered = {name for name in old if not name.startswith("test") and old[name] != new.get(name)}
        names |= altered
        if any(_for_all(name, old[name]) for name in altered):
            folder = file.path.rpartition("/")[0] if file.name == "conftest.py" else file.path
            found |= {test for test, one in tests.items() if one.file == folder or one.file.startswith(f"{folder}/")}
            found |= set(tests) if file.name == "conftest.py" and not folder else set()
    if not names:
        return []
    used = {path: dict(_uses(source)) for path, source in sources.items()}
    helpers = [part for parts in used.values() for part in parts.items() if not part[0].startswith("test")]
    while more := {name for name, words in helpers if words & names} - names:
        names |= more
    for test, one in tests.items():
        inside = used.get(one.file, {})
        if (inside.get(_function(one), frozenset()) | inside.get("pytestmark", frozenset())) & names:
            found.add(test)
    return sorted(found)


def _function(test: CollectedTest) -> str:
    return (test.function or test.id).rpartition("::")[2].partition("[")[0]


def _for_all(name: str, dumped: str) -> bool:
    return name.startswith(_FOR_ALL) or "autouse" in dumped


def _top(source: str | None) -> Iterator[tuple[str, ast.stmt]]:
    """Everything that a file of tests defines: functions, those of classes too, and values with a name."""
    tree = parsed(source)
    todo: list[ast.stmt] = list(tree.body) if tree else []
    for node in todo:
        if isinstance(node, ast.ClassDef):
            yield node.name, node
            todo += node.body
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((last_name(target), node) for target in targets if last_name(target))


def _parts(source: str | None) -> dict[str, str]:
    return {name: ast.dump(node) for name, node in _top(source) if not _is_test_class(node)}


def _is_test_class(node: ast.stmt) -> bool:
    """Its tests are compared by themselves."""
    return isinstance(node, ast.ClassDef) and any(
        isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.name.startswith("test") for part in node.body
    )


def _uses(source: str) -> Iterator[tuple[str, frozenset[str]]]:
    """By name of what is defined, the names in it; texts too, by which fixtures are asked for."""
    for name, node in _top(source):
        if _is_test_class(node):
            continue
        words = {last_name(part) for part in ast.walk(node)}
        words |= {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
        constants = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
        words |= {value for value in constants if isinstance(value, str)}
        yield name, frozenset(words - {"", name})
