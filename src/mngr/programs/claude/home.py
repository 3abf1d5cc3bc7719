"""Writes the configuration directory of one agent's Claude Code: the user's current settings, and an answer to every
question that the program would ask at its start (`repository_trust` answers the one about trust). The user's own files
are never changed. The login stays where it is: the program would replace a link to it by a copy when it renews the
login, and the user's own login would then be invalid."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from mngr.agent.state import BLOCKED, RUNNING, WAITING
from mngr.errors import MngrError
from mngr.json_values import file, table
from mngr.programs import hooks, permissions, repository_trust
from mngr.programs.driver import AgentContext, user_home
from mngr.programs.kind import BYPASS
from mngr.system import process
from mngr.system.files import MOST_BYTES, json_bytes, read_followed
from mngr.system.process import checked, join, quote

CONFIG = ".claude.json"
LOGIN = ".credentials.json"
LOGIN_VARIABLE = "CLAUDE_SECURESTORAGE_CONFIG_DIR"
SETTINGS = "settings.json"
OURS = "mngr-settings.json"
SESSION = "session.json"
DIAGNOSTICS = "diagnostics.jsonl"
FAILED = "the turn failed"
# The program only reads these. They are linked, so that running agents see the user's changes.
LINKED = ("CLAUDE.md", "agents", "commands", "keybindings.json", "output-styles", "rules", "skills")
# Copied from the user's `.claude.json`: who they are, what they chose, and servers that they added.
TAKEN = (
    *("oauthAccount", "userID", "theme", "editorMode", "mcpServers", "customApiKeyResponses"),
    "hasAvailableSubscription",
)
# Copied for one directory: what the user allowed there.
TAKEN_OF_PROJECT = (
    *("allowedTools", "mcpServers", "enabledMcpjsonServers", "disabledMcpjsonServers"),
    *("hasClaudeMdExternalIncludesApproved", "hasClaudeMdExternalIncludesWarningShown"),
)
CHOSEN = ("enabledMcpjsonServers", "disabledMcpjsonServers", "enableAllProjectMcpServers")
KEY = "ANTHROPIC_API_KEY"
# How much of a key the program shows and records when it asks whether to use the key.
KEY_ENDS = 20


def user_dir(environ: Mapping[str, str]) -> str:
    return environ.get("CLAUDE_CONFIG_DIR") or f"{user_home(environ)}/.claude"


def user_config(environ: Mapping[str, str]) -> str:
    return f"{environ.get('CLAUDE_CONFIG_DIR') or user_home(environ)}/{CONFIG}"


def login_dir(environ: Mapping[str, str]) -> str:
    """Where the program looks for the login. Empty is its own default, also in the keychain of macOS."""
    return environ.get(LOGIN_VARIABLE) or environ.get("CLAUDE_CONFIG_DIR", "")


def write_config(agent: AgentContext) -> None:
    """Write the directory before every start. Safe to repeat; keeps what the program itself recorded there."""
    host, home = agent.host, agent.home
    host.make_dir(home)
    host.write(f"{home}/{OURS}", json_bytes(_ours(agent), indent=1))
    for name in ("sessions", DIAGNOSTICS):  # of earlier processes
        host.remove(f"{home}/{name}")
    own = user_dir(agent.environ)
    if own == home:
        return
    repository_trust.check_new("claude", agent, "projects")
    host.write(f"{home}/{SETTINGS}", json_bytes(_settings(agent, own), indent=1))
    config = _config(agent, file(f"{home}/{CONFIG}"), file(user_config(agent.environ)))
    host.write(f"{home}/{CONFIG}", json_bytes(config, indent=1))
    checked(process.run(["sh", "-c", _LINK, "sh", own, home], timeout=60), "linking the settings of Claude Code")


# A file that the program itself put in the place of a link stays.
_LINK = f"""
for name in {join(LINKED)}; do
    if [ -e "$1/$name" ]; then
        [ -e "$2/$name" ] && [ ! -L "$2/$name" ] || ln -sfn "$1/$name" "$2/$name" || exit 1
    elif [ -L "$2/$name" ]; then rm -f "$2/$name"; fi
