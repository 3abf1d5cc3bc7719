"""What a Claude Code of one agent may do: arguments, rules and for `tests` a hook that allows what no rule can say."""

from __future__ import annotations

import json
import os
from typing import Any

from mngr.agents import launch
from mngr.agents.kinds import allowed_commands
from mngr.agents.kinds.driver import ASK, BYPASS, EDITS, TESTS, AgentContext
from mngr.agents.record import Record
from mngr.process import quote

SCRIPT, LIST = "allow.awk", "allowed"
_MODES = {ASK: "default", EDITS: "acceptEdits", TESTS: "dontAsk"}
_WEB = ("WebFetch", "WebSearch")


def words(record: Record) -> list[str]:
    mode = ["--permission-mode", _MODES[record.permissions]] if record.permissions in _MODES else []
    if record.permissions == BYPASS:
        mode = ["--dangerously-skip-permissions"]
    if record.permissions not in (BYPASS, TESTS):
        return mode
    # A question would wait for an answer even then, and so would a plan.
    return [*mode, "--disallowedTools=AskUserQuestion,EnterPlanMode"]


def rules(agent: AgentContext) -> dict[str, Any]:
    """For its settings; empty where the program's own are enough."""
    if agent.record.permissions != TESTS:
        return {}
    task = launch.task_dir(agent.record, agent.state_dir)
    commands = [text for text in allowed_commands.of(agent.record).commands if not set(text) & set("()")]
    return {
        "allow": ["Edit(./**)", f"Edit(/{task}/**)", *(f"Bash({text}:*)" for text in commands)],
        "deny": [*_WEB, *(f"Bash({text}:*)" for text in allowed_commands.NEVER)],
        "additionalDirectories": [] if _inside(agent, task) else [task],
    }


def hook(agent: AgentContext) -> str:
    """The shell line that is asked before a command; empty without one."""
    if agent.record.permissions != TESTS:
        return ""
    files = quote(f"{agent.home}/{SCRIPT}"), quote(f"{agent.home}/{LIST}")
    return f"tr -d '\\n\\r' | LC_ALL=C awk -f {files[0]} {files[1]} -"


def furnish(agent: AgentContext) -> None:
    """The files of the hook."""
    if agent.record.permissions != TESTS:
        return
    with open(os.path.join(os.path.dirname(__file__), "claude_allow.awk"), "rb") as file:
        agent.host.write(f"{agent.home}/{SCRIPT}", file.read())
    task = launch.task_dir(agent.record, agent.state_dir)
    roots = [task, *([os.path.relpath(task, agent.record.work_dir)] if _inside(agent, task) else [])]
    lines = [("run", text) for text in allowed_commands.of(agent.record).whole]
    lines += [("file", text) for text in (*_variable("MNGR_OUTCOME_FILE"), *(f"{at}/outcome.json" for at in roots))]
    lines += [("dir", text) for text in (*_variable("MNGR_ARTIFACTS_DIR"), *(f"{at}/artifacts" for at in roots))]
    text = "".join(f"{word} {json.dumps(text, ensure_ascii=False)[1:-1]}\n" for word, text in lines)
    agent.host.write(f"{agent.home}/{LIST}", text.encode("utf-8", "surrogateescape"))


def _variable(name: str) -> tuple[str, str]:
    return f"${name}", f"${{{name}}}"


def _inside(agent: AgentContext, path: str) -> bool:
    return path.startswith(f"{agent.record.work_dir}/")
