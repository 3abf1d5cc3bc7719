"""Agents named on a command line, by name, on standard input or by a filter, and doing something to each of them."""

from __future__ import annotations

from collections.abc import Callable

from mngr.actions import find
from mngr.actions.agent import Agent
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.errors import FAILED, PARTIAL, MngrError, NotFoundError, UsageError
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")


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


def outlive_terminal() -> None:
    """An agent may be ended from inside its own terminal: the work is finished although that goes away."""
    import signal

    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def each(agents: list[Agent], act: Callable[[Agent], T]) -> list[tuple[Agent, T | MngrError]]:
    """Do it to all of them, in parallel, and return what came of each, in order."""

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
        return [(agent, tried(agent)) for agent in agents]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=min(16, len(agents))) as pool:
        return list(zip(agents, pool.map(tried, agents), strict=True))


def one_by_one(
    agents: list[Agent], act: Callable[[Agent], T], failed: Callable[[T | MngrError], bool]
) -> list[tuple[Agent, T | MngrError]]:
    """Do it to one after the other, and to none after the first that failed."""
    done: list[tuple[Agent, T | MngrError]] = []
    for agent in agents:
        done += each([agent], act)
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
    outcomes: list[tuple[Agent, T | MngrError]],
    row: Callable[[Agent, T], dict[str, Any]],
    say: Callable[[Agent, T], str],
) -> int:
    """Report each target and give the exit code: 3 when only some failed. One target's failure is the error itself."""
    failures = [(agent, result) for agent, result in outcomes if isinstance(result, MngrError)]
    if len(outcomes) == 1 and failures:
        raise failures[0][1]
    rows = []
    for agent, result in outcomes:
        if isinstance(result, MngrError):
            rows.append({"id": agent.id, "name": agent.name, "ok": False, "error": result.message, "hint": result.hint})
            if app.out.human:
                app.out.warn(f"{agent.name}: {_in_words(result)}")
        else:
            rows.append({"id": agent.id, "name": agent.name, "ok": True, **row(agent, result)})
            app.out.line(say(agent, result))
    if not app.out.human:
        app.out.emit_rows(rows, (), known=sorted({key for item in rows for key in item}))
    elif not outcomes:
        app.out.line("No agents found")
    if not failures:
        return 0
    return PARTIAL if len(failures) < len(outcomes) else FAILED


def _in_words(error: MngrError) -> str:
    """The error with what the other program said and the hint, indented."""
    more = [*error.details.split("\n"), f"hint: {error.hint}" if error.hint else ""]
    return "\n".join([error.message, *(f"  {line}" for line in more if line)])
