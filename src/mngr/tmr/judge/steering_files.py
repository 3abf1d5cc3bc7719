"""Files that decide how tests are run and judged, which measurements take from the base, and files that decide what
the product is built from."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any

from mngr.system.git import Git
from mngr.tmr.branch.objects import Objects
from mngr.tmr.judge.changed_file import File, Flag, at, settings
from mngr.tmr.judge.paths import BUILD, Paths, matches
from mngr.tmr.judge.refusals import SUBMODULE

JUDGING = frozenset({"conftest", "pytest-settings", "test-command", "shadow", "plugin", "attributes"})
BUILDING = frozenset({"dependency", "build"})
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
# Files with settings of several programs, and the sections that programs that check have there.
_SHARED = ("pyproject.toml", "setup.cfg", "tox.ini")
_SECTIONS = {"lint-imports": "importlinter", "pre-commit": "pre-commit"} | {
    tool: tool for tool in ("ruff", "mypy", "black", "flake8", "pylint", "pyright", "isort", "bandit", "tox", "nox")
}
# Programs that run other programs, which a command line does not show.
_RUNNERS = frozenset({"make", "gmake", "just", "tox", "nox", "pre-commit", "hatch", "poe", "task", "npm"})
# Wherever Python looks for modules, these are taken for its own start, for pytest or for our probe.
_SHADOWS = re.compile(r"sitecustomize|usercustomize|_?pytest|pluggy|mngr_(?:tmr|strength)\w*")
# Where Python looks for modules in most projects.
_ROOTS = frozenset({"", "src", "lib", "python", "test", "tests"})
_MODULES = (".py", ".pyc", ".pyi", ".so", ".pyd")

# All of such a file is about dependencies.
_LISTS = (
    *("requirements*.txt", "constraints*.txt", "Pipfile", "environment.yml", "go.mod", "go.sum", "Gemfile"),
    *("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "*.lock"),
)
# In these, only some tables are; each is a path of keys.
_TABLES: Mapping[str, tuple[str, ...]] = {
    "pyproject.toml": (
        *("project/dependencies", "project/optional-dependencies", "project/requires-python", "dependency-groups"),
        *("build-system/requires", "tool/poetry/dependencies", "tool/poetry/dev-dependencies", "tool/poetry/group"),
        *("tool/uv", "tool/pdm/dev-dependencies"),
    ),
    "Cargo.toml": ("dependencies", "dev-dependencies", "build-dependencies", "target", "workspace", "patch"),
    "package.json": (
        *("dependencies", "devDependencies", "peerDependencies", "optionalDependencies", "overrides", "resolutions"),
    ),
    "setup.cfg": ("options/install_requires", "options/setup_requires", "options.extras_require"),
}
# Where a project says which plugins pytest loads.
_PLUGINS = (
    *("project/entry-points/pytest11", "tool/poetry/plugins/pytest11", "tool/flit/entrypoints/pytest11"),
    "options.entry_points/pytest11",
)
_BUILD_TABLES: Mapping[str, tuple[str, ...]] = {
    "pyproject.toml": (
        *("build-system/build-backend", "build-system/backend-path", "tool/setuptools", "tool/hatch", "tool/flit"),
        *("tool/pdm/build", "tool/poetry/build", "tool/poetry/packages", "tool/maturin", "tool/scikit-build"),
        *("tool/cython", "tool/cibuildwheel", "project/dynamic"),
    ),
    "Cargo.toml": ("package/build", "package/links", "profile", "features", "lib", "bin"),
    "package.json": ("scripts", "main", "bin", "exports"),
    "setup.cfg": ("options/packages", "options/package_dir", "options/cmdclass", "build_ext"),
}

# What reads them, and how it names another file. Names with variables in them are not known before the build runs.
_READERS = (
    (("Makefile", "makefile", "GNUmakefile", "Makefile.*", "*.mk", "*.mak"), r"^ *[-s]?include[ \t]+([^#\n]+)"),
    (("CMakeLists.txt", "*.cmake"), r"^\s*(?:include|configure_file)\s*\(\s*([^\s()]+)"),
    (("requirements*.txt", "constraints*.txt"), r"^(?:-r|-c|--requirement|--constraint)[ =]*(\S+)"),
    (("justfile", "Justfile"), r"^(?:import|mod)\??\s+.*?['\"]([^'\"]+)"),
)
_SIZE_MAX = 1_000_000


def find_judging(file: File, words: Set[str]) -> Iterator[Flag]:
    """The flags of one file; `words` are those of the commands by which tests are run and judged."""
    if file.name == "conftest.py":
        yield Flag("conftest", file.path, f"`{file.path}` is changed, which other tests use too")
    elif file.name in _PYTEST_SETTINGS or _differ(file, _SHARED, _tables("tool/pytest", "pytest", "tool:pytest")):
        yield Flag("pytest-settings", file.path, f"`{file.path}` changes how pytest is run")
    elif file.name == ".gitattributes":
        yield Flag("attributes", file.path, f"`{file.path}` changes how git shows and writes files")
    if loaded := _plugin(file):
        yield Flag("plugin", file.path, f"`{file.path}` makes pytest load a plugin: {loaded}")
    if shadowed := _shadowed(file):
        yield Flag("shadow", file.path, f"`{file.path}` could be loaded in the place of {shadowed}")
    elif file.path.startswith(".mngr/") or file.path in words or _is_read(file, words):
        yield Flag("test-command", file.path, f"`{file.path}` is part of how the tests are run")
    else:
        for tool, section in _SECTIONS.items():
            if words & {tool, *_RUNNERS} and _differ(file, _SHARED, partial(_of_tool, section)):
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
    runs_scripts = bool(words & {"npm", "npx", "yarn", "pnpm"})
    return runs_scripts and _differ(file, ("package.json",), _tables("scripts"))


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


def _differ(file: File, names: Container[str], part: Callable[[Mapping[str, Any]], object]) -> bool:
    """Whether a part of one of these files of settings is changed; everything counts when a side cannot be read."""
    if file.name not in names or file.before == file.after:
        return False
    old, new = (settings(file.name, text) for text in (file.before, file.after))
    return old is None or new is None or part(old) != part(new)


def _tables(*paths: str) -> Callable[[Mapping[str, Any]], object]:
    """What is in these tables, each a path of keys."""
    return lambda given: [at(given, *path.split("/")) for path in paths]


def _of_tool(tool: str, given: Mapping[str, Any]) -> object:
    own = {name: table for name, table in given.items() if re.match(rf"(tool:)?{tool}\b", name)}
    return [at(given, "tool", tool), own]


def _plugin(file: File) -> str:
    """How the file makes pytest load a plugin that it did not load before; or nothing."""
    added = [line for _, line in file.added()] if file.after else []
    if _differ(file, _SHARED, _tables(*_PLUGINS)) or (
        file.name in ("setup.py", "entry_points.txt", "plux.json") and any("pytest11" in line for line in added)
    ):
        return "a `pytest11` entry point"
    if file.name.endswith(".py") and any(re.match(r"\s*pytest_plugins\b", line) for line in added):
        return "`pytest_plugins`"
    return ""


def find_build(file: File) -> Iterator[Flag]:
    """The flags of a file that decides what the product is built from."""
    is_list, shared = matches(file.name, _LISTS), file.name in _TABLES
    is_build = not is_list and file.name not in ("tox.ini", "noxfile.py") and (file.build or matches(file.name, BUILD))
    if is_list or (shared and _differ(file, _TABLES, _tables(*_TABLES[file.name]))):
        yield Flag("dependency", file.path, f"`{file.path}` changes what the product depends on")
    if _differ(file, _TABLES, _tables(*_BUILD_TABLES[file.name])) if shared else is_build:
        yield Flag("build", file.path, f"`{file.path}` changes how the product is built")


def with_included(git: Git, base: str, paths: Paths) -> Paths:
    """The paths, with what the build files of the base include, and what is included there. Without globs for the
    implementation all of these are part of it already."""
    if not paths.implementation:
        return paths
    objects = Objects(git)
    there = {path: entry.oid for path, entry in objects.files(base).items() if entry.mode != SUBMODULE}
    included: set[str] = set()
    todo = {path for path in there if _reader(path)}
    seen: set[str] = set()
    while todo:
        seen |= todo
        sizes = objects.sizes(there[path] for path in todo)
        todo = {path for path in todo if sizes[there[path]] <= _SIZE_MAX}
        blobs = objects.blobs(there[path] for path in todo)
        texts = {path: blobs[there[path]].decode(errors="replace") for path in todo}
        found = {name for path, text in texts.items() for name in includes(path, text, frozenset(there))}
        included |= found
        todo = found - seen
    return paths._replace(included=frozenset(included))


def includes(path: str, text: str, there: frozenset[str]) -> set[str]:
    """The files, among those that are there, that a build file names: beside it, or from the top. A file of an unknown
    name is read as one that a Makefile includes."""
    pattern = _reader(path) or _READERS[0][1]
    names = {name for found in re.findall(pattern, text, re.MULTILINE) for name in found.split() if "$" not in name}
    found: set[str] = set()
    for name in names:
        for folder in (posixpath.dirname(path), ""):
            wanted = posixpath.normpath(posixpath.join(folder, name))
            found |= (
                {wanted} & there if not set("*?[") & set(name) else {p for p in there if matches(p, (f"/{wanted}",))}
            )
    return found - {path}


def _reader(path: str) -> str:
    return next((pattern for globs, pattern in _READERS if matches(path, globs)), "")
