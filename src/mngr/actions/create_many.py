"""Make many agents of one source with one command: one plan, one look at the repository, work in parallel.

What fails for one agent is taken back for that one; the others stay. An interrupt takes back those not yet started.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from mngr import process
from mngr.actions import create, find
from mngr.actions.agent import Agent
from mngr.actions.create import Request, Wanted
from mngr.actions.fleet import Fleet
from mngr.agents.kinds import kind
from mngr.agents.record import Record
from mngr.errors import MngrError, NotFoundError
from mngr.files import disk_error
from mngr.interrupts import held, others_ended
from mngr.names import check_name, new_id
from mngr.records import TYPE_CHECKING
from mngr.tools.tmux import Session
from mngr.workspaces import many, plan
from mngr.workspaces.make import Workspace
from mngr.workspaces.many import Workspaces
from mngr.workspaces.plan import Plan, Wish

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

# Sessions started by one call of tmux: enough to save calls, few enough that early ones need not wait for late ones.
_GROUP = 20
# What is ready does not wait longer than this for company.
_PATIENCE = 0.3


def plans(fleet: Fleet, requests: Sequence[Request]) -> list[Plan]:
    """One look at the repository for all: requests have the same source, transfer and branch. Raises what stands in the
    way of all."""
    first = requests[0]
    names = [check_name(request.name) for request in requests]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise MngrError(f"two agents cannot both be called `{twice}`")
    source = os.path.abspath(os.path.join(fleet.cwd, first.source))
    process.require_program("tmux")
    wish = Wish(first.name, source, first.transfer, first.branch, first.unclean)
    return plan.for_names(plan.decide(fleet.host, wish), wish, names)


def create_many(
    fleet: Fleet, requests: Sequence[Request], progress: Callable[[int], None] = lambda done: None
) -> list[Record | MngrError]:
    """Make and start all of them: for each, in order, its record or why it was not made. `progress` hears how many are
    through."""
    commands = [request.kind.command_line(request.rest) for request in requests]
    for request in {(request.kind.name, request.prompt): request for request in requests}.values():
        create.check_program(fleet, request)
    planned = plans(fleet, requests)
    options = create.tmux_options(fleet)
    fleet.host.prepare()
    planned = many.with_unclean(fleet.host, planned)
    wanted = [
        Wanted(request, plan, command, new_id("agent"))
        for request, plan, command in zip(requests, planned, commands, strict=True)
    ]
    try:
        results = create.reserve(fleet, wanted)
    except BaseException:
        with held():
            for one in wanted:
                fleet.store.forget(one.agent_id)
        raise
    agents = [
        _Agent(one, record) for one, record in zip(wanted, results, strict=True) if not isinstance(record, MngrError)
    ]
    if agents:
        _Making(fleet, agents, options, progress).run()
    by_id = {agent.wanted.agent_id: agent.result for agent in agents}
    return [by_id.get(one.agent_id, result) for one, result in zip(wanted, results, strict=True)]


def create_each(fleet: Fleet, wishes: Mapping[str, Mapping[str, Any]]) -> list[Agent | MngrError]:
    """Make agents with arguments of their own, those of the same source, transfer and branch together."""
    groups: dict[object, list[Request]] = {}
    made: dict[str, Record | MngrError] = {}
    for name, wish in wishes.items():
        try:
            request = _request(fleet, name, **wish)
        except MngrError as error:
            made[name] = error
            continue
        same = (request.source, request.transfer, request.branch, request.unclean, tuple(request.extra_paths.items()))
        groups.setdefault(same, []).append(request)
    for group in groups.values():
        names = [request.name for request in group]
        try:
            made.update(zip(names, create_many(fleet, group), strict=True))
        except MngrError as error:
            made.update(dict.fromkeys(names, error))
    ids = [result.id for result in made.values() if not isinstance(result, MngrError)]
    seen = {agent.name: agent for agent in find.listing(fleet, ids).agents}
    gone = NotFoundError("it was destroyed as soon as it was made")
    return [result if isinstance(result := made[name], MngrError) else seen.get(name, gone) for name in wishes]


def _request(
    fleet: Fleet,
    name: str,
    *,
    type: str | None = None,
    command: str | None = None,
    args: Sequence[str] = (),
    **more: Any,
) -> Request:
    chosen = "command" if command is not None else type or kind.default_name(fleet.settings)
    rest = (command,) if command is not None else tuple(args)
    return Request(name=name, kind=kind.resolve(chosen, fleet.settings), rest=rest, **more)


class _Agent:
    """One of them on its way."""

    def __init__(self, wanted: Wanted, record: Record) -> None:
        self.wanted = wanted
        self.place = Workspace(wanted.planned, record.work_dir)
        self.result: Record | MngrError = record
        self.record = record
        self.lock: AbstractContextManager[bool] | None = None
        self.session: Session | None = None
        self.started_at = ""
        self.through = False

    def release(self) -> None:
        if self.lock is not None:
            lock, self.lock = self.lock, None
            lock.__exit__(None, None, None)


class _Making:
    def __init__(
        self, fleet: Fleet, agents: list[_Agent], options: create.TmuxOptions, progress: Callable[[int], None]
    ) -> None:
        self._fleet = fleet
        self._agents = agents
        self._options = options
        self._progress = progress
        self._late: tuple[_Agent, BaseException] | None = None
        extra_paths = agents[0].wanted.request.extra_paths
        self._workspaces = Workspaces(fleet.host, [agent.place for agent in agents], extra_paths)

    def run(self) -> None:
        try:
            self._workspaces.begin()
            self._fill_and_start()
        except BaseException:
            with held():
                self._take_back([agent for agent in self._agents if not agent.through])
            raise

    def _fill_and_start(self) -> None:
        pool = ThreadPoolExecutor(max_workers=2 * (os.cpu_count() or 1))
        try:
            with held():  # the pool would not know a thread that was started in the moment of a signal
                running = {pool.submit(self._fill, agent): agent for agent in self._agents}
            ready: list[_Agent] = []
            while running:
                done = wait(running, timeout=_PATIENCE if ready else None, return_when=FIRST_COMPLETED).done
                for future in done:
                    agent = running.pop(future)
                    if self._came_through(agent, future):
                        ready.append(agent)
                group = [agent for agent in ready if agent.place.directory != self._workspaces.source_of_copies]
                if len(group) >= _GROUP or not done:
                    self._start(group)
                    ready = [agent for agent in ready if not agent.through]
            self._start(ready)
            if self._late is not None:
                self._fail(*self._late)
        except BaseException:
            with held(), others_ended():
                pool.shutdown(wait=True, cancel_futures=True)
            raise
        pool.shutdown()

    def _fill(self, agent: _Agent) -> tuple[str, Session]:
        """In a thread: everything up to the start. The lock is held until the agent runs, or is taken back."""
        lock = self._fleet.store.agent_locked(agent.record.id)
        lock.__enter__()
        agent.lock = lock
        self._fleet.store.read(agent.record.id)  # raises when somebody destroyed it in the meantime
        self._workspaces.fill(agent.place)
        create.furnish(self._fleet, agent.wanted.request, agent.record)
        return create.prepare_start(self._fleet, agent.record, message_follows=_has_message(agent))

    def _came_through(self, agent: _Agent, future: Future[tuple[str, Session]]) -> bool:
        error = future.exception()
        if error is None:
            agent.started_at, agent.session = future.result()
            return True
        if agent.place.directory == self._workspaces.source_of_copies:
            self._late = (agent, error)  # it stays until nothing is copied from it any more
        else:
            self._fail(agent, error)
        return False

    def _fail(self, agent: _Agent, error: BaseException) -> None:
        known = error if isinstance(error, MngrError) else disk_error(error) if isinstance(error, OSError) else None
        if known is None:
            raise error
        with held():
            agent.result = known
            self._take_back([agent])
            agent.through = True
        self._tell()

    def _start(self, group: list[_Agent]) -> None:
        """Start these sessions in one call; those that it did not start, one by one."""
        sessions = [agent.session for agent in group if agent.session is not None]
        if not sessions:
            return
        with held():  # sessions that run and records that say so come together
            left_over: set[str] = set()
            if not self._fleet.tmux.start_many(sessions, **self._options):
                left_over = {agent.record.id for agent in group} - {pane.agent_id for pane in self._fleet.tmux.panes()}
            for agent in group:
                if agent.record.id not in left_over:
                    fields = (agent.record.id, agent.record.session, agent.started_at)
                    self._arrived(agent, create.note_start(self._fleet, *fields))
        for agent in group:
            try:
                if agent.record.id in left_over:
                    self._arrived(
                        agent, create.start_process(self._fleet, agent.record, message_follows=_has_message(agent))
                    )
                else:
                    create.after_start(self._fleet, agent.record)
            except (MngrError, OSError) as error:
                self._fail(agent, error)
        self._tell()

    def _arrived(self, agent: _Agent, record: Record) -> None:
        agent.result = agent.record = record
        agent.through = True
        agent.release()

    def _tell(self) -> None:
        self._progress(sum(agent.through for agent in self._agents))

    def _take_back(self, agents: list[_Agent]) -> None:
        """Remove what was made of these so far. What cannot be removed stays visible in `list`, for `destroy`."""
        if not agents:
            return
        started = {agent.record.id for agent in agents if agent.session is not None}
        try:
            for agent_id in started:
                self._fleet.tmux.kill_agent_quietly(agent_id)
                self._fleet.host.signal(self._fleet.host.processes_of(agent_id, (), None), 9)
            self._workspaces.unmake([agent.place for agent in agents])
            for agent in agents:
                self._fleet.store.forget(agent.record.id)
        except (MngrError, OSError):
            pass  # the error that led here is the one to tell
        for agent in agents:
            agent.release()


def _has_message(agent: _Agent) -> bool:
    return agent.wanted.request.prompt is not None
