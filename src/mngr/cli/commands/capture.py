"""`mngr capture`: what is on an agent's screen."""

from mngr.actions import screen
from mngr.actions.agent import Agent
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.errors import MngrError, UsageError

DESCRIPTION = "Print what an agent's terminal shows; for a stopped agent, what it showed last."
EXAMPLES = (
    ("mngr capture fix-login", "the screen as it is now"),
    ("mngr capture fix-login --history 500", "with 500 lines above it"),
    ("mngr capture fix-login --colors", "with its colours"),
    ("mngr capture fix-login --svg fix-login.svg", "as a picture"),
    ("mngr capture fix-login --cast fix-login.cast", "all that happened there, for `asciinema play` and web pages"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="name, id or address")
    parser.add_argument("--history", type=int, default=0, metavar="LINES", help="lines above the screen too")
    parser.add_argument("--colors", action="store_true", help="keep colours as escape sequences")
    file = parser.add_mutually_exclusive_group()
    file.add_argument("--svg", metavar="FILE", help="draw the screen into a new SVG file (`-` is stdout)")
    file.add_argument(
        "--cast", metavar="FILE", help="copy the recording of an agent made with `--record` (`-` is stdout)"
    )


def run(args: Args, app: App) -> int:
    file = args.svg if args.svg is not None else args.cast
    if file is not None and (args.history or args.colors):
        raise UsageError("`--history` and `--colors` are for text, not for `--svg` and `--cast`")
    agent = app.fleet.find(args.agent)
    if file is not None:
        return _to_file(app, agent, file, "svg" if args.svg is not None else "cast")
    text = app.fleet.capture(agent, history=args.history, colors=args.colors)
    if app.out.human:
        app.out.raw(text.encode("utf-8", "replace"))
    else:
        app.out.emit_object({"name": agent.name, "live": agent.pane is not None, "screen": text})
    return 0


def _to_file(app: App, agent: Agent, path: str, form: str) -> int:
    """Never over a file that exists: it may be the only copy of an older recording."""
    if form == "cast":
        data = screen.cast(app.fleet, agent)
    else:
        from mngr.cli import picture

        data = picture.svg(screen.cells(app.fleet, agent), agent.name).encode()
    if path == "-":
        app.out.raw(data)
        return 0
    try:
        with open(path, "xb") as file:
            file.write(data)
    except FileExistsError:
        raise MngrError(
            f"`{path}` exists already",
            hint=f"name another file; to replace it: `mngr capture {agent.name} --{form} - > FILE`",
        ) from None
    except OSError as error:
        raise MngrError(f"`{path}` cannot be written: {error.strerror}") from None
    app.out.emit_object({"name": agent.name, "file": path, "bytes": len(data)}, human=f"wrote {path}")
    return 0
