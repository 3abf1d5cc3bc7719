"""Drives Codex. Each agent has a CODEX_HOME of its own, with a copy of the user's settings and a link to the login.
What is ours is said on the command line: a `codex` that the agent itself starts does not report as the agent."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Mapping, Sequence

from mngr.agents.kinds import codex_log, codex_permissions, codex_record, codex_screen, hooks, repository_trust
from mngr.agents.kinds.driver import (
    ASK,
    BYPASS,
    EDITS,
    TESTS,
    Launch,
    Place,
    Program,
    Spent,
    Wording,
    first_prompt,
    user_home,
)
from mngr.agents.record import Record, seconds_of
from mngr.agents.state import BLOCKED, RUNNING, STARTING, WAITING, Status
from mngr.errors import MngrError
from mngr.files import read_lines
from mngr.process import join, quote
from mngr.records import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

THREADS = "threads.jsonl"
THREAD_SCRIPT = "thread.sh"
PROMPT = "prompt"
HISTORY = "history.jsonl"
LOCKS = "thread-writer-locks"
TAIL_BYTES = 64 * 1024
# It notes a message at once, and begins the turn that follows a moment later, or after the one that goes on.
TAKEN_SECONDS = 10.0
TAKEN_BYTES = 1024 * 1024
ZERO_WIDTH_SPACE = "\u200b"
# What is pasted stands in the input box as it is up to 1000 characters; beyond, blanks before it do not count.
LONGEST_TYPED = 990

# Never ask or tell anything that nobody is there for; keep the record of what was typed, whatever the user keeps.
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
# The hooks that tell a state. What comes of a turn that fails is in the rollout alone.
STATES = {"UserPromptSubmit": RUNNING, "Stop": WAITING, "Interrupt": WAITING}
# The user's own settings, but not the login. Rules grow by the agent's own "do not ask again".
COPIED = ("config.toml", "hooks.json", "AGENTS.md", "AGENTS.override.md", "agents", "prompts", "skills")
KEPT = ("rules",)

_IMAGE = re.compile(r"[^\n]*\.(?:png|jpe?g|gif|webp|bmp|tiff?)[\"' ]*", re.IGNORECASE)


class Thread(NamedTuple):
    """A conversation of this agent: its id, and the file in `home` with its record."""

    id: str
    path: str


class Codex:
    program = Program(name="codex", install="npm install -g @openai/codex", oldest="0.166.0", tried="0.166.0")
    ready_seconds = 60.0
    dialogs: Sequence[tuple[str, str]] = (
        (r"Sign in with ChatGPT|Use an OpenAI API key", "login: Codex is not logged in; run `codex login`"),
        (r"Hooks need review", "trust: Codex asks whether to trust hooks"),
        (r"Trust this folder\?|Open restricted", "trust: Codex asks whether to trust the folder"),
        (r"Update available!|Update now", "Codex offers an update"),
        (r"Choose working directory", "question: in which directory to go on"),
        (r"Error loading config", "Codex cannot read its settings"),
    )
    conversation: Sequence[str] = ("sessions", THREADS)

    def takes_prompt(self, record: Record) -> bool:
        return True

    def prepare(self, place: Place, *, prompted: bool) -> Launch:
        record = place.record
        repository_trust.check_new("codex", place, "sessions")
        _furnish(place)
        codex_permissions.forbid(place)
        place.host.remove(f"{place.home}/{LOCKS}")
        place.host.remove(f"{place.home}/{PROMPT}")
        place.host.remove(f"{place.home}/{codex_log.FILE}")
        if prompted:
            place.host.write(f"{place.home}/{PROMPT}", first_prompt(place))
        file = quote(f"{place.home}/{PROMPT}")
        settings = [*_settings(place), *_permissions(place)]
        env = {"CODEX_HOME": place.home}
        if record.one_shot:
            words = ["exec", "--skip-git-repo-check", *settings]
            return Launch(f"{record.command} {join(words)} - < {file}", env)
        threads = _threads(place)
        words = ["resume", *settings, "-C", record.work_dir, threads[-1].id] if threads else settings
        return Launch(f"{record.command} {join(words)}" + (f' -- "$(cat {file})"' if prompted else ""), env)

    def look(self, place: Place, status: Status, events: Sequence[Mapping[str, Any]]) -> Status:
        fact = _fact(place)
        found = _told(fact) if fact else _opened(place, status) if status.state == STARTING else status
        untold = status.state == STARTING and found.state == RUNNING
        if fact and (untold or (status.state == BLOCKED and status.since >= found.since)):
            return _asking(place, status) or found
        if fact and found.state == RUNNING:
            log, _ = place.host.read_tail(f"{place.home}/{codex_log.FILE}", TAIL_BYTES)
            return codex_log.waiting(log, _threads(place)[-1].id, found.since, time.time()) or found
        given = _given(events)
        if found.state == RUNNING or time.time() - given > TAKEN_SECONDS:
            return found
        if found.since < given or not _began_with_last(place):
            return Status(RUNNING, "", given, "events: a message that its rollout does not have yet")
        return found

    def wording(self, text: str) -> Wording:
        """Blanks around a message are dropped by the program; they keep it from taking `/` for a command, and an open
        list of files or skills from taking the Enter. For the rest there is only what cannot be seen."""
        plain = "".join(one for one in text if one in "\n\t" or unicodedata.category(one) != "Cc")
        if any("\ud800" <= one <= "\udfff" for one in plain):
            raise MngrError("the message is not UTF-8, and Codex would not take it as it is")
        said = ["control characters dropped"] if plain != text else []
        bare = plain.strip()
        if not bare:
            raise MngrError("the message is empty")
        if bare != plain:
            said.append("blanks at its ends dropped")
        taken = _taken_for(bare)
        if taken:
            bare = ZERO_WIDTH_SPACE + bare
            said.append(f"a zero-width space put before it, since Codex would take it for {taken}")
        return Wording(f" {bare} ", bare, ", ".join(said))

    def mark(self, place: Place) -> object:
        return len(_read(place, HISTORY))

    def received(self, place: Place, mark: object) -> list[str]:
        """What was entered, at once; a message for a busy agent reaches its model at the next step of the turn."""
        if place.record.one_shot:
            return [entry["text"] for entry in self.transcript(place) if entry["role"] == "user"]
        since = mark if isinstance(mark, int) else 0
        return [str(line.get("text")) for line in read_lines(_read(place, HISTORY)[since:])]

    def occupied(self, screen: str) -> str:
        return codex_screen.typed(screen)

    def deliver(self, place: Place, text: str) -> bool:
        return False

    def transcript(self, place: Place) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        for thread in _threads(place):
            entries += codex_record.transcript(read_lines(_read(place, thread.path)))
        return sorted(entries, key=lambda entry: str(entry["timestamp"]))  # one that it went back to is the last

    def usage(self, place: Place) -> list[Spent]:
        """With that of sub-agents. What naming the conversation cost is in no record."""
        own, found = {thread.id for thread in _threads(place)}, dict[str, Spent]()
        for path in _rollouts(place):
            lines = read_lines(_read(place, path))
            if lines and codex_record.root_thread(lines[0]) in own:
                found.update(codex_record.usage(lines))
        return sorted(found.values(), key=lambda spent: spent.timestamp)

    def login(self, environ: Mapping[str, str]) -> str:
        directory = _user_dir(environ)
        login = next(iter(read_lines(_own(environ, "auth.json").replace(b"\n", b" "))), {})
        if login.get("tokens"):
            return f"with a ChatGPT account, in {directory}/auth.json"
        if login.get("OPENAI_API_KEY"):
            return f"with an API key, in {directory}/auth.json"
        provider = _provider(user_settings(environ))
        if provider:
            return f"with the provider `{provider}` of {directory}/config.toml"
        return "with CODEX_API_KEY, which Codex takes for `--one-shot` only" if environ.get("CODEX_API_KEY") else ""


DRIVER = Codex()


def _taken_for(text: str) -> str:
    """What else than a message the text would be, even with blanks around it."""
    if text.startswith("!"):
        return "a shell command"
    if text.startswith("/") and len(text) > LONGEST_TYPED:
        return "a command"
    return "an image" if _IMAGE.fullmatch(text) else ""


def _user_dir(environ: Mapping[str, str]) -> str:
    return environ.get("CODEX_HOME") or f"{user_home(environ)}/.codex"


def _furnish(place: Place) -> None:
    """The user's settings, as they are now, the login with the lock under which it is renewed, and the scripts that the
    hooks run. What it shows of a conversation is made anew from the rollout, which may be that of a snapshot."""
    place.host.make_dir(place.home)
    script = hooks.script(place.state_dir, place.home, "codex")
    place.host.write(f"{place.home}/{hooks.SCRIPT}", script.encode("utf-8", "surrogateescape"), 0o700)
    note = f"#!/bin/sh\n{{ tr -d '\\n\\r'; echo; }} >> {quote(f'{place.home}/{THREADS}')}\n"
    place.host.write(f"{place.home}/{THREAD_SCRIPT}", note.encode("utf-8", "surrogateescape"), 0o700)
    copied = place.host.run(["sh", "-c", _COPY, "sh", _user_dir(place.environ), place.home], timeout=60)
    if not copied.ok:
        raise MngrError("the settings of Codex cannot be copied", details=copied.error_text)


_COPY = f"""
from=$1 to=$2
[ "$from" -ef "$to" ] && exit 0
rm -f "$to"/*config.toml "$to"/hooks.json "$to"/AGENTS*.md "$to"/thread_history_*.sqlite*
for name in {join(KEPT)}; do [ ! -e "$from/$name" ] || [ -e "$to/$name" ] || cp -RL "$from/$name" "$to/" || exit 1; done
for name in {join(COPIED)}; do [ ! -e "$from/$name" ] || cp -RL "$from/$name" "$to/" || exit 1; done
for file in "$from"/*.config.toml; do [ ! -e "$file" ] || cp -L "$file" "$to/" || exit 1; done
[ ! -e "$from/auth.json" ] || for name in auth.json auth.lock; do ln -sfn "$from/$name" "$to/$name" || exit 1; done
"""


def _settings(place: Place) -> list[str]:
    words = ["--dangerously-bypass-hook-trust"]
    script = f"sh {quote(f'{place.home}/{hooks.SCRIPT}')}"
    run = {"SessionStart": f"sh {quote(f'{place.home}/{THREAD_SCRIPT}')}"}
    if not place.record.one_shot:
        words.append("--no-daemon")
        run["PermissionRequest"] = f"{script} PermissionRequest {BLOCKED} permission"
        run.update({name: f"{script} {name} {state} </dev/null" for name, state in STATES.items()})
    settings = {
        name: _toml(value) for name, value in {**SETTINGS, "sqlite_home": place.home, "log_dir": place.home}.items()
    }
    if not _distrusted(place):
        settings["projects"] = f'{{{_toml(place.record.work_dir)}={{trust_level="trusted"}}}}'
    for name, command in run.items():
        settings[f"hooks.{name}"] = f'[{{hooks=[{{type="command",command={_toml(command)}}}]}}]'
    return words + [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]


def _distrusted(place: Place) -> bool:
    """Whether the user said of the code that it is not to be trusted; then Codex asks."""
    projects = _parsed(_read(place, "config.toml")).get("projects")
    own = projects.get(place.record.repo or place.record.work_dir) if isinstance(projects, dict) else None
    return isinstance(own, dict) and own.get("trust_level") == "untrusted"


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _permissions(place: Place) -> list[str]:
    """One that does a task and ends can ask nobody: what is not allowed fails."""
    chosen, asks = place.record.permissions, [] if place.record.one_shot else ["-a", "on-request"]
    if chosen == ASK:
        return [*asks, "-s", "read-only"]
    if chosen == EDITS:
        roots = [word for path in codex_permissions.git_dirs(place) for word in ("--add-dir", path)]
        return [*asks, "-s", "workspace-write", *roots]
    if chosen == TESTS:
        return codex_permissions.words(place)
    return ["--dangerously-bypass-approvals-and-sandbox"] if chosen == BYPASS else []


def _threads(place: Place) -> list[Thread]:
    """The conversations of this agent, the one it is in last. The user may begin another with `/new`."""
    found: dict[str, Thread] = {}
    for line in read_lines(_read(place, THREADS)):
        name, path = line.get("session_id"), line.get("transcript_path")
        if isinstance(name, str) and isinstance(path, str) and "/sessions/" in path:
            found.pop(name, None)
            found[name] = Thread(name, "sessions/" + path.rpartition("/sessions/")[2])
    return list(found.values()) or _untold_threads(place)


def _untold_threads(place: Place) -> list[Thread]:
    """Where no hook told of them: the conversations that began in a terminal, or the first one for one task."""
    found = []
    for path in _rollouts(place):
        thread, source = codex_record.origin(_read(place, path).partition(b"\n")[0])
        if source == ("exec" if place.record.one_shot else "cli"):
            found.append(Thread(thread, path))
    return found[:1] if place.record.one_shot else found


def _rollouts(place: Place) -> list[str]:
    paths = ["sessions"]
    for _ in ("year", "month", "day", "file"):
        paths = [f"{path}/{name}" for path in paths for name in sorted(place.host.entries(f"{place.home}/{path}"))]
    return [path for path in paths if path.endswith(".jsonl")]


def _fact(place: Place) -> codex_record.Fact | None:
    """What its record says since it was started."""
    threads = _threads(place)
    if not threads:
        return None
    tail, _ = place.host.read_tail(f"{place.home}/{threads[-1].path}", TAIL_BYTES)
    fact = codex_record.last_fact(tail)
    return fact if fact is not None and fact.timestamp >= (place.record.started_at or "") else None


def _told(fact: codex_record.Fact) -> Status:
    evidence = f"rollout: {fact.state} at {fact.timestamp}"
    return Status(fact.state, fact.reason, seconds_of(fact.timestamp), evidence)


def _given(events: Sequence[Mapping[str, Any]]) -> float:
    """When it was last given a message; 0 when it was not since its start."""
    for event in reversed(events):
        if event.get("type") == "message_queued":
            return seconds_of(str(event["timestamp"]))
    return 0.0


def _began_with_last(place: Place) -> bool:
    """Whether the message that was entered last is in the rollout, where its text is written in the same way."""
    entered, _ = place.host.read_tail(f"{place.home}/{HISTORY}", TAKEN_BYTES)
    threads = _threads(place)
    if not entered or not threads:
        return not entered
    text = entered.rstrip(b"\n").rpartition(b"\n")[2].partition(b'"text":"')[2].rpartition(b'"}')[0]
    tail, _ = place.host.read_tail(f"{place.home}/{threads[-1].path}", TAKEN_BYTES)
    return b'"text":"' + text + b'"' in tail


def _opened(place: Place, status: Status) -> Status:
    """It locks a new conversation when it is ready for one; what begins with a prompt is ready when it noted that."""
    if PROMPT in place.host.entries(place.home):
        if not _read(place, HISTORY):
            return status
        return status._replace(state=RUNNING, reason="", evidence=f"{HISTORY}: its first prompt")
    locks = [name for name in place.host.entries(f"{place.home}/{LOCKS}") if not name.startswith(".")]
    return status._replace(state=WAITING, reason="", evidence=f"{LOCKS}: {locks[0]}") if locks else status


def _asking(place: Place, status: Status) -> Status | None:
    """The request for permission that it shows. None when it was answered, of which no file tells, and before it asks,
    which it does not while somebody types. Where hooks do not work, only the screen tells."""
    if not codex_screen.asks(place.screen()):
        return None
    tail, _ = place.host.read_tail(f"{place.home}/{hooks.FILE}", TAIL_BYTES)
    asked = [line.get("payload") for line in read_lines(tail) if line.get("hook") == "PermissionRequest"]
    reason = f"permission: {codex_record.asked(asked[-1]) if asked else 'its screen says for what'}"
    return status._replace(state=BLOCKED, reason=reason)


def _read(place: Place, path: str) -> bytes:
    try:
        return place.host.read(f"{place.home}/{path}")
    except FileNotFoundError:
        return b""


def _own(environ: Mapping[str, str], name: str) -> bytes:
    """A file of the user's own, on this machine; empty when it is not there."""
    try:
        with open(f"{_user_dir(environ)}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def user_settings(environ: Mapping[str, str]) -> dict[str, Any]:
    return _parsed(_own(environ, "config.toml"))


def _provider(settings: Mapping[str, Any]) -> str:
    """The provider that the user's settings name, if it has its own way to log in."""
    name, known = settings.get("model_provider", "openai"), settings.get("model_providers")
    own = known.get(name) if isinstance(known, dict) else None
    return str(name) if isinstance(own, dict) and not own.get("requires_openai_auth") else ""


def _parsed(settings: bytes) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(settings.decode())
    except ValueError:
        return {}
