"""How a project's tests are probably run, from the files it has. Pure; a guess for a person to look at."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from mngr.records import NamedTuple

# What is read to tell, at the top of the project.
READ = ("pyproject.toml", "Makefile", "setup.cfg", "tox.ini")


class Guess(NamedTuple):
    """A key of `[tmr]`, its value as TOML text, and what it was told by."""

    key: str
    value: str
    because: str


def detect(names: frozenset[str], texts: Mapping[str, str]) -> list[Guess]:
    """`names` are the files and directories at the top of the project, `texts` the contents of those in `READ`."""
    return [*_running(names, texts), *_gate(names, texts), *_paths(names)]


def _running(names: Collection[str], texts: Mapping[str, str]) -> list[Guess]:
    project = texts.get("pyproject.toml", "")
    if "uv.lock" in names:
        return [
            Guess("prepare", "uv sync --frozen --quiet", "uv.lock"),
            Guess("test_command", "uv run --frozen pytest", "uv.lock"),
        ]
    if "poetry.lock" in names:
        return [
            Guess("prepare", "poetry install --quiet", "poetry.lock"),
            Guess("test_command", "poetry run pytest", "poetry.lock"),
        ]
    if "Pipfile.lock" in names:
        return [
            Guess("prepare", "pipenv sync --dev", "Pipfile.lock"),
            Guess("test_command", "pipenv run pytest", "Pipfile.lock"),
        ]
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


def _gate(names: frozenset[str], texts: Mapping[str, str]) -> list[Guess]:
    for target in ("lint", "check"):
        if re.search(rf"^{target}\s*:", texts.get("Makefile", ""), re.MULTILINE):
            return [Guess("gate_command", f"make {target}", "Makefile")]
    if ".pre-commit-config.yaml" in names:
        return [Guess("gate_command", "pre-commit run --all-files", ".pre-commit-config.yaml")]
    if "[tool.ruff" in texts.get("pyproject.toml", "") or names & {"ruff.toml", ".ruff.toml"}:
        return [Guess("gate_command", "ruff check", "the settings of ruff")]
    return []


def _paths(names: Collection[str]) -> list[Guess]:
    return [Guess("paths.implementation", '["src/"]', "src/")] if "src" in names else []
