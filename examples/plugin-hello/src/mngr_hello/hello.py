"""`mngr hello`: a verb like those of mngr itself."""

from mngr.cli.app import App
from mngr.cli.parser.parser import Args, Parser

EXAMPLES = (
    ("mngr hello Ada", "greet one person"),
    ("mngr hello", "greet all agents"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="whom to greet (default: all agents)")
    parser.add_argument("--word", default="Hello", help="how (default: Hello)")


def run(args: Args, app: App) -> int:
    """A row is `{"name": ..., "greeting": ...}`."""
    names = args.names or [agent.name for agent in app.fleet.list().agents]
    rows = [{"name": name, "greeting": f"{args.word}, {name}!"} for name in names]
    for row in rows:
        app.out.line(row["greeting"])
    if not app.out.human:
        app.out.emit_rows(rows, ())
    return 0
