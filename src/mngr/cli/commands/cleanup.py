"""`mngr cleanup`: stop or destroy many agents at once."""

from __future__ import annotations

import time

from mngr.actions import cleanup, lifecycle
from mngr.actions import destroy as destroying
from mngr.actions.agent import Agent
from mngr.actions.cleanup import Wanted
from mngr.actions.destroy import Destroyed, HasWork
from mngr.actions.lifecycle import Stopped
from mngr.agents.state import STATES
from mngr.cli import targets
from mngr.cli.ages import age, parse_duration
from mngr.cli.app import App
from mngr.cli.output import state_style
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column
from mngr.cli.text import amount
from mngr.errors import MngrError, Undecided, UsageError
from mngr.records import TYPE_CHECKING
from mngr.workspaces.work import Work

if TYPE_CHECKING:
    from typing import Any


DESCRIPTION = (
    "Stop agents, or destroy them, by age, idleness and state. Shows them and asks first; where nobody can be asked it "
    "needs `--yes`. As `mngr destroy` does, it refuses agents with work that is found nowhere else; with `--force`, "
    "that work is saved first."
)
EXAMPLES = (
    ("mngr cleanup --idle 2h", "stop those without output for two hours"),
    ("mngr cleanup --destroy --state DONE --dry-run", "which of the done ones would go, and which hold work"),
    ("mngr cleanup --destroy --older-than 14d --state STOPPED --yes", "in a script"),
)


def add_arguments(parser: Parser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--stop", action="store_true", help="stop them and keep everything (the default)")
    what.add_argument("--destroy", action="store_true", help="remove them")
    which = parser.add_argument_group("which (all must hold)")
    which.add_argument("--older-than", type=parse_duration, metavar="TIME", help="created longer ago than this")
    which.add_argument(
        "--idle", type=parse_duration, metavar="TIME", help="without output for this long, or ended for this long"
    )
    which.add_argument("--state", action="append", type=_state, metavar="STATE", help="in this state (can be repeated)")
    targets.add_filters(parser)
    parser.add_argument(
        "--force", "-f", action="store_true", help="destroy also those with work found nowhere else; it is saved first"
    )
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="say which it would be, and change nothing")


def run(args: Args, app: App) -> int:
    if args.force and not args.destroy:
        raise UsageError("`--force` is for `--destroy`: stopping loses nothing", hint="leave it out")
    agents = _chosen(args, app)

    def would(agent: Agent) -> Work:
        return _would(args, app, agent)

    if args.dry_run or not agents:
        return targets.finish(
            app,
            agents,
            would,
            lambda agent, found: _dry_row(args, found),
            lambda agent, found: _dry_say(args, agent, found),
        )
    if not args.yes:
        if app.headless:
            raise Undecided(
                f"nobody can be asked whether to {_verb(args)} {amount(len(agents), 'agent')}: "
                + ", ".join(f"`{agent.name}`" for agent in agents),
                hint="add `--yes`, or look first with `--dry-run`",
            )
        measured = targets.each(agents, would, list)
        _show(app, measured)
        going = sum(not isinstance(found, MngrError) for _, found in measured)
        # Without any that would go, what follows only says why.
        if going and not targets.confirmed(app, _verb(args), agents, going):
            return 1
    targets.outlive_terminal()
    if args.destroy:
        return targets.finish(
            app,
            agents,
            lambda agent: app.fleet.destroy(agent, force=args.force),
            _destroyed_row,
            _destroyed_say,
            done="destroyed",
        )
    return targets.finish(
        app,
        agents,
        lambda agent: lifecycle.stop(app.fleet, agent, reason="stopped by `mngr cleanup`"),
        _stopped_row,
        lambda agent, done: f"stopped {agent.name}",
        done="stopped",
    )


def _chosen(args: Args, app: App) -> list[Agent]:
    wanted = Wanted(args.older_than, args.idle, tuple(args.state))
    if wanted == Wanted() and not (args.all or args.include or args.exclude):
        raise UsageError(
            "nothing says which agents are meant", hint="for example `mngr cleanup --idle 2h`, or `--all` for every one"
        )
    keep = targets.chosen(args)
    listing = app.fleet.list()
    for error in listing.errors:
        app.out.warn(error.message)
    agents = [agent for agent in cleanup.choose(listing.agents, wanted, time.time()) if keep(agent)]
    return agents if args.destroy else [agent for agent in agents if agent.state != "STOPPED"]


def _verb(args: Args) -> str:
    return "destroy" if args.destroy else "stop"


def _would(args: Args, app: App, agent: Agent) -> Work:
    """What would be saved; raises for an agent that would be refused."""
    if args.destroy:
        return destroying.check(app.fleet, agent, force=args.force)
    return Work()


def _show(app: App, measured: list[tuple[Agent, Work | MngrError]]) -> None:
    from mngr.cli.table import table

    now = time.time()
    rows = [
        {
            "name": agent.name,
            "state": agent.state,
            "age": age(cleanup.age_seconds(agent, now)),
            "idle": age(cleanup.idle_seconds(agent, now)),
            "work": _in_the_way(found) if isinstance(found, MngrError) else found.describe(),
        }
        for agent, found in measured
    ]
    columns = [
        Column("NAME", "name"),
        Column("STATE", "state", style=state_style()),
        Column("AGE", "age"),
        Column("IDLE", "idle"),
    ]
    if any(row["work"] for row in rows):
        columns.append(Column("WORK", "work", flexible=True))
    app.stderr.write(table(rows, columns, colour=app.out.colour, fit=app.out.columns))
    app.stderr.flush()


def _in_the_way(error: MngrError) -> str:
    if isinstance(error, HasWork):
        return f"refused without `--force`: {error.message.partition(': ')[2]}"
    return f"refused: {error.message}"


def _dry_row(args: Args, found: Work) -> dict[str, Any]:
    return {"action": _verb(args), "commits": found.commits, "uncommitted": list(found.changed), "dry_run": True}


def _dry_say(args: Args, agent: Agent, found: Work) -> str:
    return f"would {_verb(args)} {agent.name}" + (f" and save {found.describe()}" if found.any else "")


def _destroyed_row(agent: Agent, done: Destroyed) -> dict[str, Any]:
    return {
        "action": "destroy",
        "saved": done.entry.id if done.entry else None,
        "kept_branch": done.kept_branch,
        "dry_run": False,
    }


def _destroyed_say(agent: Agent, done: Destroyed) -> str:
    text = f"destroyed {agent.name}"
    if done.entry:
        text += f"; its work is saved: `mngr saved restore {done.entry.id}`"
    return text + (f"; branch {done.kept_branch} stays" if done.kept_branch else "")


def _stopped_row(agent: Agent, done: Stopped) -> dict[str, Any]:
    return {"action": "stop", "outlived": list(done.outlived), "dry_run": False}


def _state(text: str) -> str:
    name = text.upper()
    if name not in STATES:
        raise UsageError(f"`{text}` is not a state", hint=f"one of {', '.join(f'`{state}`' for state in STATES)}")
    return name
