"""`mngr message`: deliver text to agents, and confirm it."""

from __future__ import annotations

from mngr.actions import message as messages
from mngr.actions.message import Delivery, Reply
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.output.durations import parse_duration
from mngr.cli.output.terminal import is_terminal
from mngr.cli.parser.option_values import read_text
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import BLOCKED, MngrError, UsageError
from mngr.fleet.agent import Agent
from mngr.named_tuples import TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NotRequired

Outcomes = list[tuple[Agent, Delivery | MngrError]]

DESCRIPTION = (
    "Send a message to agents, exactly once, and wait until each agent has recorded it. Agents that keep no record, "
    "such as plain commands, get the text pasted into their terminal, followed by Enter. An agent that asks a question "
    "accepts no message until it is answered; a message that is under way at that moment is held. "
    "Every message is logged with an id (`mngr event`)."
)
EXAMPLES = (
    ("mngr message fix-login -m 'Please add a test'", "one agent"),
    ("mngr message fix-login fix-logout --message-file prompt.md", "a longer text, to two agents"),
    ("git diff | mngr message reviewer", "text from stdin"),
    ("mngr message --all -m 'Commit what you have'", "all agents"),
    ("mngr message reviewer -m 'Is it right?' --wait-reply", "wait for the reply and print it"),
)


class FailedMessage(TypedDict):
    agent: str
    error: str
    hint: str


class Deliveries(TypedDict):
    """`acknowledged` is null for an agent that cannot acknowledge."""

    successful_agents: list[str]
    failed_agents: list[FailedMessage]
    blocked_agents: list[str]
    message_ids: dict[str, str]
    acknowledged: dict[str, bool | None]
    replies: NotRequired[dict[str, str]]


RESULTS = [Deliveries]


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.option("--message, -m TEXT", "text of the message")
    parser.option("--message-file FILE", "file with the text (`-` is stdin)")
    parser.option("--[no-]start", "start stopped agents first", default=False)
    parser.option("--wait-reply", "wait until the agents stop working, and print their replies")
    parser.option("--timeout TIME", "stop waiting for replies after this time (exit code 4)", type=parse_duration)
    targets.add_on_error(parser)


def run(args: Args, app: App) -> int:
    if args.timeout is not None and not args.wait_reply:
        raise UsageError("`--timeout` requires `--wait-reply`")
    text = _text(args, app)
    messages.clean(text)
    agents = targets.resolve(args, app)
    replies: dict[str, Reply] = {}

    def act(agent: Agent) -> Delivery:
        if not args.wait_reply:
            return agent.message(text, start=args.start, tell=app.out.note)
        replies[agent.name] = agent.ask(text, start=args.start, timeout=args.timeout, tell=app.out.note)
        return replies[agent.name].delivery

    def report(outcomes: Outcomes) -> int:
        return _report(app, outcomes, replies if args.wait_reply else None)

    if args.on_error == "abort":
        return report(targets.one_by_one(agents, act))
    return targets.each(agents, act, report, done="answered" if args.wait_reply else "delivered")


def _text(args: Args, app: App) -> str:
    if args.message is not None and args.message_file is not None:
        raise UsageError("`--message` and `--message-file` cannot be used together")
    if args.message is not None:
        return str(args.message)
    if args.message_file is not None:
        return read_text(args.message_file, app)
    if "-" in args.agents or is_terminal(app.stdin):
        raise UsageError("no message was given", hint="use `-m TEXT`, `--message-file FILE` or stdin")
    return app.read_stdin()


def _report(app: App, outcomes: Outcomes, replies: dict[str, Reply] | None) -> int:
    good = {agent.name: result for agent, result in outcomes if isinstance(result, Delivery)}
    failed = [(agent.name, result) for agent, result in outcomes if isinstance(result, MngrError)]
    blocked = [name for name, result in good.items() if result.blocked]

    def show(agent: Agent, result: Delivery | MngrError) -> None:
        if isinstance(result, MngrError):
            targets.show_result(app, agent.name, result)
        elif replies is None:
            app.out.line(f"{agent.name}: {'acknowledged' if result.acknowledged else 'delivered'}")
        else:
            app.out.line(("" if len(outcomes) == 1 else f"{agent.name}: ") + replies[agent.name].text)

    def emit() -> None:
        value: Deliveries = {
            "successful_agents": list(good),
            "failed_agents": [{"agent": name, "error": error.message, "hint": error.hint} for name, error in failed],
            "blocked_agents": blocked,
            "message_ids": {name: result.message_id for name, result in good.items()},
            "acknowledged": {name: result.acknowledged for name, result in good.items()},
        }
        if replies is not None:
            value["replies"] = {name: found.text for name, found in replies.items()}
        app.out.emit_object(value)

    if len(outcomes) == 1 and failed and not app.out.human:
        emit()  # scripts read `failed_agents`, also of one agent
        return failed[0][1].exit_code
    code = targets.conclude(app, outcomes, show, emit)
    for name in blocked if app.out.human else ():
        why = f": {replies[name].reason}" if replies is not None else ""
        app.out.warn(f"{name} received the message but is blocked{why}")
    return code or (BLOCKED if blocked else 0)
