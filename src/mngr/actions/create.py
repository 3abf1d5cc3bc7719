"""Make an agent: its copy of the code, its tmux session, its process. What fails half-way is taken back."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from mngr import process
from mngr.actions.fleet import Fleet
from mngr.agents import launch
from mngr.agents.kinds.kind import Kind
from mngr.agents.record import Record, timestamp
from mngr.errors import MngrError, UsageError
from mngr.interrupts import held
from mngr.names import check_name, new_id
from mngr.records import TYPE_CHECKING, NamedTuple
from mngr.tools.tmux import Session, SessionExists
from mngr.workspaces import make, plan
from mngr.workspaces.make import Workspace
from mngr.workspaces.plan import NONE, RSYNC, WORKTREE, Plan, Wish

if TYPE_CHECKING:
    from typing import Any, TypedDict

    from mngr.config import Settings

    class TmuxOptions(TypedDict):
        history_lines: int
        config: str | None


class Request(NamedTuple):
    """Everything that `create` may be told. `target` is where the workspace goes, by default our own directory. The
    `prompt` is its first message: a program that can begin with one does, to any other it is for the caller to send."""

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

    @property
    def variables(self) -> dict[str, str]:
        """What is kept for the agent, at every start: the variables of its type, then those it was given."""
        return {**self.kind.env, **self.env}


def extra_paths(settings: Settings) -> dict[str, str]:
    """The files that git ignores and every copy of the code needs, each with how it gets there."""
    return {path: str(value.value) for path, value in settings.table("workspace.extra_paths").items()}


class Wanted(NamedTuple):
    """A request with what was decided for it."""

    request: Request
    planned: Plan
    command: str
    agent_id: str


def preview(fleet: Fleet, request: Request) -> tuple[Plan, str]:
    """What would be made: the workspace and the command. Raises what `create` would raise before making anything."""
    check_name(request.name)
    source = os.path.abspath(os.path.join(fleet.cwd, request.source))
    process.require_program("tmux")
    check_program(fleet, request)
    planned = plan.decide(fleet.host, Wish(request.name, source, request.transfer, request.branch, request.unclean))
    if planned.transfer == "rsync":
        process.require_program("rsync")
    if planned.create_branch and (blocked := make.why_no_branch(fleet.host, planned)):
        raise blocked
    _work_dir(fleet, request, planned, new_id("agent"))
    return planned, request.kind.command_line(request.rest)


def create(fleet: Fleet, request: Request, progress: Callable[[str], None] = lambda text: None) -> Record:
    """Make and start the agent. Returns when its process runs. On any failure, Ctrl-C included, nothing is left."""
    check_name(request.name)
    command = request.kind.command_line(request.rest)
    source = os.path.abspath(os.path.join(fleet.cwd, request.source))
    process.require_program("tmux")
    tmux_options(fleet)
    check_program(fleet, request)
    planned = plan.decide(fleet.host, Wish(request.name, source, request.transfer, request.branch, request.unclean))
    fleet.host.prepare()
    agent_id = new_id("agent")
    workspace = None
    with fleet.store.agent_locked(agent_id):
        try:
            (reserved,) = reserve(fleet, [Wanted(request, planned, command, agent_id)])
            if isinstance(reserved, MngrError):
                raise reserved
            record = reserved
            workspace = Workspace(planned, record.work_dir)
            progress(f"copying the code ({planned.transfer})")
            base = make.make(fleet.host, workspace, request.extra_paths)
            if base != record.base_commit:
                record = fleet.store.change(agent_id, base_commit=base)
            furnish(fleet, request, record)
            progress("starting")
            return start_process(fleet, record, message_follows=request.prompt is not None)
        except BaseException:
            with held():
                take_back(fleet, agent_id, workspace)
            raise


def check_program(fleet: Fleet, request: Request) -> None:
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
    from mngr.agents.kinds import driver, versions

    known = driver.find(kind.driver)
    if request.prompt is not None:
        known.wording(request.prompt)
    word = kind.command.split(None, 1)[0] if kind.command.strip() else ""
    if "=" in word or process.quote(word.removeprefix("~")) != word.removeprefix("~"):
        return  # a shell line that only the shell can read
    path = process.find_program(os.path.expanduser(word), request.variables.get("PATH") or fleet.environ.get("PATH"))
    if path is None:
        install = known.program.install
        raise MngrError(
            f"`{word}` is not installed, or not on PATH",
            hint=f"`{install}`" if install else f"install it, or set `agent_types.{kind.name}.command`",
        )
    if os.path.basename(word) == known.program.name:
        versions.check(known.program, path, fleet.host.dir)


def furnish(fleet: Fleet, request: Request, record: Record) -> None:
    """What an agent gets beside its copy of the code, before it runs: variables, files, the user's own preparations."""
    fleet.host.write(
        os.path.join(fleet.store.state_dir(record.id), "env"),
        launch.env_text(request.variables).encode("utf-8", "surrogateescape"),
    )
    if request.uploads or request.provision:
        from mngr.actions import provision

        provision.upload(fleet, record, request.uploads)
        provision.run(fleet, record, request.provision, request.variables.values())
    fleet.store.log(record.id, "created", name=record.name, kind=record.kind, transfer=record.transfer)
    if request.prompt is not None:
        _put_prompt(fleet, record, request.prompt)


