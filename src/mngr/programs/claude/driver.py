"""The driver of Claude Code. Each agent has its own CLAUDE_CONFIG_DIR. The program's hooks report most events; its
status file shows what no hook reports: an interrupt, an answer to a dialog, a sub-agent that still works."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mngr import json_values
from mngr.agent import reasons
from mngr.agent.record import seconds_of
from mngr.agent.state import BLOCKED, RUNNING, STARTING, WAITING, Status
from mngr.programs import driver, hooks, permissions
from mngr.programs.claude import home as claude_home
from mngr.programs.claude import record as claude_record
from mngr.programs.claude import text as claude_text
from mngr.programs.claude.home import DIAGNOSTICS, FAILED, LOGIN, OURS, SESSION
from mngr.programs.driver import AgentContext, AgentProgram, Driver, LaunchCommand, ModelUsage, Wording, plain
from mngr.programs.kind import BYPASS
from mngr.system import process
from mngr.system.files import json_bytes, read_lines
from mngr.system.process import join
from mngr.system.waiting import Deadline

PROJECTS = "projects"
# How long a hook may be ahead of the status file. A prompt takes longest: the turn begins after its hooks.
AHEAD_SECONDS = {RUNNING: 15.0, BLOCKED: 1.0}
SETTLED_SECONDS, QUEUED_SECONDS = 0.15, 0.8
# How long the program shows a message in its input box after it has taken the message.
DRAWN_SECONDS = 0.5
STATES = {"idle": WAITING, "shell": WAITING, "busy": RUNNING, "waiting": BLOCKED}
# How long the server may take to refuse a login again.
ASKED_SECONDS = 10.0
BACKGROUND = "a command runs in the background"
VARIABLES = {
    "ANTHROPIC_API_KEY": "with the API key in ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN": "with the token in ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN": "with the token in CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK": "through Amazon Bedrock",
    "CLAUDE_CODE_USE_VERTEX": "through Google Vertex AI",
    "CLAUDE_CODE_USE_FOUNDRY": "through Microsoft Foundry",
}


class ClaudeDriver(Driver):
    # Without a version, npm takes one that is too old where Node is older than 22.
    program = AgentProgram(
        name="claude",
        install="npm install -g @anthropic-ai/claude-code@2.1.325",
        oldest="2.1.300",
        tried="2.1.325",
    )
    dialogs = (
        (r"Select login method|Paste code here|Please run /login", "login: Claude Code is not logged in; run `claude`"),
        (r"Do you trust the files|trust this folder|Is this a project you", "trust: Claude Code asks about the folder"),
        (r"Detected a custom API key", "login: Claude Code asks whether to use the API key"),
        (r"New MCP servers? found", "trust: Claude Code asks about MCP servers of the project"),
        (r"external CLAUDE\.md", "trust: Claude Code asks about files that CLAUDE.md includes"),
        (r"Bypass Permissions mode", "trust: Claude Code asks about the mode without permissions"),
        (r"Choose the text style|choose a theme|Choose a theme", "question: Claude Code asks for a theme"),
        (r"needs an update|Update required|update is required", "Claude Code wants to be updated"),
    )
    conversation = (PROJECTS, SESSION, hooks.FILE, "file-history", "todos", "tasks", "plans")
    prompts = hooks.FILE
    variables = ("ANTHROPIC_", "CLAUDE_")

    def prepare(self, agent: AgentContext, *, prompted: bool) -> LaunchCommand:
        record = agent.record
        claude_home.write_config(agent)
        file = driver.write_first_prompt(agent) if prompted else ""
        session = _session(agent)
        agent.host.write(f"{agent.home}/{SESSION}", json_bytes({"session_id": session[-1]}))
        words = ["--settings", f"{agent.home}/{OURS}", *session, *permissions.claude_words(record)]
        command = f"{record.spec.command} {join(words)}"
        env = {
            "CLAUDE_CONFIG_DIR": agent.home,
            claude_home.LOGIN_VARIABLE: claude_home.login_dir(agent.environ),
            "CLAUDE_CODE_DIAGNOSTICS_FILE": f"{agent.home}/{DIAGNOSTICS}",
            "DISABLE_AUTOUPDATER": "1",
        }
        if record.spec.permissions == BYPASS and process.run(["id", "-u"], timeout=20).text == "0":
            env["IS_SANDBOX"] = "1"  # without, it refuses to work without permissions as root
        if record.spec.one_shot:
            return LaunchCommand(f"{command} -p < {file}", env)
        return LaunchCommand(f'{command} -- "$(cat {file})"' if prompted else command, env)

    def look(self, agent: AgentContext, status: Status, events: Sequence[Mapping[str, Any]]) -> Status:
        live = _live(agent)
        found = reconcile(live, status, time.time(), had_queue(events))
        if found.state == WAITING and _has_queue(agent, status, events):
            return found._replace(state=RUNNING)
        if found.state == RUNNING:
            return _busy(agent, found, status.since)
        if found.state == BLOCKED and status.state == BLOCKED:
            return found._replace(reason=hooks.asked(agent))
        if found.state == BLOCKED and live:  # a dialog that no hook reported
            return found._replace(reason=f"question: {live.get('waitingFor') or 'a dialog is open'}")
        if found.reason == FAILED:
            blocked, reason = claude_record.failure(hooks.last(agent, "StopFailure"), status.since)
            return found._replace(state=BLOCKED if blocked else found.state, reason=reason)
        return found

    def wording(self, text: str) -> Wording:
        return claude_text.wording(text)

    def received(self, agent: AgentContext, mark: int = 0) -> list[str]:
        """The hook reports a prompt at once, although a busy agent's model sees it only at the next step. The blank
        that `wording` may add at the end stays there when the program shows a long text as a summary."""
        return [prompt.rstrip() for prompt in hooks.prompts(agent.after(hooks.FILE, mark))]

    def same(self, recorded: str, received: str) -> bool:
        return claude_text.same(recorded, received)

    def occupied(self, screen: str) -> str:
        return composer(screen)

    def deliver(self, agent: AgentContext, text: str) -> bool:
        """The terminal is the only way. Waits until the program no longer shows the message before."""
        taken = hooks.hooked(agent.tail(hooks.FILE), "UserPromptSubmit")
        if taken:
            Deadline(DRAWN_SECONDS + seconds_of(str(taken[-1]["timestamp"])) - time.time()).pause(DRAWN_SECONDS)
        return False

    def transcript(self, agent: AgentContext) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for session in _sessions(agent):
            lines = (line for path in _files(agent, session) for line in agent.lines(path))
            found += claude_record.transcript(lines)
        return sorted(found, key=lambda entry: str(entry["timestamp"]))

    def usage(self, agent: AgentContext) -> list[ModelUsage]:
        """Including its sub-agents."""
        found: dict[str, ModelUsage] = {}
        for session in _sessions(agent):
            paths = _files(agent, session)
            for path in (*paths, *_of_subagents(agent, paths)):
                found.update(claude_record.usage(agent.lines(path)))
        return sorted(found.values(), key=lambda spent: spent.timestamp)

    def login(self, environ: Mapping[str, str]) -> str:
        for name, words in VARIABLES.items():
            if environ.get(name):
                return words
        directory = claude_home.user_dir(environ)
        (login,) = self.logins(environ)
        if os.path.exists(login):
            return f"with a Claude account, in {login}"
        if json_values.file(f"{directory}/{claude_home.SETTINGS}").get("apiKeyHelper"):
            return f"with the `apiKeyHelper` of {directory}/{claude_home.SETTINGS}"
        config = claude_home.user_config(environ)
        known = json_values.file(config)
        # On macOS the login itself is in the keychain.
        return f"with the account or key in {config}" if known.get("oauthAccount") or known.get("primaryApiKey") else ""

    def logins(self, environ: Mapping[str, str]) -> tuple[str]:
        return (f"{claude_home.login_dir(environ) or claude_home.user_dir(environ)}/{LOGIN}",)


DRIVER = ClaudeDriver()


def reconcile(live: Mapping[str, Any] | None, status: Status, now: float, queued: bool = False) -> Status:
    """The state by its events, or by its status file where that is newer. Only the file shows the end of a turn: when
    the Stop hook runs, queued messages or sub-agents may still continue the turn. Between two turns the program is idle
    for a moment, so a short idle time does not count as WAITING."""
    word = live.get("status") if live else None
    if live is None or word not in STATES:
        return status
    at = json_values.count(live.get("statusUpdatedAt")) / 1000
    if status.since > at and now - status.since < AHEAD_SECONDS.get(status.state, 0.0):
        return status
    evidence = f"sessions/{live.get('pid')}.json: {word}; {status.evidence}"
    if STATES[word] != WAITING:
        return Status(STATES[word], "", at, evidence)
    if 0 <= now - at < (QUEUED_SECONDS if queued else SETTLED_SECONDS):
        return status if status.state == STARTING else Status(RUNNING, "", at, evidence)
    reason = BACKGROUND if word == "shell" else status.reason if status.state == WAITING else ""
    return Status(WAITING, reason, at, evidence)


def had_queue(events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether messages arrived during its last turn; they may start the next turn."""
    states = [event.get("state") for event in events[-20:] if event.get("type") == "state"]
    while states and states[-1] != RUNNING:
        states.pop()
    return states[-2:] == [RUNNING, RUNNING]


