"""`mngr start`: run stopped or ended agents again."""

from __future__ import annotations

from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import UsageError
from mngr.fleet.agent import Agent
from mngr.named_tuples import NamedTuple

DESCRIPTION = "Run stopped or ended agents again, in their work dirs. Agents that are running are left alone."
EXAMPLES = (
    ("mngr start fix-login", "one agent"),
    ("mngr start fix-login --connect", "start it and attach to it"),
    ("mngr start --include 'state == \"STOPPED\"'", "all stopped agents"),
)


class Started(NamedTuple):
    started: bool
    dry_run: bool


RESULTS = targets.results(Started)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.option("--[no-]connect", "attach to the agent (one agent only)", default=False, safe=True)
    parser.option("--connect-command CMD", "run this command instead of attaching")
    parser.add_dry_run()


def run(args: Args, app: App) -> int:
    def act(agent: Agent) -> targets.Done:
        started = not agent.status.alive if args.dry_run else agent.start()[1]
        text = f"{'would start' if args.dry_run else 'started'} {agent.name}"
        return Started(started, args.dry_run), text if started else f"{agent.name} is already running"

    agents = targets.resolve(args, app)
    if args.connect and len(agents) > 1:
        raise UsageError(f"`--connect` takes one agent, not {len(agents)}", hint="`mngr connect AGENT`")
    code = targets.finish(app, agents, act, done="started")
    if args.connect and agents and not args.dry_run:
        from mngr.cli import connection

        command = args.connect_command or app.settings.text("commands.create.connect_command", "")
        return connection.after_start(app, agents[0].now(), command)
    return code
