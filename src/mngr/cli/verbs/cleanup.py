"""`mngr cleanup`: stop or destroy many agents at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from mngr.agent.record import seconds_of
from mngr.agent.state import ENDED, STATES, STOPPED
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.durations import age, parse_duration
from mngr.cli.parser.parser import Args, Parser
from mngr.cli.verbs.destroy import DestroyResult, WouldDestroy, destroy, leave, would_destroy
from mngr.errors import MngrError, Undecided, UsageError
from mngr.fleet.agent import Agent
from mngr.named_tuples import NamedTuple
from mngr.system import interrupts

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

    outlived: tuple[int, ...]


class CleanupRow(NamedTuple):
    action: str
    dry_run: bool


RESULTS = targets.results((CleanupRow, CleanupStop), (CleanupRow, DestroyResult), (CleanupRow, WouldDestroy))


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

    def would(agent: Agent) -> targets.Done:
        row, text = WouldDestroy(True, 0, (), ()), f"would stop {agent.name}"
        if args.destroy:
            row, text = would_destroy(agent, args.force)
        return {"action": verb, **row._asdict()}, text

    def act(agent: Agent) -> targets.Done:
        row: CleanupStop | DestroyResult
        if args.destroy:
            row, text = destroy(agent, args.force)
        else:
            stopped = agent.stop(reason="stopped by `mngr cleanup`")
            text = f"stopped {agent.name}" if stopped.changed else f"{agent.name} is already stopped"
            row, text = CleanupStop(stopped.outlived), text + targets.say_outlived(stopped.outlived)
        return {"action": verb, **row._asdict(), "dry_run": False}, text

    if args.dry_run or not agents:
        return targets.finish(app, agents, would)
    if not args.yes and not _confirmed(app, verb, agents, would):
        return 1
    interrupts.outlive_terminal()
    code = targets.finish(app, agents, act, done="destroyed" if args.destroy else "stopped")
    if args.destroy:
        leave(app, agents)
    return code


def _confirmed(app: App, verb: str, agents: list[Agent], would: Callable[[Agent], targets.Done]) -> bool:
    """Show what would be done to each agent, and ask. When all agents are refused, the report says why, without a
    question."""
    if app.headless:
        names = ", ".join(f"`{agent.name}`" for agent in agents)
        raise Undecided(
            f"cannot ask for confirmation to {verb} {amount(len(agents), 'agent')}: {names}",
            hint="add `--yes`, or check first with `--dry-run`",
        )
    going = 0
    for agent, found in targets.each(agents, would, list):
        going += not isinstance(found, MngrError)
        text = f"refused: {found.explained()}" if isinstance(found, MngrError) else found[1]
        old, idle = _ages(agent.as_json())
        facts = [agent.state, f"created {age(old)} ago", f"idle for {age(idle)}" if idle else ""]
        app.out.note(f"{text} ({', '.join(filter(None, facts))})")
    return not going or targets.confirmed(app, verb, agents, going)


def _chosen(args: Args, app: App) -> list[Agent]:
    conditions = args.older_than is not None or args.idle is not None or args.state
    if not (conditions or args.all or args.include or args.exclude):
        raise UsageError("no agents were selected", hint="for example `mngr cleanup --idle 2h`, or `--all`")
    keep = targets.chosen(args)

    def fits(fields: Mapping[str, Any]) -> bool:
        """Whether all conditions hold. What is not known of an agent (how long it is idle) does not hold."""
        old, idle = _ages(fields)
        return (
            (not args.state or fields["state"] in args.state)
            and (args.destroy or fields["state"] != STOPPED)
            and (args.older_than is None or old >= args.older_than)
            and (args.idle is None or (idle is not None and idle >= args.idle))
        )

    return [agent for agent in targets.listed(app) if fits(fields := agent.as_json()) and keep(fields)]


def _ages(fields: Mapping[str, Any]) -> tuple[float, float | None]:
    """How old an agent is, and how long it is idle: since its last output or its end, None when nobody knows."""
    now, idle = time.time(), fields["idle_seconds"]
    if fields["state"] in ENDED and fields["state_since"]:
        idle = max(0.0, now - seconds_of(fields["state_since"]))
    return max(0.0, now - seconds_of(fields["create_time"])), idle


def _state(text: str) -> str:
    name = text.upper()
    if name not in STATES:
        raise UsageError(f"invalid state `{text}`", hint=f"one of {', '.join(f'`{state}`' for state in STATES)}")
    return name
