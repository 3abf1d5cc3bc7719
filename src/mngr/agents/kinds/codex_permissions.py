"""What the sandbox of a Codex of one agent lets it write, and what it may do there with `--permissions tests`."""

from __future__ import annotations

import json

from mngr.agents import launch
from mngr.agents.kinds import allowed
from mngr.agents.kinds.driver import TESTS, Place

RULES = "rules/mngr.rules"


def words(place: Place) -> list[str]:
    never = ["-c", 'approval_policy="never"'] if place.record.one_shot else ["-a", "never"]
    roots = [*git_dirs(place), launch.task_dir(place.record, place.state_dir)]
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


def git_dirs(place: Place) -> list[str]:
    """What git writes at a commit. Of a repository of the user's it is never more than objects, reflogs, the branches
    beside the agent's own and what git keeps for its worktree: who can write hooks or `config` there runs commands
    outside of the sandbox. In place, where that cannot be told apart, Codex asks before it commits."""
    record = place.record
    if not record.git or record.transfer == "none":
        return []
    words = ["git", "rev-parse", "--path-format=absolute", "--git-common-dir", "--git-dir"]
    found = place.host.run(words, cwd=record.work_dir, timeout=30)
    common, _, private = found.text.partition("\n") if found.ok else ("", "", "")
    if common == private:
        return [common] if common else []
    folder = (record.branch or "").rpartition("/")[0]
    branches = [f"refs/heads/{folder}", f"logs/refs/heads/{folder}"] if folder else []
    shared = [f"{common}/{name}" for name in ("objects", *branches)]
    for path in shared:
        place.host.make_dir(path)  # git removes those that are empty
    return [private, *shared]
