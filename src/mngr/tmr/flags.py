"""What a person should look at in a change, since a good fix may do it too: weaker tests, special cases. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence, Set

from mngr.records import NamedTuple
from mngr.tmr.outcome import IMPLEMENTATION

_SKIPS = frozenset({"skip", "skipif", "xfail", "importorskip"})
_WAITS = frozenset({"timeout", "seconds", "sleep", "retries", "reruns", "delay"})
_UNDER_TEST = ("PYTEST_CURRENT_TEST", "PYTEST_VERSION", "MNGR_TMR_ROWS", "pytest")
# Flags of files that decide how tests are judged, also those of others: with these, a green suite means little.
STEERING = frozenset({"conftest", "pytest-settings", "test-command"})
# With these, a person must accept the work before it goes on the branch.
HOLDING = STEERING
_PYTEST_SETTINGS = frozenset({"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"})
# What a program reads to know what to do.
_READ_BY = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "nox": ("noxfile.py",),
    "pre-commit": (".pre-commit-config.yaml",),
    "ruff": ("ruff.toml", ".ruff.toml"),
    "tox": ("tox.ini",),
}
# At the top of a project, Python takes these for its own or for pytest.
_SHADOWS = frozenset({"sitecustomize", "usercustomize", "pytest", "_pytest", "pluggy", "mngr_tmr_probe"})


class Flag(NamedTuple):
    """`kind` is one word for counting, `text` says it to a person, with the place."""

    kind: str
    path: str
    text: str


class File(NamedTuple):
    """One changed file; None for a side on which it does not exist. `implementation` is how its path is classified."""

    path: str
    before: str | None
    after: str | None
    implementation: bool


def find(changed: Sequence[File], *, test: str, commands: Sequence[str] = ()) -> list[Flag]:
    """All flags of a change that was made for one test (empty for a change of many), in the order of its files.
    `commands` are those by which the tests are run and judged."""
    flags: list[Flag] = []
    words = {word.removeprefix("./") for command in commands for word in _words(command)}
    for file in changed:
        if file.implementation:
            flags += _special_cases(file, test)
        elif file.path.endswith(".py"):
            flags += _weaker_tests(file)
        flags += _wider_settings(file, words)
    return flags


def misclaimed(claims: Sequence[Mapping[str, str]], implementation: Sequence[str]) -> Iterator[Flag]:
    """Where the kinds of change that an agent claims are not those that it made: `implementation` are the paths of such
    kind that it changed."""
    says_so = any(claim["kind"] == IMPLEMENTATION for claim in claims)
    if implementation and not says_so:
        yield Flag(
            "claim", implementation[0], f"`{implementation[0]}` is changed, and no change of such kind is claimed"
        )
    if says_so and not implementation:
        yield Flag("claim", "", "a change of the implementation is claimed, and there is none")


def _weaker_tests(file: File) -> Iterator[Flag]:
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


def _special_cases(file: File, test: str) -> Iterator[Flag]:
    """Product code that knows about its test."""
    name = test.rpartition("::")[2].partition("[")[0]
    stem = test.partition("::")[0].rpartition("/")[2].removesuffix(".py")
    for number, line in _added(file):
        for word in filter(None, (name, stem, *_UNDER_TEST)):
            if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", line):
                yield Flag("names-the-test", file.path, f"line {number} of the product mentions `{word}`")
                break


def _wider_settings(file: File, words: Set[str]) -> Iterator[Flag]:
    """Files that change how tests are run, also those of others."""
    top, name = file.path.partition("/")[0], file.path.rpartition("/")[2]
    if name == "conftest.py":
        yield Flag("conftest", file.path, f"`{file.path}` is changed, which other tests use too")
    elif name in _PYTEST_SETTINGS or _of_pytest(name, file.before) != _of_pytest(name, file.after):
        yield Flag("pytest-settings", file.path, f"`{file.path}` changes how pytest is run")
    if top == ".mngr" or file.path in words or any(name in _READ_BY.get(word, ()) for word in words):
        yield Flag("test-command", file.path, f"`{file.path}` is part of how the tests are run")
    elif top.removesuffix(".py") in _SHADOWS:
        yield Flag("test-command", file.path, f"`{file.path}` takes the place of what the tests are run with")


def _of_pytest(name: str, text: str | None) -> object:
    """The settings of pytest in a file that has others too; all of it when it cannot be read."""
    if name == "pyproject.toml":
        import tomllib

        try:
            return tomllib.loads(text or "").get("tool", {}).get("pytest")
        except (tomllib.TOMLDecodeError, AttributeError, RecursionError):
            return text
    if name in ("tox.ini", "setup.cfg"):
        import configparser

        reader = configparser.RawConfigParser(strict=False)
        try:
            reader.read_string(text or "")
        except configparser.Error:
            return text
        return {section: dict(reader[section]) for section in ("pytest", "tool:pytest") if section in reader}
    return None


def _words(command: str) -> list[str]:
    import shlex

    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _added(file: File) -> list[tuple[int, str]]:
    import difflib

    old, new = (file.before or "").splitlines(), (file.after or "").splitlines()
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if len(old) < 20_000 else []
    return [
        (at + 1, new[at])
        for tag, _, _, start, end in blocks
        if tag in ("insert", "replace")
        for at in range(start, end)
    ]


class _Function(NamedTuple):
    is_test: bool
    assertions: int
    skips: frozenset[str]
    waits: Mapping[str, float]
    body: str


def _functions(source: str | None) -> dict[str, _Function]:
    """Every function by its dotted name, and the file itself by `module`. Nothing of a file that does not parse."""
    try:
        tree = ast.parse(source or "")
    except (SyntaxError, ValueError, RecursionError):
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
        if isinstance(node, ast.Assert):
            assertions += 1
        elif isinstance(node, ast.Call):
            called = _last_name(node.func)
            if called.startswith(("assert", "to_", "not_to_")) or called == "raises":
                assertions += 1
            for keyword in node.keywords:
                if keyword.arg in _WAITS and (number := _number(keyword.value)) is not None:
                    waits[keyword.arg] = max(number, waits.get(keyword.arg, 0.0))
            if called in _WAITS and node.args and (number := _number(node.args[0])) is not None:
                waits[called] = max(number, waits.get(called, 0.0))
        if isinstance(node, ast.Attribute | ast.Name) and _last_name(node) in _SKIPS:
            skips.add(_last_name(node))
    bodies = [node.body for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    body = "\n".join(ast.dump(statement) for statements in bodies for statement in statements)
    return _Function(name.startswith("test"), assertions, frozenset(skips), waits, body)


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _number(node: ast.AST) -> float | None:
    good = isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
    return float(node.value) if good and isinstance(node, ast.Constant) else None  # type: ignore[arg-type]