def _put_prompt(fleet: Fleet, record: Record, text: str) -> None:
    from mngr.actions import message
    from mngr.agents.kinds import driver

    known = driver.of(record)
    if known is not None and known.takes_prompt(record):
        text = message.clean(text)
        wording = known.wording(text)
        place = fleet.place(record)
        fleet.host.write(place.prompt_file, wording.sent.encode("utf-8", "surrogateescape"))
        fleet.store.log(record.id, "message_queued", message_id=new_id("msg"), text=text, **message.changes(wording))


def take_back(fleet: Fleet, agent_id: str, workspace: Workspace | None) -> None:
    """Remove what was made so far. What cannot be removed stays visible in `list`, for `destroy`. The caller holds the
    agent's lock."""
    try:
        if workspace is not None:
            fleet.tmux.kill_agent_quietly(agent_id)
            fleet.host.signal(fleet.host.processes_of(agent_id, (), None), 9)
            make.unmake(fleet.host, workspace)
        fleet.store.forget(agent_id)
    except (MngrError, OSError):
        pass  # the error that led here is the one to tell


def start_process(fleet: Fleet, record: Record, *, message_follows: bool = False) -> Record:
    """Run the agent's command in a new session and note it. The caller holds its lock, or nobody knows it yet."""
    options = tmux_options(fleet)
    started_at, session = prepare_start(fleet, record, message_follows=message_follows)
    for name in (record.session, f"{record.session}-{record.short_id}"):
        with held():  # a session that runs and a record that says so come together
            try:
                fleet.tmux.start(session._replace(name=name), **options)
            except SessionExists:
                continue  # another state directory on this tmux server has an agent of this name
            started = note_start(fleet, record.id, name, started_at)
        after_start(fleet, started)
        return started
    raise MngrError(
        f"tmux has sessions called `{record.session}` and `{name}` already", hint="`tmux -L mngr ls` shows them"
    )


def note_start(fleet: Fleet, agent_id: str, session: str, started_at: str) -> Record:
    """Write down that the agent runs in this session."""
    return fleet.store.change(
        agent_id,
        session=session,
        started_at=started_at,
        stopped_at=None,
        stop_reason="",
        archived_at=None,
        boot_id=fleet.host.boot_id(),
        creator=None,
    )


def prepare_start(fleet: Fleet, record: Record, *, message_follows: bool = False) -> tuple[str, Session]:
    """Write what its session will run, and log that it starts. Returns the time of the start and the session. With
    `message_follows` it does not count as WAITING before it has its first message."""
    state_dir = fleet.store.state_dir(record.id)
    command, own = _command(fleet, record, launch.identity(record, state_dir, fleet.host.dir))
    script = os.path.join(state_dir, "launch.sh")
    fleet.host.write(script, launch.script(command, own, state_dir).encode("utf-8", "surrogateescape"), 0o700)
    task = launch.task_dir(record, state_dir)
    fleet.host.make_dir(os.path.join(task, "artifacts"))
    session = Session(
        name=record.session,
        command=["sh", script],
        work_dir=record.work_dir,
        env=launch.inherited(fleet.environ),
        marks={"agent": record.id},
        windows=_windows(fleet, record, own),
        recorder=_recorder(fleet, record),
    )
    follows = {"message_follows": True} if message_follows and not record.one_shot else {}
    event = fleet.store.log(record.id, "started", session=record.session, **follows)
    return event["timestamp"], session


