"""`mngr start`: run stopped or ended agents again."""

from mngr.actions import lifecycle
from mngr.actions.agent import Agent
from mngr.agents.record import Record
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser

DESCRIPTION = "Run stopped or ended agents again, in their work dirs. One that runs is left alone."
EXAMPLES = (
    ("mngr start fix-login", "one"),
    ("mngr start --include 'state == \"STOPPED\"'", "all that are stopped"),
)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="say which would be started, and start none")


def run(args: Args, app: App) -> int:
    def act(agent: Agent) -> tuple[Record, bool]:
        return (agent.record, not agent.status.alive) if args.dry_run else lifecycle.start(app.fleet, agent.id)

    verb = "would start" if args.dry_run else "started"
    return targets.finish(
        app,
        targets.each(targets.resolve(args, app), act),
        lambda agent, done: {"started": done[1], "dry_run": args.dry_run},
        lambda agent, done: f"{verb} {agent.name}" if done[1] else f"{agent.name} runs already",
    )
