"""`mngr stop`: end agents' processes and keep everything else."""

from mngr.actions.agent import Agent
from mngr.actions.lifecycle import Stopped
from mngr.cli import targets
from mngr.cli.ages import parse_duration
from mngr.cli.app import App
from mngr.cli.parser import Args, BooleanPair, Parser

DESCRIPTION = (
    "End the agents' processes, background ones included. Work dirs, branches and events stay; `mngr start` goes on."
)
EXAMPLES = (
    ("mngr stop fix-login", "one"),
    ("mngr stop --all --graceful", "all, with ten seconds to finish"),
    ("mngr stop fix-login --archive", "and hide it from `mngr list`"),
)


def add_arguments(parser: Parser) -> None:
    targets.add_arguments(parser)
    parser.add_argument("--graceful", action=BooleanPair, default=False, help="send SIGTERM first and wait")
    parser.add_argument(
        "--timeout",
        type=parse_duration,
        default=10.0,
        metavar="TIME",
        help="how long `--graceful` waits (default: 10 s)",
    )
    parser.add_argument(
        "--session", action="append", metavar="NAME", help="the agent of this tmux session (can be repeated)"
    )
    parser.add_argument("--archive", action="store_true", help="put them away too, like `mngr archive`")
    parser.add_argument("--dry-run", action="store_true", help="say which would be stopped, and stop none")


def run(args: Args, app: App) -> int:
    def act(agent: Agent) -> Stopped:
        if args.dry_run:
            return Stopped(agent.record, changed=agent.state != "STOPPED")
        stopped = app.fleet.stop(agent, graceful_seconds=args.timeout if args.graceful else 0.0)
        if args.archive:
            app.fleet.archive(agent)
        return stopped

    args.agents += [targets.of_session(app, name) for name in args.session]
    targets.outlive_terminal()
    verb = "would stop" if args.dry_run else "stopped"

    def say(agent: Agent, done: Stopped) -> str:
        if done.outlived:
            app.out.warn(f"{agent.name}: processes {', '.join(map(str, done.outlived))} could not be ended")
        put_away = " and archived it" if args.archive and not args.dry_run else ""
        return (f"{verb} {agent.name}" if done.changed else f"{agent.name} is stopped already") + put_away

    return targets.finish(
        app,
        targets.resolve(args, app),
        act,
        lambda agent, done: {
            "stopped": done.changed,
            "outlived": list(done.outlived),
            "archived": args.archive and not args.dry_run,
            "dry_run": args.dry_run,
        },
        say,
        done="stopped",
    )
