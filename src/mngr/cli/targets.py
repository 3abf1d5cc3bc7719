"""Agents named on a command line, by name, on standard input or by a filter, and doing something to each of them."""

from __future__ import annotations

from collections.abc import Callable

from mngr.actions import find
from mngr.actions.agent import Agent
from mngr.agents.state import STATES
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.errors import FAILED, PARTIAL, MngrError, NotFoundError, UsageError
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, TypeVar

    R = TypeVar("R")
    T = TypeVar("T")
    Outcomes = list[tuple[Agent, T | MngrError]]


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "agents", nargs="*", metavar="AGENT", help="name, id or address; `-` reads them from stdin, one a line"
    )
    add_filters(parser)


def add_filters(parser: Parser) -> None:
    chosen = parser.add_argument_group("choosing agents")
    chosen.add_argument("--all", "-a", action="store_true", help="all agents")
    chosen.add_argument(
        "--include",
        action="append",
        metavar="EXPR",
        help="agents that match the filter (can be repeated: all must match)",
    )
    chosen.add_argument(
        "--exclude", action="append", metavar="EXPR", help="not the agents that match the filter (can be repeated)"
    )


def resolve(args: Args, app: App, *, archived: bool = False) -> list[Agent]:
    """The agents meant, each once. None named at all is a mistake; a filter that matches none is not. An archived
    agent has to be named, unless the verb is about those."""
    names = list(args.agents)
    if "-" in names:
        names = [word for name in names for word in (app.read_stdin().split() if name == "-" else [name])]
        if not names and not (args.include or args.exclude or args.all):
            return []
    filtered = args.all or args.include or args.exclude
    if not names and not filtered:
        raise UsageError(
            "no agent was named",
            hint="name one, `-` to read names from stdin, or choose with `--include 'state == \"DONE\"'` or `--all`",
        )
    if names:
        agents = find.many(app.fleet, names)
    else:
        seen = app.fleet.list().agents
        agents = [agent for agent in seen if archived or agent.record.archived_at is None]
    return list(filter(chosen(args), agents))


def chosen(args: Args) -> Callable[[Agent], bool]:
    """Whether `--include` and `--exclude` let an agent through. Raises for one that cannot be read, agents or not."""
    if not (args.include or args.exclude):
        return lambda agent: True
    from mngr.actions import filters

    include = [filters.parse(text) for text in args.include]
    exclude = [filters.parse(text) for text in args.exclude]

    def keep(agent: Agent) -> bool:
        fields = agent.as_json()
        return all(matches(fields) for matches in include) and not any(matches(fields) for matches in exclude)

    return keep


def confirmed(app: App, verb: str, agents: list[Agent], going: int | None = None) -> bool:
    """Ask whether to do this to the agents, or to as many of them as are `going`, and say in which states they are."""
    from mngr.cli.text import amount

    states = [agent.state for agent in agents]
    counts = ", ".join(f"{states.count(state)} {state.lower()}" for state in STATES if state in states)
    what = amount(len(agents), "agent")
    if going not in (None, len(agents)):
        what = f"{going} of {what}"
    if app.confirm(f"{verb.capitalize()} {what} ({counts})?"):
        return True
    app.out.note("nothing was changed")
    return False


def outlive_terminal() -> None:
    """An agent may be ended from inside its own terminal: the work is finished although that goes away."""
    import signal

    signal.signal(signal.SIGHUP, signal.SIG_IGN)


class Left(MngrError):
    """Not done: the command was interrupted."""


