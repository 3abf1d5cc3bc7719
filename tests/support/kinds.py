"""The kinds of agents that the list of checks runs against, each with all that it needs."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.system.process import join
from mngr_testing.checks.kind_checks import MODEL, SCRIPTED, Subject, Words
from mngr_testing.model_server import ModelServer
from tests.support.programs import program, with_program
from tests.support.user import User

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "agent-types.md"
# A program of which nothing is known: takes pasted messages as an editor does, and stores each in a line.
STORE = """
import json, os, tty
tty.setraw(0)
os.write(1, b"\\x1b[?2004hready ")
data = b""
while True:
    data += os.read(0, 65536)
    while b"\\x1b[201~\\r" in data:
        text, _, data = data.partition(b"\\x1b[201~\\r")
        with open("got.jsonl", "a") as file:
            file.write(json.dumps(text.partition(b"\\x1b[200~")[2].decode()) + "\\n")
"""


def of_scripted(user: User, transfer: str) -> Subject:
    fleet = Fleet(environ=user.env, cwd=str(user.repo))
    (user.root / "inside").write_text("say inside")

    def allow(fleet: Fleet, agent: Agent) -> None:
        agent.message("y")

    return Subject(
        fleet,
        lambda name, **more: fleet.create(name, type="scripted", transfer=transfer, **more),
        SCRIPTED,
        allow=allow,
        nested=f"{sys.executable} -m mngr.programs.scripted --one-shot {user.root}/inside",
    )


def of_command(user: User, transfer: str) -> Subject:
    store = user.root / "store.py"
    store.write_text(STORE)
    fleet = Fleet(environ=user.env, cwd=str(user.repo))

    def create(name: str, message: str | None = None, **more: Any) -> Agent:
        agent = fleet.create(name, command=f"exec {sys.executable} {store}", transfer=transfer, **more)
        if message is not None:
            subject.send(subject.rested(agent), message)
        return agent

    def prompts(agent: Agent) -> list[str]:
        got = Path(agent.record.workspace.work_dir) / "got.jsonl"
        return [json.loads(line) for line in got.read_text().split("\n")[:-1]] if got.exists() else []

    stateless = ("state_within_a_second", "blocked_on_permission", "rate_limit_is_seen")
    subject = Subject(
        fleet,
        create,
        SCRIPTED,
        own_prompts=prompts,
        rests=lambda agent: agent.pane is not None and "ready" in agent.capture(),
        acknowledges=False,
        lacks={
            **dict.fromkeys(stateless, "it tells no state"),
            **dict.fromkeys(("message_while_busy", "nested_program_does_not_disturb"), "it has no turns"),
            **dict.fromkeys(("resumes_after_stop", "resumes_after_the_tmux_server_was_killed"), "it begins anew"),
            **dict.fromkeys(("transcript_is_complete", "usage_is_counted"), "it keeps no record"),
            "stop_leaves_no_process": "it starts none when told to",
            "one_task_and_ends": "its command line has no place for a task",
        },
    )
    return subject


def of_pi(user: User, server: ModelServer, transfer: str) -> Subject:
    """By the settings of the guide, and no others."""
    with_program(program("pi"), user.env, user.root / "bin")
    user.host_dir.mkdir(mode=0o700, exist_ok=True)
    (user.host_dir / "settings.toml").write_text(settings_of_guide("pi"))
    point_pi(user, server)
    fleet = Fleet(environ=user.env, cwd=str(user.repo))
    return Subject(
        fleet,
        lambda name, **more: fleet.create(name, type="pi", transfer=transfer, **more),
        MODEL,
        server=server,
        nested="pi -p '%% say inside'",
        acknowledges=False,
        lacks={
            "blocked_on_permission": "pi never asks: it has no permissions",
            "rate_limit_is_seen": "its screen says that it retries, and not why",
        },
    )


def settings_of_guide(name: str) -> str:
    for block in re.findall(r"^```toml\n(.*?)^```", GUIDE.read_text(), flags=re.DOTALL | re.MULTILINE):
        if f"[agent_types.{name}]" in block:
            return str(block)
    raise AssertionError(f"the guide has no settings of `{name}`")


def point_pi(user: User, server: ModelServer) -> None:
    """What a user of pi with a model of their own has set up."""
    folder = user.home / ".pi" / "agent"
    folder.mkdir(parents=True)
    url = f"{server.url}/v1"
    own = {"baseUrl": url, "api": "openai-completions", "apiKey": "none", "models": [{"id": "scripted"}]}
    (folder / "models.json").write_text(json.dumps({"providers": {"scripted": own}}))
    (folder / "settings.json").write_text(json.dumps({"defaultProvider": "scripted", "defaultModel": "scripted"}))
    user.env["PI_OFFLINE"] = "1"


def of_claude(user: User, server: ModelServer, transfer: str) -> Subject:
    return _of_program("claude", user, server, transfer, nested="claude -p '%% say inside'")


def of_codex(user: User, server: ModelServer, transfer: str) -> Subject:
    nested = f"codex exec --skip-git-repo-check {join(server.args('codex'))} '%% say inside' < /dev/null"

    def guarded(command: str) -> str:
        """Its sandbox says no to what is not allowed, unless its model asks for more."""
        asked = {"cmd": command, "sandbox_permissions": "require_escalated", "justification": "Shall I?"}
        return f"%% tool exec_command {json.dumps(asked)}\n%% say ran it"

    words = MODEL._replace(guarded=guarded)
    return _of_program("codex", user, server, transfer, words=words, nested=nested)


def of_opencode(user: User, server: ModelServer, transfer: str) -> Subject:
    nested = "opencode run '%% say inside'"
    return _of_program("opencode", user, server, transfer, nested=nested, turn_seconds=240, late_seconds=5)


def _of_program(
    name: str, user: User, server: ModelServer, transfer: str, words: Words = MODEL, **more: Any
) -> Subject:
    with_program(program(name), user.env, user.root / "bin")
    user.env.update(server.env(name))
    fleet = Fleet(environ=user.env, cwd=str(user.repo))

    def create(agent: str, permissions: str = "bypass", **wishes: Any) -> Agent:
        args = server.args(name)
        return fleet.create(agent, type=name, args=args, transfer=transfer, permissions=permissions, **wishes)

    return Subject(fleet, create, words, server=server, **more)


WITHOUT_MODEL: dict[str, Callable[[User, str], Subject]] = {"scripted": of_scripted, "command": of_command}
WITH_MODEL: dict[str, Callable[[User, ModelServer, str], Subject]] = {
    "claude": of_claude,
    "codex": of_codex,
    "opencode": of_opencode,
    "pi": of_pi,
}
