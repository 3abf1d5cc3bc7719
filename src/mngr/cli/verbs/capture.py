"""`mngr capture`: what is on an agent's screen."""

from mngr.cli.app import App
from mngr.cli.output.terminal import visible_coloured, visible_lines
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import MngrError, UsageError
from mngr.fleet.agent import Agent
from mngr.named_tuples import NamedTuple

ONLY_LOOKS = True
DESCRIPTION = "Print what an agent's terminal shows. For a stopped agent, print its last screen."
EXAMPLES = (
    ("mngr capture fix-login", "the current screen"),
    ("mngr capture fix-login --history 500", "with 500 lines of scrollback"),
    ("mngr capture fix-login --colors", "with colors"),
    ("mngr capture fix-login --cast fix-login.cast", "the recording, for `asciinema play` and web pages"),
)


class Capture(NamedTuple):
    """`live`: whether this is the current screen, not the last one of a stopped agent."""

    name: str
    live: bool
    screen: str


class CastFile(NamedTuple):
    name: str
    file: str
    bytes: int


RESULTS = [Capture, CastFile]


def add_arguments(parser: Parser) -> None:
    parser.add_agent()
    parser.option("--history LINES", "lines of scrollback to include", type=int, default=0)
    parser.option("--colors", "keep colors as escape sequences")
    parser.option("--cast FILE", "copy the recording of an agent created with `--record` (`-` is stdout)")


def run(args: Args, app: App) -> None:
    if args.cast is not None and (args.history or args.colors):
        raise UsageError("`--history` and `--colors` cannot be used with `--cast`")
    agent = app.fleet.find(args.agent)
    if args.cast is not None:
        _copy_recording(app, agent, args.cast)
        return
    text = agent.capture(history=args.history, colors=args.colors)
    if app.out.human:
        shown = visible_coloured(text) if args.colors else visible_lines(text)
        app.out.raw(shown.encode("utf-8", "backslashreplace"))
    else:
        app.out.emit_object(Capture(agent.name, agent.pane is not None, text))


def _copy_recording(app: App, agent: Agent, path: str) -> None:
    """Refuses to replace a file: it may be the only copy of an older recording."""
    data = agent.recording()
    if path == "-":
        app.out.raw(data)
        return
    try:
        with open(path, "xb") as file:
            file.write(data)
    except FileExistsError:
        raise MngrError(
            f"`{path}` already exists",
            hint=f"choose another file, or replace it: `mngr capture {agent.name} --cast - > FILE`",
        ) from None
    except OSError as error:
        raise MngrError(f"cannot write `{path}`: {error.strerror}") from None
    app.out.emit_object(CastFile(agent.name, path, len(data)), human=f"wrote {path}")
