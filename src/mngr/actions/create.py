"""Create an agent: its copy of the code, its tmux session, its process. A failure half-way removes what was made."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence

from mngr.actions.agent_process import start_process, tmux_options
from mngr.actions.site import Site
from mngr.agent import launch
from mngr.agent.record import AgentLife, AgentSpec, AgentWorkspace, Record, timestamp
from mngr.errors import MngrError, NotFoundError, UsageError
from mngr.named_tuples import NamedTuple
from mngr.names import check_name, new_id
from mngr.programs.kind import Kind
from mngr.settings.layers import Settings
from mngr.system import inside, process
from mngr.system.git import Git
from mngr.system.interrupts import held
from mngr.workspace import plan
from mngr.workspace.plan import MIRROR, NONE, RSYNC, SHARED, WORKTREE, Plan
from mngr.workspace.workspace import (
    TAKEN_HINT,
    Workspace,
    existing_branches,
    extra_path,
    refuse_taken,
    refuse_taken_branch,
    unclean_commit,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CreateRequest(NamedTuple):
    """What to create. `target` is where the workspace goes, by default our own directory. The
    `prompt` is the first message: a program that can begin with one does; to any other the caller sends it. `plan` and
    `agent_id` are decided by `plan_requests`, on the machine that has the source. An agent on another machine has an
    `origin`, the repository that it came from; its `uploads` are then in `carried`, a tar archive."""

    name: str
    kind: Kind
    rest: tuple[str, ...] = ()
    source: str = "."
    target: str | None = None
    transfer: str | None = None
    branch: str | None = None
    unclean: str | None = None
    env: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    project: str | None = None
    extra_paths: Mapping[str, str] = {}
    record: bool = False
    limits: Mapping[str, Any] = {}
    windows: Mapping[str, str] = {}
    uploads: tuple[tuple[str, str], ...] = ()
    provision: tuple[str, ...] = ()
    prompt: str | None = None
    permissions: str = ""
    allowed_commands: tuple[str, ...] = ()
    one_shot: bool = False
    sandbox: str = ""
    plan: Plan | None = None
    agent_id: str = ""
    shared_objects: bool = False
    origin: Mapping[str, str] = {}
    carried: bytes = b""

    @property
    def variables(self) -> dict[str, str]:
        """What is kept for the agent, at every start: the variables of its type, then those it was given."""
        return {**self.kind.env, **self.env}

    @property
    def command(self) -> str:
        return self.kind.command_line(self.rest)

    @property
    def command_shown(self) -> str:
        """The command with the values of variables hidden."""
        return with_hidden(self.command, self.env) or self.command

    @property
    def planned(self) -> Plan:
        assert self.plan is not None, "`plan_requests` comes first"
        return self.plan


def with_hidden(command: str, env: Mapping[str, str]) -> str:
    """The command with the values of these variables hidden; empty when it holds none."""
    if not env:
        return ""
    from mngr.secrets import mask

    shown = mask(command, env.values())
    return shown if shown != command else ""


def extra_paths(settings: Settings) -> dict[str, str]:
    """The files that git ignores and every copy of the code needs, each with how it gets there."""
    return {path: str(value.value) for path, value in settings.table("workspace.extra_paths").items()}


def plan_requests(site: Site, requests: Sequence[CreateRequest], default: str = WORKTREE) -> list[CreateRequest]:
    """The requests with an id and a workspace plan each, by the site that has the source. All have the same source,
    transfer and branch, so the repository is read once. Raises when an obstacle concerns all of them; changes
    nothing."""
    first = requests[0]
    names = [check_name(request.name) for request in requests]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise MngrError(f"two agents cannot both be called `{twice}`")
    source = site.path(first.source)
    default = MIRROR if first.sandbox else default
    plans = plan.decide(source, names, first.transfer, first.branch, first.unclean, default)
    if first.sandbox:
        plans = [plan.in_sandbox(planned) for planned in plans]
    if first.shared_objects:
        plans = [planned._replace(objects=SHARED) for planned in plans]
    if plans[0].transfer == RSYNC:
        process.require_program("rsync")
    return [
        request._replace(plan=planned, agent_id=request.agent_id or new_id("agent"))
        for request, planned in zip(requests, plans, strict=True)
    ]


def check(site: Site, requests: Sequence[CreateRequest]) -> None:
    """Raise when this site lacks what these agents need."""
    process.require_program("tmux")
    tmux_options(site)
    if any(request.sandbox for request in requests):
        from mngr.system import bubblewrap

        bubblewrap.check()
    for request in {(request.kind.name, request.prompt): request for request in requests}.values():
        check_program(site, request)


def create(
    site: Site, requests: Sequence[CreateRequest], progress: Callable[[int], None] = lambda done: None
) -> list[Record | MngrError]:
    """Create and start agents of the same source, transfer and branch, several in parallel. Return for each request, in
    order, its record once its process runs, or why it was not made: then nothing of it is left. Raise when an obstacle
    concerns all of them. An interrupt removes the agents that have not started yet. `progress` is called with the
    number of agents that are done."""
    check(site, requests)
    requests = list(requests) if requests[0].plan is not None else plan_requests(site, requests)
    requests = commit_uncommitted(requests)
    site.host.prepare()
    begun: set[str] = set()

    def make(pair: tuple[CreateRequest, Record | MngrError]) -> Record | MngrError:
        request, reserved = pair
        begun.add(request.agent_id)
        try:
            return reserved if isinstance(reserved, MngrError) else _make(site, request, reserved)
        except MngrError as error:
            return error
        except OSError as error:
            from mngr.system.files import disk_error

            if known := disk_error(error):
                return known
            raise

    try:
        pairs = list(zip(requests, reserve(site, requests), strict=True))
        if len(pairs) == 1:
            return [make(pairs[0])]
        from mngr.system import parallel

        count = itertools.count(1)
        results, raised = parallel.each(make, pairs, lambda at, result: progress(next(count)))
        if raised is not None:
            raise raised
        return [result for result in results if result is not None]
    except BaseException:
        with held():
            for one in requests:
                if one.agent_id not in begun:
                    site.store.forget(one.agent_id)
        raise


def commit_uncommitted(requests: Sequence[CreateRequest]) -> list[CreateRequest]:
    """The requests with the uncommitted changes of the source as one commit, at which they all begin. A plain copy has
    the changes anyway."""
    planned = requests[0].planned
    if not planned.include_unclean or planned.transfer == RSYNC:
        return list(requests)
    start = unclean_commit(Git.of_user(planned.source), planned)
    return [one._replace(plan=one.planned._replace(start=start, include_unclean=False)) for one in requests]


def _make(site: Site, request: CreateRequest, record: Record) -> Record:
    """Create and start a reserved agent. On any failure, Ctrl-C included, nothing is left."""
    workspace = None
    with site.store.agent_locked(record.id):
        try:
            if not site.store.exists(record.id):
                raise NotFoundError(f"`{record.name}` was destroyed in the meantime")
            workspace = Workspace(request.planned, record.workspace.work_dir)
            workspace.make(site.host, request.extra_paths)
            _write_inputs(site, request, record)
            return start_process(site, record, message_follows=request.prompt is not None)
        except BaseException:
            with held():
                undo_create(site, record.id, workspace)
            raise


def check_program(site: Site, request: CreateRequest) -> None:
    """Raise when what was asked for cannot work with this kind of agent: before anything is made."""
    kind = request.kind
    if request.one_shot and (request.prompt is None or not (kind.driver or kind.rules.get("one_shot"))):
        if request.prompt is None:
            raise UsageError("`--one-shot` needs a task", hint="say it with `--message` or `--message-file`")
        raise UsageError(
            f"an agent of type `{kind.name}` has no form that does one task and ends", hint="leave out `--one-shot`"
        )
    if (request.permissions or kind.permissions) and not kind.driver:
        raise UsageError(
            f"mngr does not know how to set the permissions of `{kind.name}`", hint="give its own options after `--`"
        )
    if not kind.driver:
        return
    from mngr.programs import driver, versions

    known = driver.find(kind.driver)
    if request.sandbox:
        from mngr.agent import sandbox

        given = request.permissions or kind.permissions
        sandbox.check_kind(kind.name, known, request.sandbox, given, root=os.geteuid() == 0)
    if request.prompt is not None:
        known.wording(request.prompt)
    word = kind.command.split(None, 1)[0] if kind.command.strip() else ""
    if "=" in word or process.quote(word.removeprefix("~")) != word.removeprefix("~"):
        return  # a shell line that only the shell can read
    path = process.find_program(os.path.expanduser(word), request.variables.get("PATH") or site.environ.get("PATH"))
    if path is None:
        install = known.program.install
        raise MngrError(
            f"`{word}` is not installed, or not on PATH",
            hint=f"`{install}`" if install else f"install it, or set `agent_types.{kind.name}.command`",
        )
    if os.path.basename(word) == known.program.name:
        versions.check(known.program, path, site.host.dir)


def _write_inputs(site: Site, request: CreateRequest, record: Record) -> None:
    """Give the agent its variables, uploaded files and prompt, and run the user's provision commands."""
    site.host.write(
        os.path.join(site.store.state_dir(record.id), "env"),
        launch.env_text(request.variables).encode("utf-8", "surrogateescape"),
    )
    if request.uploads or request.provision:
        from mngr.actions import provision

        with provision.unpacked(site, record, request.carried) as directory:
            provision.upload(record, [(os.path.join(directory, name), path) for name, path in request.uploads])
        provision.run(site, record, request.provision, request.variables.values())
    site.store.log(record.id, "created", name=record.name, kind=record.spec.kind, transfer=record.workspace.transfer)
    if request.prompt is not None:
        _put_prompt(site, record, request.prompt)


