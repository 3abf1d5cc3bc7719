"""When the watcher of an agent with limits asks our program, by what the agent's events say."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from mngr.agent import limits
from mngr.agent.limits import AGENT, USER, Limits
from mngr.agent.record import timestamp

AGENT_ID = "agent-" + "1" * 32
# In place of tmux: one pane that lives and was quiet since 1970. In place of sleep: note how long, and end the watcher.
PROGRAMS = {"tmux": f"echo '{AGENT_ID} 0 0 0'", "sleep": 'echo "sleep $1"; kill $PPID'}


def watched(directory: Path, *events: str, mode: str = AGENT, idle: float = 100) -> str:
    """What the watcher does first: ask whether a limit is reached, or sleep."""
    for name, script in PROGRAMS.items():
        (directory / name).write_text(f"#!/bin/sh\n{script}\n")
        (directory / name).chmod(0o755)
    (directory / "events.jsonl").write_text("".join(f"{event}\n" for event in events))
    text = limits.script(
        AGENT_ID,
        Limits(idle, mode),
        started=time.time() - 5000,
        state_dir=str(directory),
        exports="",
        enforce=["sh", "-c", "echo asked >&2"],
    )
    env = {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}", "TMUX_PANE": "%1"}
    done = subprocess.run(["sh", "-c", text], env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.stderr.strip() or done.stdout.splitlines()[-1]


@pytest.mark.parametrize("state", ["WAITING", "BLOCKED", "RUNNING"])
@pytest.mark.parametrize("blank", [" ", ""])
def test_an_agent_without_news_for_the_idle_time_is_looked_at(tmp_path: Path, state: str, blank: str) -> None:
    """Also one that said RUNNING: no hook fires for a turn that was interrupted or failed."""
    event = f'{{"timestamp":{blank}"{timestamp(time.time() - 1000)}","type":{blank}"state","state":{blank}"{state}"}}'
    assert watched(tmp_path, event) == "asked"
    assert watched(tmp_path, event, idle=5000).startswith("sleep 4")


def test_the_latest_report_counts_and_a_start_is_one(tmp_path: Path) -> None:
    old = f'{{"timestamp":"{timestamp(time.time() - 1000)}","type":"state","state":"WAITING"}}'
    for type in ("state", "started"):
        new = f'{{"timestamp": "{timestamp()}", "type": "{type}", "state": "RUNNING"}}'
        assert watched(tmp_path, old, new, idle=3000).startswith(("sleep 29", "sleep 300"))
        assert watched(tmp_path, new, old, idle=3000).startswith(("sleep 20", "sleep 19"))


def test_a_message_that_another_program_noted_counts_in_user_mode(tmp_path: Path) -> None:
    event = f'{{"timestamp":"{timestamp()}","type":"message_delivered"}}'
    assert watched(tmp_path, mode=USER) == "asked"
    assert watched(tmp_path, event, mode=USER, idle=3000).startswith(("sleep 29", "sleep 300"))
