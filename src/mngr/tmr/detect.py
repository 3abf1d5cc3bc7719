"""How a project's tests are probably run, from the files it has: a guess for a person to look at."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from mngr.json_values import loads, table
from mngr.system.files import read_followed
from mngr.system.process import find_program, quote
from mngr.tmr import python_needs

# What is read to tell, at the top of the project. GNU make takes the first of the three Makefiles.
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_MOST_BYTES = 10_000_000
READ = (*python_needs.READ, "package.json", *_MAKEFILES)
# What makes a directory a project, for a repository that has it below its top.
_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")
_DEEP = 2
# How the product is built in a fresh copy. Each of these can be run twice.
_BUILDS = {
    "meson.build": "{ [ -d build ] || meson setup build; } && meson compile -C build",
    "CMakeLists.txt": "cmake -S . -B build && cmake --build build",
    "Cargo.toml": "cargo build --quiet",
    "main.go": "go build .",
    "go.mod": "go build ./...",
    "configure": "./configure && make",
    "configure.ac": "autoreconf --install && ./configure && make",
}
# These builds are part of installing the Python package.
_BUILT_BY_PIP = re.compile(r"maturin|scikit[-_]build|mesonpy|meson-python|setuptools[-_]rust|cffi")
_COMPILES = re.compile(r"\$[({](?:CC|CXX|FC|LD|GO|CARGO)[)}]|\b(?:gcc|g\+\+|clang|rustc|javac|go build|cargo)\b|\.o\b")
_TARGET = re.compile(r"^([A-Za-z0-9][\w./-]*)\s*:(?![:=])", re.MULTILINE)
_NOT_A_BUILD = frozenset({"help", "test", "tests", "check", "lint", "clean", "install", "run", "format", "fmt", "dev"})
# How a project with this lock file is installed, with the groups of its tests, and how they are run then.
_LOCKS = {
    "uv.lock": ("uv sync --frozen --quiet", "uv run --no-sync pytest"),
    "poetry.lock": ("poetry install --quiet", "poetry run pytest"),
    "pdm.lock": ("pdm sync --quiet --dev", "pdm run pytest"),
}
PROGRAMS = frozenset({"uv", "poetry", "pdm", "ruff", "pre-commit"})


class Guess(NamedTuple):
    """A key of `[tmr]`, its value as TOML text, and where it was found."""

    key: str
    value: str
    because: str


def detect(names: frozenset[str], texts: Mapping[str, str], programs: Collection[str] = PROGRAMS) -> list[Guess]:
    """`names` are the files and directories at the top of the project, `texts` the contents of those in `READ`, and
    `programs` those of `PROGRAMS` that are here."""
    install, build = _install(names, texts, programs), _build(names, texts)
    if install and build and (build[1] == "package.json" or _BUILT_BY_PIP.search(texts.get("pyproject.toml", ""))):
        build = None  # beside a Python package, npm is rather for its pages or tools
    steps = [(install[0], install[2])] if install else []
    steps += [build] if build else []
    found = [Guess("prepare", " && ".join(s[0] for s in steps), ", ".join(s[1] for s in steps))] if steps else []
    found += [Guess("test_command", install[1], install[2])] if install else []
    gate = _gate(names, texts, built=build is not None)
    folders = [f"{name}/" for name in ("src", "include", "lib") if name in names and "src" in names]
    found += [Guess("gate_command", *gate)] if gate and gate[0].split()[0] in {"make", *programs} else []
    return found + ([Guess("paths.implementation", json.dumps(folders), " ".join(folders))] if folders else [])


def look(top: str, below: str = "") -> list[Guess]:
    """The same for the project in this directory, or in the only one below it that is a project; `below` names that."""
    below = below or next(iter(_projects(top)), "")
    directory = os.path.join(top, below)
    names = {*os.listdir(directory)}
    for inner in names & {"requirements", "test", "tests"}:
        if os.path.isdir(place := os.path.join(directory, inner)):
            names |= {f"{inner}/{name}" for name in os.listdir(place)}
    texts = {}
    for name in names.intersection(READ):
        if os.path.isfile(path := os.path.join(directory, name)):
            texts[name] = read_followed(path, _MOST_BYTES)[:_MOST_BYTES].decode(errors="replace").replace("\r\n", "\n")
    found = detect(frozenset(names), texts, [program for program in PROGRAMS if find_program(program)])
    return [_placed(guess, below) for guess in found] if below else found


def _placed(guess: Guess, below: str) -> Guess:
    """The guess for a directory as one for the whole repository."""
    value = f"cd {quote(below)} && {guess.value}"
    if guess.key.startswith("paths."):
        value = json.dumps([f"{below}/{folder}" for folder in json.loads(guess.value)])
    return Guess(guess.key, value, f"{below}: {guess.because}")


def _projects(top: str) -> list[str]:
    """The project below the top, if that is none itself and there is just one."""

    def inside(place: str, depth: int) -> Iterator[str]:
        for name in sorted(os.listdir(os.path.join(top, place))):
            path = os.path.join(place, name)
            full = os.path.join(top, path)
            if name.startswith((".", "_")) or os.path.islink(full) or not os.path.isdir(full):
                continue
            if any(os.path.isfile(os.path.join(full, one)) for one in _PROJECT):
                yield path
            elif depth < _DEEP:
                yield from inside(path, depth + 1)

    known = (*_PROJECT, *READ, *_BUILDS)
    found = [] if any(os.path.exists(os.path.join(top, name)) for name in known) else [*inside("", 1)]
    return found if len(found) == 1 else []


def _build(names: Collection[str], texts: Mapping[str, str]) -> tuple[str, str] | None:
    """A command that builds the product, and the file that says so."""
    found = next((name for name in _BUILDS if name in names), "")
    return (_BUILDS[found], found) if found else _make(names, texts) or _npm(names, texts)


def _make(names: Collection[str], texts: Mapping[str, str]) -> tuple[str, str] | None:
    """A Makefile may be no more than a list of shortcuts."""
    name, targets = _targets(texts)
    own = [target for target in ("all", "build") if target in targets]
    python = {"pyproject.toml", "setup.py"}.intersection(names)
    if not targets or not (_COMPILES.search(texts[name]) or (own and not python)):
        return None
    if targets[0] not in _NOT_A_BUILD:
        return "make", name
    return (f"make {own[0]}", name) if own else None


def _targets(texts: Mapping[str, str]) -> tuple[str, list[str]]:
    name = next((name for name in _MAKEFILES if name in texts), "")
    return name, _TARGET.findall(texts.get(name, ""))


def _npm(names: Collection[str], texts: Mapping[str, str]) -> tuple[str, str] | None:
    facts = loads(texts.get("package.json", ""))
    needed = facts.get("dependencies") or facts.get("devDependencies")
    install = "npm ci --silent" if "package-lock.json" in names else "npm install --silent" if needed else ""
    build = "npm run build" if "build" in table(facts.get("scripts")) else ""
    line = " && ".join(filter(None, (install, build))) if "package.json" in texts else ""
    return (line, "package.json") if line else None


def _install(
    names: Collection[str], texts: Mapping[str, str], programs: Collection[str]
) -> tuple[str, str, str] | None:
    """How the Python package is installed, how its tests are run then, and the files that say so."""
    needs = python_needs.needs(names, texts)
    for lock, (prepare, command) in _LOCKS.items():
        program = lock.split(".")[0]
        if lock in names and program in programs:
            chosen = [f"--group {name}" for name in needs.groups] + [f"--extra {name}" for name in needs.extras]
            more = chosen if program == "uv" else []  # the others install what they need for tests by themselves
            return " ".join([prepare, *more]), command, ", ".join([lock, *(needs.found_in if more else ())])
    project = texts.get("pyproject.toml", "")
    source = next((name for name in _PROJECT if name in names), "")
    packaged = re.search(r"^\[(?:project|build-system)\]", project, re.MULTILINE) or "setup.py" in names
    if not packaged or re.search(r"^\s*pythonpath\s*=", project, re.MULTILINE):
        return None  # the tests find the code of their own checkout, or there is nothing to install
    extras = f"'.[{','.join(needs.extras)}]'" if needs.extras else "."
    words = dict.fromkeys(("pytest", *needs.words))
    install = " ".join([".venv/bin/pip install --quiet", *words, f"--editable {extras}"])
    said = any(one.startswith(source) for one in needs.found_in)
    because = ", ".join(needs.found_in if said else (source, *needs.found_in))
    return f"python3 -m venv .venv && {install}", ".venv/bin/python -m pytest", because


def _gate(names: frozenset[str], texts: Mapping[str, str], *, built: bool) -> tuple[str, str] | None:
    name, targets = _targets(texts)
    for target in ("lint", "check"):
        if target in targets and not (built and target == "check"):  # where something is built, that runs the tests
            return f"make {target}", name
    if ".pre-commit-config.yaml" in names:
        return "pre-commit run --all-files", ".pre-commit-config.yaml"
    if "[tool.ruff" in texts.get("pyproject.toml", "") or names & {"ruff.toml", ".ruff.toml"}:
        return "ruff check", "the settings of ruff"
    return None
