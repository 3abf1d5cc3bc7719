"""The configuration directory that a Claude Code of one agent gets: the user's settings as they are now, and an answer
to every question that would be asked at the start; `repository_trust` decides the one about trust. Nothing of the
user's own is changed. The login is used where it is: a link to it would become a copy when the program renews it, and
the user's own login would then be invalid."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mngr.agents.kinds import claude_permissions, hooks, repository_trust
from mngr.agents.kinds.driver import BYPASS, Place, user_home
from mngr.agents.state import BLOCKED, RUNNING, WAITING
from mngr.errors import MngrError
from mngr.files import json_bytes
from mngr.process import join, quote
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

CONFIG = ".claude.json"
LOGIN = ".credentials.json"
LOGIN_VARIABLE = "CLAUDE_SECURESTORAGE_CONFIG_DIR"
SETTINGS = "settings.json"
OURS = "mngr-settings.json"
SESSION = "session.json"
DIAGNOSTICS = "diagnostics.jsonl"
FAILED = "the turn failed"
# Linked: the program reads them, and a change by the user reaches agents that run.
LINKED = ("CLAUDE.md", "agents", "commands", "keybindings.json", "output-styles", "rules", "skills")
# Of the user's `.claude.json`: who they are, what they chose, and servers that they added.
TAKEN = (
    "oauthAccount",
    "userID",
    "theme",
    "editorMode",
    "mcpServers",
    "customApiKeyResponses",
    "hasAvailableSubscription",
)
# The same for one directory: what they allowed there.
TAKEN_OF_PROJECT = (
    "allowedTools",
    "mcpServers",
    "enabledMcpjsonServers",
    "disabledMcpjsonServers",
    "hasClaudeMdExternalIncludesApproved",
    "hasClaudeMdExternalIncludesWarningShown",
)
CHOSEN = ("enabledMcpjsonServers", "disabledMcpjsonServers", "enableAllProjectMcpServers")
KEY = "ANTHROPIC_API_KEY"
# What the program shows of a key when it asks whether to use it, and what it notes of the answer.
KEY_ENDS = 20


def user_dir(environ: Mapping[str, str]) -> str:
    return environ.get("CLAUDE_CONFIG_DIR") or f"{user_home(environ)}/.claude"


def user_config(environ: Mapping[str, str]) -> str:
    return f"{environ.get('CLAUDE_CONFIG_DIR') or user_home(environ)}/{CONFIG}"


def login_dir(environ: Mapping[str, str]) -> str:
    """Where the program looks for the login. Empty is its own default, also in the keychain of macOS."""
    return environ.get(LOGIN_VARIABLE) or environ.get("CLAUDE_CONFIG_DIR", "")


def furnish(place: Place) -> None:
    """Before every start. Twice is safe; what the program itself has noted there stays."""
    host, home = place.host, place.home
    host.make_dir(home)
    script = hooks.script(place.state_dir, home, "claude")
    host.write(f"{home}/{hooks.SCRIPT}", script.encode("utf-8", "surrogateescape"), 0o700)
    host.write(f"{home}/{OURS}", json_bytes(_ours(place), indent=1))
    claude_permissions.furnish(place)
    for name in ("sessions", DIAGNOSTICS):  # of processes that are gone
        host.remove(f"{home}/{name}")
    own = user_dir(place.environ)
    if own == home:
        return
    repository_trust.check_new("claude", place, "projects")
    host.write(f"{home}/{SETTINGS}", json_bytes(_settings(place, own), indent=1))
    config = _config(place, _read(place, f"{home}/{CONFIG}"), _read(place, user_config(place.environ)))
    host.write(f"{home}/{CONFIG}", json_bytes(config, indent=1))
    linked = host.run(["sh", "-c", _LINK, "sh", own, home], timeout=60)
    if not linked.ok:
        raise MngrError("the settings of Claude Code cannot be linked", details=linked.error_text)


# What the program itself put in the place of a link stays.
_LINK = f"""
for name in {join(LINKED)}; do
    if [ -e "$1/$name" ]; then
        [ -e "$2/$name" ] && [ ! -L "$2/$name" ] || ln -sfn "$1/$name" "$2/$name" || exit 1
    elif [ -L "$2/$name" ]; then rm -f "$2/$name"; fi