def _put_prompt(site: Site, record: Record, text: str) -> None:
    from mngr.actions import message
    from mngr.programs import driver

    known = driver.of(record)
    if known is not None and known.takes_prompt(record):
        text = message.clean(text)
        wording = known.wording(text)
        place = site.place(record)
        site.host.write(place.prompt_file, wording.sent.encode("utf-8", "surrogateescape"))
        site.store.log(record.id, "message_queued", message_id=new_id("msg"), text=text, **message.changes(wording))


def undo_create(site: Site, agent_id: str, workspace: Workspace | None) -> None:
    """Remove what was made so far. What cannot be removed stays visible in `list`, for `destroy`. The caller holds the
    agent's lock."""
    try:
        if workspace is not None:
            site.tmux.kill_agent_quietly(agent_id)
            site.host.signal(site.host.processes_of(agent_id, (), None), 9)
            workspace.unmake(site.host)
        site.store.forget(agent_id)
    except (MngrError, OSError):
        pass  # the error that led here is the one to tell


def reserve(site: Site, requests: Sequence[CreateRequest]) -> list[Record | MngrError]:
    """Take each name and the lowest free index, all in one step; from here on the agents are visible as STARTING. A
    request whose name, branch or path is taken gives an error; the others are reserved."""
    results: list[Record | MngrError] = []
    with site.store.locked():
        existing, _ = site.store.records()
        names = {other.name for other in existing}
        numbers = {other.life.number for other in existing}
        free = (number for number in range(len(existing) + len(requests)) if number not in numbers)
        myself, here = site.host.myself(), site.host.here()
        branches = existing_branches(requests[0].planned)
        for request in requests:
            try:
                if request.name in names:
                    raise NameTaken(request.name)
                refuse_taken_branch(request.planned, branches)
                work_dir = choose_work_dir(site, request)
                used = [
                    one for one in existing if os.path.realpath(one.workspace.work_dir) == os.path.realpath(work_dir)
                ]
                if request.target is not None and used:  # also by one that has not made it yet
                    raise MngrError(f"`{work_dir}` is the work directory of agent `{used[0].name}`", hint=TAKEN_HINT)
            except MngrError as error:
                results.append(error)
                continue
            record = _record(site, request, work_dir).changed(number=next(free), creator=myself, **here)
            site.host.make_dir(site.store.state_dir(record.id))
            site.store.write(record, durable=False)  # what is half made does not survive a power cut anyway
            existing.append(record)
            results.append(record)
    return results


