"""`mngr create` for many agents: their names, a progress line and a report on each.

The JSON output is a list with a row for each agent. A row has `ok`; if that is false, also `name`, `error` and `hint`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from mngr import parallel
from mngr.actions import bulk_create, create, reuse
from mngr.actions.agent import Agent
from mngr.actions.create import CreateRequest
from mngr.actions.site import Site
from mngr.agents.record import Record
from mngr.cli import create_report, targets
from mngr.cli.app import App
from mngr.cli.commands import create as single
from mngr.cli.output import Fields, as_mapping
from mngr.cli.parser import Args, given
from mngr.cli.terminal import is_terminal
from mngr.errors import FAILED, MngrError, UsageError
from mngr.names import check_name
from mngr.workspaces.workspace import refuse_taken_branch

if TYPE_CHECKING:
    T = TypeVar("T")
    # What is reported about an agent: a row for programs and a line for people.
    Shown = tuple[Fields, str] | MngrError

MOST = 1000
# An agent, and whether it existed before.
Outcome = tuple[Agent, bool] | MngrError


def names(args: Args, app: App, said: list[str], make_up: Callable[[], str]) -> list[str]:
    """All names, each once. Raises when the options contradict each other."""
    if args.address == "-":
        if args.message_file == "-":
            raise UsageError("standard input cannot hold both the names and the message")
        said = [*said, *app.stdin.read().split()]
        if not said and args.count is None:
            raise UsageError("standard input holds no names")
    if args.count is not None:
        if not 1 <= args.count <= MOST:
            raise UsageError(f"`--count` is between 1 and {MOST}, not {args.count}")
        if len(said) > 1:
            raise UsageError("`--count` numbers one name, and there are several", hint="leave out `--count`")
        if said:
            said = [f"{said[0]}-{number}" for number in range(1, args.count + 1)]
        else:
            found: dict[str, None] = {}
            while len(found) < args.count:
                found[make_up()] = None
            said = list(found)
    for name in said:
        check_name(name)
    return list(dict.fromkeys(said))


def run(
    args: Args,
    app: App,
    site: Site,
    names: list[str],
    request: Callable[[str], CreateRequest],
    expected: Mapping[str, str] | None,
) -> int:
    """Create the agents that do not exist, report on each, connect to none."""
    agents = site.run(reuse.existing, names) if expected is not None else {}
    new = [name for name in names if name not in agents]
    first = request(names[0]) if new else None
    message = None if args.dry_run else single.first_message(args, app)
    requests = [first._replace(name=name, prompt=message) for name in new] if first is not None else []
    if args.dry_run:
        return _dry_run(app, site, names, requests, agents, expected or {})
    outcomes: dict[str, Outcome] = {}
    if requests:
        with _ProgressLine(app, len(requests)) as line:
            made = bulk_create.create_many_on(site, requests, line.show)
        for name, result in zip(new, made, strict=True):
            outcomes[name] = result if isinstance(result, MngrError) else (Agent(site, result), False)

    def use(record: Record) -> Outcome:
        return Agent(site, site.run(reuse.use, record.id, expected or {})), True

    for name, record in agents.items():
        outcomes[name] = _result(lambda: use(record))  # noqa: B023
    raised = None
    if message is not None:
        outcomes, raised = _deliver(outcomes, message)
    code = _report(app, {name: _shown(outcomes[name]) for name in names})
    if raised is not None:
        raise raised
    if args.connect and "connect" in given(args) and code != FAILED:
        app.out.note(f"not connected, since there are {len(names)}: `mngr connect {names[0]}` attaches to one")
    return code


def dry_run_reuse(app: App, site: Site, name: str, expected: Mapping[str, str]) -> int:
    """What `--reuse` would do with an agent that exists."""
    row, text = _would_use(site, site.run(reuse.existing, (name,))[name], expected)
    app.out.emit_object(row, human=text)
    return 0


def _dry_run(
    app: App,
    site: Site,
    names: list[str],
    requests: list[CreateRequest],
    agents: Mapping[str, Record],
    expected: Mapping[str, str],
) -> int:
    planned = create.with_plans(site, requests) if requests else []
    taken = set(site.run(reuse.existing, names))
    wanted = {request.name: request for request in planned}

    def would(name: str) -> tuple[Fields, str]:
        return _would_create(site, wanted[name], taken) if name in wanted else _would_use(site, agents[name], expected)

    return _report(app, {name: _result(lambda: would(name)) for name in names})  # noqa: B023


def _would_use(site: Site, agent: Record, expected: Mapping[str, str]) -> tuple[Fields, str]:
    site.run(reuse.check, agent.id, expected)
    return create_report.WouldReuse(agent.name, True, True), f"would use existing agent {agent.name}"


def _would_create(site: Site, request: CreateRequest, taken: set[str]) -> tuple[Fields, str]:
    plan = request.planned
    if request.name in taken:
        raise MngrError(f"an agent named `{request.name}` exists already", hint="`--reuse` uses it")
    if site.is_near:
        refuse_taken_branch(plan)
    return create_report.dry_run_row(request), create_report.dry_run_text(request)


def _deliver(outcomes: dict[str, Outcome], message: str) -> tuple[dict[str, Outcome], BaseException | None]:
    """Send the message to each agent, in parallel. An agent that did not get it counts as failed, and runs. Also
    returns the error to raise after the report."""

    def deliver(outcome: Outcome) -> Outcome:
        if not isinstance(outcome, MngrError):
            single.deliver(outcome[0], message, new=not outcome[1])
        return outcome

    results, raised = parallel.each(lambda outcome: _result(lambda: deliver(outcome)), list(outcomes.values()))
    left = MngrError("the agent runs, but did not get the message", hint="`mngr message` sends it")
    return {name: result or left for name, result in zip(outcomes, results, strict=True)}, raised


def _result(act: Callable[[], T]) -> T | MngrError:
    try:
        return act()
    except MngrError as error:
        return error


def _shown(outcome: Outcome) -> Shown:
    return outcome if isinstance(outcome, MngrError) else (create_report.row(*outcome), create_report.line(*outcome))


def _report(app: App, results: Mapping[str, Shown]) -> int:
    def show(name: str, result: Shown) -> None:
        targets.show_result(app, name, result, lambda made: made[1])

    def row(name: str, result: Shown) -> dict[str, Any]:
        return (
            targets.failed_row(name, result) if isinstance(result, MngrError) else {**as_mapping(result[0]), "ok": True}
        )

    outcomes = list(results.items())
    return targets.conclude(app, outcomes, show, lambda: targets.emit_rows(app, [row(*one) for one in outcomes]))


class _ProgressLine:
    """One line on the terminal with the number of agents that are done; nothing without a terminal."""

    def __init__(self, app: App, total: int) -> None:
        self._stream = app.stderr
        self._total = total
        self._shown = app.out.human and not app.out.quiet and is_terminal(app.stderr)

    def show(self, done: int) -> None:
        if self._shown:
            self._stream.write(f"\r\x1b[Kcreating agents: {done} of {self._total}")
            self._stream.flush()

    def __enter__(self) -> _ProgressLine:
        self.show(0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
