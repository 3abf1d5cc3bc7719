"""The driver of OpenCode. A small plugin of ours, inside the agent's own process, reports its states, records its
conversation and takes messages from a directory: no port, no terminal. See `opencode_plugin.js`."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mngr import json_values
from mngr.agent import reasons
from mngr.agent.record import Record
from mngr.agent.state import BLOCKED, Status
from mngr.errors import MngrError
from mngr.programs import driver, hooks, permissions, repository_trust
from mngr.programs.driver import AgentContext, AgentProgram, Driver, LaunchCommand, ModelUsage, Wording
from mngr.programs.opencode import record as opencode_record
from mngr.system import process
from mngr.system.process import checked, quote

INBOX = "inbox"
RECORD = "record.jsonl"
IMPORT = "import.json"
# Directories of each agent's own, by the variable that moves them. The cache stays the user's: it holds downloads.
_OWN = {"XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data", "XDG_STATE_HOME": "state"}
_DEFAULTS = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state"}
# Variables with a key of a provider that OpenCode knows by itself.
_VENDORS = ("ANTHROPIC", "OPENAI", "OPENROUTER", "GEMINI", "GOOGLE_GENERATIVE_AI", "GROQ", "MISTRAL", "DEEPSEEK", "XAI")
_KEYS = (
    *(f"{name}_API_KEY" for name in _VENDORS),
    "AWS_BEARER_TOKEN_BEDROCK",
    "OPENCODE_API_KEY",
    "OPENCODE_AUTH_CONTENT",
)


class OpenCodeDriver(Driver):
    program = AgentProgram(name="opencode", install="npm install -g opencode-ai", oldest="1.15.0", tried="1.18.33")
    ready_seconds = 90.0
    conversation = (RECORD, hooks.FILE)
    prompts = hooks.FILE
    variables = (*_KEYS, "OPENCODE_")

    def prepare(self, agent: AgentContext, *, prompted: bool) -> LaunchCommand:
        record = agent.record
        repository_trust.check_new("opencode", agent, RECORD)
        lines = agent.lines(RECORD)
        session = opencode_record.session(lines)
        _write_config(agent)
        variables, program, rest = _program(record)
        steps = [_exports(agent, str(session["id"]) if session else "")]
        if session and not _stored(agent, session):
            text = opencode_record.exported(lines, session)
            agent.host.write(f"{agent.home}/{IMPORT}", json.dumps(text).encode("utf-8", "replace"))
            steps.append(f"MNGR_OPENCODE= {program} import {quote(f'{agent.home}/{IMPORT}')} > /dev/null")
        resumed = f" --session {quote(str(session['id']))}" if session else ""
        if record.spec.one_shot:
            title = "" if session else f" --title {quote(record.name)}"
            steps.append(f"{variables}{program} run{rest}{resumed}{title} < {quote(agent.prompt_file)}")
        else:
            if prompted:
                steps.append(f"cp {quote(agent.prompt_file)} {quote(f'{agent.home}/{INBOX}/0')}")
            steps.append(f"{record.spec.command}{resumed}")
        return LaunchCommand("; ".join(steps))

    def look(self, agent: AgentContext, status: Status, events: Sequence[Mapping[str, Any]]) -> Status:
        """The plugin reports every change. The end of a rate limit may be in the server's message."""
        text = status.reason.removeprefix(f"{reasons.RATE_LIMIT}: ")
        if status.state != BLOCKED or text == status.reason or text.startswith("retry at "):
            return status
        return status._replace(reason=reasons.of_error(text, status.since, kind=reasons.RATE_LIMIT))

    def wording(self, text: str) -> Wording:
        """Sent as data: OpenCode takes no part of it for a command."""
        sent = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return Wording(sent, sent, "" if sent == text else "bytes that are not UTF-8 became U+FFFD")

    def received(self, agent: AgentContext, mark: int = 0) -> list[str]:
        return hooks.prompts(agent.after(hooks.FILE, mark))

    def deliver(self, agent: AgentContext, text: str) -> bool:
        name = f"{time.time_ns():020d}-{os.urandom(4).hex()}"
        agent.host.write(f"{agent.home}/{INBOX}/{name}", text.encode("utf-8", "replace"))
        return True

    def transcript(self, agent: AgentContext) -> list[dict[str, Any]]:
        return opencode_record.transcript(agent.lines(RECORD))

    def usage(self, agent: AgentContext) -> list[ModelUsage]:
        return opencode_record.usage(agent.lines(RECORD))

    def login(self, environ: Mapping[str, str]) -> str:
        path = f"{_users(environ, 'XDG_DATA_HOME')}/auth.json"
        if known := json_values.file(path):
            return f"{', '.join(map(str, known))} (`{path}`)"
        return next((f"`{name}` is set" for name in _KEYS if environ.get(name)), "") or _key_in_settings(environ)

    def logins(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(f"{_users(environ, 'XDG_DATA_HOME')}/{name}" for name in ("auth.json", "mcp-auth.json"))


DRIVER = OpenCodeDriver()


def _exports(agent: AgentContext, session: str) -> str:
    """Variables for OpenCode alone. They are part of its command line, so that other windows keep the user's values.
    The plugin restores the user's values for the agent's tools from `MNGR_OWN_...`."""
    record = agent.record
    settings = {"title": record.name, "interactive": not record.spec.one_shot, "session": session, **_chosen(record)}
    own = [f'MNGR_OWN_{name}="${{{name}-}}"' for name in _OWN]
    moved = [f"{name}={quote(f'{agent.home}/{folder}')}" for name, folder in _OWN.items()]
    other = {"MNGR_OPENCODE": json.dumps(settings), "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    if record.spec.permissions:
        other["OPENCODE_PERMISSION"] = json.dumps(permissions.opencode_table(agent))
    first = [*own, *(f"{name}={quote(value)}" for name, value in other.items())]
    return f"export {' '.join(first)}; export {' '.join(moved)}"


def _chosen(record: Record) -> dict[str, Any]:
    """Agent and model of its command line: OpenCode uses those only for typed messages."""
    try:
        line = "\0".join(shlex.split(record.spec.command))
    except ValueError:
        raise MngrError(f"`{record.spec.command}` is not a command line", hint="check its quotes") from None
    agent, model = (
        re.search(r"\0--agent[=\0]([^\0]+)", line),
        re.search(r"\0(?:-m|--model)[=\0]([^\0/]+)/([^\0]+)", line),
    )
    found: dict[str, Any] = {"agent": agent[1]} if agent else {}
    return {**found, "model": {"providerID": model[1], "modelID": model[2]}} if model else found


# Variables, and the word that names OpenCode, as the shell reads them.
_WORD = r"""(?:'[^']*'|"[^"]*"|\\.|[^\s'"])"""
_PROGRAM = re.compile(rf"((?:\w+={_WORD}*\s+)*)({_WORD}+)")


def _program(record: Record) -> tuple[str, str, str]:
    """The command line in three parts: variables, the program, the rest."""
    found = _PROGRAM.match(record.spec.command)
    return (found[1], found[2], record.spec.command[found.end() :]) if found else ("", "opencode", "")


def _stored(agent: AgentContext, session: Mapping[str, Any]) -> bool:
    """Whether OpenCode's own database has the session, for this directory. A clone and a restored snapshot have only
    the record: a database in use cannot be copied safely."""
    there = any(name.endswith(".db") for name in agent.host.entries(f"{agent.home}/data/opencode"))
    return there and session.get("directory") == agent.record.workspace.work_dir


def _write_config(agent: AgentContext) -> None:
    """Write its directories: a copy of the user's settings, links to their folders and the login, and our plugin."""
    plugin = os.path.join(os.path.dirname(__file__), "opencode_plugin.js")
    with open(plugin, "rb") as file:
        source = file.read()
    users = [_users(agent.environ, name) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME")]
    checked(process.run(["sh", "-c", _FURNISH, "sh", agent.home, *users], timeout=60), "preparing OpenCode")
    config = f"{agent.home}/config/opencode"
    agent.host.write(f"{config}/plugins/mngr.js", source)
    # Keeps OpenCode from fetching packages for plugins at its first start, which takes 70 s without a network.
    lock = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
    agent.host.write(f"{config}/package-lock.json", json.dumps(lock).encode())


_FURNISH = """
umask 077
home=$1 config=$2 data=$3 own=$1/config/opencode
rm -rf "$own" "$home/inbox" "$home/owner"
mkdir -p "$own/plugins" "$own/node_modules" "$home/data/opencode" "$home/state" "$home/inbox" || exit
for entry in "$config"/* "$config"/plugins/*; do
    case ${entry#"$config"/} in
        node_modules | package.json | package-lock.json | bun.lock | bun.lockb | plugins) ;;
        plugins/*) [ ! -e "$entry" ] || ln -sfn "$entry" "$own/plugins/" ;;
        *) if [ -d "$entry" ]; then ln -sfn "$entry" "$own/"; elif [ -f "$entry" ]; then cp "$entry" "$own/"; fi ;;
    esac
done
for login in auth.json mcp-auth.json; do
    [ ! -e "$data/$login" ] || ln -sfn "$data/$login" "$home/data/opencode/$login"
done
"""


def _users(environ: Mapping[str, str], name: str) -> str:
    """The user's own directory of OpenCode."""
    return f"{environ.get(name) or f'{driver.user_home(environ)}/{_DEFAULTS[name]}'}/opencode"


def _key_in_settings(environ: Mapping[str, str]) -> str:
    """A key in the user's settings for a provider. The settings may have comments, so they are not parsed as JSON."""
    if '"apiKey"' in environ.get("OPENCODE_CONFIG_CONTENT", ""):
        return "a key in `OPENCODE_CONFIG_CONTENT`"
    folder = _users(environ, "XDG_CONFIG_HOME")
    for path in (environ.get("OPENCODE_CONFIG", ""), f"{folder}/opencode.json", f"{folder}/opencode.jsonc"):
        try:
            with open(path, "rb") as file:
                if b'"apiKey"' in file.read():
                    return f"a key in `{path}`"
        except OSError:
            continue
    return ""
