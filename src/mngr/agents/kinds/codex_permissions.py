"""What a Codex of one agent with `--permissions tests` may do: its sandbox, in which nothing is asked."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mngr.agents import launch
from mngr.agents.kinds import allowed
from mngr.agents.kinds.driver import TESTS, Place

RULES = "rules/mngr.rules"


def words(place: Place, git_dirs: Sequence[str]) -> list[str]:
    """`git_dirs` are what a commit writes, which its sandbox protects unless it is named."""
    never = ["-c", 'approval_policy="never"'] if place.record.one_shot else ["-a", "never"]
    roots = [*git_dirs, launch.task_dir(place.record, place.state_dir)]
    return [*never, "-s", "workspace-write", *(word for path in roots for word in ("--add-dir", path))]


def forbid(place: Place) -> None:
    """Its sandbox denies what is not allowed; this is for what could work inside of it, such as a push to a path."""
    path = f"{place.home}/{RULES}"
    if place.record.permissions != TESTS:
        place.host.remove(path)
        return
    rules = [f'prefix_rule(pattern={json.dumps(text.split())}, decision="forbidden")\n' for text in allowed.NEVER]
    place.host.make_dir(f"{place.home}/rules")
    place.host.write(path, "".join(rules).encode())