done
"""


def _ours(place: Place) -> dict[str, Any]:
    """Given on the command line, and so not read by a `claude` that the agent itself starts; what that one waits for is
    none of ours either, so its commands do not get the variable."""
    script = f"sh {quote(f'{place.home}/{hooks.SCRIPT}')}"
    hide = "echo 'unset CLAUDE_CODE_DIAGNOSTICS_FILE' >> \"${CLAUDE_ENV_FILE:-/dev/null}\""
    commands = {
        "SessionStart": f"{hide}; tee {quote(f'{place.home}/{SESSION}')} | {script} SessionStart",
        "UserPromptSubmit": f"{script} UserPromptSubmit {RUNNING}",
        "PermissionRequest": f"{script} PermissionRequest {BLOCKED} 'permission: it asks for something'",
        "Stop": f"{script} Stop {WAITING}",
        "StopFailure": f"{script} StopFailure {WAITING} {quote(FAILED)}",
        "SessionEnd": f"{script} SessionEnd",
    }
    run: dict[str, Any] = {name: [{"hooks": [{"type": "command", "command": line}]}] for name, line in commands.items()}
    # Without the last, it makes itself the handler of its links in the user's own desktop settings.
    ours: dict[str, Any] = {"disableAllHooks": False, "hooks": run, "disableDeepLinkRegistration": "disable"}
    if line := claude_permissions.hook(place):
        run["PreToolUse"] = [{"matcher": "Bash", "hooks": [{"type": "command", "command": line}]}]
        ours["permissions"] = claude_permissions.rules(place)
    return ours


def _settings(place: Place, own: str) -> dict[str, Any]:
    """The user's, with what they chose in the repository for themselves: no worktree has that file. Without the user's,
    what they forbid would be allowed: one that cannot be read is an error."""
    repo = place.record.repo or place.record.source
    chosen = _read(place, f"{repo}/.claude/settings.local.json") if repo else {}
    settings = {**_strict(place, f"{own}/{SETTINGS}"), **{name: chosen[name] for name in CHOSEN if name in chosen}}
    return {**settings, "skipDangerousModePermissionPrompt": True} if place.record.permissions == BYPASS else settings


def _config(place: Place, there: Mapping[str, Any], users: Mapping[str, Any]) -> dict[str, Any]:
    """`there` is what the program noted in this agent's own file, `users` the user's."""
    config = {**there, **{name: users[name] for name in TAKEN if name in users}, "hasCompletedOnboarding": True}
    projects, known = _table(there.get("projects")), _table(users.get("projects"))
    record = place.record
    allowed = next((known[path] for path in (record.work_dir, record.repo, record.source) if path in known), None)
    own = {
        **{name: value for name, value in _table(allowed).items() if name in TAKEN_OF_PROJECT},
        **_table(projects.get(record.work_dir)),
        "hasTrustDialogAccepted": True,
    }
    config["projects"] = {**projects, record.work_dir: own}
    if key := _key(place):
        answers = _table(config.get("customApiKeyResponses"))
        approved, rejected = (list(answers.get(name) or ()) for name in ("approved", "rejected"))
        if key[-KEY_ENDS:] not in (*approved, *rejected):
            answers = {"approved": [*approved, key[-KEY_ENDS:]], "rejected": rejected}
        config["customApiKeyResponses"] = answers
    return config


def _key(place: Place) -> str:
    """The API key that it will run with: the one that it was given, or that of whoever starts it."""
    import shlex

    try:
        given = place.host.read(f"{place.state_dir}/env").decode(errors="surrogateescape")
    except FileNotFoundError:
        given = ""
    found = [word for word in shlex.split(given) if word.startswith(f"{KEY}=")] if KEY in given else []
    return found[-1].partition("=")[2] if found else place.environ.get(KEY, "")


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _strict(place: Place, path: str) -> dict[str, Any]:
    try:
        return _table(json.loads(place.host.read(path)))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise MngrError(f"`{path}` is not JSON: {error}", hint="Claude Code cannot read it either; mend it") from None


def _read(place: Place, path: str) -> dict[str, Any]:
    """A file that is not there, or that nobody can read, says nothing."""
    try:
        return _table(json.loads(place.host.read(path)))
    except (OSError, ValueError, RecursionError):
        return {}
