"""`mngr destroy`: remove agents, after saving what exists only there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mngr.actions import destroy as destroying
from mngr.actions.agent import Agent
from mngr.actions.destroy import Destroyed
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.errors import MngrError
from mngr.workspaces.unsaved_work import UnsavedWork

DESCRIPTION = (
    "Remove agents: processes, tmux session and work dir. An agent with uncommitted files, or with commits that no "
    "other branch has, is refused without `--force`. With `--force`, that work is saved first (`mngr saved`). A host "
    "that was created for an agent (`NAME@.PROVIDER`) is destroyed with its last agent, after saved work and snapshots "
    "have come to this machine."
)
EXAMPLES = (
    ("mngr destroy fix-login", "refused if it has work that exists only there"),
    ("mngr destroy fix-login --force", "save that work, then remove the agent"),
    ("mngr list --ids --done | mngr destroy -", "all agents that are done"),
)


class DestroyResult(NamedTuple):
    """`saved`: the id of the saved work. `outlived`: ids of processes that could not be ended."""

    saved: str | None
    kept_branch: str | None
    outlived: tuple[int, ...]


class WouldDestroy(NamedTuple):
    """What would be saved."""

    dry_run: bool
    commits: int
    uncommitted: tuple[str, ...]


def results() -> list[Any]:
    return targets.results(DestroyResult, WouldDestroy)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.option("--force, -f", "also destroy agents with unsaved work; it is saved first")
    parser.option("--remove-created-branch, -b", "also delete the agent's branch, even with commits")
    parser.option("--keep-host", "keep a host that was created for an agent when its last agent goes")
    parser.option("--session NAME ...", "the agent with this tmux session")
    parser.option("--[no-]gc", "run `mngr gc` afterwards (default: no)", default=False)
    parser.option("--yes, -y", "do not ask for confirmation when no agents are named")
    parser.add_dry_run()


def run(args: Args, app: App) -> int:
    args.agents += [targets.of_session(app, name) for name in args.session]
    agents = targets.resolve(args, app)
    if args.dry_run:
        return targets.finish(
            app,
            agents,
            lambda agent: agent.site.run(destroying.check, agent.id, force=args.force),
            lambda agent, work: would_say("destroy", agent, work),
            row=lambda work: WouldDestroy(True, work.commits, work.changed),
        )
    if agents and not (args.agents or args.yes or app.headless) and not targets.confirmed(app, "destroy", agents):
        return 1
    targets.outlive_terminal()

    def act(agent: Agent) -> Destroyed:
        return agent.destroy(force=args.force, remove_branch=args.remove_created_branch)

    def row(done: Destroyed) -> DestroyResult:
        return DestroyResult(done.entry.id if done.entry else None, done.kept_branch, done.outlived)

    code = targets.finish(app, agents, act, lambda agent, done: say(app, done), row=row, done="destroyed")
    if not args.keep_host:
        leave(app, agents)
    if args.gc:
        from mngr.cli.commands import gc

        gc.run_after(app)
    return code


def leave(app: App, agents: Sequence[Agent]) -> None:
    """Destroy the hosts that were created for these agents and have none any more."""
    sites = dict.fromkeys(agent.site for agent in agents if not agent.site.is_near)
    if not sites:
        return
    from mngr.cli.commands.host import say_brought
    from mngr.fleet import host_verbs

    for site in sites:
        try:
            if done := host_verbs.destroy_unused(app.fleet.hosts, site):
                known, brought = done
                app.out.note(f"destroyed host {known.name}, which has no agent any more")
                say_brought(app, brought)
        except MngrError as error:
            app.out.warn(f"host {site.name} was not destroyed: {error.explained()}")


def say(app: App, done: Destroyed) -> str:
    """A line about a destroyed agent; what could not be ended or saved is reported on stderr."""
    if done.outlived:
        app.out.warn(f"{done.name}: could not end processes {', '.join(map(str, done.outlived))}")
    text = f"destroyed {done.name}"
    if done.entry:
        text += f"; its work is saved: `mngr saved restore {done.entry.id}`"
        for path, megabytes in done.entry.left_out:
            app.out.note(f"{done.name}: `{path}` ({megabytes:.0f} MB, ignored by git) was not saved")
    return text + (f"; branch {done.kept_branch} stays" if done.kept_branch else "")


def would_say(verb: str, agent: Agent, work: UnsavedWork) -> str:
    return f"would {verb} {agent.name}" + (f" and save {work.describe()}" if work.any else "")
