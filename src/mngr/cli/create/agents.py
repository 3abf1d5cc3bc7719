"""Make the agents that `create` asks for, or use those that exist; send the first message, and report on each.

The JSON output for one agent is an object. For several it is a list with a row for each agent; a row has `ok`, and if
that is false also `name`, `error` and `hint`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from mngr.actions.create import CreateRequest, NameTaken
from mngr.actions.site import Site
from mngr.cli.app import App
from mngr.cli.output.terminal import is_terminal
from mngr.cli.parser.option_values import read_text
from mngr.cli.parser.parser import Args
from mngr.errors import MngrError, UsageError
from mngr.fleet.agent import Agent
from mngr.named_tuples import NamedTuple
from mngr.transfer import create as creating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.cli.targets import Done, Outcomes


class NewAgent(NamedTuple):
    """What was made, and where."""

    agent_id: str
    name: str
    host_id: str
    host_name: str
    work_dir: str
    branch: str | None
    session: str


class Reused(NamedTuple):
    reused: bool


class WouldCreate(NamedTuple):
    name: str
    type: str
    command: str
    transfer: str
    source: str
    branch: str | None
    base_branch: str | None
    base_commit: str | None
    dry_run: bool


class WouldReuse(NamedTuple):
    name: str
    reused: bool
    dry_run: bool


def existing(site: Site, names: Sequence[str]) -> dict[str, str]:
    """The ids of the agents that have one of these names, by name."""
    from mngr.actions import reuse

    return {name: record.id for name, record in site.run(reuse.existing, names).items()} if names else {}


def make(
    app: App, site: Site, wanted: dict[str, CreateRequest | str], expected: Mapping[str, str] | None
) -> tuple[dict[str, Agent | MngrError], set[str]]:
    """Create the agents, or use those that exist, if they are as `expected`. `wanted` has for each name a request, or
    the id of the agent. Return what came of each name, and the names of those that existed. Raise the error of a single
    agent, and one that concerns all."""
    requests = [request for request in wanted.values() if not isinstance(request, str)]
    with _progress_line(app, len(requests)) as show:
        results = creating.create(site, requests, show)
    used = {name: agent_id for name, agent_id in wanted.items() if isinstance(agent_id, str)}
    made: dict[str, Agent | MngrError] = {}
    for request, result in zip(requests, results, strict=True):
        made[request.name] = result if isinstance(result, MngrError) else Agent(site, result)
    if expected is not None:
        from mngr.actions import reuse

        # Somebody may have created one in the meantime.
        used |= existing(site, [name for name, result in made.items() if isinstance(result, NameTaken)])
        for name, agent_id in used.items():
            try:
                made[name] = Agent(site, site.run(reuse.use, agent_id, expected))
            except MngrError as error:
                made[name] = error
    first = next(iter(made.values()))
    if isinstance(first, MngrError) and all(one is first for one in made.values()):
        raise first
    return {name: made[name] for name in wanted}, set(used)


@contextmanager
def _progress_line(app: App, count: int) -> Iterator[Callable[[int], None]]:
    """A line on the terminal that says how many agents of several are done, and goes at the end."""
    if count < 2 or not (app.out.human and not app.out.quiet and is_terminal(app.stderr)):
        yield lambda done: None
        return

    def show(text: str) -> None:
        app.stderr.write(f"\r\x1b[K{text}")
        app.stderr.flush()

    try:
        show(f"creating agents: 0 of {count}")
        yield lambda done: show(f"creating agents: {done} of {count}")
    finally:
        show("")


def finish(
    app: App, made: Mapping[str, Agent | MngrError], reused: Collection[str], message: str | None, *, many: bool
) -> int:
    """Send the message to each agent and report on all. An agent that did not get it counts as failed, and runs."""

    def tell(agent: Agent) -> Done:
        old, branch = agent.name in reused, agent.record.workspace.branch
        if message is not None:
            deliver(agent, message, new=not old)
        text = f"{'using existing agent' if old else 'created'} {agent.name}"
        text += "" if agent.site.is_local else f" at {agent.site.name}"
        text += f" on branch {branch}" if branch and not old else ""
        return {**new_agent(agent)._asdict(), "reused": old}, text

    agents = [result for result in made.values() if not isinstance(result, MngrError)]
    if not many:
        row, text = tell(agents[0])
        app.out.emit_object(row, human=text)
        return 0
    from mngr.cli import targets

    def report(outcomes: Outcomes[Done]) -> int:
        left = MngrError("the agent runs, but did not get the message", hint="`mngr message` sends it")
        told = {agent.name: left if isinstance(done, targets.NotDone) else done for agent, done in outcomes}
        return targets.report(
            app, [({"name": name}, one if isinstance(one, MngrError) else told[name]) for name, one in made.items()]
        )

    return targets.each(agents, tell, report, done="delivered")


def dry_run(
    app: App, site: Site, wanted: dict[str, CreateRequest | str], expected: Mapping[str, str] | None, *, many: bool
) -> int:
    """Report what `make` would do, and change nothing."""

    def would(name: str, request: CreateRequest | str) -> Done:
        if not isinstance(request, str):
            return _would_create(creating.plan(site, request))
        if expected is None:
            raise NameTaken(name)
        from mngr.actions import reuse

        site.run(reuse.check, request, expected)
        return WouldReuse(name, True, True), f"would use existing agent {name}"

    def tried(name: str, request: CreateRequest | str) -> Done | MngrError:
        try:
            return would(name, request)
        except MngrError as error:
            return error

    if not many:
        row, text = would(*next(iter(wanted.items())))
        app.out.emit_object(row, human=text)
        return 0
    from mngr.cli import targets

    return targets.report(app, [({"name": name}, tried(name, request)) for name, request in wanted.items()])


def _would_create(request: CreateRequest) -> Done:
    plan = request.planned
    row = WouldCreate(
        name=request.name,
        type=request.kind.name,
        command=request.command_shown,
        transfer=plan.transfer,
        source=plan.source,
        branch=plan.branch,
        base_branch=plan.base_branch,
        base_commit=plan.start,
        dry_run=True,
    )
    branch = f", branch {plan.branch} from {(plan.start or '')[:10]}" if plan.branch else ""
    text = f"would create {request.name}: {plan.transfer} of {plan.source}{branch}\nrunning: {request.command_shown}"
    return row, text


def new_agent(agent: Agent) -> NewAgent:
    record, host = agent.record, agent.site.name
    return NewAgent(
        record.id, record.name, host, host, record.workspace.work_dir, record.workspace.branch, record.life.session
    )


def first_message(args: Args, app: App) -> str | None:
    """The text of `--message`, `--message-file` or `--edit-message`."""
    if args.message is not None and args.message_file is not None:
        raise UsageError("`--message` and `--message-file` cannot be used together")
    text: str | None = args.message if args.message_file is None else read_text(args.message_file, app)
    if args.edit_message:
        from mngr.cli.editor import edit_text

        text = edit_text(app, text or "", "The agent's first message. Lines that begin with # are left out.")
        if not text:
            raise MngrError("the message is empty, so no agent was created")
    if text is not None:
        from mngr.actions.message import clean

        clean(text)
    return text


def deliver(agent: Agent, message: str, *, new: bool = True) -> None:
    """Deliver the first message, unless a `new` agent was started with it."""
    try:
        agent.first_message(message) if new else agent.message(message)
    except MngrError as error:
        raise MngrError(
            f"`{agent.name}` runs, but its first message was not delivered: {error.message}",
            hint=error.hint,
            exit_code=error.exit_code,
        ) from None
