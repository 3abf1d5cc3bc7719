"""`mngr wait`: block until agents are in a state."""

from mngr.actions import find
from mngr.agents.state import STATES
from mngr.cli.ages import parse_duration
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column
from mngr.errors import NotFoundError, UsageError
from mngr.names import nearest

DESCRIPTION = (
    "Wait until all agents are in one of the states. Without a state: until they stop working (WAITING, BLOCKED, DONE, "
    "FAILED or STOPPED). Ends at once with exit code 1 when an agent has ended in another state, and with 4 when the "
    "time is over."
)
EXAMPLES = (
    ("mngr wait fix-login", "until it stops working"),
    ("mngr wait build DONE", "until its process ended with exit code 0"),
    ("mngr wait a1 a2 a3 DONE FAILED --any --timeout 10m", "the first of three to end"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "words", nargs="*", metavar="AGENT... [STATE...]", help="agents (`-` reads them from stdin), then states"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--any", action="store_true", help="until one of them is")
    how.add_argument("--all", action="store_true", help="until all of them are (the default)")
    parser.add_argument(
        "--timeout", type=parse_duration, metavar="TIME", help="give up after this long, with exit code 4"
    )


def run(args: Args, app: App) -> int:
    names, states = split(args.words, app)
    try:
        agents = find.many(app.fleet, names)
    except NotFoundError as error:
        raise _meant_a_state(names, error) from None
    reached = app.fleet.wait(agents, states, any_of=args.any, timeout=args.timeout)
    rows = [agent.as_json() for agent in reached]
    if app.out.human:
        for row in rows:
            app.out.line(
                f"{row['name']} is {row['state']}" + (f": {row['state_reason']}" if row["state_reason"] else "")
            )
    else:
        app.out.emit_rows(rows, (Column("NAME", "name"),), envelope={"agents": rows})
    return 0


def split(words: list[str], app: App) -> tuple[list[str], list[str]]:
    """Names, then states: upper case words that are states."""
    names = [word for word in words if word not in STATES]
    states = [word for word in words if word in STATES]
    names = [word for name in names for word in (app.read_stdin().split() if name == "-" else [name])]
    if not names:
        raise UsageError("no agent was named", hint="`mngr wait NAME DONE`; `-` reads names from stdin")
    return names, states


def _meant_a_state(names: list[str], error: NotFoundError) -> NotFoundError:
    """What was typed last may be a state that is written otherwise."""
    state = nearest(names[-1].upper(), STATES)
    if state is None or f"`{names[-1]}`" not in error.message:
        return error
    return NotFoundError(error.message, hint=f"if a state is meant, the closest one is `{state}`; {error.hint}")
