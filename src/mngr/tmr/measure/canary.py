"""Which code do these tests run? Spoil the product in a scratch copy and see whether a test notices.

When none does, the tests run some other copy, such as an editable install or a program on PATH, and no fix of any agent
would be seen: better known before the first agent is paid for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mngr.errors import MngrError
from mngr.system.git import Git
from mngr.tmr.branch.objects import NewCommit, Objects, TreeEntry, ours
from mngr.tmr.judge.paths import PathKind, Paths
from mngr.tmr.measure.measurement import Measurement, Pytest, checked, log_tail
from mngr.tmr.measure.measurer import Measurer
from mngr.tmr.measure.rows import GOOD, files_of

if TYPE_CHECKING:
    import ast

MARK = "mngr canary"
NOT_ASKED = "not asked for"
NOT_BUILT = "`[tmr] prepare` needs a product that works, and without it no test can be run"
NO_TEST = "it runs the product as it starts, before any test"
_SPOILED = {
    ".py": f'raise RuntimeError("{MARK}")\n',
    ".sh": f'echo "{MARK}" >&2; exit 97\n',
    ".js": f'throw new Error("{MARK}");\n',
    ".mjs": f'throw new Error("{MARK}");\n',
    ".cjs": f'throw new Error("{MARK}");\n',
    ".rb": f'raise "{MARK}"\n',
    ".pl": f'die "{MARK}";\n',
    ".php": f'<?php throw new Exception("{MARK}");\n',
    ".ts": f'throw new Error("{MARK}");\n',
    ".tsx": f'throw new Error("{MARK}");\n',
    ".lua": f'error("{MARK}")\n',
    # No compiler accepts these, so there is no program to run, or an earlier one would be seen to be another copy.
    **dict.fromkeys((".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".m", ".mm"), f"#error {MARK}\n"),
    ".rs": f'compile_error!("{MARK}");\n',
    **dict.fromkeys(
        (".go", ".java", ".kt", ".scala", ".swift", ".cs", ".zig", ".d", ".nim", ".hs", ".ml", ".f", ".f90", ".adb"),
        f"!!! {MARK} !!!\n",
    ),
}
_COMPILED = frozenset((f"#error {MARK}\n", f'compile_error!("{MARK}");\n', f"!!! {MARK} !!!\n"))
_SHEBANGS = {"python": ".py", "sh": ".sh", "bash": ".sh", "node": ".js", "ruby": ".rb", "perl": ".pl"}
# Part of building or installing the product, which must still work.
_BUILD = frozenset({"setup.py", "noxfile.py", "tasks.py", "build.py", "hatch_build.py", "build.rs", "configure"})
_PRODUCT = PathKind.IMPLEMENTATION
_FILES = ("100644", "100755")
_TRIES = 5


class CanaryAnswer(NamedTuple):
    """`test` reacted. None when that cannot be told, and `why` says so, or when none did of those that are
    `unmoved`."""

    test: str | None
    why: str = ""
    unmoved: int = 0


def ask(measurer: Measurer, git: Git, base: str, tests: Sequence[str], paths: Paths) -> CanaryAnswer:
    """Raises when no test reacts. A product in a language that we cannot spoil is an answer without a test. First only
    what can be spoiled so that the product can still be built, installed and imported: then a test fails for what it
    runs, and not for want of a product."""
    mildly, whole = spoiled(git, base, paths, importable=True, built=False), spoiled(git, base, paths)
    answer = CanaryAnswer(None, "no file of the product is in a language that can be spoiled")
    for broken in dict.fromkeys(filter(None, (mildly, whole))):
        answer = _reaction(measurer, base, broken, tests)
        if answer.test:
            return answer
    given = [broken for broken in (mildly, whole) if broken and measurer.gives(broken)]
    if given and not answer.test:
        measurer.prepare_each("with what it made at the base, no test noticed that the product was spoiled")
        measurer.forget(*(_measurement(broken, tests) for broken in given))
        return ask(measurer, git, base, tests, paths)
    if answer.unmoved:
        raise _other_copy(answer.unmoved)
    return answer


def _measurement(broken: str, tests: Sequence[str]) -> Measurement:
    """A product that is compiled cannot be built now: its tests are run anyway, and must miss the program."""
    step = Pytest("test", tests=tests, paths=files_of(tests), failures_max=_TRIES)
    return Measurement("canary", broken, [step], anyway=True)


def _reaction(measurer: Measurer, base: str, broken: str, tests: Sequence[str]) -> CanaryAnswer:
    done = measurer.take(_measurement(broken, tests))
    if "test" not in done.steps:
        checked(done)
    rows = done.rows
    bad = [ran for ran in rows.ran.values() if ran.outcome not in GOOD | {"skipped"}]
    said = [*((ran.id, ran.text) for ran in bad), *((item.id, item.text) for item in rows.broken)]
    if marked := [test for test, text in said if MARK in text]:
        return CanaryAnswer(marked[0])
    if not rows.ran and MARK in log_tail(done.steps["test"]):
        return CanaryAnswer("pytest itself", NO_TEST)
    if not rows.ran and done.unprepared:
        return CanaryAnswer(None, NOT_BUILT)
    if not rows.ran or (not bad and done.problem and not done.unprepared):
        return CanaryAnswer(None, done.problem or "no test was run")
    # Of those that failed and do not say why, only one that passes without the canary has noticed it.
    suspects = [ran.id for ran in bad]
    if suspects:
        beside = Pytest("test", tests=suspects, paths=files_of(suspects))
        at_base = measurer.must_take(Measurement("canary-base", base, [beside])).rows
        if noticed := [test for test in suspects if at_base.outcome(test) in GOOD]:
            return CanaryAnswer(noticed[0])
    if len(suspects) < min(_TRIES, len(rows.ran)):
        return CanaryAnswer(None, unmoved=len(rows.ran) - len(suspects))
    return CanaryAnswer(None, "the tests that were tried fail without the canary too")


def _other_copy(count: int) -> MngrError:
    return MngrError(
        f"the tests do not run the code of their own checkout: with every file of the product spoiled, {count} tests "
        "gave the same result",
        hint="they use another copy, such as an editable install or a program on PATH; "
        "say how to install this one into each workspace: `mngr config set tmr.prepare 'COMMAND'`, and how its "
        "tests are then run: `mngr config set tmr.test_command 'COMMAND'`",
    )


def spoiled(
    git: Git, base: str, paths: Paths, *, importable: bool = False, returns: bool = False, built: bool = True
) -> str | None:
    """A commit on top of base in which every file of the product that we know how to spoil is spoiled; None when there
    is none. With `importable`, Python's modules can still be imported, and only calls of their functions fail;
    programs are spoiled as a whole. With `returns`, those calls return something that nobody expects. Without `built`,
    what has to be compiled stays as it is."""
    objects = Objects(git)
    there = objects.files(base).items()
    product = {path: entry for path, entry in there if entry.mode in _FILES and paths.kind(path) == _PRODUCT}
    read = (entry.oid for path, entry in product.items() if entry.mode == "100755" or path.endswith(".py"))
    sources = objects.blobs(read)
    files: dict[str, TreeEntry | None] = {}
    for path, entry in product.items():
        source = sources.get(entry.oid, b"").decode(errors="replace")
        is_program = entry.mode == "100755"
        first = source[:200].split("\n")[0] if is_program else ""
        text = _SPOILED.get(os.path.splitext(path)[1] or _suffix_of(first))
        if text is None or os.path.basename(path) in _BUILD or (text in _COMPILED and not built):
            continue
        # An executable without its first line could not be started at all, and the next one on PATH would be.
        content = f"{first}\n{text}" if first.startswith("#!") else text
        if importable and text == _SPOILED[".py"] and not is_program:
            without = without_bodies(source, "return object()" if returns else text)
            content = content if without is None else without  # an empty module stays one
        files[path] = entry._replace(oid=objects.new_blob(content.encode(errors="replace"), like=entry.oid))
    return objects.write([NewCommit(base, files, f"{MARK}\n", ours(), ours())])[0] if files else None


def without_bodies(source: str, body: str = _SPOILED[".py"]) -> str | None:
    """Python in which every function raises when it is called, or does what `body` says, and constants of modules and
    classes have other values; the same if it has none of these. None for what cannot be parsed."""
    import ast

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    changed = False
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = list(ast.parse(body).body)
            changed = True
        elif isinstance(node, ast.Module | ast.ClassDef):
            for statement in node.body:
                changed |= _other_values(statement)
    if not changed:
        return source
    first = source.split("\n", 1)[0]
    return (f"{first}\n" if first.startswith("#!") else "") + ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _other_values(statement: ast.stmt) -> bool:
    """Whether a statement was a constant, and now has another value of the same type."""
    import ast

    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    names = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    try:
        ast.literal_eval(statement.value)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return False
    if any(isinstance(name, ast.Name) and name.id.startswith("__") for name in names):
        return False
    for node in ast.walk(statement.value):
        if isinstance(node, ast.Constant):
            node.value = _other_value(node.value)
    return True


def _other_value(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 9973
    return f"{value} {MARK}" if isinstance(value, str) else value


def _suffix_of(first: str) -> str:
    """The language of a script, by its first line."""
    words = first.removeprefix("#!").replace("/", " ").split() if first.startswith("#!") else []
    return next((_SHEBANGS[name] for word in words if (name := word.rstrip("0123456789.")) in _SHEBANGS), "")
