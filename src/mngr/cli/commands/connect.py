"""`mngr connect`: attach to an agent's terminal."""

from mngr.cli import connecting
from mngr.cli.app import App
from mngr.cli.parser import Args, BooleanPair, Parser

DESCRIPTION = (
    "Attach this terminal to an agent, starting it first if it is stopped. Detach with `C-b d`; the agent goes on."
)
EXAMPLES = (
    ("mngr connect fix-login", "attach; detach with C-b d"),
    ("mngr connect fix-login --connect-command 'echo $MNGR_SESSION_NAME'", "run something else instead"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="name, id or address")
    parser.add_argument("--start", action=BooleanPair, default=True, help="start a stopped agent first")
    parser.add_argument("--connect-command", metavar="CMD", help="run this instead of attaching")


def run(args: Args, app: App) -> int:
    return connecting.connect(app, app.fleet.find(args.agent), args.connect_command, start=args.start)
