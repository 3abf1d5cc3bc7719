"""The skill `sync-tutorial-to-e2e-tests` for coding agents: where it goes, and putting it there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from mngr.errors import MngrError
from mngr.system import files, inside

NAME = "sync-tutorial-to-e2e-tests"
# Both read the same form of a skill, a directory with `SKILL.md`, from places of their own.
PLACES = {"claude": os.path.join(".claude", "skills"), "codex": os.path.join(".agents", "skills")}
HOW = {"claude": f"/{NAME}", "codex": f"${NAME}"}


class Skill(NamedTuple):
    """`found` is what was there: "absent", "same" or "changed"; `kept` is where a changed one is now."""

    agent: str
    path: str
    found: str
    kept: str | None = None


def install(agents: Sequence[str], directory: str, *, force: bool) -> list[Skill]:
    """Write the packaged skill for these agents below a project or a home directory. If somebody changed one, nothing
    is written and it raises; with `force` the changed one is kept beside. Raises for a link that leads out of the
    directory. Twice is safe."""
    with open(os.path.join(os.path.dirname(__file__), "skills", f"{NAME}.md"), "rb") as file:
        text = file.read()
    places = [inside.resolve(directory, os.path.join(PLACES[agent], NAME, "SKILL.md")) for agent in agents]
    skills = [_look(agent, os.path.join(directory, path), text) for agent, path in zip(agents, places, strict=True)]
    for skill in skills:
        if skill.found == "changed" and not force:
            raise MngrError(
                f"`{skill.path}` is there and is not the packaged one: it was changed, or is of another version",
                hint="`--force` replaces it, and keeps what is there beside it",
            )
    for skill in skills:
        if skill.kept:
            os.rename(skill.path, skill.kept)
        if skill.found != "same":
            os.makedirs(os.path.dirname(skill.path), exist_ok=True)
            files.write_atomic(skill.path, text, mode=0o644)
    return skills


def _look(agent: str, path: str, text: bytes) -> Skill:
    try:
        with open(path, "rb") as file:
            if file.read() == text:
                return Skill(agent, path, "same")
    except FileNotFoundError:
        return Skill(agent, path, "absent")
    number = 1
    while os.path.lexists(kept := f"{path}.{number}.saved"):
        number += 1
    return Skill(agent, path, "changed", kept)
