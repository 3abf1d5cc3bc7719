"""Options and verbs of the original mngr that ours has in another form, does not need, or replaces by something else.
Read only when a word is unknown; every option of our own is declared by its verb."""

from __future__ import annotations

from mngr.named_tuples import NamedTuple

SAME, IGNORED, REFUSED = "same", "ignored", "refused"
_NEEDLESS = "agents on this machine need no connection"
_ACTIVITY = "`--idle-mode` chooses what counts as activity"
_FILES_OR_COMMITS = "`mngr pull AGENT --files DIR` copies files, `mngr merge AGENT` merges commits"
_PERMISSIONS = "`permissions` of the agent's type in the settings; `mngr help kinds`"
_PUSH = "`mngr push AGENT` sends commits, `mngr push AGENT:PATH SOURCE` copies files"

# Verbs (`*` is every verb), options with X for a value, and a text. SAME: our words for it; `X` alone is an argument.
# IGNORED: why it needs no effect; empty if that is what ours does anyway. REFUSED: what to type instead.
_OPTIONS = (
    ("message, connect, exec, start, stop, destroy, archive, label, limit, capture", "--agent X", SAME, "X"),
    ("snapshot create, snapshot list, snapshot destroy", "--agent X", SAME, "X"),
    ("connect", "--attach-command X", SAME, "--connect-command X"),
    ("stop", "--graceful-timeout X", SAME, "--timeout X"),
    ("wait", "--state X", SAME, "X"),
    ("event", "--filter X", SAME, "--include X"),
    ("capture", "--full", SAME, "--history 1000000"),
    ("pull", "--source-agent X, --source X", SAME, "X"),
    ("push", "--target-agent X, --target X", SAME, "X"),
    ("cleanup", "--idle-for X", SAME, "--idle X"),
    ("cleanup", "--action X", SAME, "--X"),
    ("plugin add", "--path X", SAME, "X"),
    ("plugin add", "--git X", SAME, "git+X"),
    ("*", "--plugin X, --enable-plugin X", SAME, "-S plugins.X.enabled=true"),
    ("*", "--disable-plugin X", SAME, "-S plugins.X.enabled=false"),
    ("list, gc, snapshot create", "--on-error X", IGNORED, "`mngr` reports what failed and continues with the rest"),
    ("connect", "--reconnect, --retry X, --retry-delay X, --allow-unknown-host", IGNORED, _NEEDLESS),
    ("connect", "--no-reconnect, --no-allow-unknown-host", IGNORED, ""),
    ("stop", "--snapshot-mode X", IGNORED, "stopping keeps all files; `mngr snapshot create` keeps a copy of them"),
    ("archive", "--force, -f", IGNORED, ""),
    ("destroy", "--allow-worktree-removal", IGNORED, ""),
    ("limit", "--no-start-on-boot", IGNORED, ""),
    ("gc", "--all-providers", IGNORED, ""),
    ("event", "--no-follow", IGNORED, ""),
    ("capture", "--no-start, --no-full", IGNORED, ""),
    ("usage", "--max-age X, --stale-after X", IGNORED, "usage is read when the command runs"),
    ("wait, usage", "--interval X", IGNORED, "`mngr` waits for events and does not poll"),
    ("snapshot create", "--wait, --no-pause-during", IGNORED, ""),
    ("*", "--safe", IGNORED, "every host is always asked"),
    ("*", "--log-file X, --log-commands, --log-command-output, --log-env-vars", IGNORED, "see `mngr event`"),
    ("*", "--no-log-commands, --no-log-command-output, --no-log-env-vars", IGNORED, ""),
    ("message", "--provider X", REFUSED, "`mngr list --provider NAME --ids | mngr message - -m TEXT`"),
    ("exec", "--user X", REFUSED, "`mngr exec AGENT 'sudo -u USER COMMAND'`"),
    ("pull", "--sync-mode X, --delete", REFUSED, _FILES_OR_COMMITS),
    ("pull", "--target-branch X", REFUSED, "switch to that branch, then `mngr merge AGENT`"),
    ("pull", "--uncommitted-changes X", REFUSED, "`mngr merge` keeps uncommitted changes, or changes nothing"),
    ("pull", "--stop", REFUSED, "`mngr pull AGENT && mngr stop AGENT`"),
    ("pull", "--destination X", REFUSED, "`mngr pull AGENT --files DIR`"),
    ("pull", "--source-path X", REFUSED, "`mngr pull AGENT:PATH DIR`"),
    ("push", "--sync-mode X, --uncommitted-changes X, --delete", REFUSED, _PUSH),
    ("push", "--mirror", REFUSED, "`mngr exec AGENT 'git reset --hard COMMIT'` after `mngr snapshot create AGENT`"),
    ("push", "--source-branch X", REFUSED, "`mngr push AGENT --from BRANCH`"),
    ("push", "--stop", REFUSED, "`mngr push AGENT && mngr stop AGENT`"),
    ("push", "--target-path X", REFUSED, "`mngr push AGENT:PATH SOURCE`"),
    ("destroy", "--no-allow-worktree-removal", REFUSED, "`mngr archive AGENT` keeps the work dir"),
    ("rename", "--host", REFUSED, "hosts are not renamed; `mngr rename AGENT NEW` renames an agent"),
    ("limit", "--grant X, --revoke X", REFUSED, _PERMISSIONS),
    ("limit", "--host X", REFUSED, "`mngr limit --all --idle-timeout TIME`"),
    ("limit", "--start-on-boot", REFUSED, "`mngr list --stopped --ids | mngr start -` in a script that runs at boot"),
    ("limit", "--activity-sources X, --add-activity-source X, --remove-activity-source X", REFUSED, _ACTIVITY),
    ("gc", "--watch X, -w X", REFUSED, "`watch -n 60 mngr gc`"),
    ("capture", "--start", REFUSED, "`mngr start AGENT` first"),
    ("cleanup", "--type X", REFUSED, "`--include 'type == \"NAME\"'`"),
    ("cleanup", "--provider X", REFUSED, "`--include 'host.provider == \"NAME\"'`"),
    ("cleanup", "--host-label X", REFUSED, "`--include 'host.tags.KEY == \"VALUE\"'`"),
    ("cleanup", "--snapshot-before", REFUSED, "`mngr snapshot create --all` first"),
    ("usage", "--local, --remote, --running, --stopped, --archived, --active, --project X, --label X", REFUSED,
     "choose with `mngr list`: `mngr list --running --ids | mngr usage -`"),
    ("usage", "--provider X, --host-label X, --include X, --exclude X", REFUSED,
     "choose with `mngr list`: `mngr list --include EXPR --ids | mngr usage -`"),
    ("usage", "--detail", REFUSED, "`mngr usage --by day` or `--by model`"),
    ("clone, migrate", "--provider X", REFUSED, "name it in the address: `NEW@.PROVIDER`"),
    ("*", "--context X", REFUSED, "change to that directory first: `cd DIR && mngr ...`"),
)  # fmt: skip

