"""`mngr start`: run stopped or ended agents again."""

from mngr.actions.agent import Agent
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
    def act(agent: Agent) -> bool:
        if not args.dry_run:
            app.fleet.start(agent)
        return not agent.status.alive

    verb = "would start" if args.dry_run else "started"
    return targets.finish(
        app,
        targets.each(targets.resolve(args, app), act),
        lambda agent, started: {"started": started, "dry_run": args.dry_run},
        lambda agent, started: f"{verb} {agent.name}" if started else f"{agent.name} runs already",
    )
