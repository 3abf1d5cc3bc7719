"""The skill `sync-tutorial-to-e2e-tests` for coding agents: where it goes, and putting it there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from mngr import files
from mngr.errors import MngrError

NAME = "sync-tutorial-to-e2e-tests"
# Both read the same form of a skill, a directory with `SKILL.md`, from places of their own.
PLACES = {"claude": os.path.join(".claude", "skills"), "codex": os.path.join(".agents", "skills")}
HOW = {"claude": f"/{NAME}", "codex": f"${NAME}"}


class Skill(NamedTuple):
    """`state` is what is there: "absent", "same" or "changed"."""

    agent: str
    path: str
    state: str


def text() -> str:
    """The packaged skill."""
    with open(os.path.join(os.path.dirname(__file__), "skills", f"{NAME}.md"), encoding="utf-8") as file:
        return file.read()


def look(agent: str, directory: str) -> Skill:
    """Where the skill of this agent is, below a project or a home directory, and what is there."""
    path = os.path.join(directory, PLACES[agent], NAME, "SKILL.md")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return Skill(agent, path, "same" if file.read() == text() else "changed")
    except FileNotFoundError:
        return Skill(agent, path, "absent")
    except OSError as error:
        raise MngrError(f"`{path}` cannot be read: {error.strerror}") from None


def refuse_changed(skills: Sequence[Skill]) -> None:
    """Raise if somebody changed one of them."""
    for skill in skills:
        if skill.state == "changed":
            raise MngrError(
                f"`{skill.path}` is there and is not the packaged one: it was changed, or is of another version",
                hint="`--force` replaces it, and keeps what is there beside it",
            )


def install(skill: Skill) -> str | None:
    """Write it. One that somebody changed is kept beside, under the returned name. Twice is safe."""
    kept = None
    if skill.state == "same":
        return None
    if skill.state == "changed":
        kept = _free(skill.path)
        os.rename(skill.path, kept)
    os.makedirs(os.path.dirname(skill.path), exist_ok=True)
    files.write_atomic(skill.path, text().encode(), mode=0o644)
    return kept


def _free(path: str) -> str:
    number = 1
    while os.path.lexists(f"{path}.{number}.saved"):
        number += 1
    return f"{path}.{number}.saved"
