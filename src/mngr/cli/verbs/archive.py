"""`mngr archive`: hide agents from the list and keep everything they have."""

from __future__ import annotations

from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.parser.parser import Args, Parser
from mngr.fleet.agent import Agent
from mngr.named_tuples import NamedTuple
from mngr.system import interrupts

DESCRIPTION = (
    "Stop agents and hide them from `mngr list`. Work dirs, branches, conversations and events stay. "
    "`mngr list --archived` shows archived agents, and `mngr start` brings one back."
)
EXAMPLES = (
    ("mngr archive fix-login", "one agent"),
    ("mngr archive --include 'state == \"DONE\"'", "all agents that are done"),
    ("mngr archive fix-login --undo", "show it in the list again"),
)


class Archived(NamedTuple):
    """`archived`: whether this changed the agent. `archived_at`: null for an agent that is in the list."""

    archived: bool
    archived_at: str | None
    dry_run: bool


RESULTS = targets.results(Archived)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.option("--undo", "show archived agents in the list again; they stay stopped")
    parser.add_dry_run()


def run(args: Args, app: App) -> int:
    verb, undone = ("unarchive", "not archived") if args.undo else ("archive", "already archived")

    def act(agent: Agent) -> targets.Done:
        changed = (agent.record.life.archived_at is not None) == args.undo
        if not args.dry_run:
            agent, changed = agent.archive(undo=args.undo)
        text = f"would {verb} {agent.name}" if args.dry_run else f"{verb}d {agent.name}"
        row = Archived(changed, agent.record.life.archived_at, args.dry_run)
        return row, text if changed else f"{agent.name} is {undone}"

    interrupts.outlive_terminal()
    return targets.finish(app, targets.resolve(args, app, archived=args.undo), act)
