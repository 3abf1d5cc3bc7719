"""May an agent program obey what a repository brings for it: hooks, servers, permissions?

Claude Code and Codex ask that of a person before they obey such files, and mngr answers in the person's place. It says
yes where they said yes themselves, in the program or with `mngr config trust`. Otherwise it says yes only where there
are no such files: whoever runs `mngr create` in a directory wants the program to work there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence

from mngr import trust
from mngr.errors import Undecided
from mngr.records import TYPE_CHECKING
from mngr.trust import Claim

if TYPE_CHECKING:
    from typing import Any

    from mngr.agents.kinds.driver import Place

FILES = {"claude": (".claude", ".mcp.json"), "codex": (".codex",)}


def claims(directory: str, programs: Sequence[str] = tuple(FILES)) -> list[Claim]:
    """What a directory brings for these programs."""
    found = (trust.of_files(directory, name) for program in programs for name in FILES.get(program, ()))
    return [claim for claim in found if claim.lines]


def check_new(program: str, place: Place, conversation: str) -> None:
    """Before the first start. An agent with a conversation, which a clone has too, has worked with these files."""
    record = place.record
    if record.started_at is None and not place.host.entries(f"{place.home}/{conversation}"):
        source = record.repo or record.source or record.work_dir
        check(program, place.host.dir, place.environ, record.work_dir, source)


def check(program: str, host_dir: str, environ: Mapping[str, str], directory: str, source: str) -> None:
    """Raise when `directory`, a copy of `source`, brings files that the program would obey and nobody has trusted."""
    found = claims(directory, (program,))
    if not found or _accepted(program, environ, (directory, source)):
        return
    if all(trust.is_trusted(host_dir, claim._replace(root=source)) for claim in found):
        return
    names = " and ".join(f"`{claim.name}`" for claim in found)
    raise Undecided(
        f"`{program}` would obey {names} of `{source}`, which can run commands, and you have not trusted it",
        details="\n".join(line for claim in found for line in claim.lines),
        hint=f"read these files, then run `mngr config trust` there; or run `{program}` there once and accept",
    )


def _accepted(program: str, environ: Mapping[str, str], places: Sequence[str]) -> bool:
    """Whether the user told the program itself to trust one of these directories, or one above it."""
    answer: tuple[str, object]
    if program == "claude":
        from mngr.agents.kinds.claude_home import user_config

        known, answer = _table(_json(user_config(environ)).get("projects")), ("hasTrustDialogAccepted", True)
    else:
        from mngr.agents.kinds.codex import user_settings

        known, answer = _table(user_settings(environ).get("projects")), ("trust_level", "trusted")
    above = (path for place in places for path in _upwards(place))
    return any(answer in _table(known.get(path)).items() for path in above)


def _upwards(path: str) -> Iterator[str]:
    while True:
        yield path
        parent = os.path.dirname(path)
        if parent == path:
            return
        path = parent


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return _table(json.load(file))
    except (OSError, ValueError, RecursionError):
        return {}
