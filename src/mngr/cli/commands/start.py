"""`mngr start`: run stopped or ended agents again."""

from mngr.actions.agent import Agent
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.parser import Args, BooleanPair, Parser
from mngr.errors import UsageError

DESCRIPTION = "Run stopped or ended agents again, in their work dirs. One that runs is left alone."
EXAMPLES = (
    ("mngr start fix-login", "one"),
    ("mngr start fix-login --connect", "and attach to it"),
    ("mngr start --include 'state == \"STOPPED\"'", "all that are stopped"),
)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.add_argument("--connect", action=BooleanPair, default=False, help="attach to the agent (only one)")
    parser.add_argument("--connect-command", metavar="CMD", help="run this instead of attaching")
    parser.add_argument("--dry-run", action="store_true", help="say which would be started, and start none")


def run(args: Args, app: App) -> int:
    def act(agent: Agent) -> bool:
        if not args.dry_run:
            app.fleet.start(agent)
        return not agent.status.alive

    agents = targets.resolve(args, app)
    if args.connect and len(agents) > 1:
        raise UsageError(f"`--connect` takes one agent, not {len(agents)}", hint="`mngr connect AGENT`")
    verb = "would start" if args.dry_run else "started"
    code = targets.finish(
        app,
        agents,
        act,
        lambda agent, started: {"started": started, "dry_run": args.dry_run},
        lambda agent, started: f"{verb} {agent.name}" if started else f"{agent.name} runs already",
        done="started",
    )
    if args.connect and agents and not args.dry_run:
        from mngr.cli import connecting

        command = args.connect_command or app.settings.text("commands.create.connect_command", "")
        return connecting.after_start(app, app.fleet.find(agents[0]).record, command)
    return code
