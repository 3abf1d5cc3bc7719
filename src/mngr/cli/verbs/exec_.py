"""`mngr exec`: run a command in an agent's work dir and environment."""

from __future__ import annotations

from mngr.actions import execute
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.output.durations import parse_duration
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import FAILED, MngrError, UsageError
from mngr.fleet.agent import Agent
from mngr.named_tuples import TypedDict
from mngr.system.process import Result, join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NotRequired

Outcome = Result | MngrError

DESCRIPTION = "Run a command in the work dir of agents, with their variables, beside their own processes."
EXAMPLES = (
    ("mngr exec fix-login 'git status --short'", "one agent"),
    ("mngr exec fix-login -- pytest -q tests", "an exact argument list"),
    ("mngr exec --all 'git log --oneline -1'", "all agents, in parallel"),
)


class ExecRow(TypedDict):
    """`exit_code` is null, and `error` says why, if the command was not run."""

    agent: str
    success: bool
    exit_code: int | None
    stdout: str
    stderr: str
    error: NotRequired[str]


RESULTS = [{"results": [ExecRow]}]


def add_arguments(parser: Parser) -> None:
    parser.words("words", "AGENT... COMMAND", "agents (`-` reads them from stdin), then one shell command line")
    targets.add_filters(parser)
    parser.add_rest("COMMAND", "the command as an exact argument list")
    parser.option("--cwd DIR", "directory below the work dir")
    parser.option(
        "--timeout TIME", "kill the command after this time (default: 10m)", type=parse_duration, default=600.0
    )
    parser.option("--[no-]start", "start stopped agents first, or refuse them (default: leave them stopped)")
    targets.add_on_error(parser)
    parser.option("--stream", "show output as it comes (one agent only)")


def run(args: Args, app: App) -> int:
    args.agents, command = _split(args)
    agents = targets.resolve(args, app)
    if args.stream:
        return _stream(args, app, agents, command)

    def act(agent: Agent) -> Result:
        _prepare(args, agent)
        return agent.exec(command, timeout=args.timeout, cwd=args.cwd)

    if args.on_error == "abort":
        return _report(app, targets.one_by_one(agents, act, good=lambda result: result.ok))
    return targets.each(agents, act, lambda outcomes: _report(app, outcomes))


def _prepare(args: Args, agent: Agent) -> None:
    if args.start is None or agent.status.alive:
        return
    if not args.start:
        raise MngrError(
            f"`{agent.name}` is {agent.state}", hint=f"start it first: `mngr exec {agent.name} --start ...`"
        )
    agent.start()


def _split(args: Args) -> tuple[list[str], str]:
    """Agents first, the command last, unless it comes after `--`."""
    if args.rest:
        return args.words, join(args.rest) if len(args.rest) > 1 else args.rest[0]
    filtered = args.all or args.include or args.exclude
    if not args.words or (len(args.words) == 1 and not filtered):
        raise UsageError("an agent and a command are required", hint="`mngr exec NAME 'git status'`")
    return args.words[:-1], args.words[-1]


def _stream(args: Args, app: App, agents: list[Agent], command: str) -> int:
    if len(agents) != 1:
        raise UsageError(f"`--stream` takes one agent, not {len(agents)}")
    (agent,) = agents
    _prepare(args, agent)
    app.stdout.flush()
    if agent.site.is_local:
        code = execute.attached(agent.site, agent.id, command, timeout=args.timeout, cwd=args.cwd)
        return FAILED if code else 0
    code = 0
    for stream, data in agent.exec_stream(command, timeout=args.timeout, cwd=args.cwd):
        if stream == "exit":
            code = int(data)
        else:
            target = app.stdout if stream == "out" else app.stderr
            target.buffer.write(data)
            target.flush()
    return FAILED if code else 0


def _report(app: App, outcomes: list[tuple[Agent, Outcome]]) -> int:
    def show(agent: Agent, result: Outcome) -> None:
        if isinstance(result, MngrError):
            targets.show_result(app, agent.name, result)
        else:
            _show(app, agent, result, single=len(outcomes) == 1)

    def emit() -> None:
        rows = [_row(agent.name, result) for agent, result in outcomes]
        app.out.emit_rows(rows, (), envelope={"results": rows}, known=tuple(ExecRow.__annotations__)[:-1])

    return targets.conclude(app, outcomes, show, emit, good=lambda result: result.ok)


def _row(name: str, result: Outcome) -> ExecRow:
    if isinstance(result, MngrError):
        return ExecRow(agent=name, success=False, exit_code=None, stdout="", stderr="", error=result.message)
    return ExecRow(
        agent=name,
        success=result.ok,
        exit_code=result.exit_code,
        stdout=result.stdout.decode(errors="replace"),
        stderr=result.stderr.decode(errors="replace"),
    )


def _show(app: App, agent: Agent, result: Result, single: bool) -> None:
    if not single:
        app.out.line(f"== {agent.name}" + ("" if result.ok else f" (exit code {result.exit_code})"), style="bold")
    app.out.raw(result.stdout)
    if result.stderr:
        app.stderr.buffer.write(result.stderr)
        app.stderr.flush()
    if single and not result.ok:
        app.out.note(f"exit code {result.exit_code}")
