"""`mngr message`: deliver text to agents, and confirm it."""

from collections.abc import Callable

from mngr.actions import message as messages
from mngr.actions.agent import Agent
from mngr.actions.message import Delivery
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.inputs import read_text
from mngr.cli.parser import Args, Parser
from mngr.cli.terminal import is_terminal
from mngr.errors import BLOCKED, FAILED, PARTIAL, MngrError, UsageError

DESCRIPTION = (
    "Paste a message into the agents' terminals and press Enter. Several lines arrive as one message where the program "
    "knows bracketed paste. Every message is logged with an id (`mngr event`)."
)
EXAMPLES = (
    ("mngr message fix-login -m 'Please add a test'", "one agent"),
    ("mngr message fix-login fix-logout --message-file prompt.md", "a longer text, to two of them"),
    ("git diff | mngr message reviewer", "text from stdin"),
    ("mngr message --all -m 'Commit what you have'", "everyone"),
)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.add_argument("--message", "-m", metavar="TEXT", help="the text")
    parser.add_argument("--message-file", metavar="FILE", help="the text, from a file (`-` is stdin)")
    parser.add_argument("--start", action="store_true", help="start stopped agents first")
    parser.add_argument(
        "--on-error",
        choices=("continue", "abort"),
        default="continue",
        help="after a failure go on with the others, or not",
    )


def run(args: Args, app: App) -> int:
    text = _text(args, app)
    messages.clean(text)
    agents = targets.resolve(args, app)

    def act(agent: Agent) -> Delivery:
        return app.fleet.message(agent, text, start=args.start)

    outcomes = _one_by_one(agents, act) if args.on_error == "abort" else targets.each(agents, act)
    return _report(app, outcomes)


def _text(args: Args, app: App) -> str:
    if args.message is not None and args.message_file is not None:
        raise UsageError("`--message` and `--message-file` cannot be used together")
    if args.message is not None:
        return str(args.message)
    if args.message_file is not None:
        return read_text(args.message_file, app)
    if "-" in args.agents or is_terminal(app.stdin):
        raise UsageError("no message was given", hint="`-m TEXT`, `--message-file FILE`, or text on stdin")
    return app.read_stdin()


def _one_by_one(agents: list[Agent], act: Callable[[Agent], Delivery]) -> "list[tuple[Agent, Delivery | MngrError]]":
    done: list[tuple[Agent, Delivery | MngrError]] = []
    for agent in agents:
        done += targets.each([agent], act)
        if isinstance(done[-1][1], MngrError):
            break
    return done


def _report(app: App, outcomes: "list[tuple[Agent, Delivery | MngrError]]") -> int:
    failed = [(agent, result) for agent, result in outcomes if isinstance(result, MngrError)]
    if app.out.human and len(outcomes) == 1 and failed:
        raise failed[0][1]
    good = [(agent, result) for agent, result in outcomes if isinstance(result, Delivery)]
    blocked = [(agent, result) for agent, result in good if result.blocked]
    value = {
        "successful_agents": [agent.name for agent, _ in good],
        "failed_agents": [{"agent": agent.name, "error": error.message, "hint": error.hint} for agent, error in failed],
        "blocked_agents": [agent.name for agent, _ in blocked],
        "message_ids": {agent.name: result.message_id for agent, result in good},
        "acknowledged": {agent.name: result.acknowledged for agent, result in good},
    }
    lines = [f"{agent.name}: {'acknowledged' if result.acknowledged else 'delivered'}" for agent, result in good]
    app.out.emit_object(value, human="\n".join(lines))
    if app.out.human:
        for agent, error in failed:
            app.out.warn(f"{agent.name}: {error.message}" + (f"\n  hint: {error.hint}" if error.hint else ""))
        for agent, _ in blocked:
            app.out.warn(f"{agent.name} has the message, but is blocked")
    if failed:
        return PARTIAL if good else failed[0][1].exit_code if len(failed) == 1 else FAILED
    return BLOCKED if blocked else 0
