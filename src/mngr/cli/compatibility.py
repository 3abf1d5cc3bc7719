"""Options and verbs of the original mngr that ours has in another form, does not need, or replaces by something else.
Read only when a word is unknown; every option of our own is declared by its verb."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# By verb (`*` is every verb): an option, with X for its value, and our words for it. `X` alone is an argument.
_SAME: Mapping[str, Mapping[str, str]] = {
    "message, connect, exec, start, stop, destroy, archive, label, limit, capture": {"--agent X": "X"},
    "snapshot create, snapshot list, snapshot destroy": {"--agent X": "X"},
    "connect": {"--attach-command X": "--connect-command X"},
    "stop": {"--graceful-timeout X": "--timeout X"},
    "wait": {"--state X": "X"},
    "event": {"--filter X": "--include X"},
    "capture": {"--full": "--history 1000000"},
    "pull": {"--source-agent X": "X", "--source X": "X"},
    "push": {"--target-agent X": "X", "--target X": "X"},
    "cleanup": {"--idle-for X": "--idle X", "--action X": "--X"},
    "plugin add": {"--path X": "X", "--git X": "git+X"},
    "*": {
        "--plugin X": "-S plugins.X.enabled=true",
        "--enable-plugin X": "-S plugins.X.enabled=true",
        "--disable-plugin X": "-S plugins.X.enabled=false",
    },
}

# Options without an effect, and why they need none. Without a reason it is what ours does anyway.
_CONTINUES = "`mngr` reports what failed and continues with the rest"
_NO_LOG = "`mngr event` and `mngr -v` show what happens"
_ALWAYS_HERE = "agents on this machine need no connection"
_IGNORED: Mapping[str, Mapping[str, str]] = {
    "list, gc, snapshot create": {"--on-error X": _CONTINUES},
    "connect": {
        "--reconnect": _ALWAYS_HERE,
        "--no-reconnect": "",
        "--retry X": _ALWAYS_HERE,
        "--retry-delay X": _ALWAYS_HERE,
        "--allow-unknown-host": _ALWAYS_HERE,
        "--no-allow-unknown-host": "",
    },
    "stop": {"--snapshot-mode X": "stopping keeps all files; `mngr snapshot create` keeps a copy of them"},
    "archive": {"--force": "", "-f": ""},
    "destroy": {"--allow-worktree-removal": ""},
    "limit": {"--no-start-on-boot": ""},
    "gc": {"--all-providers": ""},
    "event": {"--no-follow": ""},
    "capture": {"--no-start": "", "--no-full": ""},
    "usage": {
        "--max-age X": "usage is read when the command runs",
        "--stale-after X": "usage is read when the command runs",
    },
    "wait, usage": {"--interval X": "`mngr` waits for events and does not poll"},
    "snapshot create": {"--wait": "", "--no-pause-during": ""},
    "*": {
        "--safe": "every host is always asked",
        "--log-file X": _NO_LOG,
        "--log-commands": _NO_LOG,
        "--no-log-commands": "",
        "--log-command-output": _NO_LOG,
        "--no-log-command-output": "",
        "--log-env-vars": _NO_LOG,
        "--no-log-env-vars": "",
    },
}

# Options that are refused, and what to type instead.
_FILES_OR_COMMITS = "`mngr pull AGENT --files DIR` copies files, `mngr merge AGENT` merges commits"
_PUSH = "`mngr push AGENT` sends commits, `mngr push AGENT:PATH SOURCE` copies files"
_REFUSED: Mapping[str, Mapping[str, str]] = {
    "message": {"--provider X": "`mngr list --provider NAME --ids | mngr message - -m TEXT`"},
    "exec": {"--user X": "`mngr exec AGENT 'sudo -u USER COMMAND'`"},
    "pull": {
        "--sync-mode X": _FILES_OR_COMMITS,
        "--target-branch X": "switch to that branch, then `mngr merge AGENT`",
        "--uncommitted-changes X": "`mngr merge` keeps uncommitted changes, or refuses and changes nothing",
        "--stop": "`mngr pull AGENT && mngr stop AGENT`",
        "--delete": _FILES_OR_COMMITS,
        "--destination X": "`mngr pull AGENT --files DIR`",
        "--source-path X": "`mngr pull AGENT:PATH DIR`",
    },
    "push": {
        "--sync-mode X": _PUSH,
        "--mirror": "`mngr exec AGENT 'git reset --hard COMMIT'` after `mngr snapshot create AGENT`",
        "--source-branch X": "`mngr push AGENT --from BRANCH`",
        "--uncommitted-changes X": _PUSH,
        "--stop": "`mngr push AGENT && mngr stop AGENT`",
        "--delete": _PUSH,
        "--target-path X": "`mngr push AGENT:PATH SOURCE`",
    },
    "destroy": {"--no-allow-worktree-removal": "`mngr archive AGENT` keeps the work dir"},
    "rename": {"--host": "hosts are not renamed; `mngr rename AGENT NEW` renames an agent"},
    "limit": {
        "--grant X": "`permissions` of the agent's type in the settings; `mngr help kinds`",
        "--revoke X": "`permissions` of the agent's type in the settings; `mngr help kinds`",
        "--host X": "`mngr limit --all --idle-timeout TIME`",
        "--start-on-boot": "`mngr list --stopped --ids | mngr start -` in a script that runs at boot",
        "--activity-sources X": "`--idle-mode` chooses what counts as activity",
        "--add-activity-source X": "`--idle-mode` chooses what counts as activity",
        "--remove-activity-source X": "`--idle-mode` chooses what counts as activity",
    },
    "gc": {"--watch X": "`watch -n 60 mngr gc`", "-w X": "`watch -n 60 mngr gc`"},
    "capture": {"--start": "`mngr start AGENT` first"},
    "cleanup": {
        "--type X": "`--include 'type == \"NAME\"'`",
        "--provider X": "`--include 'host.provider == \"NAME\"'`",
        "--host-label X": "`--include 'host.tags.KEY == \"VALUE\"'`",
        "--snapshot-before": "`mngr snapshot create --all` first",
    },
    "usage": {
        **dict.fromkeys(
            ("--local", "--remote", "--running", "--stopped", "--archived", "--active", "--project X", "--label X"),
            "choose with `mngr list`: `mngr list --running --ids | mngr usage -`",
        ),
        **dict.fromkeys(
            ("--provider X", "--host-label X", "--include X", "--exclude X"),
            "choose with `mngr list`: `mngr list --include EXPR --ids | mngr usage -`",
        ),
        "--detail": "`mngr usage --by day` or `--by model`",
    },
    "clone, migrate": {"--provider X": "name it in the address: `NEW@.PROVIDER`"},
    "*": {"--context X": "change to that directory first: `cd DIR && mngr ...`"},
}

# Verbs with parts that have another default in the original.
_PARTS = {"mngr snapshot": "`mngr snapshot create X` or `mngr snapshot list X`"}

_VERBS = {
    "pair": "`mngr push AGENT:. .` and `mngr pull AGENT --files .` copy once; `mngr create --transfer none` makes an "
    "agent that works in your own directory",
    "provision": "`mngr exec AGENT 'COMMAND'` and `mngr push AGENT:PATH FILE`",
    "ask": "`mngr help VERB` explains a verb, `mngr help --topics` lists the topics",
    "tutor": "`mngr demo` shows everything on a sample project",
    "file": "`mngr exec AGENT 'cat FILE'`, `mngr pull AGENT:PATH` and `mngr push AGENT:PATH FILE`",
    "diagnose": "`mngr doctor` checks this machine",
}


class Original(NamedTuple):
    """One option of the original. It has `words` of ours that stand for it, a `hint` when it is refused, or neither
    when it is ignored, then with a `note` if the user should know. X in `words` is its value."""

    takes_value: bool
    words: str = ""
    note: str = ""
    hint: str = ""


def option(prog: str, spelling: str) -> Original | None:
    """What is known of an option that the verb `mngr VERB` does not have itself."""
    verb = prog.removeprefix("mngr ")
    for kind, table in (("words", _SAME), ("note", _IGNORED), ("hint", _REFUSED)):
        for verbs, options in table.items():
            if verbs != "*" and verb not in verbs.split(", "):
                continue
            for takes_value in (False, True):
                text = options.get(f"{spelling} X" if takes_value else spelling)
                if text is not None:
                    return Original(takes_value, **{kind: text})
    return None


def part_hint(prog: str) -> str:
    """What to type instead of `mngr VERB X`, or nothing."""
    return _PARTS.get(prog, "")


def verb_hint(word: str) -> str:
    """What to type instead of a verb that ours does not have, or nothing."""
    return _VERBS.get(word, "")
