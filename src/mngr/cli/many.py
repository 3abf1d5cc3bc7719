"""`mngr create` for many agents at once: their names, a live line while they are made, and a report on each.

JSON is a list. Each row is that of one agent and `ok`; a row with `ok` false has `name`, `error` and `hint`.
"""

from __future__ import annotations

from collections.abc import Callable

from mngr import parallel
from mngr.actions import create_many, reuse
from mngr.actions.agent import Agent
from mngr.actions.create import Request
from mngr.actions.reuse import Expected
from mngr.agents.record import Record
from mngr.cli import created
from mngr.cli.app import App
from mngr.cli.commands import create as single
from mngr.cli.parser import Args, given
from mngr.cli.terminal import is_terminal
from mngr.errors import FAILED, PARTIAL, MngrError, UsageError
from mngr.names import check_name
from mngr.records import TYPE_CHECKING
from mngr.workspaces import make
from mngr.workspaces.plan import RSYNC, Plan

if TYPE_CHECKING:
    from typing import Any

MOST = 1000
Outcome = tuple[Record, bool] | MngrError


def names(args: Args, app: App, said: list[str], make_up: Callable[[], str]) -> list[str]:
    """All names, each once. Raises when they are not clear."""
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


def run(args: Args, app: App, names: list[str], request: Callable[[str], Request], expected: Expected | None) -> int:
    """Make those that do not exist, report on each, connect to none."""
    agents = reuse.existing(app.fleet, names) if expected is not None else {}
    first = request(names[0]) if len(agents) < len(names) else None
    message = None if args.dry_run else single.first_message(args, app)
    requests = [first._replace(name=name, prompt=message) for name in names if first is not None and name not in agents]
    if args.dry_run:
        return _dry_run(app, names, requests, agents, expected)
    outcomes: dict[str, Outcome] = {}
    if requests:
        with _Live(app, len(requests)) as live:
            made = create_many.create_many(app.fleet, requests, live.show)
        for one, result in zip(requests, made, strict=True):
            outcomes[one.name] = result if isinstance(result, MngrError) else (result, False)
    for name, agent in agents.items():
        outcomes[name] = _reused(app, agent, expected)
    raised = None
    if message is not None:
        outcomes, raised = _deliver(app, outcomes, message)
    code = _finish(app, [(name, outcomes[name]) for name in names])
    if raised is not None:
        raise raised
    if args.connect and "connect" in given(args) and code != FAILED:
        app.out.note(f"not connected, since there are {len(names)}: `mngr connect {names[0]}` attaches to one")
    return code


def dry_run_reuse(app: App, name: str, expected: Expected) -> int:
    """What `--reuse` would do with an agent that exists."""
    reuse.check(app.fleet, reuse.existing(app.fleet, (name,))[name], expected)
    app.out.emit_object(
        {"name": name, "reused": True, "dry_run": True}, human=f"would use {name}, which exists already"
    )
    return 0


def _dry_run(
    app: App, names: list[str], requests: list[Request], agents: dict[str, Agent], expected: Expected | None
) -> int:
    rows: list[dict[str, Any]] = []
    failures = 0
    plans = create_many.plans(app.fleet, requests) if requests else []
    taken = set(app.fleet.store.names())
    making = {request.name: (request, plan) for request, plan in zip(requests, plans, strict=True)}
    for name in names:
        try:
            if name not in making:
                reuse.check(app.fleet, agents[name], expected or Expected())
                rows.append({"name": name, "ok": True, "reused": True, "dry_run": True})
                app.out.line(f"would use {name}, which exists already")
                continue
            request, plan = making[name]
            _check(app, request, plan, taken)
            command = request.kind.command_line(request.rest)
            rows.append({**created.dry_run_row(request, plan, command), "ok": True})
            app.out.line(created.dry_run_text(request, plan, command))
        except MngrError as error:
            failures += 1
            rows.append(_failed(app, name, error))
    return _end(app, rows, failures)


def _check(app: App, request: Request, plan: Plan, taken: set[str]) -> None:
    if request.name in taken:
        raise MngrError(f"an agent named `{request.name}` exists already", hint="`--reuse` makes do with it")
    if plan.create_branch and plan.transfer != RSYNC:
        make.refuse_taken_branch(app.fleet.host, plan)


def _deliver(app: App, outcomes: dict[str, Outcome], message: str) -> tuple[dict[str, Outcome], BaseException | None]:
    """The message to each, in parallel; one that did not get it counts as failed, and runs. Also what is to be raised
    after the report."""

    def deliver(outcome: Outcome) -> Outcome:
        if isinstance(outcome, MngrError):
            return outcome
        try:
            single.deliver(app, outcome[0], message, new=not outcome[1])
        except MngrError as error:
            return error
        return outcome

    results, raised = parallel.each(deliver, list(outcomes.values()))
    left = MngrError("it runs, but did not get the message", hint="`mngr message` sends it")
    return {name: result or left for name, result in zip(outcomes, results, strict=True)}, raised


def _reused(app: App, agent: Agent, expected: Expected | None) -> Outcome:
    try:
        return reuse.use(app.fleet, agent, expected or Expected()), True
    except MngrError as error:
        return error


def _finish(app: App, outcomes: list[tuple[str, Outcome]]) -> int:
    failures = [outcome for _, outcome in outcomes if isinstance(outcome, MngrError)]
    if len(outcomes) == 1 and failures:
        raise failures[0]
    rows = []
    for name, outcome in outcomes:
        if isinstance(outcome, MngrError):
            rows.append(_failed(app, name, outcome))
        else:
            rows.append({**created.row(*outcome), "ok": True})
            app.out.line(created.line(*outcome))
    return _end(app, rows, len(failures))


def _failed(app: App, name: str, error: MngrError) -> dict[str, Any]:
    if app.out.human:
        details = "".join(f"\n  {line}" for line in error.details.split("\n")) if error.details else ""
        app.out.warn(f"{name}: {error.message}{details}" + (f"\n  hint: {error.hint}" if error.hint else ""))
    return {"name": name, "ok": False, "error": error.message, "hint": error.hint}


def _end(app: App, rows: list[dict[str, Any]], failures: int) -> int:
    if not app.out.human:
        app.out.emit_rows(rows, (), known=sorted({key for row in rows for key in row}))
    if not failures:
        return 0
    return PARTIAL if failures < len(rows) else FAILED


class _Live:
    """One line on the terminal that says how far it is; nothing where nobody looks."""

    def __init__(self, app: App, total: int) -> None:
        self._stream = app.stderr
        self._total = total
        self._shown = app.out.human and not app.out.quiet and is_terminal(app.stderr)

    def show(self, done: int) -> None:
        if self._shown:
            self._stream.write(f"\r\x1b[Kcreating agents: {done} of {self._total}")
            self._stream.flush()

    def __enter__(self) -> _Live:
        self.show(0)
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
