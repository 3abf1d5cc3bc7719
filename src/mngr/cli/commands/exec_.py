"""`mngr exec`: run a command in an agent's work dir and environment."""

from mngr.actions import execute
from mngr.actions.agent import Agent
from mngr.cli import targets
from mngr.cli.ages import parse_duration
from mngr.cli.app import App
from mngr.cli.parser import Args, BooleanPair, Parser
from mngr.errors import FAILED, PARTIAL, MngrError, UsageError
from mngr.process import Result, join

DESCRIPTION = "Run a command where agents work: in the work dir, with the agent's variables, beside its own process."
EXAMPLES = (
    ("mngr exec fix-login 'git status --short'", "one agent"),
    ("mngr exec fix-login -- pytest -q tests", "an exact argument list"),
    ("mngr exec --all 'git log --oneline -1'", "all of them, in parallel"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="AGENT... COMMAND",
        help="agents (`-` reads them from stdin), then one shell command line",
    )
    targets.add_filters(parser)
    parser.add_rest("COMMAND", "the command as an exact argument list")
    parser.add_argument("--cwd", metavar="DIR", help="a directory below the work dir")
    parser.add_argument(
        "--timeout", type=parse_duration, default=600.0, metavar="TIME", help="kill it after this long (default: 10m)"
    )
    parser.add_argument(
        "--start",
        action=BooleanPair,
        help="start agents that do not run, or refuse them (default: run the command beside them as they are)",
    )
    parser.add_argument(
        "--on-error",
        choices=("continue", "abort"),
        default="continue",
        help="after a failure continue with the others, or stop there",
    )
    parser.add_argument("--stream", action="store_true", help="show output as it comes; one agent only")


def run(args: Args, app: App) -> int:
    names, command = _split(args)
    args.agents = names
    agents = targets.resolve(args, app)
    if args.stream:
        for agent in agents:
            _prepare(args, app, agent)
        return _stream(args, app, agents, command)

    def act(agent: Agent) -> Result:
        _prepare(args, app, agent)
        return app.fleet.exec(agent, command, timeout=args.timeout, cwd=args.cwd)

    if args.on_error == "abort":
        return _report(app, targets.one_by_one(agents, act, lambda done: isinstance(done, MngrError) or not done.ok))
    return targets.each(agents, act, lambda outcomes: _report(app, outcomes))


def _prepare(args: Args, app: App, agent: Agent) -> None:
    if args.start is None or agent.status.alive:
        return
    if not args.start:
        raise MngrError(
            f"`{agent.name}` is {agent.state}", hint=f"`mngr exec {agent.name} --start ...` starts it first"
        )
    app.fleet.start(agent)


def _split(args: Args) -> tuple[list[str], str]:
    """Agents first, the command last, unless it comes after `--`."""
    if args.rest:
        return args.words, join(args.rest) if len(args.rest) > 1 else args.rest[0]
    filtered = args.all or args.include or args.exclude
    if not args.words or (len(args.words) == 1 and not filtered):
        raise UsageError("an agent and a command are needed", hint="`mngr exec NAME 'git status'`")
    return args.words[:-1], args.words[-1]


def _stream(args: Args, app: App, agents: list[Agent], command: str) -> int:
    if len(agents) != 1:
        raise UsageError("`--stream` works with one agent")
    app.stdout.flush()
    return FAILED if execute.attached(app.fleet, agents[0], command, timeout=args.timeout, cwd=args.cwd) else 0


def _report(app: App, outcomes: "list[tuple[Agent, Result | MngrError]]") -> int:
    single = len(outcomes) == 1
    if single and isinstance(outcomes[0][1], MngrError):
        raise outcomes[0][1]
    rows = []
    good = 0
    for agent, result in outcomes:
        if isinstance(result, MngrError):
            rows.append(
                {
                    "agent": agent.name,
                    "success": False,
                    "exit_code": None,
                    "stdout": "",
                    "stderr": "",
                    "error": result.message,
                }
            )
            if app.out.human and not isinstance(result, targets.Left):
                app.out.warn(f"{agent.name}: {result.message}")
            continue
        good += result.ok
        output, errors = (data.decode(errors="replace") for data in (result.stdout, result.stderr))
        rows.append(
            {
                "agent": agent.name,
                "success": result.ok,
                "exit_code": result.exit_code,
                "stdout": output,
                "stderr": errors,
            }
        )
        if app.out.human:
            _show(app, agent, result, single)
    if not app.out.human:
        app.out.emit_rows(
            rows, (), envelope={"results": rows}, known=("agent", "success", "exit_code", "stdout", "stderr")
        )
    elif not rows:
        app.out.line("No agents found")
    return 0 if good == len(rows) else FAILED if single or good == 0 else PARTIAL


def _show(app: App, agent: Agent, result: Result, single: bool) -> None:
    if not single:
        app.out.line(f"== {agent.name}" + ("" if result.ok else f" (exit code {result.exit_code})"), style="bold")
    app.out.raw(result.stdout)
    if result.stderr:
        app.stderr.buffer.write(result.stderr)
        app.stderr.flush()
    if single and not result.ok:
        app.out.note(f"exit code {result.exit_code}")
