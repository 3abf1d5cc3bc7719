"""How a project's tests are probably run, from the files it has: a guess for a person to look at."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

# What is read to tell, at the top of the project. GNU make takes the first of the three Makefiles.
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
READ = ("pyproject.toml", "package.json", *_MAKEFILES)
# These builds are part of installing the Python package.
_BUILT_BY_PIP = re.compile(r"maturin|scikit[-_]build|mesonpy|meson-python|setuptools[-_]rust|cffi")
_COMPILES = re.compile(
    r"\$[({](?:CC|CXX|FC|LD|GO|CARGO)[)}]|\b(?:gcc|g\+\+|clang|rustc|javac|go build|cargo)\b|%\.o\b|\.o\s*:"
)
_TARGET = re.compile(r"^([A-Za-z0-9][\w./-]*)\s*:(?![:=])", re.MULTILINE)
_NOT_A_BUILD = frozenset({"help", "test", "tests", "check", "lint", "clean", "install", "run", "format", "fmt", "dev"})
# How a project with this lock file is installed, and how its tests are run then.
_LOCKS = {
    "uv.lock": ("uv sync --frozen --quiet", "uv run --frozen pytest"),
    "poetry.lock": ("poetry install --quiet", "poetry run pytest"),
    "Pipfile.lock": ("pipenv sync --dev", "pipenv run pytest"),
}


class Guess(NamedTuple):
    """A key of `[tmr]`, its value as TOML text, and where it was found."""

    key: str
    value: str
    because: str


def detect(names: frozenset[str], texts: Mapping[str, str]) -> list[Guess]:
    """`names` are the files and directories at the top of the project, `texts` the contents of those in `READ`."""
    installed, build = _running(names, texts), _build(names, texts)
    if build is not None and installed and _BUILT_BY_PIP.search(texts.get("pyproject.toml", "")):
        build = None
    if build is not None and installed and build.because == "package.json":
        build = None  # beside a Python package, that is rather for its pages or tools
    running = list(installed)
    if build is not None:
        first = next((guess for guess in running if guess.key == "prepare"), None)
        if first is None:
            running.insert(0, build)
        else:
            value, because = f"{first.value} && {build.value}", f"{first.because}, {build.because}"
            running[running.index(first)] = Guess("prepare", value, because)
    return [*running, *_gate(names, texts, built=build is not None), *_paths(names)]


def look(top: str) -> list[Guess]:
    """The same for the project in this directory."""
    names = frozenset(os.listdir(top))
    texts = {}
    for name in names.intersection(READ):
        if os.path.isfile(path := os.path.join(top, name)):
            with open(path, encoding="utf-8", errors="replace") as file:
                texts[name] = file.read()
    return detect(names, texts)


def _build(names: Collection[str], texts: Mapping[str, str]) -> Guess | None:
    """How the product is built in a fresh copy. Each of these can be run twice."""
    builds = {
        "meson.build": "{ [ -d build ] || meson setup build; } && meson compile -C build",
        "CMakeLists.txt": "cmake -S . -B build && cmake --build build",
        "Cargo.toml": f"cargo build --quiet{' --locked' * ('Cargo.lock' in names)}",
        "go.mod": "go build ." if "main.go" in names else "go build ./...",
        "configure": "./configure && make",
        "configure.ac": "autoreconf --install && ./configure && make",
    }
    found = next((name for name in builds if name in names), "")
    return Guess("prepare", builds[found], found) if found else _make(names, texts) or _npm(names, texts)


def _make(names: Collection[str], texts: Mapping[str, str]) -> Guess | None:
    """A Makefile may be no more than a list of shortcuts."""
    name = next((name for name in _MAKEFILES if name in texts), "")
    text = texts.get(name, "")
    targets = _TARGET.findall(text)
    own = [target for target in ("all", "build") if target in targets]
    python = {"pyproject.toml", "setup.py"}.intersection(names)
    if not targets or not (_COMPILES.search(text) or (own and not python)):
        return None
    if targets[0] not in _NOT_A_BUILD:
        return Guess("prepare", "make", name)
    return Guess("prepare", f"make {own[0]}", name) if own else None


def _npm(names: Collection[str], texts: Mapping[str, str]) -> Guess | None:
    if "package.json" not in texts:
        return None
    try:
        facts = json.loads(texts["package.json"])
    except ValueError:
        facts = {}
    facts = facts if isinstance(facts, dict) else {}
    installs = {
        "package-lock.json": "npm ci --silent",
        "pnpm-lock.yaml": "pnpm install --silent --frozen-lockfile",
        "yarn.lock": "yarn install --silent --frozen-lockfile",
    }
    needed = facts.get("dependencies") or facts.get("devDependencies")
    steps = [
        next((install for lock, install in installs.items() if lock in names), "npm install --silent" * bool(needed))
    ]
    if "build" in (facts.get("scripts") or {}):
        steps.append("npm run build")
    line = " && ".join(filter(None, steps))
    return Guess("prepare", line, "package.json") if line else None


def _running(names: Collection[str], texts: Mapping[str, str]) -> list[Guess]:
    for lock, (prepare, command) in _LOCKS.items():
        if lock in names:
            return [Guess("prepare", prepare, lock), Guess("test_command", command, lock)]
    project = texts.get("pyproject.toml", "")
    packaged = re.search(r"^\[(?:project|build-system)\]", project, re.MULTILINE) or "setup.py" in names
    if not packaged or re.search(r"^\s*pythonpath\s*=", project, re.MULTILINE):
        return []  # the tests find the code of their own checkout, or there is nothing to install
    source = "pyproject.toml" if "pyproject.toml" in names else "setup.py"
    wanted = [
        f"-r {name}" for name in ("requirements.txt", "requirements-dev.txt", "dev-requirements.txt") if name in names
    ]
    install = " ".join([".venv/bin/pip install --quiet pytest", *wanted, "--editable ."])
    return [
        Guess("prepare", f"python3 -m venv .venv && {install}", source),
        Guess("test_command", ".venv/bin/python -m pytest", source),
    ]


def _gate(names: frozenset[str], texts: Mapping[str, str], *, built: bool) -> list[Guess]:
    name = next((name for name in _MAKEFILES if name in texts), "")
    targets = _TARGET.findall(texts.get(name, ""))
    for target in ("lint", "check"):
        if target in targets and not (built and target == "check"):  # where something is built, that runs the tests
            return [Guess("gate_command", f"make {target}", name)]
    if ".pre-commit-config.yaml" in names:
        return [Guess("gate_command", "pre-commit run --all-files", ".pre-commit-config.yaml")]
    if "[tool.ruff" in texts.get("pyproject.toml", "") or names & {"ruff.toml", ".ruff.toml"}:
        return [Guess("gate_command", "ruff check", "the settings of ruff")]
    return []


def _paths(names: Collection[str]) -> list[Guess]:
    found = [name for name in ("src", "include", "lib") if name in names] if "src" in names else []
    folders = [f"{name}/" for name in found]
    return [Guess("paths.implementation", json.dumps(folders), " ".join(folders))] if folders else []