_QUEUE_BYTES = 1 << 22


def _has_queue(agent: AgentContext, status: Status, events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether messages wait in its queue, by the end of its record since its start."""
    if not had_queue(events) or time.time() - status.since > 60:
        return False
    lines = [
        line for path in _files(agent, _sessions(agent)[-1]) for line in agent.tail(path, _QUEUE_BYTES).split(b"\n")
    ]
    changes = read_lines(b"\n".join(line for line in lines if b'"queue-operation"' in line))
    since = agent.record.life.started_at or ""
    return claude_record.waiting(line for line in changes if str(line.get("timestamp")) >= since) > 0


def composer(screen: str) -> str:
    """The text in the input box, which is between the last two rules of a screen. A suggestion of the program is dim
    except for its first letter, the cursor. A busy program draws a coloured sign: its box counts as empty, since
    clearing the box would interrupt the work."""
    lines = screen.rstrip().split("\n")
    rules = [number for number, line in enumerate(lines) if _RULE.match(plain(line))]
    box = "\n".join(lines[rules[-2] + 1 : rules[-1]]) if len(rules) > 1 else ""
    if not _BOX.match(box) or _SUGGESTION.match(box):
        return ""
    return plain(_BOX.sub("", box)).strip()


_RULE = re.compile(r"─{10,}")
_BOX = re.compile(r"(?:\x1b\[(?:0|39|49|0;39|39;49)?m)*[❯!]\s?")
_SUGGESTION = re.compile(_BOX.pattern + r"(?:\x1b\[[0-9;]*m)*\S?(?:\x1b\[[0-9;]*m)*?\x1b\[(?:[0-9;]*;)?2m")


def _session(agent: AgentContext) -> list[str]:
    """Options that resume its last conversation with a prompt in it, or begin a new one."""
    known = _sessions(agent)
    said = [name for name in known if any(b'"type":"user"' in agent.after(path, 0) for path in _files(agent, name))]
    if said and not agent.record.spec.one_shot:
        return ["--resume", said[-1]]
    own = str(uuid.UUID(agent.record.id.rpartition("-")[2], version=4))
    return ["--session-id", str(uuid.uuid4()) if known or _files(agent, own) else own]


def _sessions(agent: AgentContext) -> list[str]:
    """The ids of this agent's conversations, the current one last: `/clear` begins another. A `claude` that the agent
    itself starts does not run these hooks. Where hooks are forbidden, only the first conversation is known."""
    found: dict[str, None] = {}
    started = [line.get("payload") for line in hooks.hooked(agent.read(hooks.FILE), "SessionStart")]
    for payload in (*started, json_values.loads(agent.read(SESSION))):
        if name := json_values.string(json_values.table(payload).get("session_id")):
            found.pop(name, None)
            found[name] = None
    return list(found)


def _files(agent: AgentContext, session: str) -> list[str]:
    """The files of one conversation: one for each directory in which it continued."""
    found = [f"{PROJECTS}/{folder}" for folder in sorted(agent.host.entries(f"{agent.home}/{PROJECTS}"))]
    return [
        f"{folder}/{session}.jsonl"
        for folder in found
        if f"{session}.jsonl" in agent.host.entries(f"{agent.home}/{folder}")
    ]


def _of_subagents(agent: AgentContext, paths: Iterable[str]) -> list[str]:
    folders = [f"{path.removesuffix('.jsonl')}/subagents" for path in paths]
    return [
        f"{folder}/{name}"
        for folder in folders
        for name in sorted(agent.host.entries(f"{agent.home}/{folder}"))
        if name.endswith(".jsonl")
    ]


def _live(agent: AgentContext) -> dict[str, Any] | None:
    """The program's own status file; None when there is none, or while the program writes it."""
    session = json_values.loads(agent.read(SESSION)).get("session_id")
    for name in agent.host.entries(f"{agent.home}/sessions") if session else ():
        if name.endswith(".json"):
            found = json_values.loads(agent.read(f"sessions/{name}"))
            if found.get("sessionId") == session:
                return found
    return None


def _busy(agent: AgentContext, status: Status, event_at: float) -> Status:
    """The state of a busy program: it works, or waits before it asks its model again. A wait from before its last event
    is over."""
    tail = agent.tail(DIAGNOSTICS)
    at = tail.rfind(b'"event":"cli_api_retry"')
    line = json_values.loads(tail[tail.rfind(b"\n", 0, at) + 1 :].partition(b"\n")[0]) if at >= 0 else {}
    if not line:
        return status
    seconds, why = claude_record.retry(line)
    since = seconds_of(str(line.get("timestamp")))
    refused = why.startswith(reasons.LOGIN)
    if since + seconds + (ASKED_SECONDS if refused else 0.0) <= time.time() or since < event_at:
        return status
    evidence = f"{DIAGNOSTICS}: cli_api_retry; {status.evidence}"
    if refused:
        return Status(BLOCKED, why, since, evidence)
    state = BLOCKED if why.startswith(reasons.RATE_LIMIT) else RUNNING
    return Status(state, f"{why}: {reasons.retry_at(since + seconds)}", since, evidence)
