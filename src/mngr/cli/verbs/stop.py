"""`mngr stop`: end the processes of agents and keep everything else."""

from __future__ import annotations

from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.output.durations import parse_duration
from mngr.cli.parser.parser import Args, Parser
from mngr.fleet.agent import Agent
from mngr.named_tuples import NamedTuple
from mngr.system import interrupts

DESCRIPTION = (
    "End the processes of agents, including background processes. Work dirs, branches and events stay; `mngr start` "
    "resumes the agents."
)
EXAMPLES = (
    ("mngr stop fix-login", "one agent"),
    ("mngr stop --all --graceful", "all agents, with ten seconds to finish"),
    ("mngr stop fix-login --archive", "stop it and hide it from `mngr list`"),
)


class StopResult(NamedTuple):
    """`outlived`: ids of processes that could not be ended."""

    stopped: bool
    outlived: tuple[int, ...]
    archived: bool
    dry_run: bool


RESULTS = targets.results(StopResult)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.option("--[no-]graceful", "send SIGTERM first and wait", default=False)
    parser.option("--timeout TIME", "how long `--graceful` waits (default: 10 s)", type=parse_duration, default=10.0)
    parser.option("--session NAME ...", "the agent with this tmux session")
    parser.option("--archive", "also archive the agents, like `mngr archive`")
    parser.add_dry_run()


def run(args: Args, app: App) -> int:
    archive = args.archive and not args.dry_run

    def act(agent: Agent) -> targets.Done:
        if args.dry_run:
            changed, outlived = agent.state != "STOPPED", tuple[int, ...]()
        else:
            _, changed, outlived = agent.stop(graceful_seconds=args.timeout if args.graceful else 0.0)
        if archive:
            agent.archive()
        text = f"{'would stop' if args.dry_run else 'stopped'} {agent.name}"
        text = (text if changed else f"{agent.name} is already stopped") + (" and archived it" if archive else "")
        return StopResult(changed, outlived, archive, args.dry_run), text + targets.say_outlived(outlived)

    args.agents += [targets.of_session(app, name) for name in args.session]
    interrupts.outlive_terminal()
    return targets.finish(app, targets.resolve(args, app), act, done="stopped")
