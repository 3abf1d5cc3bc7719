"""What the permissions of an agent mean for each program. `tests` allows commands that read, the tests, and git as far
as a commit; everything else is denied, never asked for. Tests run what the agent wrote, so this guides an honest agent
and is not a sandbox."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from typing import Any

from mngr.agent import launch
from mngr.agent.record import Record
from mngr.named_tuples import NamedTuple
from mngr.programs.driver import AgentContext
from mngr.programs.kind import ASK, BYPASS, EDITS, TESTS
from mngr.system import git_settings, process
from mngr.system.git import worktree_entry
from mngr.system.process import quote

# In the work dir: what only reads, and what a program calls an edit when its own tool does it.
_READING = ("ls", "cat", "head", "tail", "wc", "grep", "rg", "find", "diff", "sort", "uniq", "pwd", "echo", "printf")
_EDITING = ("mkdir", "touch", "cp", "mv")
_GIT_READING = ("status", "diff", "log", "show", "blame", "ls-files", "ls-tree", "rev-parse", "branch --show-current")
_GIT_WRITING = ("add", "commit", "restore", "rm", "mv")
_PYTEST = ("pytest", *(f"{python} -m pytest" for python in ("python", "python3", ".venv/bin/python")))
PYTEST = (*_PYTEST, ".venv/bin/pytest", "uv run pytest")
SHELL = (*_READING, *_EDITING, "true", *(f"git {verb}" for verb in (*_GIT_READING, *_GIT_WRITING)))
# Denied even where the user's own settings allow it.
NEVER = ("git push",)


class Allowed(NamedTuple):
    """`whole` are the command lines that may be run, with more words behind them; `commands` are the same as single
    commands, each of which may also be part of a longer line."""

    whole: tuple[str, ...]
    commands: tuple[str, ...]


def allowed(record: Record) -> Allowed:
    """An agent that was told how the tests are run may do that; any other may run pytest."""
    whole = tuple(record.spec.allowed_commands) or PYTEST
    single = [part for command in whole for part in parts(command)]
    return Allowed(whole, tuple(dict.fromkeys([*single, *PYTEST, *SHELL])))


def parts(command: str) -> list[str]:
    """The single commands of a shell line, as they are written in it; none when it is more than a list of commands."""
    lexer = shlex.shlex(command, posix=False, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    found: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word and set(word) <= set("&|;"):
                found.append([])
            elif word and set(word) <= set("()<>&|;"):
                return []
            else:
                found[-1].append(word)
    except ValueError:  # quotes that are not closed
        return []
    return [" ".join(words) for words in found if words and words[0] != "cd"]


# Claude Code: arguments, rules, and for `tests` a hook that allows what no rule can say.

_HOOK, _LIST = "allow.awk", "allowed"
_CLAUDE = {
    ASK: ["--permission-mode", "default"],
    EDITS: ["--permission-mode", "acceptEdits"],
    # A question would wait for an answer even then, and so would a plan.
    TESTS: ["--permission-mode", "dontAsk", "--disallowedTools=AskUserQuestion,EnterPlanMode"],
    BYPASS: ["--dangerously-skip-permissions", "--disallowedTools=AskUserQuestion,EnterPlanMode"],
}


def claude_words(record: Record) -> list[str]:
    return _CLAUDE.get(record.spec.permissions, [])


def claude_settings(agent: AgentContext) -> tuple[dict[str, Any], str]:
    """The rules for its settings, and the shell line that is asked before a command; empty where the program's own are
    enough. Writes the files of that hook."""
    if agent.record.spec.permissions != TESTS:
        return {}, ""
    task, home = launch.task_dir(agent.record, agent.state_dir), agent.home
    inside = task.startswith(f"{agent.record.workspace.work_dir}/")
    whole, commands = allowed(agent.record)
    with open(os.path.join(os.path.dirname(__file__), "claude_allow.awk"), "rb") as file:
        agent.host.write(f"{home}/{_HOOK}", file.read())
    roots = [task, *([os.path.relpath(task, agent.record.workspace.work_dir)] if inside else [])]
    lines = [("run", text) for text in whole]
    for word, variable, name in (
        ("file", "MNGR_OUTCOME_FILE", "outcome.json"),
        ("dir", "MNGR_ARTIFACTS_DIR", "artifacts"),
    ):
        lines += [(word, text) for text in (f"${variable}", f"${{{variable}}}", *(f"{root}/{name}" for root in roots))]
    text = "".join(f"{word} {json.dumps(text, ensure_ascii=False)[1:-1]}\n" for word, text in lines)
    agent.host.write(f"{home}/{_LIST}", text.encode("utf-8", "surrogateescape"))
    rules = {
        "allow": [
            *("Edit(./**)", f"Edit(/{task}/**)"),
            *(f"Bash({text}:*)" for text in commands if not set(text) & set("()")),
        ],
        "deny": ["WebFetch", "WebSearch", *(f"Bash({text}:*)" for text in NEVER)],
        "additionalDirectories": [] if inside else [task],
    }
    return rules, f"tr -d '\\n\\r' | LC_ALL=C awk -f {quote(f'{home}/{_HOOK}')} {quote(f'{home}/{_LIST}')} -"


# Codex: its own sandbox, and what it lets the agent write.

_CODEX_RULES = "rules/mngr.rules"


def codex_words(agent: AgentContext) -> list[str]:
    """An agent for one task can ask nobody: what is not allowed fails."""
    record = agent.record
    asks = [] if record.spec.one_shot else ["-a", "on-request"]
    if record.spec.permissions == ASK:
        return [*asks, "-s", "read-only"]
    if record.spec.permissions == BYPASS:
        return ["--dangerously-bypass-approvals-and-sandbox"]
    if record.spec.permissions not in (EDITS, TESTS):
        return []
    roots = _git_dirs(agent)
    if record.spec.permissions == TESTS:
        asks = ["-c", 'approval_policy="never"'] if record.spec.one_shot else ["-a", "never"]
        roots.append(launch.task_dir(record, agent.state_dir))
    return [*asks, "-s", "workspace-write", *(word for path in roots for word in ("--add-dir", path))]


def codex_forbid(agent: AgentContext) -> None:
    """Its sandbox denies what is not allowed; this is for what could work inside of it, such as a push to a path."""
    path = f"{agent.home}/{_CODEX_RULES}"
    if agent.record.spec.permissions != TESTS:
        agent.host.remove(path)
        return
    rules = [f'prefix_rule(pattern={json.dumps(text.split())}, decision="forbidden")\n' for text in NEVER]
    agent.host.make_dir(os.path.dirname(path))
    agent.host.write(path, "".join(rules).encode())


def codex_temporary_dir(agent: AgentContext) -> dict[str, str]:
    """TMPDIR for an agent whose sandbox would not start without it; nothing for other agents. A bubblewrap before 0.9
    has no `--argv0`, and needs the helper that Codex creates in CODEX_HOME. Codex creates no helper below TMPDIR."""
    temporary = (agent.environ.get("TMPDIR") or "/tmp").rstrip("/")
    if not agent.home.startswith(f"{temporary}/"):
        return {}
    found = process.run(["sh", "-c", "command -v bwrap && { bwrap --help 2>&1 || :; }"], timeout=30)
    if not found.ok or "--argv0" in found.text:
        return {}
    path = f"{temporary}/mngr-{agent.record.id}"
    agent.host.make_dir(path)
    return {"TMPDIR": path}


def _git_dirs(agent: AgentContext) -> list[str]:
    """The directories that git writes when it commits. In the user's repository, only the objects, the reflogs,
    the branches beside the agent's own, and git's data of the agent's worktree. An agent that could write the
    repository's hooks or `config` could run commands outside its sandbox. An agent that works in place gets no
    directory, and so does one whose `.git` names another repository: Codex then asks before it commits."""
    record, place = agent.record, agent.record.workspace
    if not record.git or place.transfer == "none" or place.repo is None:
        return []
    own = f"{place.work_dir}/.git"
    if place.transfer != "git-worktree":  # the agent may have put a link there, or the name of another repository
        return [own] if os.path.isdir(own) and not os.path.islink(own) else []
    common, private = os.path.realpath(git_settings.kept_in(place.repo)), worktree_entry(place.work_dir)
    if private is None or os.path.dirname(os.path.realpath(private)) != f"{common}/worktrees":
        return []
    folder = (place.branch or "").rpartition("/")[0]
    branches = [f"refs/heads/{folder}", f"logs/refs/heads/{folder}"] if folder else []
    shared = [f"{common}/{name}" for name in ("objects", *branches)]
    for path in shared:
        agent.host.make_dir(path)  # git removes those that are empty
    return [private, *shared]


# OpenCode: a table of tools; of the commands, the last entry that fits counts.

_ASKS = {"bash": "ask", "webfetch": "ask", "websearch": "ask", "external_directory": "ask", "doom_loop": "ask"}
_OPENCODE: Mapping[str, Mapping[str, str]] = {
    ASK: {**_ASKS, "edit": "ask"},
    EDITS: {**_ASKS, "edit": "allow"},
    BYPASS: {**dict.fromkeys(_ASKS, "allow"), "*": "allow", "edit": "allow"},
}
# Allowed with the permissions `tests`; everything else is denied.
_TOOLS = ("read", "list", "glob", "grep", "lsp", "edit", "task", "skill", "todoread", "todowrite")


def opencode_table(agent: AgentContext) -> Mapping[str, object]:
    record = agent.record
    if record.spec.permissions != TESTS:
        return _OPENCODE[record.spec.permissions]
    shell = {"*": "deny"}
    for text in allowed(record).commands:
        shell |= {text: "allow", f"{text} *": "allow"}
    shell |= {f"find *{action}*": "deny" for action in ("-exec", "-ok", "-delete", "-fprint", "-fls")}
    shell |= {f"{text}*": "deny" for text in NEVER}
    task = launch.task_dir(record, agent.state_dir)
    outside = {"*": "deny", task: "allow", f"{task}/*": "allow"}
    return {"*": "deny", **dict.fromkeys(_TOOLS, "allow"), "bash": shell, "external_directory": outside}
