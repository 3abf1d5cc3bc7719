"""Decides whether an agent program may obey the files that a repository has for it: hooks, servers, permissions.

Claude Code and Codex ask the user before they obey such files; mngr answers for the user. OpenCode obeys them at once;
mngr asks in its place. The answer is yes where the user trusted the directory in the program itself or with
`mngr config trust`, and where there are no such files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mngr.errors import Undecided
from mngr.json_values import file, table
from mngr.settings import trust
from mngr.settings.trust import Claim

if TYPE_CHECKING:
    from mngr.programs.driver import AgentContext

FILES = {
    "claude": (".claude", ".mcp.json"),
    "codex": (".codex",),
    "opencode": (".opencode", "opencode.json", "opencode.jsonc"),
}


def claims(directory: str, programs: Sequence[str] = tuple(FILES)) -> list[Claim]:
    """The files that a directory has for these programs."""
    found = (trust.of_files(directory, name) for program in programs for name in FILES.get(program, ()))
    return [claim for claim in found if claim.lines]


def check_new(program: str, agent: AgentContext, conversation: str) -> None:
    """Check before the first start. An agent with a conversation, such as a clone, has used these files before.
    `conversation` is the file or the directory of it in the home of its program."""
    record = agent.record
    if program in record.workspace.origin.get("trusted", "").split():
        return  # the user has answered on the machine that the code came from
    path = f"{agent.home}/{conversation}"
    if record.life.started_at is None and not (os.path.isfile(path) or agent.host.entries(path)):
        source = record.workspace.repo or record.workspace.source or record.workspace.work_dir
        check(program, agent.host.dir, agent.environ, record.workspace.work_dir, source)


def check(program: str, host_dir: str, environ: Mapping[str, str], directory: str, source: str) -> None:
    """Raise when `directory`, a copy of `source`, has files that the program would obey and the user does not trust."""
    found = claims(directory, (program,))
    if not found or _accepted(program, environ, (directory, source)):
        return
    if all(trust.is_trusted(host_dir, claim._replace(root=source)) for claim in found):
        return
    names = " and ".join(f"`{claim.name}`" for claim in found)
    raise Undecided(
        f"`{program}` would obey {names} of `{source}`, which can run commands, and you have not trusted it",
        details="\n".join(line for claim in found for line in claim.lines),
        hint="read these files, then run `mngr config trust` there"
        + (f"; or run `{program}` there once and accept" if program != "opencode" else ""),
    )


def _accepted(program: str, environ: Mapping[str, str], places: Sequence[str]) -> bool:
    """Whether the user told the program itself to trust one of these directories, or one above it."""
    from pathlib import PurePath

    if program == "opencode":
        return False  # it has no such question
    answer: tuple[str, object]
    if program == "claude":
        from mngr.programs.claude.home import user_config

        known, answer = table(file(user_config(environ)).get("projects")), ("hasTrustDialogAccepted", True)
    else:
        from mngr.programs.codex.driver import user_settings

        known, answer = table(user_settings(environ).get("projects")), ("trust_level", "trusted")
    paths = (path for place in map(PurePath, places) for path in (place, *place.parents))
    return any(answer in table(known.get(str(path))).items() for path in paths)