def _command(fleet: Fleet, record: Record, own: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """What runs, with its variables: the record's command, or what its driver makes of it."""
    if not record.driver and not record.one_shot:
        return record.command, own
    from mngr.agents.kinds import driver
    from mngr.agents.kinds.driver import PROMPT

    known = driver.of(record)
    if known is None:
        return record.command, own
    place = fleet.place(record)
    fleet.host.make_dir(place.home)
    first = record.started_at is None or record.one_shot
    found = known.prepare(place, prompted=first and PROMPT in fleet.host.entries(place.state_dir))
    return found.command, {**own, **found.env}


def _windows(fleet: Fleet, record: Record, own: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    state_dir = fleet.store.state_dir(record.id)
    found = []
    for name, command in record.windows.items():
        script = os.path.join(state_dir, f"window-{name}.sh")
        text = launch.window_script(command, own, state_dir)
        fleet.host.write(script, text.encode("utf-8", "surrogateescape"), 0o700)
        found.append((name, ["sh", script]))
    return found


def after_start(fleet: Fleet, started: Record) -> None:
    """What runs beside an agent from its start on."""
    if started.limits:
        from mngr.actions import limits

        limits.watch(fleet, started)


def tmux_options(fleet: Fleet) -> TmuxOptions:
    """What holds for the whole tmux server. Raises when the settings name a file that is not there."""
    path = fleet.settings.text("tmux.config", "")
    if path and not os.path.isfile(os.path.expanduser(path)):
        raise MngrError(f"`tmux.config` names `{path}`, which does not exist")
    lines = int(fleet.settings.number("tmux.history_lines", 50000))
    return {"history_lines": lines, "config": os.path.expanduser(path) if path else None}


def reserve(fleet: Fleet, wanted: Sequence[Wanted]) -> list[Record | MngrError]:
    """Take each name and the lowest free index, all in one step; from here on the agents are visible as STARTING. One
    whose name or branch is taken is an error, and the others go on."""
    results: list[Record | MngrError] = []
    with fleet.store.locked():
        existing, _ = fleet.store.records()
        names = {other.name for other in existing}
        numbers = {other.number for other in existing}
        free = (number for number in range(len(existing) + len(wanted)) if number not in numbers)
        myself = fleet.host.myself()
        for one in wanted:
            try:
                if one.request.name in names:
                    raise _name_taken(one.request.name)
                if one.planned.create_branch and one.planned.transfer != RSYNC:
                    make.refuse_taken_branch(fleet.host, one.planned)
                work_dir = _work_dir(fleet, one.request, one.planned, one.agent_id)
                if one.request.target is not None:
                    _refuse_used(work_dir, existing)
            except MngrError as error:
                results.append(error)
                continue
            record = _record(fleet, one, work_dir)._replace(number=next(free), creator=myself)
            fleet.host.make_dir(fleet.store.state_dir(record.id))
            fleet.store.write(record, durable=False)  # what is half made does not survive a power cut anyway
            existing.append(record)
            results.append(record)
    return results


def _record(fleet: Fleet, wanted: Wanted, work_dir: str) -> Record:
    request, planned = wanted.request, wanted.planned
    shown = without_secrets(wanted.command, request)
    labels = dict(request.labels)
    return Record(
        id=wanted.agent_id,
        name=request.name,
        kind=request.kind.name,
        command=wanted.command,
        command_shown=shown if shown != wanted.command else "",
        work_dir=work_dir,
        transfer=planned.transfer,
        session=fleet.settings.text("tmux.session_prefix", "mngr-") + request.name,
        created_at=timestamp(),
        project=request.project or labels.pop("project", "") or os.path.basename(planned.source.rstrip("/")) or "files",
        labels=labels,
        source=planned.source,
        repo=planned.repo.home if planned.repo else None,
        branch=planned.branch,
        created_branch=planned.create_branch,
        base_branch=planned.base_branch,
        base_commit=planned.start,
        reports=request.kind.reports,
        driver=request.kind.driver,
        permissions=request.permissions or request.kind.permissions,
        allowed_commands=request.allowed_commands,
        one_shot=request.one_shot,
        rules=dict(request.kind.rules),
        recorded=request.record,
        limits=dict(request.limits),
        windows=dict(request.windows),
    )


def without_secrets(command: str, request: Request) -> str:
    if not request.env:
        return command
    from mngr.secrets import mask

    return mask(command, request.env.values())


class NameTaken(MngrError):
    """An agent of this name exists."""


def _name_taken(name: str) -> NameTaken:
    return NameTaken(
        f"an agent named `{name}` exists already",
        hint=f"`mngr connect {name}` goes to it, `--reuse` makes do with it, `mngr destroy {name}` removes it",
    )


def _work_dir(fleet: Fleet, request: Request, planned: Plan, agent_id: str) -> str:
    if planned.transfer == NONE:
        if request.target is not None:
            raise MngrError(
                "a target path makes no sense with `--transfer none`: the agent works in the source directory"
            )
        return planned.source
    if request.target is not None:
        target = os.path.abspath(os.path.join(fleet.cwd, request.target))
        make.refuse_taken(target)
        return target
    room = "worktrees" if planned.transfer == WORKTREE else "clones"
    return os.path.join(fleet.host.dir, room, f"{request.name}-{agent_id[6:14]}")


def _refuse_used(work_dir: str, records: Sequence[Record]) -> None:
    """Raise when the directory belongs to another agent, also to one that has not made it yet."""
    for other in records:
        if os.path.realpath(other.work_dir) == os.path.realpath(work_dir):
            raise MngrError(f"`{work_dir}` is the work directory of agent `{other.name}`", hint=make.TAKEN_HINT)


def _recorder(fleet: Fleet, record: Record) -> list[str]:
    if not record.recorded:
        return []
    from mngr.agents import recording

    max_mb = fleet.settings.number("record.max_mb", recording.MAX_MB)
    return recording.recorder_argv(record, fleet.host, fleet.store.state_dir(record.id), max_mb)
