"""Files that decide how tests are run and judged, also those of others. Measurements take them from the base. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from mngr.records import NamedTuple
from mngr.tmr.changed_file import File, Flag

KINDS = frozenset({"conftest", "pytest-settings", "test-command", "shadow", "plugin"})
_PYTEST_SETTINGS = frozenset({"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"})
_MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
# What a program reads to know what to do.
_READ_BY: Mapping[str, Sequence[str]] = {
    "make": _MAKEFILES,
    "gmake": _MAKEFILES,
    "cmake": ("CMakeLists.txt",),
    "meson": ("meson.build", "meson.options", "meson_options.txt"),
    "just": ("justfile", "Justfile"),
    "cargo": ("build.rs",),
    "pip": ("setup.py",),
    "uv": ("setup.py",),
    "nox": ("noxfile.py",),
    "pre-commit": (".pre-commit-config.yaml",),
    "ruff": ("ruff.toml", ".ruff.toml"),
    "mypy": ("mypy.ini", ".mypy.ini"),
    "flake8": (".flake8",),
    "pylint": (".pylintrc", "pylintrc"),
    "pyright": ("pyrightconfig.json",),
    "lint-imports": (".importlinter",),
    "tox": ("tox.ini",),
}
_INCLUDES = {"make": (".mk", ".mak"), "gmake": (".mk", ".mak"), "cmake": (".cmake",)}
# Programs that check, with their sections in `pyproject.toml`, `setup.cfg` and `tox.ini`.
_SECTIONS = {"lint-imports": "importlinter", "pre-commit": "pre-commit"} | {
    tool: tool for tool in ("ruff", "mypy", "black", "flake8", "pylint", "pyright", "isort", "bandit", "tox", "nox")
}
# Programs that run other programs, which a command line does not show.
_RUNNERS = frozenset({"make", "gmake", "just", "tox", "nox", "pre-commit", "hatch", "poe", "task", "npm"})
# Wherever Python looks for modules, these are taken for its own start, for pytest or for our probe.
_SHADOWS = re.compile(r"sitecustomize|usercustomize|_?pytest|pluggy|mngr_tmr_probe|mngr_strength\w*")
# Where Python looks for modules in most projects.
_ROOTS = frozenset({"", "src", "lib", "python", "test", "tests"})
_MODULES = (".py", ".pyc", ".pyi", ".so", ".pyd")


def find(file: File, words: Set[str]) -> Iterator[Flag]:
    """The flags of one file; `words` are those of the commands by which tests are run and judged."""
    settings = _Settings(file)
    if file.name == "conftest.py":
        yield Flag("conftest", file.path, f"`{file.path}` is changed, which other tests use too")
    elif file.name in _PYTEST_SETTINGS or settings.differ(_of_pytest):
        yield Flag("pytest-settings", file.path, f"`{file.path}` changes how pytest is run")
    if loaded := _plugin(file, settings):
        yield Flag("plugin", file.path, f"`{file.path}` makes pytest load a plugin: {loaded}")
    if shadowed := _shadowed(file):
        yield Flag("shadow", file.path, f"`{file.path}` could be loaded in the place of {shadowed}")
    elif file.path.startswith(".mngr/") or file.path in words or _is_read(file, words):
        yield Flag("test-command", file.path, f"`{file.path}` is part of how the tests are run")
    else:
        for tool, section in _SECTIONS.items():
            if words & {tool, *_RUNNERS} and settings.differ(lambda given, name=section: _of_tool(given, name)):
                text = f"`{file.path}` changes the settings of `{section}`, which the commands run"
                yield Flag("test-command", file.path, text)


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


def _is_read(file: File, words: Set[str]) -> bool:
    """Whether a program of the commands reads the file."""
    for word in words:
        if file.name in _READ_BY.get(word, ()) or file.name.endswith(_INCLUDES.get(word, ("/",))):
            return True
        if word in ("make", "gmake") and (file.build or file.name.startswith("Makefile.")):
            return True
    return file.name == "package.json" and bool(words & {"npm", "npx", "yarn", "pnpm"}) and _scripts_differ(file)


def _scripts_differ(file: File) -> bool:
    import json

    def scripts(text: str | None) -> object:
        try:
            return json.loads(text or "{}").get("scripts")
        except (ValueError, AttributeError, RecursionError):
            return text

    return scripts(file.before) != scripts(file.after)


def _shadowed(file: File) -> str:
    """What could be replaced by the file; or nothing."""
    if file.after is None:
        return ""
    if file.name.endswith(".pth"):
        return "settings of Python, which reads such files when it starts"
    *folders, name = file.path.split("/")
    if not name.endswith(_MODULES):
        return ""
    stem = name.partition(".")[0]
    for part in (*folders, stem):
        if _SHADOWS.fullmatch(part):
            return f"`{part}`"
    top = next((part for part in (*folders, stem) if part not in _ROOTS), stem)
    known = top in sys.stdlib_module_names and top not in ("test", "__main__")
    alone = len(folders) <= 1 and (folders or [""])[0] in _ROOTS
    return f"Python's own `{top}`" if known and alone and file.before is None else ""


class _Settings(NamedTuple):
    """What is set in a file that programs share, on both of its sides."""

    file: File

    def differ(self, part: Any) -> bool:
        """Whether a part of it is changed; everything counts when a side cannot be read."""
        sides = [_read(self.file.name, text) for text in (self.file.before, self.file.after)]
        if all(side is None for side in sides):
            return False
        if any(isinstance(side, str) for side in sides):
            return self.file.before != self.file.after
        old, new = (part(side or {}) for side in sides)
        return bool(old != new)


def _read(name: str, text: str | None) -> Mapping[str, Any] | str | None:
    """The tables of a file with settings of several programs; the text when it cannot be read; None for others."""
    if name == "pyproject.toml":
        import tomllib

        try:
            return tomllib.loads(text or "")
        except (tomllib.TOMLDecodeError, RecursionError):
            return text or ""
    if name in ("tox.ini", "setup.cfg"):
        import configparser

        reader = configparser.RawConfigParser(strict=False)
        try:
            reader.read_string(text or "")
        except configparser.Error:
            return text or ""
        return {section: dict(reader[section]) for section in reader.sections()}
    return None


def _table(given: Any, *names: str) -> Any:
    for name in names:
        given = given.get(name) if isinstance(given, Mapping) else None
    return given


def _of_pytest(given: Mapping[str, Any]) -> object:
    return [_table(given, "tool", "pytest"), given.get("pytest"), given.get("tool:pytest")]


def _of_tool(given: Mapping[str, Any], tool: str) -> object:
    own = {name: table for name, table in given.items() if re.match(rf"(tool:)?{tool}\b", name)}
    return [_table(given, "tool", tool), own]


def _of_plugins(given: Mapping[str, Any]) -> object:
    return [
        _table(given, "project", "entry-points", "pytest11"),
        _table(given, "tool", "poetry", "plugins", "pytest11"),
        _table(given, "tool", "flit", "entrypoints", "pytest11"),
        _table(given, "options.entry_points", "pytest11"),
    ]


def _plugin(file: File, settings: _Settings) -> str:
    """How the file makes pytest load a plugin that it did not load before; or nothing."""
    added = [line for _, line in file.added()] if file.after else []
    if settings.differ(_of_plugins) or (
        file.name in ("setup.py", "entry_points.txt", "plux.json") and any("pytest11" in line for line in added)
    ):
        return "a `pytest11` entry point"
    if file.name.endswith(".py") and any(re.match(r"\s*pytest_plugins\b", line) for line in added):
        return "`pytest_plugins`"
    return ""
