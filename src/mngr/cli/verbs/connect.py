"""`mngr connect`: attach to an agent's terminal."""

from mngr.cli import connection
from mngr.cli.app import App
from mngr.cli.parser.parser import Args, Parser

DESCRIPTION = (
    "Attach this terminal to an agent. A stopped agent is started first. Detach with `C-b d`; the agent keeps running."
)
EXAMPLES = (
    ("mngr connect fix-login", "attach; detach with C-b d"),
    ("mngr connect fix-login --connect-command 'echo $MNGR_SESSION_NAME'", "run a command instead of attaching"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_agent()
    parser.option("--[no-]start", "start a stopped agent first", default=True)
    parser.option("--connect-command CMD", "run this command instead of attaching")


def run(args: Args, app: App) -> int:
    return connection.connect(app, app.fleet.find(args.agent), args.connect_command, start=args.start)