done
"""


def _ours(agent: AgentContext) -> dict[str, Any]:
    """Settings for the command line, which a `claude` that the agent itself starts does not read. The agent's commands
    do not get the variable with the diagnostics file, so that such a `claude` does not write there."""
    script = hooks.write_script(agent, "claude")
    hide = "echo 'unset CLAUDE_CODE_DIAGNOSTICS_FILE' >> \"${CLAUDE_ENV_FILE:-/dev/null}\""
    commands = {
        "SessionStart": f"{hide}; tee {quote(f'{agent.home}/{SESSION}')} | {script} SessionStart",
        "UserPromptSubmit": f"{script} UserPromptSubmit {RUNNING}",
        "PermissionRequest": f"{script} PermissionRequest {BLOCKED} 'permission: it asks for something'",
        "Stop": f"{script} Stop {WAITING}",
        "StopFailure": f"{script} StopFailure {WAITING} {quote(FAILED)}",
        "SessionEnd": f"{script} SessionEnd",
    }
    run: dict[str, Any] = {name: [{"hooks": [{"type": "command", "command": line}]}] for name, line in commands.items()}
    # The last one keeps the program from registering itself for its links in the user's desktop settings.
    ours: dict[str, Any] = {"disableAllHooks": False, "hooks": run, "disableDeepLinkRegistration": "disable"}
    rules, line = permissions.claude_settings(agent)
    if rules:
        run["PreToolUse"] = [{"matcher": "Bash", "hooks": [{"type": "command", "command": line}]}]
        ours["permissions"] = rules
    return ours


def _settings(agent: AgentContext, own: str) -> dict[str, Any]:
    """The user's settings, with their choices in the repository's `settings.local.json`, which a worktree lacks. A file
    that cannot be read is an error: without it, the agent could do what the user forbids."""
    repo = agent.record.workspace.repo or agent.record.workspace.source
    chosen = file(f"{repo}/.claude/settings.local.json") if repo else {}
    settings = {**_strict(agent, f"{own}/{SETTINGS}"), **{name: chosen[name] for name in CHOSEN if name in chosen}}
    return (
        {**settings, "skipDangerousModePermissionPrompt": True} if agent.record.spec.permissions == BYPASS else settings
    )


def _config(agent: AgentContext, there: Mapping[str, Any], users: Mapping[str, Any]) -> dict[str, Any]:
    """`there` is this agent's own `.claude.json`, `users` the user's."""
    config = {**there, **{name: users[name] for name in TAKEN if name in users}, "hasCompletedOnboarding": True}
    projects, known = table(there.get("projects")), table(users.get("projects"))
    record = agent.record
    allowed = next(
        (
            known[path]
            for path in (record.workspace.work_dir, record.workspace.repo, record.workspace.source)
            if path in known
        ),
        None,
    )
    own = {
        **{name: value for name, value in table(allowed).items() if name in TAKEN_OF_PROJECT},
        **table(projects.get(record.workspace.work_dir)),
        "hasTrustDialogAccepted": True,
    }
    config["projects"] = {**projects, record.workspace.work_dir: own}
    if key := _key(agent):
        answers = table(config.get("customApiKeyResponses"))
        approved, rejected = (list(answers.get(name) or ()) for name in ("approved", "rejected"))
        if key[-KEY_ENDS:] not in (*approved, *rejected):
            answers = {"approved": [*approved, key[-KEY_ENDS:]], "rejected": rejected}
        config["customApiKeyResponses"] = answers
    return config


def _key(agent: AgentContext) -> str:
    """The API key that the program will use: the one given to the agent, or the one in the environment."""
    try:
        given = agent.host.read(f"{agent.state_dir}/env").decode(errors="surrogateescape")
    except FileNotFoundError:
        given = ""
    found = [word for word in shlex.split(given) if word.startswith(f"{KEY}=")] if KEY in given else []
    return found[-1].partition("=")[2] if found else agent.environ.get(KEY, "")


def _strict(agent: AgentContext, path: str) -> dict[str, Any]:
    try:
        return table(json.loads(read_followed(path, MOST_BYTES)))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise MngrError(f"cannot read `{path}`: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise MngrError(
            f"`{path}` is not JSON: {error}", hint="fix the file: Claude Code cannot read it either"
        ) from None
