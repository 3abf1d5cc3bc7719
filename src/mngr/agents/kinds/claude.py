"""Drives Claude Code. Each agent has a CLAUDE_CONFIG_DIR of its own. The program's hooks tell what happens, and its own
status file what no hook tells: an interrupt, an answer to a dialog, a sub-agent that still works."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence

from mngr.agents import events
from mngr.agents.kinds import claude_home, claude_permissions, claude_record, claude_text, failing, hooks
from mngr.agents.kinds.claude_home import DIAGNOSTICS, FAILED, LOGIN, OURS, SESSION
from mngr.agents.kinds.driver import (
    BYPASS,
    Launch,
    Place,
    Program,
    Spent,
    Wording,
    first_prompt,
    plain,
)
from mngr.agents.reasons import LOGIN as LOGIN_REFUSED
from mngr.agents.reasons import RATE_LIMIT
from mngr.agents.record import Record, seconds_of
from mngr.agents.state import BLOCKED, RUNNING, STARTING, WAITING, Status
from mngr.files import json_bytes, read_lines
from mngr.process import join, quote
from mngr.records import TYPE_CHECKING
from mngr.waiting import Deadline

if TYPE_CHECKING:
    from typing import Any

PROJECTS = "projects"
PROMPT = "prompt"
TAIL_BYTES = 64 * 1024
# How long what a hook told may be ahead of the status file. A prompt takes longest: the turn begins after its hooks.
AHEAD_SECONDS = {RUNNING: 15.0, BLOCKED: 1.0}
SETTLED_SECONDS, QUEUED_SECONDS = 0.15, 0.8
# It takes a message, and then draws its input box empty.
DRAWN_SECONDS = 0.5
STATES = {"idle": WAITING, "shell": WAITING, "busy": RUNNING, "waiting": BLOCKED}
# How long an answer may take that refuses a login again.
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


class Claude:
    # Without a version, npm takes one that is too old where Node is older than 22.
    program = Program(
        name="claude",
        install="npm install -g @anthropic-ai/claude-code@2.1.325",
        oldest="2.1.300",
        tried="2.1.325",
    )
    ready_seconds = 60.0
    dialogs: Sequence[tuple[str, str]] = (
        (r"Select login method|Paste code here|Please run /login", "login: Claude Code is not logged in; run `claude`"),
        (r"Do you trust the files|trust this folder|Is this a project you", "trust: Claude Code asks about the folder"),
        (r"Detected a custom API key", "login: Claude Code asks whether to use the API key"),
        (r"New MCP servers? found", "trust: Claude Code asks about MCP servers of the project"),
        (r"external CLAUDE\.md", "trust: Claude Code asks about files that CLAUDE.md includes"),
        (r"Bypass Permissions mode", "trust: Claude Code asks about the mode without permissions"),
        (r"Choose the text style|choose a theme|Choose a theme", "question: Claude Code asks for a theme"),
        (r"needs an update|Update required|update is required", "Claude Code wants to be updated"),
    )
    conversation: Sequence[str] = (PROJECTS, SESSION, hooks.FILE, "file-history", "todos", "tasks", "plans")

    def takes_prompt(self, record: Record) -> bool:
        return True

    def prepare(self, place: Place, *, prompted: bool) -> Launch:
        record, file = place.record, quote(f"{place.home}/{PROMPT}")
        claude_home.furnish(place)
        if prompted:
            place.host.write(f"{place.home}/{PROMPT}", first_prompt(place))
        session = _session(place)
        place.host.write(f"{place.home}/{SESSION}", json_bytes({"session_id": session[-1]}))
        words = ["--settings", f"{place.home}/{OURS}", *session, *claude_permissions.words(record)]
        command = f"{record.command} {join(words)}"
        env = {
            "CLAUDE_CONFIG_DIR": place.home,
            claude_home.LOGIN_VARIABLE: claude_home.login_dir(place.environ),
            "CLAUDE_CODE_DIAGNOSTICS_FILE": f"{place.home}/{DIAGNOSTICS}",
            "DISABLE_AUTOUPDATER": "1",
        }
        if record.permissions == BYPASS and place.host.run(["id", "-u"], timeout=20).text == "0":
            env["IS_SANDBOX"] = "1"  # without, it refuses to work without permissions as root
        if record.one_shot:
            return Launch(f"{command} -p < {file}", env)
        return Launch(f'{command} -- "$(cat {file})"' if prompted else command, env)

    def look(self, place: Place, status: Status, events: Sequence[Mapping[str, Any]]) -> Status:
        live = _live(place)
        found = reconcile(live, status, time.time(), had_queue(events))
        if found.state == WAITING and _has_queue(place, status, events):
            return found._replace(state=RUNNING)
        if found.state == RUNNING:
            return _busy(place, found, status.since)
        if found.state == BLOCKED and status.state == BLOCKED:
            return found._replace(reason=claude_record.asked(_last(place, "PermissionRequest")))
        if found.state == BLOCKED and live:  # a dialog that no hook told of
            return found._replace(reason=f"question: {live.get('waitingFor') or 'a dialog is open'}")
        if found.reason == FAILED:
            blocked, reason = claude_record.failure(_last(place, "StopFailure"), status.since)
            return found._replace(state=BLOCKED if blocked else found.state, reason=reason)
        return found

    def wording(self, text: str) -> Wording:
        return claude_text.wording(text)

    def mark(self, place: Place) -> object:
        return len(_read(place, hooks.FILE))

    def received(self, place: Place, mark: object) -> list[str]:
        """By its hook, at once; a message for a busy agent reaches its model at the next step of the turn. The blank
        that `wording` may put at the end stays there when the program shows a long text as a summary."""
        since = mark if isinstance(mark, int) else 0
        told = _told(place)
        return [
            str(line["payload"].get("prompt")).rstrip()
            for line in _hooked(_read(place, hooks.FILE)[since:], "UserPromptSubmit")
            if isinstance(line.get("payload"), dict) and str(line.get("timestamp")) <= told
        ]

    def occupied(self, screen: str) -> str:
        return composer(screen)

    def deliver(self, place: Place, text: str) -> bool:
        """There is only the terminal; what it shows of a message just taken must be gone by then."""
        taken = _hooked(place.host.read_tail(f"{place.home}/{hooks.FILE}", TAIL_BYTES)[0], "UserPromptSubmit")
        if taken:
            Deadline(DRAWN_SECONDS + seconds_of(str(taken[-1]["timestamp"])) - time.time()).pause(DRAWN_SECONDS)
        return False

    def transcript(self, place: Place) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for paths in _records(place).values():
            found += claude_record.transcript(line for path in paths for line in read_lines(_read(place, path)))
        return sorted(found, key=lambda entry: str(entry["timestamp"]))

    def usage(self, place: Place) -> list[Spent]:
        """With that of sub-agents."""
        found: dict[str, Spent] = {}
        for paths in _records(place).values():
            for path in (*paths, *_of_subagents(place, paths)):
                found.update(claude_record.usage(read_lines(_read(place, path))))
        return sorted(found.values(), key=lambda spent: spent.timestamp)

    def login(self, environ: Mapping[str, str]) -> str:
        for name, words in VARIABLES.items():
            if environ.get(name):
                return words
        directory = claude_home.user_dir(environ)
        login = f"{claude_home.login_dir(environ) or directory}/{LOGIN}"
        if os.path.exists(login):
            return f"with a Claude account, in {login}"
        if _file(f"{directory}/{claude_home.SETTINGS}").get("apiKeyHelper"):
            return f"with the `apiKeyHelper` of {directory}/{claude_home.SETTINGS}"
        config = claude_home.user_config(environ)
        return f"with the account or key in {config}" if _logged_in(_file(config)) else ""


DRIVER = Claude()


def reconcile(live: Mapping[str, Any] | None, status: Status, now: float, queued: bool = False) -> Status:
    """What its events tell, or its status file where that is newer. The end of a turn is in the file alone: when the
    hook for it runs, messages may be queued, or sub-agents at work, with which it goes on. Before the next turn it is
    idle for a moment, which counts as rest only when it lasts."""
    word = live.get("status") if live else None
    if live is None or word not in STATES:
        return status
    at = _seconds(live.get("statusUpdatedAt"))
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
    """Whether its last turn got messages in its midst; they may be the next turn."""
    states = [event.get("state") for event in events[-20:] if event.get("type") == "state"]
    while states and states[-1] != RUNNING:
        states.pop()
    return states[-2:] == [RUNNING, RUNNING]


def _has_queue(place: Place, status: Status, events: Sequence[Mapping[str, Any]]) -> bool:
    """By what its record says since its start; only for a moment after a turn that had one."""
    if not had_queue(events) or time.time() - status.since > 60:
        return False
    lines = [line for path in _files(place, _sessions(place)[-1]) for line in _read(place, path).split(b"\n")]
    changes = read_lines(b"\n".join(line for line in lines if b'"queue-operation"' in line))
    since = place.record.started_at or ""
    return claude_record.waiting(line for line in changes if str(line.get("timestamp")) >= since) > 0


def composer(screen: str) -> str:
    """What stands in the input box, between the last two lines of a screen. What the program suggests is dim but for
    its first letter, which is the cursor. The box of a program at work has a coloured sign: clearing that would
    interrupt the work."""
    lines = screen.rstrip().split("\n")
    rules = [number for number, line in enumerate(lines) if _RULE.match(plain(line))]
    box = "\n".join(lines[rules[-2] + 1 : rules[-1]]) if len(rules) > 1 else ""
    if not _BOX.match(box) or _SUGGESTION.match(box):
        return ""
    return plain(_BOX.sub("", box)).strip()


_RULE = re.compile(r"─{10,}")
_BOX = re.compile(r"(?:\x1b\[(?:0|39|49|0;39|39;49)?m)*[❯!]\s?")
_SUGGESTION = re.compile(_BOX.pattern + r"(?:\x1b\[[0-9;]*m)*\S?(?:\x1b\[[0-9;]*m)*?\x1b\[(?:[0-9;]*;)?2m")


def _session(place: Place) -> list[str]:
    """The conversation it was in last goes on, if anything was said in it."""
    known = _sessions(place)
    said = [name for name in known if any(_has_prompt(_read(place, path)) for path in _files(place, name))]
    if said and not place.record.one_shot:
        return ["--resume", said[-1]]
    digits = place.record.id.rpartition("-")[2]
    if known or _files(place, _uuid(digits)):
        digits = os.urandom(16).hex()
    return ["--session-id", _uuid(digits)]


def _uuid(digits: str) -> str:
    """Of a random one, version 4, the form is kept; so are the other digits."""
    text = f"{digits[:12]}4{digits[13:16]}{'89ab'[int(digits[16], 16) % 4]}{digits[17:32]}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _has_prompt(data: bytes) -> bool:
    return b'"type":"user"' in data


def _sessions(place: Place) -> list[str]:
    """The conversations of this agent, the one it is in last: `/clear` begins another. Its hooks are not those of a
    `claude` that the agent itself starts. Where hooks are forbidden, there is the one that it was started with."""
    found: dict[str, None] = {}
    started = [line.get("payload") for line in _hooked(_read(place, hooks.FILE), "SessionStart")]
    for payload in (*started, _json(_read(place, SESSION))):
        name = payload.get("session_id") if isinstance(payload, dict) else None
        if isinstance(name, str) and name:
            found.pop(name, None)
            found[name] = None
    return list(found)


def _records(place: Place) -> dict[str, list[str]]:
    return {name: _files(place, name) for name in _sessions(place)}


def _files(place: Place, session: str) -> list[str]:
    """The files of one conversation, of which there is another for each directory in which it went on."""
    found = [f"{PROJECTS}/{folder}" for folder in sorted(place.host.entries(f"{place.home}/{PROJECTS}"))]
    return [
        f"{folder}/{session}.jsonl"
        for folder in found
        if f"{session}.jsonl" in place.host.entries(f"{place.home}/{folder}")
    ]


def _of_subagents(place: Place, paths: Iterable[str]) -> list[str]:
    folders = [f"{path.removesuffix('.jsonl')}/subagents" for path in paths]
    return [
        f"{folder}/{name}"
        for folder in folders
        for name in sorted(place.host.entries(f"{place.home}/{folder}"))
        if name.endswith(".jsonl")
    ]


def _live(place: Place) -> dict[str, Any] | None:
    """The status file of the program itself; None while it has none, or is just writing it."""
    session = _json(_read(place, SESSION)).get("session_id")
    for name in place.host.entries(f"{place.home}/sessions") if session else ():
        if name.endswith(".json"):
            found = _json(_read(place, f"sessions/{name}"))
            if found.get("sessionId") == session:
                return found
    return None


def _busy(place: Place, status: Status, told: float) -> Status:
    """It waits before it asks its model again, or it works. What was before its last event was told is over."""
    tail, _ = place.host.read_tail(f"{place.home}/{DIAGNOSTICS}", TAIL_BYTES)
    at = tail.rfind(b'"event":"cli_api_retry"')
    if at < 0:
        return status
    line = read_lines(tail[tail.rfind(b"\n", 0, at) + 1 :].partition(b"\n")[0])
    if not line:
        return status
    seconds, why = claude_record.retry(line[0])
    since = seconds_of(str(line[0].get("timestamp")))
    refused = why.startswith(LOGIN_REFUSED)
    if since + seconds + (ASKED_SECONDS if refused else 0.0) <= time.time() or since < told:
        return status
    evidence = f"{DIAGNOSTICS}: cli_api_retry; {status.evidence}"
    if refused:
        return Status(BLOCKED, why, since, evidence)
    state = BLOCKED if why.startswith(RATE_LIMIT) else RUNNING
    return Status(state, f"{why}: {failing.retry_at(since + seconds)}", since, evidence)


def _told(place: Place) -> str:
    """When a state was last told. The hook writes a prompt down before the state that follows from it, and who hears
    of the one must see the other."""
    size = TAIL_BYTES
    while True:
        data, whole = place.host.read_tail(f"{place.state_dir}/{events.FILE}", size)
        found = [str(event.get("timestamp")) for event in read_lines(data) if event.get("type") == "state"]
        if found or whole:
            return max(found, default="")
        size *= 8


def _last(place: Place, hook: str) -> object:
    """What the last of these hooks was told."""
    tail, _ = place.host.read_tail(f"{place.home}/{hooks.FILE}", TAIL_BYTES)
    found = _hooked(tail, hook)
    return found[-1].get("payload") if found else None


def _hooked(data: bytes, hook: str) -> list[dict[str, Any]]:
    mark = f'"hook": "{hook}"'.encode()
    return read_lines(b"\n".join(line for line in data.split(b"\n") if mark in line[:200]))


def _seconds(milliseconds: object) -> float:
    return milliseconds / 1000 if isinstance(milliseconds, int | float) else 0.0


def _read(place: Place, path: str) -> bytes:
    try:
        return place.host.read(f"{place.home}/{path}")
    except FileNotFoundError:
        return b""


def _json(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _file(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return _json(file.read())
    except OSError:
        return {}


def _logged_in(config: Mapping[str, Any]) -> bool:
    """On macOS the login itself is in the keychain."""
    return bool(config.get("oauthAccount") or config.get("primaryApiKey"))
