"""`mngr wait`: block until agents are in a state."""

from mngr.actions.agent_fields import AgentFields
from mngr.agent.state import STATES
from mngr.cli.app import App
from mngr.cli.output.durations import parse_duration
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import NotFoundError, UsageError
from mngr.names import nearest

DESCRIPTION = (
    "Wait until all agents are in one of the given states. Without a state, wait until they stop working (WAITING, "
    "BLOCKED, DONE, FAILED or STOPPED). Exits with 1 as soon as an agent ends in another state, and with 4 on timeout."
)
EXAMPLES = (
    ("mngr wait fix-login", "until it stops working"),
    ("mngr wait build DONE", "until its process has ended with exit code 0"),
    ("mngr wait a1 a2 a3 DONE FAILED --any --timeout 10m", "until the first of three has ended"),
)


RESULTS = [{"agents": [AgentFields]}]


def add_arguments(parser: Parser) -> None:
    parser.words("words", "AGENT... [STATE...]", "agents (`-` reads them from stdin), then states")
    how = parser.add_mutually_exclusive_group()
    how.option("--any", "wait for one of the agents")
    how.option("--all", "wait for all agents (default)")
    parser.option("--timeout TIME", "stop waiting after this time (exit code 4)", type=parse_duration)


def run(args: Args, app: App) -> None:
    names, states = split(args.words, app)
    try:
        agents = app.fleet.find_many(names)
    except NotFoundError as error:
        raise _meant_a_state(names, error) from None
    reached = app.fleet.wait(agents, states, any_of=args.any, timeout=args.timeout)
    for agent in reached:
        app.out.line(f"{agent.name} is {agent.state}" + (f": {agent.status.reason}" if agent.status.reason else ""))
    if not app.out.human:
        rows = [agent.as_json() for agent in reached]
        app.out.emit_rows(rows, (), envelope={"agents": rows})


def split(words: list[str], app: App) -> tuple[list[str], list[str]]:
    """Names, then states: upper case words that are states."""
    names = app.names([word for word in words if word not in STATES])
    if not names:
        raise UsageError("no agent was named", hint="`mngr wait NAME DONE`; `-` reads names from stdin")
    return names, [word for word in words if word in STATES]


def _meant_a_state(names: list[str], error: NotFoundError) -> NotFoundError:
    """The last name may be a misspelled state."""
    state = nearest(names[-1].upper(), STATES)
    if state is None or f"`{names[-1]}`" not in error.message:
        return error
    return NotFoundError(error.message, hint=f"if you mean the state, type `{state}`; {error.hint}")
