"""The driver of Codex. Each agent has its own CODEX_HOME, with a copy of the user's settings and a link to the login.
mngr's own settings are on the command line, so that a `codex` which the agent itself starts does not report as the
agent."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from mngr import json_values
from mngr.agent.record import seconds_of
from mngr.agent.state import BLOCKED, RUNNING, STARTING, WAITING, Status
from mngr.errors import MngrError
from mngr.json_values import string, table
from mngr.named_tuples import NamedTuple
from mngr.programs import driver, hooks, permissions, repository_trust
from mngr.programs.codex import record as codex_record
from mngr.programs.driver import AgentContext, AgentProgram, Driver, LaunchCommand, ModelUsage, Wording, joined, plain
from mngr.system import process
from mngr.system.files import content, read_lines
from mngr.system.process import checked, join, quote

THREADS = "threads.jsonl"
_THREADS_BYTES = 1 << 20
THREAD_SCRIPT = "thread.sh"
HISTORY = "history.jsonl"
LOCKS = "thread-writer-locks"
# Codex records a message at once, and begins its turn a moment later, or after the current turn.
TAKEN_SECONDS = 10.0
TAKEN_BYTES = 1024 * 1024
ZERO_WIDTH_SPACE = "\u200b"
# The input box shows a pasted text of up to 1000 characters; blanks before a longer text have no effect.
LONGEST_TYPED = 990

# No questions or notices that nobody would see. The history is always kept: it proves that a message arrived.
SETTINGS = {
    "check_for_update_on_startup": False,
    "allow_login_shell": False,  # a login shell would forget the PATH that the agent was given
    "features.plugins": False,
    "analytics.enabled": False,
    "feedback.enabled": False,
    "history.persistence": "save-all",
    "history.max_bytes": 1 << 40,
    "notice.hide_full_access_warning": True,
    "notice.hide_rate_limit_model_nudge": True,
}
# The hooks that report a state. Only the rollout shows a turn that failed.
STATES = {"UserPromptSubmit": RUNNING, "Stop": WAITING, "Interrupt": WAITING}
# The user's settings, without the login. The agent's "do not ask again" adds to its own rules, so those are kept.
COPIED = ("config.toml", "hooks.json", "AGENTS.md", "AGENTS.override.md", "agents", "prompts", "skills")
KEPT = ("rules",)

_INPUT = re.compile(r"^(?:\x1b\[[0-9;]*m)*([›!])(?:\x1b\[[0-9;]*m)* ?(.*)$", re.MULTILINE)
_DIM = re.compile(r"\x1b\[(?:[0-9;]*;)?2m")
_EMPTY = "for shortcuts"  # shown below an empty input box alone
_ASKING = re.compile(r"to confirm or \S+ to cancel|to submit answer")
_IMAGE = re.compile(r"[^\n]*\.(?:png|jpe?g|gif|webp|bmp|tiff?)[\"' ]*", re.IGNORECASE)


class CodexThread(NamedTuple):
    """A conversation of this agent: its id, and the file in `home` with its record."""

    id: str
    path: str


class CodexDriver(Driver):
    program = AgentProgram(name="codex", install="npm install -g @openai/codex", oldest="0.166.0", tried="0.166.0")
    dialogs = (
        (r"Sign in with ChatGPT|Use an OpenAI API key", "login: Codex is not logged in; run `codex login`"),
        (r"Hooks need review", "trust: Codex asks whether to trust hooks"),
        (r"Trust this folder\?|Open restricted", "trust: Codex asks whether to trust the folder"),
        (r"Update available!|Update now", "Codex offers an update"),
        (r"Choose working directory", "question: in which directory to go on"),
        (r"Error loading config", "Codex cannot read its settings"),
    )
    conversation = ("sessions", THREADS)
    prompts = HISTORY
    variables = ("OPENAI_", "CODEX_")
    own_sandbox = True

    def prepare(self, agent: AgentContext, *, prompted: bool) -> LaunchCommand:
        record = agent.record
        repository_trust.check_new("codex", agent, "sessions")
        _write_config(agent)
        permissions.codex_forbid(agent)
        for name in (LOCKS, driver.PROMPT, codex_record.LOG):
            agent.host.remove(f"{agent.home}/{name}")
        file = driver.write_first_prompt(agent) if prompted else ""
        settings = [*_settings(agent), *permissions.codex_words(agent)]
        env = {"CODEX_HOME": agent.home, **permissions.codex_temporary_dir(agent)}
        if record.spec.one_shot:
            words = ["exec", "--skip-git-repo-check", *settings]
            return LaunchCommand(f"{record.spec.command} {join(words)} - < {file}", env)
        threads = _threads(agent)
        words = ["resume", *settings, "-C", record.workspace.work_dir, threads[-1].id] if threads else settings
        return LaunchCommand(f"{record.spec.command} {join(words)}" + (f' -- "$(cat {file})"' if prompted else ""), env)

    def look(self, agent: AgentContext, status: Status, events: Sequence[Mapping[str, Any]]) -> Status:
        fact = _fact(agent)
        found = _told(fact) if fact else _opened(agent, status) if status.state == STARTING else status
        untold = status.state == STARTING and found.state == RUNNING
        if fact and (untold or (status.state == BLOCKED and status.since >= found.since)):
            return _asking(agent, status) or found
        if fact and found.state == RUNNING:
            return (
                codex_record.waiting(agent.tail(codex_record.LOG), _threads(agent)[-1].id, found.since, time.time())
                or found
            )
        given = _given(events)
        if found.state == RUNNING or time.time() - given > TAKEN_SECONDS:
            return found
        if found.since < given or not _began_with_last(agent):
            return Status(RUNNING, "", given, "events: a message that its rollout does not have yet")
        return found

    def wording(self, text: str) -> Wording:
        """The program drops blanks around a message. With them it does not take `/` for a command, and an open list of
        files or skills does not take the Enter. Other commands get a zero-width space."""
        kept = "".join(one for one in text if one in "\n\t" or unicodedata.category(one) != "Cc")
        driver.check_utf8(kept, "Codex")
        if not (bare := kept.strip()):
            raise MngrError("the message is empty")
        if taken := _taken_for(bare):
            said = f"a zero-width space put before it, since Codex would take it for {taken}"
            return Wording(f" {ZERO_WIDTH_SPACE}{bare} ", ZERO_WIDTH_SPACE + bare, said)
        return Wording(f" {bare} ", bare, "" if kept == text else "control characters dropped")

    def received(self, agent: AgentContext, mark: int = 0) -> list[str]:
        """Codex records a prompt at once, although a busy agent's model sees it only at the next step."""
        if agent.record.spec.one_shot:
            return [entry["text"] for entry in self.transcript(agent) if entry["role"] == "user"]
        return [str(line.get("text")) for line in read_lines(agent.after(HISTORY, mark))]

    def occupied(self, screen: str) -> str:
        return typed(screen)

    def transcript(self, agent: AgentContext) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        for thread in _threads(agent):
            entries += codex_record.transcript(agent.lines(thread.path))
        return sorted(entries, key=lambda entry: str(entry["timestamp"]))  # the agent may return to an earlier one

    def usage(self, agent: AgentContext) -> list[ModelUsage]:
        """Including its sub-agents. No record has the cost of naming the conversation."""
        own, found = {thread.id for thread in _threads(agent)}, dict[str, ModelUsage]()
        for path in _rollouts(agent):
            lines = agent.lines(path)
            if lines and codex_record.root_thread(lines[0]) in own:
                found.update(codex_record.usage(lines))
        return sorted(found.values(), key=lambda spent: spent.timestamp)

    def login(self, environ: Mapping[str, str]) -> str:
        directory = _user_dir(environ)
        login = json_values.file(f"{directory}/auth.json")
        if login.get("tokens"):
            return f"with a ChatGPT account, in {directory}/auth.json"
        if login.get("OPENAI_API_KEY"):
            return f"with an API key, in {directory}/auth.json"
        provider = _provider(user_settings(environ))
        if provider:
            return f"with the provider `{provider}` of {directory}/config.toml"
        return "with CODEX_API_KEY, which Codex takes for `--one-shot` only" if environ.get("CODEX_API_KEY") else ""

    def logins(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(f"{_user_dir(environ)}/{name}" for name in ("auth.json", "auth.lock"))


DRIVER = CodexDriver()


def _asks(screen: str) -> bool:
    return bool(_ASKING.search(joined(plain(screen))))


def typed(screen: str) -> str:
    """What is in the input box; its first line, if there are several. One Ctrl-C clears it, and ends the program when
    it is empty: in doubt it is empty."""
    boxes = _INPUT.findall(screen)
    if not boxes or _asks(screen):
        return ""
    sign, rest = boxes[-1]
    if _DIM.match(rest) or _EMPTY in joined("\n".join(screen.rstrip().split("\n")[-4:])):
        return ""
    return plain(rest).strip() or sign.strip("›")


def _taken_for(text: str) -> str:
    """What Codex would take the text for, even with blanks around it; empty for a message."""
    if text.startswith("!"):
        return "a shell command"
    if text.startswith("/") and len(text) > LONGEST_TYPED:
        return "a command"
    return "an image" if _IMAGE.fullmatch(text) else ""


def _user_dir(environ: Mapping[str, str]) -> str:
    return environ.get("CODEX_HOME") or f"{driver.user_home(environ)}/.codex"


def _write_config(agent: AgentContext) -> None:
    """Write the user's current settings, a link to the login and to the lock for renewing it, and the scripts of the
    hooks. Removes the database of conversations: Codex builds it again from the rollout, which a restored snapshot may
    have replaced."""
    agent.host.make_dir(agent.home)
    note = f"#!/bin/sh\n{{ tr -d '\\n\\r'; echo; }} >> {quote(f'{agent.home}/{THREADS}')}\n"
    agent.host.write(f"{agent.home}/{THREAD_SCRIPT}", note.encode("utf-8", "surrogateescape"), 0o700)
    words = ["sh", "-c", _COPY, "sh", _user_dir(agent.environ), agent.home]
    checked(process.run(words, timeout=60), "copying the settings of Codex")


_COPY = f"""
from=$1 to=$2
[ "$from" -ef "$to" ] && exit 0
rm -f "$to"/*config.toml "$to"/hooks.json "$to"/AGENTS*.md "$to"/thread_history_*.sqlite*
for name in {join(KEPT)}; do [ ! -e "$from/$name" ] || [ -e "$to/$name" ] || cp -RL "$from/$name" "$to/" || exit 1; done
for name in {join(COPIED)}; do [ ! -e "$from/$name" ] || cp -RL "$from/$name" "$to/" || exit 1; done
for file in "$from"/*.config.toml; do [ ! -e "$file" ] || cp -L "$file" "$to/" || exit 1; done
[ ! -e "$from/auth.json" ] || for name in auth.json auth.lock; do ln -sfn "$from/$name" "$to/$name" || exit 1; done
"""


def _settings(agent: AgentContext) -> list[str]:
    words = ["--dangerously-bypass-hook-trust"]
    script = hooks.write_script(agent, "codex")
    run = {"SessionStart": f"sh {quote(f'{agent.home}/{THREAD_SCRIPT}')}"}
    if not agent.record.spec.one_shot:
        words.append("--no-daemon")
        run["PermissionRequest"] = f"{script} PermissionRequest {BLOCKED} permission"
        run.update({name: f"{script} {name} {state} </dev/null" for name, state in STATES.items()})
    settings = {
        name: _toml(value) for name, value in {**SETTINGS, "sqlite_home": agent.home, "log_dir": agent.home}.items()
    }
    if not _distrusted(agent):
        settings["projects"] = f'{{{_toml(agent.record.workspace.work_dir)}={{trust_level="trusted"}}}}'
    for name, command in run.items():
        settings[f"hooks.{name}"] = f'[{{hooks=[{{type="command",command={_toml(command)}}}]}}]'
    return words + [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]


def _distrusted(agent: AgentContext) -> bool:
    """Whether the user does not trust this code; then Codex asks."""
    projects = table(_parsed(agent.read("config.toml")).get("projects"))
    return (
        table(projects.get(agent.record.workspace.repo or agent.record.workspace.work_dir)).get("trust_level")
        == "untrusted"
    )


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _threads(agent: AgentContext) -> list[CodexThread]:
    """This agent's conversations, the current one last. The user may begin another with `/new`."""
    found: dict[str, CodexThread] = {}
    for line in read_lines(agent.tail(THREADS, _THREADS_BYTES)):
        name, path = string(line.get("session_id")), string(line.get("transcript_path"))
        if name and "/sessions/" in path:
            found.pop(name, None)
            found[name] = CodexThread(name, "sessions/" + path.rpartition("/sessions/")[2])
    return list(found.values()) or _unreported_threads(agent)


def _unreported_threads(agent: AgentContext) -> list[CodexThread]:
    """Where no hook ran: the conversations that began in a terminal, or the first one of an agent for one task."""
    found = []
    for path in _rollouts(agent):
        thread, source = codex_record.origin(agent.after(path, 0).partition(b"\n")[0])
        if source == ("exec" if agent.record.spec.one_shot else "cli"):
            found.append(CodexThread(thread, path))
    return found[:1] if agent.record.spec.one_shot else found


def _rollouts(agent: AgentContext) -> list[str]:
    paths = ["sessions"]
    for _ in ("year", "month", "day", "file"):
        paths = [f"{path}/{name}" for path in paths for name in sorted(agent.host.entries(f"{agent.home}/{path}"))]
    return [path for path in paths if path.endswith(".jsonl")]


def _fact(agent: AgentContext) -> codex_record.TurnFact | None:
    """What its record says since it was started."""
    threads = _threads(agent)
    if not threads:
        return None
    fact = codex_record.last_fact(agent.tail(threads[-1].path))
    return fact if fact is not None and fact.timestamp >= (agent.record.life.started_at or "") else None


def _told(fact: codex_record.TurnFact) -> Status:
    evidence = f"rollout: {fact.state} at {fact.timestamp}"
    return Status(fact.state, fact.reason, seconds_of(fact.timestamp), evidence)


def _given(events: Sequence[Mapping[str, Any]]) -> float:
    """When the agent last got a message since its start; 0 when it got none."""
    for event in reversed(events):
        if event.get("type") == "message_queued":
            return seconds_of(str(event["timestamp"]))
    return 0.0


def _began_with_last(agent: AgentContext) -> bool:
    """Whether the rollout has the last message of the history; both write its text in the same way."""
    entered = agent.tail(HISTORY, TAKEN_BYTES)
    threads = _threads(agent)
    if not entered or not threads:
        return not entered
    text = entered.rstrip(b"\n").rpartition(b"\n")[2].partition(b'"text":"')[2].rpartition(b'"}')[0]
    return b'"text":"' + text + b'"' in agent.tail(threads[-1].path, TAKEN_BYTES)


def _opened(agent: AgentContext, status: Status) -> Status:
    """The state before any record: ready when Codex locks a new conversation, or when it recorded its first prompt."""
    if driver.PROMPT in agent.host.entries(agent.home):
        if not agent.size(HISTORY):
            return status
        return status._replace(state=RUNNING, reason="", evidence=f"{HISTORY}: its first prompt")
    locks = [name for name in agent.host.entries(f"{agent.home}/{LOCKS}") if not name.startswith(".")]
    return status._replace(state=WAITING, reason="", evidence=f"{LOCKS}: {locks[0]}") if locks else status


def _asking(agent: AgentContext, status: Status) -> Status | None:
    """BLOCKED while the screen shows a request for permission; None otherwise. No file records that a request was
    answered, and Codex shows none while somebody types."""
    if not _asks(agent.screen()):
        return None
    return status._replace(state=BLOCKED, reason=hooks.asked(agent))


def user_settings(environ: Mapping[str, str]) -> dict[str, Any]:
    try:
        return _parsed(content(f"{_user_dir(environ)}/config.toml"))
    except OSError:
        return {}


def _provider(settings: Mapping[str, Any]) -> str:
    """The provider that the user's settings name, if it has its own way to log in."""
    name = settings.get("model_provider", "openai")
    own = table(table(settings.get("model_providers")).get(name))
    return str(name) if own and not own.get("requires_openai_auth") else ""


def _parsed(settings: bytes) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(settings.decode())
    except ValueError:
        return {}
