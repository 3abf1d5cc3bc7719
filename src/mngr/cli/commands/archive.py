"""`mngr archive`: hide agents from the list and keep everything they have."""

from typing import Any, NamedTuple

from mngr.actions import lifecycle
from mngr.actions.agent import Agent
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser

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


def results() -> list[Any]:
    return targets.results(Archived)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.option("--undo", "show archived agents in the list again; they stay stopped")
    parser.add_dry_run()


def run(args: Args, app: App) -> int:
    def act(agent: Agent) -> Archived:
        if args.dry_run:
            return Archived((agent.record.archived_at is not None) == args.undo, agent.record.archived_at, True)
        record, changed = agent.site.run(lifecycle.unarchive if args.undo else lifecycle.archive, agent.id)
        return Archived(changed, record.archived_at, False)

    def say(agent: Agent, done: Archived) -> str:
        if not done.archived:
            return f"{agent.name} is {'not archived' if args.undo else 'already archived'}"
        if args.dry_run:
            return f"would {'unarchive' if args.undo else 'archive'} {agent.name}"
        return f"{'unarchived' if args.undo else 'archived'} {agent.name}"

    targets.outlive_terminal()
    return targets.finish(app, targets.resolve(args, app, archived=args.undo), act, say)