def each(
    agents: list[Agent],
    act: Callable[[Agent], T],
    report: Callable[[Outcomes[T]], R],
    *,
    seen: Callable[[Agent, T | MngrError], None] = lambda agent, result: None,
    done: str = "done",
) -> R:
    """Do it to all of them, in parallel, and report what came of each, in order. `seen` gets each as it comes. After
    Ctrl-C those that were not finished are `Left`; once that is reported, the signal is raised, and says how many were
    `done`. So is an error that nobody expected, which keeps none of the others from being done and reported."""

    def tried(agent: Agent) -> T | MngrError:
        try:
            return act(agent)
        except MngrError as error:
            return error
        except OSError as error:
            from mngr.files import disk_error

            if known := disk_error(error):
                return known
            raise

    if len(agents) <= 1:
        return report([(agent, tried(agent)) for agent in agents])
    from mngr import parallel

    results, raised = parallel.each(tried, agents, lambda at, result: seen(agents[at], result))
    missing = Left("interrupted" if isinstance(raised, KeyboardInterrupt) else f"{type(raised).__name__}: {raised}")
    outcomes = [(agent, missing if result is None else result) for agent, result in zip(agents, results, strict=True)]
    code = report(outcomes)
    if raised is None:
        return code
    raised.add_note(_count([result for _, result in outcomes], done))
    raise raised


def _count(results: list[T | MngrError], done: str) -> str:
    """`27 destroyed, 1 failed, 22 left`."""
    left = sum(isinstance(result, Left) for result in results)
    failed = sum(isinstance(result, MngrError) for result in results) - left
    parts = [f"{len(results) - failed - left} {done}", f"{failed} failed" if failed else "", f"{left} left"]
    return ", ".join(filter(None, parts))


def one_by_one(agents: list[Agent], act: Callable[[Agent], T], failed: Callable[[T | MngrError], bool]) -> Outcomes[T]:
    """Do it to one after the other, and to none after the first that failed."""
    done: Outcomes[T] = []
    for agent in agents:
        done += each([agent], act, list)
        if failed(done[-1][1]):
            break
    return done


def of_session(app: App, session: str) -> str:
    """The id of the agent with this tmux session."""
    for agent in app.fleet.list().agents:
        if agent.record.session == session:
            return agent.id
    raise NotFoundError(
        f"no agent has a session called `{session}`", hint="`mngr list --fields name,session` shows them"
    )


def finish(
    app: App,
    agents: list[Agent],
    act: Callable[[Agent], T],
    row: Callable[[Agent, T], dict[str, Any]],
    say: Callable[[Agent, T], str],
    *,
    done: str = "done",
) -> int:
    """Do it to each target, report each, on a terminal as it happens, and give the exit code: 3 when only some failed.
    One target's failure is the error itself."""
    told: set[str] = set()

    def tell(agent: Agent, result: T | MngrError) -> None:
        if agent.id in told or not app.out.human:
            return
        if not isinstance(result, MngrError):
            app.out.line(say(agent, result))
        elif not isinstance(result, Left):
            app.out.warn(f"{agent.name}: {_in_words(result)}")
        told.add(agent.id)

    def tell_at_once(agent: Agent, result: T | MngrError) -> None:
        if app.out.columns is not None:
            try:
                tell(agent, result)
                app.out.flush()
            except OSError:
                pass  # the terminal is gone, and the others are to be done nevertheless

    def report(outcomes: Outcomes[T]) -> int:
        failures = [result for _, result in outcomes if isinstance(result, MngrError)]
        if len(outcomes) == 1 and failures:
            raise failures[0]
        for agent, result in outcomes:
            tell(agent, result)
        if not app.out.human:
            rows = [_row(agent, result, row) for agent, result in outcomes]
            app.out.emit_rows(rows, (), known=sorted({key for item in rows for key in item}))
        elif not outcomes:
            app.out.line("No agents found")
        if not failures:
            return 0
        return PARTIAL if len(failures) < len(outcomes) else FAILED

    return each(agents, act, report, seen=tell_at_once, done=done)


def _row(agent: Agent, result: T | MngrError, row: Callable[[Agent, T], dict[str, Any]]) -> dict[str, Any]:
    if isinstance(result, MngrError):
        return {"id": agent.id, "name": agent.name, "ok": False, "error": result.message, "hint": result.hint}
    return {"id": agent.id, "name": agent.name, "ok": True, **row(agent, result)}


def _in_words(error: MngrError) -> str:
    """The error with what the other program said and the hint, indented."""
    more = [*error.details.split("\n"), f"hint: {error.hint}" if error.hint else ""]
    return "\n".join([error.message, *(f"  {line}" for line in more if line)])
