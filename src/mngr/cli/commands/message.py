"""`mngr message`: deliver text to agents, and confirm it."""

from __future__ import annotations

from mngr.actions import message as messages
from mngr.actions.agent import Agent
from mngr.actions.message import Delivery
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.inputs import read_text
from mngr.cli.parser import Args, BooleanPair, Parser
from mngr.cli.terminal import is_terminal
from mngr.errors import BLOCKED, FAILED, PARTIAL, MngrError, UsageError
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from mngr.actions.reply import Reply

    Outcomes = list[tuple[Agent, Delivery | MngrError]]

DESCRIPTION = (
    "Give a message to agents, once and whole, and wait until each has it in its own record. A type that cannot tell, "
    "such as a plain command, gets it pasted into its terminal, and Enter pressed. An agent that asks something takes "
    "none before it is answered. Every message is logged with an id (`mngr event`)."
)
EXAMPLES = (
    ("mngr message fix-login -m 'Please add a test'", "one agent"),
    ("mngr message fix-login fix-logout --message-file prompt.md", "a longer text, to two of them"),
    ("git diff | mngr message reviewer", "text from stdin"),
    ("mngr message --all -m 'Commit what you have'", "everyone"),
    ("mngr message reviewer -m 'Is it right?' --wait-reply", "and print what it answers"),
)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.add_argument("--message", "-m", metavar="TEXT", help="the text")
    parser.add_argument("--message-file", metavar="FILE", help="the text, from a file (`-` is stdin)")
    parser.add_argument("--start", action=BooleanPair, default=False, help="start stopped agents first")
    parser.add_argument(
        "--wait-reply", action="store_true", help="wait until they stop working, and print what they said"
    )
    parser.add_argument(
        "--timeout", type=_seconds, metavar="TIME", help="wait no longer than this for replies, exit code 4"
    )
    parser.add_argument(
        "--on-error",
        choices=("continue", "abort"),
        default="continue",
        help="after a failure go on with the others, or not",
    )


def _seconds(text: str) -> float:
    from mngr.cli.ages import parse_duration

    return parse_duration(text)


def run(args: Args, app: App) -> int:
    if args.timeout is not None and not args.wait_reply:
        raise UsageError("`--timeout` is for `--wait-reply`", hint="add it, or leave out `--timeout`")
    text = _text(args, app)
    messages.clean(text)
    agents = targets.resolve(args, app)
    replies: dict[str, Reply] = {}

    def act(agent: Agent) -> Delivery:
        if not args.wait_reply:
            return app.fleet.message(agent, text, start=args.start)
        from mngr.actions import reply

        replies[agent.name] = reply.ask(app.fleet, agent, text, start=args.start, timeout=args.timeout)
        return replies[agent.name].delivery

    def report(outcomes: Outcomes) -> int:
        return _report(app, outcomes, replies if args.wait_reply else None)

    if args.on_error == "abort":
        return report(targets.one_by_one(agents, act, lambda done: isinstance(done, MngrError)))
    return targets.each(agents, act, report, done="answered" if args.wait_reply else "delivered")


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


def _report(app: App, outcomes: Outcomes, replies: dict[str, Reply] | None) -> int:
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
    if replies is not None:
        value["replies"] = {name: found.text for name, found in replies.items()}
        names = [agent.name for agent, _ in good]
        lines = [replies[name].text if len(outcomes) == 1 else f"{name}: {replies[name].text}" for name in names]
    app.out.emit_object(value, human="\n".join(lines))
    if app.out.human:
        for agent, error in failed:
            if isinstance(error, targets.Left):
                continue
            app.out.warn(f"{agent.name}: {error.message}" + (f"\n  hint: {error.hint}" if error.hint else ""))
        for agent, _ in blocked:
            why = f": {replies[agent.name].reason}" if replies is not None else ""
            app.out.warn(f"{agent.name} has the message, but is blocked{why}")
    if failed:
        return PARTIAL if good else failed[0][1].exit_code if len(failed) == 1 else FAILED
    return BLOCKED if blocked else 0
