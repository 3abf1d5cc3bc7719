"""Files beside product, tests, documentation and tutorial: any of them may decide how the product is built and how
tests are run and judged. Measurements take them from the base, and a person accepts them. What the product reads when
it runs belongs to the product."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from mngr.system.git import Git
from mngr.tmr.branch.objects import PathChange
from mngr.tmr.judge.changed_file import File, Flag, settings
from mngr.tmr.judge.paths import PathKind, Paths

JUDGING = frozenset({"conftest", "plugin", "shadow", "test-command", "build", "beside"})
# What pytest itself reads wherever it begins; other files with settings of tools build the product, or are beside it.
_PYTEST_SETTINGS = frozenset({"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"})
# Wherever Python looks for modules, these are taken for its own start, for pytest or for our probe.
_SHADOWS = re.compile(r"sitecustomize|usercustomize|_?pytest|pluggy|mngr_(?:tmr|strength)\w*|.*\.(?:dist|egg)-info")
# Where Python looks for modules in most projects.
_ROOTS = frozenset({"", "src", "lib", "python", "test", "tests"})
_MODULES = (".py", ".pyc", ".pyi", ".so", ".pyd")
# All that a project may say about itself in `pyproject.toml` and change nothing.
_ABOUT = frozenset({"version", "description", "keywords", "classifiers", "authors", "maintainers", "urls", "license"})


def find(file: File, kind: PathKind, paths: Paths, words: Set[str]) -> Iterator[Flag]:
    """The flags of one file; `words` are those of the commands by which tests are run and judged."""
    if loaded := _plugin(file):
        yield Flag("plugin", file.path, f"`{file.path}` makes pytest load a plugin: {loaded}")
    if file.name == "conftest.py":
        yield Flag("conftest", file.path, f"`{file.path}` is changed, which other tests use too")
    elif shadowed := _shadowed(file):
        yield Flag("shadow", file.path, f"`{file.path}` could be loaded in the place of {shadowed}")
    elif file.path.startswith(".mngr/") or file.path in words or file.name in _PYTEST_SETTINGS:
        yield Flag("test-command", file.path, f"`{file.path}` is part of how the tests are run")
    elif paths.builds(file.path) and not _only_about(file):
        told = f"`{file.path}` changes how the product is built, what it depends on, or how tests are run"
        yield Flag("build", file.path, told)
    elif kind == PathKind.OTHER:
        yield Flag("beside", file.path, f"`{file.path}` is neither product nor test, documentation or tutorial")


def words_of(commands: Sequence[str]) -> frozenset[str]:
    """The words of commands; a program by its last name too."""
    import shlex

    found: set[str] = set()
    for command in commands:
        try:
            lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words = list(lexer)
        except ValueError:
            words = command.split()
        for word in words:
            found |= {word, word.removeprefix("./"), word.rpartition("/")[2]}
    return frozenset(found)


def with_read(git: Git, tip: str, changes: Sequence[PathChange], paths: Paths) -> Paths:
    """The paths, with those of the changed files beside the product that the product names, and so reads when it
    runs."""
    beside = [
        one.path
        for one in changes
        if paths.kind(one.path) in (PathKind.OTHER, PathKind.DOCS) and not one.path.rpartition("/")[2].startswith(".")
    ]
    read = {path for path in beside if _is_named(git, tip, path, paths)}
    return paths._replace(read=frozenset(read)) if read else paths


def _is_named(git: Git, tip: str, path: str, paths: Paths) -> bool:
    name = path.rpartition("/")[2]
    found = git.run("grep", "-l", "-z", "-I", "-w", "-F", "-e", name, tip)
    files = [one.partition(":")[2] for one in found.stdout.decode(errors="surrogateescape").split("\0")[:-1]]
    return found.ok and any(
        file != path and paths.kind(file) == PathKind.IMPLEMENTATION and not paths.builds(file) for file in files
    )


def _shadowed(file: File) -> str:
    """What could be replaced by the file; or nothing."""
    if file.after is None:
        return ""
    if file.name.endswith(".pth"):
        return "settings of Python, which reads such files when it starts"
    *folders, name = file.path.split("/")
    stem = name.partition(".")[0]
    for part in folders if not name.endswith(_MODULES) else (*folders, stem):
        if _SHADOWS.fullmatch(part) and (name.endswith(_MODULES) or part.endswith("-info")):
            return f"`{part}`"
    if not name.endswith(_MODULES):
        return ""
    top = next((part for part in (*folders, stem) if part not in _ROOTS), stem)
    known = top in sys.stdlib_module_names and top not in ("test", "__main__")
    alone = len(folders) <= 1 and (folders or [""])[0] in _ROOTS
    return f"Python's own `{top}`" if known and alone and file.before is None else ""


def _only_about(file: File) -> bool:
    """Whether the project only says something else about itself."""
    sides = [settings(file.name, text) for text in (file.before, file.after)]
    return file.name == "pyproject.toml" and None not in sides and _rest(sides[0]) == _rest(sides[1])


def _rest(tables: Mapping[str, Any] | None) -> object:
    given = dict(tables or {})
    project = given.get("project")
    if isinstance(project, Mapping):
        given["project"] = {name: value for name, value in project.items() if name not in _ABOUT}
    return given


def _plugin(file: File) -> str:
    """How the file makes pytest load a plugin that it did not load before; or nothing."""
    added = [line for _, line in file.added()] if file.after and file.name.endswith(".py") else []
    return "`pytest_plugins`" if any(re.match(r"\s*pytest_plugins\b", line) for line in added) else ""