def spec_of(request: CreateRequest) -> AgentSpec:
    """What the agent will be. Its project is empty if it has that of its source."""
    labels = dict(request.labels)
    return AgentSpec(
        kind=request.kind.name,
        command=request.command,
        command_shown=with_hidden(request.command, request.env),
        project=request.project or labels.pop("project", ""),
        labels=labels,
        windows=dict(request.windows),
        reports=request.kind.reports,
        recorded=request.record,
        limits=dict(request.limits),
        driver=request.kind.driver,
        permissions=request.permissions or request.kind.permissions,
        allowed_commands=request.allowed_commands,
        one_shot=request.one_shot,
        rules=dict(request.kind.rules),
        sandbox=request.sandbox,
    )


def _record(site: Site, request: CreateRequest, work_dir: str) -> Record:
    planned, spec = request.planned, spec_of(request)
    spec = spec._replace(project=spec.project or os.path.basename(planned.source.rstrip("/")) or "files")
    workspace = AgentWorkspace(
        work_dir=work_dir,
        transfer=planned.transfer,
        source=planned.source,
        repo=planned.repo.home if planned.repo else None,
        branch=planned.branch,
        created_branch=planned.create_branch,
        base_branch=planned.base_branch,
        base_commit=planned.start,
        origin=dict(request.origin),
        shared_paths=_shared_paths(request) if request.sandbox else (),
    )
    life = AgentLife(session=site.session(request.name), created_at=timestamp())
    return Record(request.agent_id, request.name, spec, workspace, life)


def _shared_paths(request: CreateRequest) -> tuple[str, ...]:
    """What the work dir will lead to in its source, and a sandbox will show. Raise if that would be elsewhere."""
    planned = request.planned
    objects = [f"{planned.repo.common_dir}/objects"] if planned.objects == SHARED and planned.repo else []
    links = [extra_path(planned.source, path) for path, how in request.extra_paths.items() if how == "share"]
    for path in links:
        inside.resolve(planned.source, path)
    return (*objects, *(os.path.join(planned.source, path) for path in links))


class NameTaken(MngrError):
    """An agent of this name exists."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"an agent named `{name}` exists already",
            hint=f"`mngr connect {name}` attaches to it, `--reuse` uses it, `mngr destroy {name}` removes it",
        )


def choose_work_dir(site: Site, request: CreateRequest) -> str:
    planned = request.planned
    if planned.transfer == NONE:
        if request.target is not None:
            raise MngrError(
                "`NAME:PATH` cannot be used with `--transfer none`: the agent works in the source directory"
            )
        return planned.source
    if request.target is not None:
        target = site.path(request.target)
        refuse_taken(target)
        return target
    return site.work_dir(planned.transfer, request.name, request.agent_id)
