"""`mngr cleanup`: stop or destroy many agents at once."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from mngr.actions import destroy as destroying
from mngr.actions import lifecycle
from mngr.actions.agent import Agent
from mngr.actions.destroy import HasWork
from mngr.agents.record import seconds_of
from mngr.agents.state import STATES
from mngr.cli import targets
from mngr.cli.amounts import amount
from mngr.cli.app import App
from mngr.cli.commands import destroy
from mngr.cli.durations import age, parse_duration
from mngr.cli.output import state_style
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column, table
from mngr.errors import MngrError, Undecided, UsageError
from mngr.workspaces.unsaved_work import UnsavedWork

DESCRIPTION = (
    "Stop agents, or destroy them, by age, idle time and state. Lists the agents and asks for confirmation; without a "
    "terminal it requires `--yes`. Like `mngr destroy`, it refuses agents with work that exists only there; with "
    "`--force`, that work is saved first."
)
EXAMPLES = (
    ("mngr cleanup --idle 2h", "stop agents without output for two hours"),
    ("mngr cleanup --destroy --state DONE --dry-run", "list agents that are done, and their unsaved work"),
    ("mngr cleanup --destroy --older-than 14d --state STOPPED --yes", "for a script"),
)


class CleanupStop(NamedTuple):
    """`outlived`: ids of processes that could not be ended."""

    action: str
    outlived: tuple[int, ...]
    dry_run: bool


class CleanupDestroy(NamedTuple):
    """`saved`: the id of the saved work."""

    action: str
    saved: str | None
    kept_branch: str | None
    dry_run: bool


class WouldClean(NamedTuple):
    """What would be saved."""

    action: str
    commits: int
    uncommitted: tuple[str, ...]
    dry_run: bool


def results() -> list[Any]:
    return targets.results(CleanupStop, CleanupDestroy, WouldClean)


def add_arguments(parser: Parser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.option("--stop", "stop the agents and keep everything (default)")
    what.option("--destroy", "remove the agents")
    which = parser.add_argument_group("conditions (all must match)")
    which.option("--older-than TIME", "created longer ago than this", type=parse_duration)
    which.option("--idle TIME", "without output, or ended, for this long", type=parse_duration)
    which.option("--state STATE ...", "in this state", type=_state)
    targets.add_filters(parser)
    parser.option("--force, -f", "also destroy agents with unsaved work; it is saved first")
    parser.option("--yes, -y", "do not ask for confirmation")
    parser.add_dry_run()


def run(args: Args, app: App) -> int:
    if args.force and not args.destroy:
        raise UsageError("`--force` requires `--destroy`")
    agents = _chosen(args, app)
    verb = "destroy" if args.destroy else "stop"

    def would(agent: Agent) -> UnsavedWork:
        return agent.site.run(destroying.check, agent.id, force=args.force) if args.destroy else UnsavedWork()

    if args.dry_run or not agents:
        return targets.finish(
            app,
            agents,
            would,
            lambda agent, work: destroy.would_say(verb, agent, work),
            row=lambda work: WouldClean(verb, work.commits, work.changed, True),
        )
    if not args.yes:
        if app.headless:
            names = ", ".join(f"`{agent.name}`" for agent in agents)
            raise Undecided(
                f"cannot ask for confirmation to {verb} {amount(len(agents), 'agent')}: {names}",
                hint="add `--yes`, or check first with `--dry-run`",
            )
        measured = targets.each(agents, would, list)
        _show(app, measured)
        going = sum(not isinstance(found, MngrError) for _, found in measured)
        # When all of them are refused, the report says why, without a question.
        if going and not targets.confirmed(app, verb, agents, going):
            return 1
    targets.outlive_terminal()
    if args.destroy:
        code = targets.finish(
            app,
            agents,
            lambda agent: agent.destroy(force=args.force),
            lambda agent, done: destroy.say(app, done),
            row=lambda done: CleanupDestroy(verb, done.entry.id if done.entry else None, done.kept_branch, False),
            done="destroyed",
        )
        destroy.leave(app, agents)
        return code
    return targets.finish(
        app,
        agents,
        lambda agent: agent.site.run(lifecycle.stop, agent.id, reason="stopped by `mngr cleanup`"),
        lambda agent, done: f"stopped {agent.name}",
        row=lambda done: CleanupStop(verb, done.outlived, False),
        done="stopped",
    )


def _chosen(args: Args, app: App) -> list[Agent]:
    conditions = args.older_than is not None or args.idle is not None or args.state
    if not (conditions or args.all or args.include or args.exclude):
        raise UsageError("no agents were selected", hint="for example `mngr cleanup --idle 2h`, or `--all`")
    keep = targets.chosen(args)
    listing = app.fleet.list()
    for error in listing.errors:
        app.out.warn(error.explained())
    now = time.time()
    agents = [agent for agent in listing.agents if _fits(args, agent, now) and keep(agent)]
    return agents if args.destroy else [agent for agent in agents if agent.state != "STOPPED"]


def _fits(args: Args, agent: Agent, now: float) -> bool:
    """Whether all conditions hold. What is not known of an agent (how long it is idle) does not hold."""
    idle = _idle_seconds(agent, now)
    return (
        (not args.state or agent.state in args.state)
        and (args.older_than is None or _age_seconds(agent, now) >= args.older_than)
        and (args.idle is None or (idle is not None and idle >= args.idle))
    )


def _age_seconds(agent: Agent, now: float) -> float:
    return max(0.0, now + agent.site.clock_skew - seconds_of(agent.record.created_at))


def _idle_seconds(agent: Agent, now: float) -> float | None:
    """Since its last output, or since its end. None when nobody knows."""
    now += agent.site.clock_skew
    if agent.status.alive:
        return max(0.0, now - agent.pane.active_at) if agent.pane is not None else None
    return max(0.0, now - agent.status.since) if agent.status.since and agent.state != "UNKNOWN" else None


def _show(app: App, measured: list[tuple[Agent, UnsavedWork | MngrError]]) -> None:
    now = time.time()
    rows = [
        {
            "name": agent.name,
            "state": agent.state,
            "age": age(_age_seconds(agent, now)),
            "idle": age(_idle_seconds(agent, now)),
            "work": _refusal(found) if isinstance(found, MngrError) else found.describe(),
        }
        for agent, found in measured
    ]
    columns = [
        Column("NAME", "name"),
        Column("STATE", "state", style=state_style),
        Column("AGE", "age"),
        Column("IDLE", "idle"),
    ]
    if any(row["work"] for row in rows):
        columns.append(Column("WORK", "work", flexible=True))
    app.stderr.write(table(rows, columns, colour=app.out.colour, fit=app.out.columns))
    app.stderr.flush()


def _refusal(error: MngrError) -> str:
    if isinstance(error, HasWork):
        return f"refused without `--force`: {error.message.partition(': ')[2]}"
    return f"refused: {error.message}"


def _state(text: str) -> str:
    name = text.upper()
    if name not in STATES:
        raise UsageError(f"invalid state `{text}`", hint=f"one of {', '.join(f'`{state}`' for state in STATES)}")
    return name
