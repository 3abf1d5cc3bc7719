"""Every kind of agent does what `mngr.checks.kind_checks` lists: in a worktree, and in a clone (the mirror path)."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.checks.kind_checks import CHECKS, SCRIPTED, Subject
from tests.support.user import User

TRANSFERS = ("git-worktree", "git-mirror")
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
        fleet.message(agent, "y")

    return Subject(
        fleet,
        lambda name, **more: fleet.create(name, type="scripted", transfer=transfer, **more),
        SCRIPTED,
        allow=allow,
        nested=f"{sys.executable} -m mngr.agents.kinds.scripted --one-shot {user.root}/inside",
    )


def of_command(user: User, transfer: str) -> Subject:
    program = user.root / "store.py"
    program.write_text(STORE)
    fleet = Fleet(environ=user.env, cwd=str(user.repo))

    def create(name: str, message: str | None = None, **more: Any) -> Agent:
        agent = fleet.create(name, command=f"exec {sys.executable} {program}", transfer=transfer, **more)
        if message is not None:
            subject.send(subject.rested(agent), message)
        return agent

    subject = Subject(
        fleet,
        create,
        SCRIPTED,
        prompts=stored,
        rests=lambda agent: agent.pane is not None and "ready" in fleet.capture(agent),
        acknowledges=False,
        lacks={
            **dict.fromkeys(
                ("state_within_a_second", "blocked_on_permission", "rate_limit_is_seen"), "it tells no state"
            ),
            **dict.fromkeys(("message_while_busy", "nested_program_does_not_disturb"), "it has no turns"),
            **dict.fromkeys(("resumes_after_stop", "resumes_after_the_tmux_server_was_killed"), "it begins anew"),
            **dict.fromkeys(("transcript_is_complete", "usage_is_counted"), "it keeps no record"),
            "stop_leaves_no_process": "it starts none when told to",
            "one_task_and_ends": "its command line has no place for a task",
        },
    )
    return subject


def stored(agent: Agent) -> list[str]:
    try:
        lines = (Path(agent.record.work_dir) / "got.jsonl").read_text().splitlines()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines]


KINDS: dict[str, Callable[[User, str], Subject]] = {"scripted": of_scripted, "command": of_command}


def run(subject: Subject, subtests: pytest.Subtests, *, heavy: bool = False) -> None:
    """All of the list with one agent, each by its own name."""
    for check in CHECKS:
        if check.heavy == heavy:
            with subtests.test(check.name):
                check.run(subject)


@pytest.mark.parametrize("transfer", TRANSFERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_does_what_every_kind_does(user: User, kind: str, transfer: str, subtests: pytest.Subtests) -> None:
    run(KINDS[kind](user, transfer), subtests)
