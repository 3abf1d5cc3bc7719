"""The agents that a command line names or selects, and acting on each of them with one report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from mngr.actions.agent import Agent
from mngr.agents.state import STATES
from mngr.cli.app import App
from mngr.cli.output import Fields, as_mapping
from mngr.cli.parser import Args, Group, Parser
from mngr.errors import FAILED, PARTIAL, MngrError, NotFoundError, UsageError

if TYPE_CHECKING:
    N = TypeVar("N")
    R = TypeVar("R")
    T = TypeVar("T")
    Outcomes = list[tuple[Agent, T | MngrError]]


class DoneRow(NamedTuple):
    """What the row of every agent has that was acted on; the verb adds its own keys."""

    id: str
    name: str
    ok: bool


class FailedRow(NamedTuple):
    id: str
    name: str
    ok: bool
    error: str
    hint: str


def results(*rows: Any) -> list[Any]:
    """The documents of a verb that calls `finish`: an array of these rows, or failures."""
    return [[*((DoneRow, row) for row in rows), FailedRow]]


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "agents", nargs="*", metavar="AGENT", help="name, id or address; `-` reads them from stdin, one per line"
    )
    add_filters(parser)


def add_filters(parser: Parser) -> None:
    chosen = parser.add_argument_group("selection")
    chosen.option("--all, -a", "all agents")
    add_expressions(chosen, "agents")


def add_expressions(parser: Parser | Group, what: str) -> None:
    """`--include` and `--exclude`, for agents or events."""
    parser.option("--include EXPR ...", f"{what} that match the filter (can be repeated: all must match)")
    parser.option("--exclude EXPR ...", f"skip {what} that match the filter")


def add_on_error(parser: Parser) -> None:
    what = "whether to continue with the other agents after a failure"
    parser.option("--on-error", what, choices=("continue", "abort"), default="continue")


def resolve(args: Args, app: App, *, archived: bool = False) -> list[Agent]:
    """The agents that were named or selected, each once. Naming none is an error; a filter may match none. A filter
    selects archived agents only if `archived`; a name always does."""
    filtered = args.all or args.include or args.exclude
    if not args.agents and not filtered:
        raise UsageError(
            "no agent was named",
            hint="name one, read names from stdin with `-`, or select with `--all` or `--include 'state == \"DONE\"'`",
        )
    names = app.names(args.agents)
    if not filtered:
        return [*app.fleet.find_many(names)] if names else []
    named = [agent.id for agent in app.fleet.find_many(names)] if names else None
    agents = app.fleet.list(named).agents
    return [agent for agent in filter(chosen(args), agents) if names or archived or agent.record.archived_at is None]


def chosen(args: Args) -> Callable[[Agent], bool]:
    """Whether an agent passes `--include` and `--exclude`. Raises for an invalid filter, even without agents."""
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
    """Ask whether to act on the agents, of which `going` will be changed; the question counts their states."""
    from mngr.cli.amounts import amount

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
    """Finish the work even if this runs in the terminal of an agent that is ended by it."""
    import signal

    signal.signal(signal.SIGHUP, signal.SIG_IGN)


class NotDone(MngrError):
    """The command was interrupted before this was done."""


def each(
    agents: list[Agent],
    act: Callable[[Agent], T],
    report: Callable[[Outcomes[T]], R],
    *,
    seen: Callable[[Agent, T | MngrError], None] = lambda agent, result: None,
    done: str = "done",
) -> R:
    """Act on all agents in parallel, then report every result in order. `seen` gets each result as it comes. After
    Ctrl-C the unfinished agents are `NotDone`. An interrupt or an unexpected error is raised after the report, with a
    note of how many agents are `done`; the other agents are still acted on and reported."""

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
    missing = NotDone("interrupted" if isinstance(raised, KeyboardInterrupt) else f"{type(raised).__name__}: {raised}")
    outcomes = [(agent, missing if result is None else result) for agent, result in zip(agents, results, strict=True)]
    code = report(outcomes)
    if raised is None:
        return code
    raised.add_note(_count([result for _, result in outcomes], done))
    raise raised


def _count(results: list[T | MngrError], done: str) -> str:
    """`27 destroyed, 1 failed, 22 not done`."""
    left = sum(isinstance(result, NotDone) for result in results)
    failed = sum(isinstance(result, MngrError) for result in results) - left
    parts = [f"{len(results) - failed - left} {done}", f"{failed} failed" if failed else "", f"{left} not done"]
    return ", ".join(filter(None, parts))


def one_by_one(agents: list[Agent], act: Callable[[Agent], T], failed: Callable[[T | MngrError], bool]) -> Outcomes[T]:
    """Act on one agent after the other, and stop after the first that failed."""
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
        f"no agent has a session named `{session}`", hint="`mngr list --fields name,session` shows all sessions"
    )


def finish(
    app: App,
    agents: list[Agent],
    act: Callable[[Agent], T],
    say: Callable[[Agent, T], str],
    *,
    row: Callable[[T], Fields] | None = None,
    done: str = "done",
) -> int:
    """Act on each agent, report each result (on a terminal as it comes) and return the exit code of `conclude`. `row`
    makes the result for a script, if `act` does not return it."""
    shown: set[str] = set()

    def show(agent: Agent, result: T | MngrError) -> None:
        if agent.id not in shown:
            show_result(app, agent.name, result, lambda good: say(agent, good))
            shown.add(agent.id)

    def show_at_once(agent: Agent, result: T | MngrError) -> None:
        if app.out.human and app.out.columns is not None:
            try:
                show(agent, result)
                app.out.flush()
            except OSError:
                pass  # the terminal is gone; the remaining agents are still acted on

    def report(outcomes: Outcomes[T]) -> int:
        def as_row(agent: Agent, result: T | MngrError) -> dict[str, Any]:
            if isinstance(result, MngrError):
                return {"id": agent.id, **failed_row(agent.name, result)}
            return {
                "id": agent.id,
                "name": agent.name,
                "ok": True,
                **as_mapping(row(result) if row else cast("Fields", result)),
            }

        return conclude(app, outcomes, show, lambda: emit_rows(app, [as_row(*outcome) for outcome in outcomes]))

    return each(agents, act, report, seen=show_at_once, done=done)


def failed_row(name: str, error: MngrError) -> dict[str, Any]:
    return {"name": name, "ok": False, **error.as_json()}


def emit_rows(app: App, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows of different shapes: a template may name any key of any row."""
    app.out.emit_rows(rows, (), known=sorted({key for row in rows for key in row}))


def show_result(app: App, name: str, result: T | MngrError, say: Callable[[T], str]) -> None:
    """For a person: a line for what was done, a warning for what failed, nothing for what an interrupt prevented."""
    if not isinstance(result, MngrError):
        app.out.line(say(result))
    elif not isinstance(result, NotDone):
        app.out.warn(f"{name}: {result.explained()}")


def conclude(
    app: App,
    outcomes: Sequence[tuple[N, T | MngrError]],
    show: Callable[[N, T | MngrError], None],
    emit: Callable[[], None],
    *,
    good: Callable[[T], bool] = lambda result: True,
) -> int:
    """The one report on several targets: `show` each to a person, `emit` all to a script. Returns 0, 3 when only some
    failed, 1 when all did. The failure of a single target is raised."""
    failed = [result for _, result in outcomes if isinstance(result, MngrError) or not good(result)]
    if len(outcomes) == 1 and failed and isinstance(failed[0], MngrError):
        raise failed[0]
    if not app.out.human:
        emit()
    elif not outcomes:
        app.out.line("No agents found")
    for target, result in outcomes if app.out.human else ():
        show(target, result)
    return 0 if not failed else PARTIAL if len(failed) < len(outcomes) else FAILED
