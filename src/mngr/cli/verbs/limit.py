"""`mngr limit`: the maximum run time and idle time of agents."""

from __future__ import annotations

from mngr.agent import limits
from mngr.agent.limits import Limits
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.parser.option_values import IDLE_MODES, parse_limit
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import UsageError
from mngr.fleet.agent import Agent
from mngr.named_tuples import NamedTuple
from mngr.system import interrupts

DESCRIPTION = (
    "Show or set the limits of agents. An agent that reaches a limit is stopped: work that exists only in its work dir "
    "is saved first (`mngr saved`), the work dir stays, `mngr list` gives the reason, and `mngr start` runs the agent "
    "again with its full time. New limits apply at once, also to running agents.\n\n"
    "Idle modes: `output`: the terminal shows nothing new. `user`: nobody sent a message or typed in an attached "
    "terminal. `agent`: the agent itself reports that it is not working (WAITING or BLOCKED); for types that cannot "
    "report this, the same as `output`."
)
EXAMPLES = (
    ("mngr limit fix-login", "show its limits"),
    ("mngr limit fix-login --idle-timeout 30m", "stop it after 30 minutes without output"),
    ("mngr limit --all --idle-timeout 2h --idle-mode user", "stop agents that nobody talks to"),
    ("mngr limit fix-login --timeout off", "remove its time limit"),
)


class LimitsRow(NamedTuple):
    limits: Limits
    dry_run: bool


class EnforcedRow(NamedTuple):
    """`seconds_left`: the earliest time until a limit is reached; null for an agent that is stopped."""

    stopped: bool
    reason: str
    seconds_left: int | None
    saved: str | None
    dry_run: bool


RESULTS = targets.results(LimitsRow, EnforcedRow)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.option("--idle-timeout TIME", "maximum idle time, e.g. `30m`, or `off`", type=parse_limit)
    parser.option("--idle-mode", "what counts as idle, see above (default: output)", choices=(*IDLE_MODES, "disabled"))
    parser.option("--timeout TIME", "maximum run time since the start, e.g. `4h`, or `off`", type=parse_limit)
    parser.option("--enforce", "stop agents that have reached a limit (run by the agent's watcher)")
    parser.add_dry_run()


def run(args: Args, app: App) -> int:
    agents = targets.resolve(args, app)
    if args.enforce:
        interrupts.outlive_terminal()
        return targets.finish(app, agents, lambda agent: _enforce(agent, args.dry_run))
    changes = args.idle_timeout is not None or args.idle_mode is not None or args.timeout is not None

    def act(agent: Agent) -> targets.Done:
        wanted = _wanted(args, agent)
        if changes and not args.dry_run:
            wanted = limits.of(agent.limit(wanted).record.spec.limits)
        _, failed, why = ("", "", "") if changes else agent.explain_limits().partition("; not enforced")
        return LimitsRow(wanted, args.dry_run), f"{agent.name}: {wanted.describe()}{failed}{why}"

    return targets.finish(app, agents, act)


def _wanted(args: Args, agent: Agent) -> Limits:
    """The agent's limits with the changes of the command line."""
    found = limits.of(agent.record.spec.limits)
    if args.idle_timeout is not None:
        found = found._replace(idle_seconds=args.idle_timeout or None)
    if args.timeout is not None:
        found = found._replace(run_seconds=args.timeout or None)
    if args.idle_mode == "disabled":
        return found._replace(idle_seconds=None)
    if args.idle_mode is not None:
        if found.idle_seconds is None:
            raise UsageError(
                f"`{agent.name}` has no idle limit, so `--idle-mode` has no effect",
                hint=f"`mngr limit {agent.name} --idle-timeout 30m --idle-mode {args.idle_mode}`",
            )
        found = found._replace(idle_mode=args.idle_mode)
    return found


def _enforce(agent: Agent, dry_run: bool) -> targets.Done:
    _, verdict, entry = agent.enforce_limits(dry_run=dry_run)
    reason = verdict.reason if verdict else ""
    left = verdict.seconds_left if verdict and not reason else None
    row = EnforcedRow(bool(reason) and not dry_run, reason, left, entry.id if entry else None, dry_run)
    if verdict is None:
        return row, f"{agent.name} is not running"
    if not reason:
        return row, f"{agent.name}: no limit reached"
    saved = f"; its work is saved: `mngr saved restore {entry.id}`" if entry else ""
    return row, f"{'would stop' if dry_run else 'stopped'} {agent.name}: {reason}{saved}"