# Verbs with parts that have another default in the original: what to type instead of `mngr VERB X`.
PARTS = {"mngr snapshot": "`mngr snapshot create X` or `mngr snapshot list X`"}

# What to type instead of a verb that ours does not have.
VERBS = {
    "pair": "`mngr push AGENT:. .` and `mngr pull AGENT --files .` copy once; `mngr create --transfer none` makes an "
    "agent that works in your own directory",
    "provision": "`mngr exec AGENT 'COMMAND'` and `mngr push AGENT:PATH FILE`",
    "ask": "`mngr help VERB` explains a verb, `mngr help --topics` lists the topics",
    "tutor": "`mngr demo` shows everything on a sample project",
    "file": "`mngr exec AGENT 'cat FILE'`, `mngr pull AGENT:PATH` and `mngr push AGENT:PATH FILE`",
    "diagnose": "`mngr doctor` checks this machine",
}


class Original(NamedTuple):
    """One option of the original; `what` is SAME, IGNORED or REFUSED."""

    takes_value: bool
    what: str
    text: str


def option(prog: str, spelling: str) -> Original | None:
    """What is known of an option that the verb `mngr VERB` does not have itself."""
    verb = prog.removeprefix("mngr ")
    for verbs, options, what, text in _OPTIONS:
        if verbs == "*" or verb in verbs.split(", "):
            for form in options.split(", "):
                name, _, value = form.partition(" ")
                if name == spelling:
                    return Original(bool(value), what, text)
    return None
