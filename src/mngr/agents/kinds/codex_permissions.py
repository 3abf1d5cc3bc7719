"""The sandbox of a Codex of one agent: how it starts, what it lets the agent write, and what the agent may do with
`--permissions tests`."""

from __future__ import annotations

import json

from mngr import process
from mngr.agents import launch
from mngr.agents.kinds import allowed_commands
from mngr.agents.kinds.driver import TESTS, AgentContext

RULES = "rules/mngr.rules"


def words(agent: AgentContext) -> list[str]:
    never = ["-c", 'approval_policy="never"'] if agent.record.one_shot else ["-a", "never"]
    roots = [*git_dirs(agent), launch.task_dir(agent.record, agent.state_dir)]
    return [*never, "-s", "workspace-write", *(word for path in roots for word in ("--add-dir", path))]


def forbid(agent: AgentContext) -> None:
    """Its sandbox denies what is not allowed; this is for what could work inside of it, such as a push to a path."""
    path = f"{agent.home}/{RULES}"
    if agent.record.permissions != TESTS:
        agent.host.remove(path)
        return
    rules = [
        f'prefix_rule(pattern={json.dumps(text.split())}, decision="forbidden")\n' for text in allowed_commands.NEVER
    ]
    agent.host.make_dir(f"{agent.home}/rules")
    agent.host.write(path, "".join(rules).encode())


def temporary_dir(agent: AgentContext) -> dict[str, str]:
    """TMPDIR for an agent whose sandbox would not start without it; nothing for other agents. A bubblewrap before 0.9
    has no `--argv0`, and needs the helper that Codex creates in CODEX_HOME. Codex creates no helper below TMPDIR."""
    temporary = (agent.environ.get("TMPDIR") or "/tmp").rstrip("/")
    if not agent.home.startswith(f"{temporary}/"):
        return {}
    found = process.run(["sh", "-c", "command -v bwrap && { bwrap --help 2>&1 || :; }"], timeout=30)
    if not found.ok or "--argv0" in found.text:
        return {}
    path = f"{temporary}/mngr-{agent.record.id}"
    agent.host.make_dir(path)
    return {"TMPDIR": path}


def git_dirs(agent: AgentContext) -> list[str]:
    """The directories that git writes when it commits. In the user's repository, only the objects, the reflogs,
    the branches beside the agent's own, and git's data of the agent's worktree. An agent that could write the
    repository's hooks or `config` could run commands outside its sandbox. An agent that works in place gets no
    directory: Codex then asks before it commits."""
    record = agent.record
    if not record.git or record.transfer == "none":
        return []
    words = ["git", "rev-parse", "--path-format=absolute", "--git-common-dir", "--git-dir"]
    found = process.run(words, cwd=record.work_dir, timeout=30)
    common, _, private = found.text.partition("\n") if found.ok else ("", "", "")
    if common == private:
        return [common] if common else []
    folder = (record.branch or "").rpartition("/")[0]
    branches = [f"refs/heads/{folder}", f"logs/refs/heads/{folder}"] if folder else []
    shared = [f"{common}/{name}" for name in ("objects", *branches)]
    for path in shared:
        agent.host.make_dir(path)  # git removes those that are empty
    return [private, *shared]
