"""`mngr capture`: what is on an agent's screen."""

import os

from mngr.actions import find
from mngr.agents.store import SCREEN
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.errors import MngrError

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
    if agent.pane is not None:
        text = app.fleet.tmux.capture(agent.pane, history=args.history, escapes=args.colors)
    else:
        try:
            text = app.fleet.host.read(os.path.join(app.fleet.store.state_dir(agent.id), SCREEN)).decode(
                errors="replace"
            )
        except FileNotFoundError:
            raise MngrError(
                f"`{agent.name}` is {agent.state} and has no screen",
                hint=f"`mngr event {agent.name}` says what happened",
            ) from None
    text = text.rstrip("\n") + "\n"
    if app.out.human:
        app.out.raw(text.encode("utf-8", "replace"))
    else:
        app.out.emit_object({"name": agent.name, "live": agent.pane is not None, "screen": text})
    return 0
