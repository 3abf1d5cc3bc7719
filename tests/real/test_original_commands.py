"""Command lines of scripts for the original mngr: ours does the same, or says what to type instead."""

from typing import NamedTuple

import pytest

from tests.support.user import User


class Typed(NamedTuple):
    """A command line, its exit code, and a part of what it prints: `out`, and `err` on standard error."""

    line: str
    exit_code: int = 0
    out: str = ""
    err: str = ""


# In this order, on one set of agents: `my-task`, `agent-1`, `agent-2` run, `done` has ended.
SESSION = (
    Typed("mngr list --remote", out="No agents found"),
    Typed("mngr list --host-label ENV=staging", out="No agents found"),
    Typed("mngr list --project . --fields name,labels.project,host.tags,host.ssh,host.snapshots", out="repo"),
    Typed("mngr list --project nowhere", out="No agents found"),
    Typed("mngr list --fields name,host.provider,created_at --sort -created_at --limit 1", out="done"),
    Typed("mngr list --sort 'state desc, name' --format '{agent.name}' --limit 1", out="agent-1"),
    Typed("mngr list --fields name,labels.team --header labels.team=TEAM", out="TEAM"),
    Typed("mngr list --fields name,git.original_branch --on-error continue", out="mngr/my-task", err="changes nothing"),
    Typed("mngr list --include 'labels.project == \"repo\" && !has(host.ssh)' --format '{name}'", out="my-task"),
    Typed("mngr list --addrs", out="my-task@local.local\n"),
    Typed("mngr list --addrs | mngr exec - 'echo $MNGR_AGENT_NAME'", out="== done\ndone"),
    Typed("mngr list --safe --log-file x --no-log-commands --disable-plugin other", out="my-task", err="every host"),
    Typed("mngr list --context .", 2, err="cd DIR && mngr"),
    Typed("mngr connect --agent my-task --no-start --connect-command 'echo $MNGR_AGENT_NAME'", out="my-task"),
    Typed("mngr conn my-task@my-host", 6, err="no host is called `my-host`"),
    Typed("mngr message --agent my-task --agent agent-1 --no-start -m hello", out="my-task: delivered\nagent-1: deliv"),
    Typed("mngr message my-task --provider local -m hello", 2, err="mngr list --provider NAME --ids | mngr message -"),
    Typed("mngr exec 'echo $MNGR_AGENT_NAME' --agent agent-1 --agent my-task", out="== agent-1\nagent-1\n== my-task"),
    Typed("mngr exec done --no-start pwd", 1, err="`done` is DONE"),
    Typed("mngr exec agent-1 agent-2 --on-error abort false", 1, err="exit code 1"),
    Typed("mngr exec my-task whoami --user root", 2, err="sudo -u USER"),
    Typed("mngr pull my-task ./copied", out="copied 1 file"),
    Typed("mngr pull my-task main", 2, err="--files main"),
    Typed("mngr pull my-task --sync-mode=git", 2, err="mngr merge AGENT"),
    Typed("mngr push --target-agent my-task --dry-run", out="my-task already has all commits"),
    Typed("mngr pair my-task", 2, err="--transfer none"),
    Typed("mngr migrate my-task other", 2, err="mngr rename OLD NEW"),
    Typed("mngr migrate my-task @local", 2, err="is on `local` already"),
    Typed("mngr events my-task --head 1 --format human", out="created"),
    Typed("mngr events my-task mngr --include 'type == \"message_delivered\"'", out='{"event_id":'),
    Typed("mngr events my-task --filter 'type == \"user_message\"' --exclude 'data.role == \"user\"'"),
    Typed("mngr events my-task --source messages", err="it has events from `mngr`"),
    Typed("mngr events my-task claude/common_transcript", out='"role":"user","text":"hello"'),
    Typed("mngr transcript my-task --role tool", err="keep no transcript"),
    Typed("mngr capture my-task --full --no-start"),
    Typed("mngr usage wait --until 'cost.total_cost_usd < 1.0'", out="No usage"),
    Typed("mngr usage wait --until 'answers > 0' --timeout 0.1", 4, err="answers 0"),
    Typed("mngr usage wait --until 'five_hour.used_percentage < 50'", 2, err="`cost_usd`"),
    Typed("mngr usage --running", 2, err="| mngr usage -"),
    Typed("mngr wait --state DONE done --interval 5s", out="done is DONE", err="does not poll"),
    Typed("mngr snapshot create my-task agent-1 before", out="kept my-task as before\nkept agent-1 as before"),
    Typed("mngr list --ids --running | mngr snapshot create - --dry-run", out="would keep agent-2 as snap-1"),
    Typed("mngr snapshot create -a --name again --on-error continue", out="kept done as again"),
    Typed("mngr snapshot create my-task --format '{snapshot_id}'", 2, err="no field `snapshot_id`"),
    Typed("mngr list --ids | mngr snapshot list - --limit 1 --format '{name}'", out="again\n"),
    Typed("mngr snapshot list --agent my-task --format '{id},'", out="my-task/again,\nmy-task/before,\n"),
    Typed("mngr snapshot my-task", 2, err="mngr snapshot create my-task"),
    Typed("mngr label my-task agent-1 -l env=prod --label project=other", out="my-task: team=backend env=prod"),
    Typed("mngr list --project other --label project=other --format '{name},{labels.project}'", out="my-task,other"),
    Typed("mngr clone agent-1 copy --no-connect --label project=copies", out="cloned agent-1 to copy"),
    Typed("mngr list copy --format '{project} {labels.project}'", out="copies copies"),
    Typed("mngr label my-task --remove project", 2, err="project cannot be removed"),
    Typed("mngr lim --agent my-task --idle-timeout 1h --no-start-on-boot", out="stops when idle for 1 h"),
    Typed("mngr limit my-task --idle-mode disabled", out="no limits"),
    Typed("mngr limit my-task --grant network", 2, err="mngr help kinds"),
    Typed("mngr gc --provider modal --on-error continue", out="Nothing was removed"),
    Typed("mngr clean --all --action stop --idle-for 30d --dry-run", out="No agents found"),
    Typed("mngr help address", out="Addresses"),
    Typed("mngr stop --session mngr-agent-2 --no-graceful --graceful-timeout 5s --snapshot-mode never", out="stopped"),
    Typed("mngr stop --session nobody", 1, err="no agent has a session"),
    Typed("mngr archive --force my-task", out="archived my-task"),
    Typed("mngr list --active --format '{name},{state}'", out="agent-2,STOPPED\n"),
    Typed("mngr exec agent-2 --start 'mngr list --format {state} $MNGR_AGENT_NAME'", out="RUNNING"),
    Typed("mngr config set commands.destroy.gc false --scope user"),
    Typed("mngr list --ids --include 'name == \"done\"' | mngr destroy -f", 2, err="names from stdin with `-`"),
    Typed("mngr destroy --agent agent-1 -b --force --gc", out="destroyed agent-1\n", err="removed"),
    Typed("mngr destroy done --no-gc --allow-worktree-removal", out="destroyed done"),
)  # fmt: skip


@pytest.fixture
def fleet(user: User) -> User:
    user.mngr(
        "create", "-n", "my-task", "-n", "agent-1", "-n", "agent-2", "--label", "team=backend", "--command", "cat"
    ).ok()
    user.mngr("create", "done", "--no-connect", "--command", "true").ok()
    user.wait_for_state("done", "DONE")
    return user


def test_a_script_for_the_original_does_the_same_or_says_what_to_type(fleet: User) -> None:
    (fleet.host_dir / "locks" / f"agent-{'0' * 32}").touch()
    for typed in SESSION:
        ran = fleet.run(["bash", "-o", "pipefail", "-c", typed.line])
        assert ran.exit_code == typed.exit_code, f"{typed.line}: {ran}"
        assert typed.out in ran.stdout and typed.err in ran.stderr, f"{typed.line}: {ran}"
