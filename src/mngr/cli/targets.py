"""The agents that a command line names or selects, and acting on each of them with one report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from mngr.agent.state import STATES
from mngr.cli.app import App
from mngr.cli.output.output import as_mapping
from mngr.cli.parser.parser import Args, Group, Parser
from mngr.errors import FAILED, PARTIAL, MngrError, NotFoundError, UsageError
from mngr.fleet.agent import Agent
from mngr.named_tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from mngr.cli.output.output import Fields

    R = TypeVar("R")
    T = TypeVar("T")
    Target = TypeVar("Target")
    Outcomes = list[tuple[Agent, T | MngrError]]
    # What came of one target: the result for a script, and a line for a person.
    Done = tuple[Fields, str]


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
    parser.words("agents", "AGENT", "name, id or address; `-` reads them from stdin, one per line")
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
    agents = listed(app, named)
    if not (names or archived):
        agents = [agent for agent in agents if agent.record.life.archived_at is None]
    keep = chosen(args)
    return [agent for agent in agents if keep(agent.as_json())]


def listed(app: App, only: Collection[str] | None = None) -> list[Agent]:
    """All agents that could be seen, or those with these ids. Each thing that could not is a warning, and `conclude`
    then returns 3: the agents that were meant may be more."""
    listing = app.fleet.list(only)
    for error in listing.errors:
        app.out.warn(error.explained())
    app.incomplete = app.incomplete or bool(listing.errors)
    return listing.agents


def chosen(args: Args) -> Callable[[Mapping[str, Any]], bool]:
    """Whether the JSON form of an agent passes `--include` and `--exclude`. Raises for an invalid filter, even without
    agents."""
    if not (args.include or args.exclude):
        return lambda fields: True
    from mngr.cli import filters

    include, exclude = ([filters.parse(text) for text in texts] for texts in (args.include, args.exclude))
    return lambda fields: all(match(fields) for match in include) and not any(match(fields) for match in exclude)


def confirmed(app: App, verb: str, agents: list[Agent], going: int | None = None) -> bool:
    """Ask whether to act on the agents, of which `going` will be changed; the question counts their states."""
    from mngr.cli.output.amounts import amount

    states = [agent.state for agent in agents]
    counts = ", ".join(f"{states.count(state)} {state.lower()}" for state in STATES if state in states)
    what = amount(len(agents), "agent")
    if going not in (None, len(agents)):
        what = f"{going} of {what}"
    if app.confirm(f"{verb.capitalize()} {what} ({counts})?"):
        return True
    app.out.note("nothing was changed")
    return False


def say_outlived(processes: Sequence[int]) -> str:
    """The end of a sentence about an agent that was ended."""
    return f", but could not end processes {', '.join(map(str, processes))}" if processes else ""


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
            from mngr.system.files import disk_error

            if known := disk_error(error):
                return known
            raise

    if len(agents) <= 1:
        return report([(agent, tried(agent)) for agent in agents])
    from mngr.system import parallel

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


def one_by_one(
    agents: list[Agent], act: Callable[[Agent], T], good: Callable[[T], bool] = lambda result: True
) -> Outcomes[T]:
    """Act on one agent after the other, and stop after the first that failed."""
    done: Outcomes[T] = []
    for agent in agents:
        done += each([agent], act, list)
        if isinstance(result := done[-1][1], MngrError) or not good(result):
            break
    return done


def of_session(app: App, session: str) -> str:
    """The id of the agent with this tmux session."""
    for agent in listed(app):
        if agent.record.life.session == session:
            return agent.id
    raise NotFoundError(
        f"no agent has a session named `{session}`", hint="`mngr list --fields name,session` shows all sessions"
    )


def finish(app: App, agents: list[Agent], act: Callable[[Agent], Done], *, done: str = "done") -> int:
    """Act on each agent, report each result (on a terminal as it comes) and return the exit code."""
    shown: set[str] = set()

    def show_at_once(agent: Agent, result: Done | MngrError) -> None:
        if app.out.human and app.out.columns is not None:
            try:
                show_result(app, agent.name, result)
                app.out.flush()
                shown.add(agent.id)
            except OSError:
                pass  # the terminal is gone; the remaining agents are still acted on

    def concluded(outcomes: Outcomes[Done]) -> int:
        return report(app, [({"id": agent.id, "name": agent.name}, result) for agent, result in outcomes], shown)

    return each(agents, act, concluded, seen=show_at_once, done=done)


def report(
    app: App, outcomes: Sequence[tuple[Mapping[str, str], Done | MngrError]], shown: Collection[str] = ()
) -> int:
    """Report on targets and return the exit code. Each target is given by the keys that stand for it in its row; the
    last one is its name. Those that are `shown` are not shown to a person again."""

    def show(target: Mapping[str, str], result: Done | MngrError) -> None:
        if next(iter(target.values())) not in shown:
            show_result(app, list(target.values())[-1], result)

    def row(target: Mapping[str, str], result: Done | MngrError) -> dict[str, Any]:
        if isinstance(result, MngrError):
            return {**target, "ok": False, **result.as_json()}
        return {**target, "ok": True, **as_mapping(result[0])}

    rows = [row(*outcome) for outcome in outcomes]
    known = sorted({key for row in rows for key in row})  # a template may name any key of any row
    return conclude(app, outcomes, show, lambda: app.out.emit_rows(rows, (), known=known))


def show_result(app: App, name: str, result: Done | MngrError) -> None:
    """For a person: a line for what was done, a warning for what failed, nothing for what an interrupt prevented."""
    if not isinstance(result, MngrError):
        app.out.line(result[1])
    elif not isinstance(result, NotDone):
        app.out.warn(f"{name}: {result.explained()}")


def conclude(
    app: App,
    outcomes: Sequence[tuple[Target, T | MngrError]],
    show: Callable[[Target, T | MngrError], None],
    emit: Callable[[], None],
    *,
    good: Callable[[T], bool] = lambda result: True,
) -> int:
    """The one report on several targets: `show` each to a person, `emit` all to a script. Returns 0, 1 when all failed,
    3 when only some did or some could not be seen. The failure of a single target is raised."""
    failed = [result for _, result in outcomes if isinstance(result, MngrError) or not good(result)]
    if len(outcomes) == 1 and failed and isinstance(failed[0], MngrError):
        raise failed[0]
    if not app.out.human:
        emit()
    elif not outcomes:
        app.out.line("No agents found")
    for target, result in outcomes if app.out.human else ():
        show(target, result)
    if failed and len(failed) == len(outcomes):
        return FAILED
    return PARTIAL if failed or app.incomplete else 0
