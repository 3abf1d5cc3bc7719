"""`mngr capture`: what is on an agent's screen."""

from mngr.actions import find, screen
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser

DESCRIPTION = "Print what an agent's terminal shows; for a stopped agent, what it showed last."
EXAMPLES = (
    ("mngr capture fix-login", "the screen as it is now"),
    ("mngr capture fix-login --history 500", "with 500 lines above it"),
    ("mngr capture fix-login --colors", "with its colours"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="name, id or address")
    parser.add_argument("--history", type=int, default=0, metavar="LINES", help="lines above the screen too")
    parser.add_argument("--colors", action="store_true", help="keep colours as escape sequences")


def run(args: Args, app: App) -> int:
    agent = find.one(app.fleet, args.agent)
    text = screen.read(app.fleet, agent, history=args.history, colors=args.colors)
    if app.out.human:
        app.out.raw(text.encode("utf-8", "replace"))
    else:
        app.out.emit_object({"name": agent.name, "live": agent.pane is not None, "screen": text})
    return 0
