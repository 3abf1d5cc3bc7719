"""`mngr limit`: how long agents may run and be idle."""

from __future__ import annotations

from mngr.actions import limits as limiting
from mngr.actions.agent import Agent
from mngr.actions.limits import Enforced
from mngr.agents import limits
from mngr.agents.limits import Limits
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.inputs import IDLE_MODES, parse_limit
from mngr.cli.parser import Args, Parser
from mngr.errors import UsageError
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


DESCRIPTION = (
    "Show the limits of agents, or set them. An agent that reaches one is stopped: what exists only in its work dir is "
    "saved first (`mngr saved`), the work dir stays, `mngr list` says why, and `mngr start` runs it again with its "
    "time anew. New limits hold at once, also for an agent that runs. "
    "What idle means: in mode `output` its terminal shows nothing new; in mode `user` no message was sent to it and "
    "nobody attached to it typed a key; in mode `agent` it says itself that it is not working (WAITING or BLOCKED); "
    "for types that cannot say so, that is the same as `output`."
)
EXAMPLES = (
    ("mngr limit fix-login", "show them"),
    ("mngr limit fix-login --idle-timeout 30m", "stop it when it printed nothing for half an hour"),
    ("mngr limit --all --idle-timeout 2h --idle-mode user", "stop those that nobody talks to"),
    ("mngr limit fix-login --timeout off", "let it run for as long as it likes"),
)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.add_argument(
        "--idle-timeout", type=parse_limit, metavar="TIME", help="stop it when it was idle for so long; or `off`"
    )
    parser.add_argument(
        "--idle-mode", choices=(*IDLE_MODES, "disabled"), help="what idle means (see above; default: output)"
    )
    parser.add_argument(
        "--timeout", type=parse_limit, metavar="TIME", help="stop it when it ran for so long since its start; or `off`"
    )
    parser.add_argument(
        "--enforce", action="store_true", help="stop those that have reached a limit; what the watcher of an agent runs"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")


def run(args: Args, app: App) -> int:
    agents = targets.resolve(args, app)
    if args.enforce:
        return _enforce(args, app, agents)
    changes = args.idle_timeout is not None or args.idle_mode is not None or args.timeout is not None

    def act(agent: Agent) -> Limits:
        wanted = _wanted(args, agent)
        if not changes or args.dry_run:
            return wanted
        return limits.of(limiting.change(app.fleet, agent.id, wanted).limits)

    return targets.finish(
        app,
        agents,
        act,
        lambda agent, done: {"limits": done._asdict(), "dry_run": args.dry_run},
        lambda agent, done: f"{agent.name}: {done.describe()}",
    )


def _wanted(args: Args, agent: Agent) -> Limits:
    """Its limits with what the command line changes of them."""
    found = limits.of(agent.record.limits)
    if args.idle_timeout is not None:
        found = found._replace(idle_seconds=args.idle_timeout or None)
    if args.timeout is not None:
        found = found._replace(run_seconds=args.timeout or None)
    if args.idle_mode == "disabled":
        return found._replace(idle_seconds=None)
    if args.idle_mode is not None:
        if found.idle_seconds is None:
            raise UsageError(
                f"`{agent.name}` has no idle limit, so a mode makes no sense",
                hint=f"`mngr limit {agent.name} --idle-timeout 30m --idle-mode {args.idle_mode}`",
            )
        found = found._replace(idle_mode=args.idle_mode)
    return found


def _enforce(args: Args, app: App, agents: list[Agent]) -> int:
    def act(agent: Agent) -> Enforced:
        if args.dry_run:
            runs = agent.status.alive and agent.pane is not None
            return Enforced(agent, limiting.judge(app.fleet, agent) if runs else None)
        return limiting.enforce(app.fleet, agent.id)

    targets.outlive_terminal()
    verb = "would stop" if args.dry_run else "stopped"
    return targets.finish(
        app,
        agents,
        act,
        lambda agent, done: _row(args, done),
        lambda agent, done: _sentence(agent, done, verb),
    )


def _row(args: Args, done: Enforced) -> dict[str, Any]:
    """`seconds_left` is null for an agent that was stopped or does not run, else the time until it is due at the
    earliest."""
    stopped = done.verdict is not None and bool(done.verdict.reason)
    return {
        "stopped": stopped and not args.dry_run,
        "reason": done.verdict.reason if done.verdict else "",
        "seconds_left": done.verdict.seconds_left if done.verdict and not stopped else None,
        "saved": done.entry.id if done.entry else None,
        "dry_run": args.dry_run,
    }


def _sentence(agent: Agent, done: Enforced, verb: str) -> str:
    if done.verdict is None:
        return f"{agent.name} does not run"
    if not done.verdict.reason:
        return f"{agent.name}: no limit reached"
    kept = f"; its work is saved: `mngr saved restore {done.entry.id}`" if done.entry else ""
    return f"{verb} {agent.name}: {done.verdict.reason}{kept}"
