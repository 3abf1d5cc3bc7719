"""`mngr archive`: put agents away without losing anything of them."""

from mngr.actions import lifecycle
from mngr.actions.agent import Agent
from mngr.agents.record import Record
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser

DESCRIPTION = (
    "Stop agents and hide them from `mngr list`. Work dirs, branches, conversations and events stay; "
    "`mngr list --archived` shows them, and `mngr start` brings one back to work."
)
EXAMPLES = (
    ("mngr archive fix-login", "put one away"),
    ("mngr archive --include 'state == \"DONE\"'", "all that are done"),
    ("mngr archive fix-login --undo", "show it in the list again"),
)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.add_argument("--undo", action="store_true", help="show archived agents in the list again; they stay stopped")
    parser.add_argument("--dry-run", action="store_true", help="say which would be archived, and change none")


def run(args: Args, app: App) -> int:
    """A row has `archived` (whether this changed it) and `archived_at`, null for one that is in the list again."""

    def act(agent: Agent) -> tuple[Record, bool]:
        if args.dry_run:
            return agent.record, (agent.record.archived_at is not None) == args.undo
        return (lifecycle.unarchive if args.undo else lifecycle.archive)(app.fleet, agent)

    def say(agent: Agent, done: tuple[Record, bool]) -> str:
        if not done[1]:
            return f"{agent.name} is {'not archived' if args.undo else 'archived already'}"
        if args.dry_run:
            return f"would {'bring back' if args.undo else 'archive'} {agent.name}"
        return f"{agent.name} is in the list again" if args.undo else f"archived {agent.name}"

    targets.outlive_terminal()
    agents = targets.resolve(args, app, archived=args.undo)
    return targets.finish(
        app,
        agents,
        act,
        lambda agent, done: {"archived": done[1], "archived_at": done[0].archived_at, "dry_run": args.dry_run},
        say,
    )
