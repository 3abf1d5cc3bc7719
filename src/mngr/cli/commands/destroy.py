"""`mngr destroy`: remove agents, after saving what exists only there."""

from __future__ import annotations

from mngr.actions import destroy as destroying
from mngr.actions.agent import Agent
from mngr.actions.destroy import Destroyed
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.parser import Args, BooleanPair, Parser
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


DESCRIPTION = (
    "Remove agents: processes, tmux session, work dir. One with commits that no other branch has, or with uncommitted "
    "files, is refused without `--force`; with it, all of that is saved first (`mngr saved`)."
)
EXAMPLES = (
    ("mngr destroy fix-login", "refused while it has work found nowhere else"),
    ("mngr destroy fix-login --force", "save that work, then remove"),
    ("mngr list --ids --done | mngr destroy -", "all that are done"),
)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.add_argument(
        "--force", "-f", action="store_true", help="also with work found nowhere else; it is saved first"
    )
    parser.add_argument(
        "--remove-created-branch", "-b", action="store_true", help="remove its branch too, also when it has commits"
    )
    parser.add_argument(
        "--session", action="append", metavar="NAME", help="the agent of this tmux session (can be repeated)"
    )
    parser.add_argument("--gc", action=BooleanPair, default=False, help="run `mngr gc` afterwards (default: no)")
    parser.add_argument(
        "--yes", "-y", action="store_true", help="do not ask; a terminal asks when the agents are not named"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be removed and saved, and change nothing"
    )


def run(args: Args, app: App) -> int:
    args.agents += [targets.of_session(app, name) for name in args.session]
    agents = targets.resolve(args, app)
    if args.dry_run:
        return _dry_run(args, app, agents)
    if agents and not (args.agents or args.yes or app.headless) and not targets.confirmed(app, "destroy", agents):
        return 1
    targets.outlive_terminal()

    def act(agent: Agent) -> Destroyed:
        return app.fleet.destroy(agent, force=args.force, remove_branch=args.remove_created_branch)

    code = targets.finish(app, agents, act, _row, lambda agent, done: _say(app, done), done="destroyed")
    if args.gc:
        from mngr.cli.commands import gc

        gc.run_after(app)
    return code


def _row(agent: Agent, done: Destroyed) -> dict[str, Any]:
    return {
        "saved": done.entry.id if done.entry else None,
        "kept_branch": done.kept_branch,
        "outlived": list(done.outlived),
    }


def _say(app: App, done: Destroyed) -> str:
    if done.outlived:
        app.out.warn(f"{done.name}: processes {', '.join(map(str, done.outlived))} could not be ended")
    text = f"destroyed {done.name}"
    if done.entry:
        text += f"; its work is saved: `mngr saved restore {done.entry.id}`"
        for path, megabytes in done.entry.left_out:
            app.out.note(f"{done.name}: `{path}` ({megabytes:.0f} MB, ignored by git) was not saved")
    return text + (f"; branch {done.kept_branch} stays" if done.kept_branch else "")


def _dry_run(args: Args, app: App, agents: list[Agent]) -> int:
    return targets.finish(
        app,
        agents,
        lambda agent: destroying.check(app.fleet, agent, force=args.force),
        lambda agent, work: {"dry_run": True, "commits": work.commits, "uncommitted": list(work.changed)},
        lambda agent, work: f"would destroy {agent.name}" + (f" and save {work.describe()}" if work.any else ""),
    )
