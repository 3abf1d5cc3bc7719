"""The fleet: every agent of this user, and the verbs on them. Making one reads and touches nothing.

The command line, scripts and the pipeline all come in here. An agent is named by its name, its id, its address, or
the `Agent` that another verb gave back. Every verb raises `MngrError` (see `mngr.errors`) when it cannot be done.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from mngr import config
from mngr.agents.store import Store
from mngr.hosts.local import LocalHost
from mngr.records import TYPE_CHECKING
from mngr.tools.tmux import Tmux

if TYPE_CHECKING:
    from typing import Any

    from mngr.actions.agent import Agent, Listing
    from mngr.actions.commits import Merged, Pulled
    from mngr.actions.copying import Copied
    from mngr.actions.destroy import Destroyed
    from mngr.actions.gc import Leftover
    from mngr.actions.lifecycle import Stopped
    from mngr.actions.message import Delivery
    from mngr.actions.snapshots import Restored
    from mngr.actions.usage import Report
    from mngr.agents.kinds.driver import Place
    from mngr.agents.limits import Limits
    from mngr.agents.record import Record
    from mngr.config import Settings
    from mngr.errors import MngrError
    from mngr.process import Result
    from mngr.tools.tmux import Pane
    from mngr.workspaces.saved import Entry


class Fleet:
    """This machine's agents, as seen by one caller: its environment, its directory, its settings."""

    def __init__(
        self, *, environ: Mapping[str, str] | None = None, cwd: str | None = None, settings: Settings | None = None
    ) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        self.cwd = cwd or os.getcwd()
        self.host = LocalHost(config.host_dir(self.environ))
        self.store = Store(self.host)
        self.tmux = Tmux(self.host, self.environ)
        if settings is not None:
            self.__dict__["settings"] = settings

    @cached_property
    def settings(self) -> Settings:
        """All settings that hold in this directory."""
        return config.load(host_dir=self.host.dir, cwd=self.cwd, environ=self.environ)

    def list(self, only: Collection[str] | None = None) -> Listing:
        """Every agent with its state, or those with these ids; what could not be read is in `errors`, never left out
        in silence."""
        from mngr.actions import find

        return find.listing(self, only)

    def find(self, name: str | Agent) -> Agent:
        """One agent as it is now."""
        from mngr.actions import find

        return find.one(self, name) if isinstance(name, str) else find.agent(self, name.id)

    def create(
        self,
        name: str,
        *,
        type: str | None = None,
        command: str | None = None,
        args: Sequence[str] = (),
        message: str | None = None,
        **more: Any,
    ) -> Agent:
        """Make and start an agent: `command` is a shell command line, or `type` an agent type with its `args`. `more`
        are the other fields of `mngr.actions.create.Request`: source, transfer, branch, env, labels, ... On failure
        nothing is left behind; when only the message could not be delivered, the agent runs."""
        from mngr.actions import create
        from mngr.agents.kinds import kind

        chosen = "command" if command is not None else type or kind.default_name(self.settings)
        rest = (command,) if command is not None else tuple(args)
        found = kind.resolve(chosen, self.settings)
        request = create.Request(name=name, kind=found, rest=rest, prompt=message, **more)
        agent = self.find(create.create(self, request).id)
        if message is None:
            return agent
        from mngr.actions import message as messages

        messages.first(self, agent, message)
        return self.find(agent)

    def create_many(
        self,
        names: Sequence[str],
        *,
        type: str | None = None,
        command: str | None = None,
        args: Sequence[str] = (),
        **more: Any,
    ) -> Sequence[Agent | MngrError]:
        """Make many that differ in their names only, in parallel: for each, in order, the agent, or why it was not
        made. One that fails is taken back alone. The other arguments are those of `create`."""
        from mngr.actions import create, create_many, find
        from mngr.agents.kinds import kind
        from mngr.errors import MngrError

        if not names:
            return []
        chosen = "command" if command is not None else type or kind.default_name(self.settings)
        rest = (command,) if command is not None else tuple(args)
        first = create.Request(name=names[0], kind=kind.resolve(chosen, self.settings), rest=rest, **more)
        made = create_many.create_many(self, [first._replace(name=name) for name in names])
        seen = {agent.id: agent for agent in find.listing(self).agents}
        return [result if isinstance(result, MngrError) else seen[result.id] for result in made]

    def create_each(self, wishes: Mapping[str, Mapping[str, Any]]) -> Sequence[Agent | MngrError]:
        """Make several that differ in what they run and know: for each name the arguments of `create`, without a
        message. Those of the same source, transfer and branch are made together, in parallel. The answer is that of
        `create_many`."""
        from mngr.actions import create_many

        return create_many.create_each(self, wishes)

    def adopt(self, name: str | Agent) -> Agent:
        """Complete the record of an agent whose creator was killed just after it had started it. Twice is safe."""
        from mngr.actions import lifecycle

        return self.find(lifecycle.adopt(self, self._seen(name).id).id)

    def start(self, name: str | Agent) -> Agent:
        """Run a stopped or ended agent again. One that runs is left alone."""
        from mngr.actions import lifecycle

        return self.find(lifecycle.start(self, self._seen(name).id)[0].id)

    def stop(self, name: str | Agent, *, graceful_seconds: float = 0.0) -> Stopped:
        """End its processes; work dir, branch and events stay. Twice is safe."""
        from mngr.actions import lifecycle

        return lifecycle.stop(self, self._seen(name), graceful_seconds=graceful_seconds)

    def destroy(
        self, name: str | Agent, *, force: bool = False, remove_branch: bool = False, discard: bool = False
    ) -> Destroyed:
        """Remove it. Refused while it has work found nowhere else, unless forced; that work is saved first. With
        `discard` it is not: for agents whose results the caller has, and which had no other work."""
        from mngr.actions import destroy

        agent_id = self._seen(name).id
        return destroy.destroy(self, agent_id, force=force, remove_branch=remove_branch, discard=discard)

    def archive(self, name: str | Agent, *, undo: bool = False) -> Agent:
        """Stop it and put it away, or bring it back (stopped). Everything of it stays."""
        from mngr.actions import lifecycle

        act = lifecycle.unarchive if undo else lifecycle.archive
        return self.find(act(self, self._seen(name))[0].id)

    def rename(self, name: str | Agent, new: str) -> Agent:
        """Give it another name; branch and work dir keep theirs."""
        from mngr.actions import lifecycle

        return self.find(lifecycle.rename(self, self._seen(name).id, new).id)

    def label(self, name: str | Agent, labels: Mapping[str, str], remove: Collection[str] = ()) -> Agent:
        """Set and remove labels in one change."""
        from mngr.actions import lifecycle

        return self.find(lifecycle.label(self, self._seen(name).id, labels, tuple(remove)).id)

    def message(self, name: str | Agent, text: str, *, start: bool = False) -> Delivery:
        """Deliver text to its terminal, once and whole, and wait until it says that it has it, if it can."""
        from mngr.actions import message

        return message.deliver(self, self._seen(name), text, start=start)

    def exec(self, name: str | Agent, command: str, *, timeout: float = 600.0, cwd: str | None = None) -> Result:
        """Run a shell command line in its work dir and environment. Any exit code is a result."""
        from mngr.actions import execute

        return execute.execute(self, self._seen(name), command, timeout=timeout, cwd=cwd)

    def capture(self, name: str | Agent, *, history: int = 0, colors: bool = False) -> str:
        """What its terminal shows; of a stopped agent, what it showed last."""
        from mngr.actions import screen

        return screen.read(self, self._seen(name), history=history, colors=colors)

    def events(self, name: str | Agent) -> Sequence[Mapping[str, Any]]:
        """What happened to it, in order."""
        return self.store.events(self._seen(name).id)

    def outcome(self, name: str | Agent, *, at_most: int = 1_000_000) -> bytes | None:
        """What it wrote to `$MNGR_OUTCOME_FILE`, None when it wrote nothing; one that is longer is cut one byte later,
        and what is no plain file reads as empty."""
        from mngr.actions import outcome

        return outcome.read(self, self._seen(name), at_most)

    def outcome_at(self, name: str | Agent) -> float | None:
        """When it wrote `$MNGR_OUTCOME_FILE` last, in seconds since 1970; None when it wrote nothing."""
        from mngr.actions import outcome

        return outcome.written_at(self, self._seen(name))

    def transcript(self, name: str | Agent) -> Sequence[Mapping[str, Any]]:
        """What was said to it and what it said and did; of a kind that keeps none, only what was said to it."""
        from mngr.actions import transcript

        return transcript.read(self, self._seen(name)).entries

    def usage(
        self, names: Sequence[str | Agent] | None = None, *, by: str = "agent", since: float | None = None
    ) -> Report:
        """Tokens and money of these agents, or of all, those that were destroyed included: by agent, project, day,
        model or type. `since` is a point in time."""
        from mngr.actions import usage

        return usage.report(self, None if names is None else [self._seen(name) for name in names], by=by, since=since)

    def recording(self, name: str | Agent) -> bytes:
        """Its terminal so far, as an asciicast; an error for one that is not recorded."""
        from mngr.actions import screen

        return screen.cast(self, self._seen(name))

    def limit(self, name: str | Agent, limits: Limits) -> Agent:
        """Stop it, with its work saved, when it ran or was idle for so long; `Limits()` takes all limits away."""
        from mngr.actions import limits as limiting

        return self.find(limiting.change(self, self._seen(name).id, limits).id)

    def gc(self, *, dry_run: bool = False, saved_before: float | None = None) -> Sequence[Leftover]:
        """Remove what broken-off work left behind, after saving what exists only there."""
        from mngr.actions import gc

        return [*gc.collect(self, dry_run=dry_run, saved_before=saved_before)]

    def wait(
        self,
        names: Sequence[str | Agent],
        states: Collection[str] = (),
        *,
        any_of: bool = False,
        timeout: float | None = None,
    ) -> Sequence[Agent]:
        """Block until all (or any) are in one of the states; without states, until they stop working."""
        from mngr.actions import wait

        ids = [self._seen(name).id for name in names]
        return wait.until(self, ids, states or wait.RESTING, any_of=any_of, timeout=timeout)

    def watch(self) -> Iterator[Listing]:
        """The listing now and after every change, for ever."""
        from mngr.actions import wait

        return wait.watch(self)

    def diff(self, name: str | Agent, *options: str) -> bytes:
        """Everything it changed since its base, uncommitted and untracked files included, as git prints it."""
        from mngr.actions import commits

        return commits.diff(self, self._seen(name), *options)

    def pull(self, name: str | Agent, *, into: str = "branch", dry_run: bool = False) -> Pulled:
        """Bring its commits here: as its branch, into the `current` one (forward only), or `none`."""
        from mngr.actions import commits

        return commits.pull(self, self._seen(name), into=into, dry_run=dry_run)

    def pull_uncommitted(self, name: str | Agent) -> str | None:
        """Bring what it has not committed here, as a commit on top of its HEAD, and return that; None when there is
        nothing. It is kept as `refs/mngr/pulled/NAME-uncommitted`."""
        from mngr.actions import commits

        return commits.fetch_uncommitted(self, self._seen(name))

    def pull_files(
        self, name: str | Agent, path: str = ".", target: str | None = None, *, dry_run: bool = False
    ) -> Copied:
        """Copy files of its work dir here. What they replace is saved first."""
        from mngr.actions import copying

        return copying.pull(self, self._seen(name), path, target, dry_run=dry_run)

    def pull_artifacts(self, name: str | Agent, target: str | None = None, *, dry_run: bool = False) -> Copied:
        """Copy what it put into `$MNGR_ARTIFACTS_DIR`."""
        from mngr.actions import copying

        return copying.pull_artifacts(self, self._seen(name), target, dry_run=dry_run)

    def push(self, name: str | Agent, revision: str = "HEAD", *, dry_run: bool = False) -> tuple[str, int]:
        """Move its branch forward to a commit of this repository: the commit, and how many came."""
        from mngr.actions import commits

        return commits.push(self, self._seen(name), revision, dry_run=dry_run)

    def push_files(self, name: str | Agent, source: str, path: str = ".", *, dry_run: bool = False) -> Copied:
        """Copy a file or directory into its work dir. What that replaces is saved first."""
        from mngr.actions import copying

        return copying.push(self, self._seen(name), source, path, dry_run=dry_run)

    def merge(
        self, name: str | Agent, *, squash: bool = False, message: str | None = None, dry_run: bool = False
    ) -> Merged:
        """Merge its commits into the branch checked out here; a conflict is found before anything is touched."""
        from mngr.actions import commits

        return commits.merge(self, self._seen(name), squash=squash, message=message, dry_run=dry_run)

    def saved(self) -> Sequence[Entry]:
        """Work kept by the safety net, oldest first."""
        from mngr.workspaces import saved

        return saved.entries(self.host) if self.host.is_ours() else []

    def restore_saved(self, entry: str, *, name: str | None = None, branch: str | None = None) -> Agent:
        """Bring saved work back as a stopped agent with its work dir as it was."""
        from mngr.actions import restore
        from mngr.workspaces import saved

        return self.find(restore.as_agent(self, saved.find(self.host, entry), name=name, branch=branch).id)

    def clone(self, source: str | Agent, name: str, *, message: str | None = None, **more: Any) -> Agent:
        """Copy it, conversation and uncommitted files included, as a new agent that runs. `more` are the other fields
        of `mngr.actions.clone.Wish`: rest, env, labels, project."""
        from mngr.actions import clone

        agent = self.find(clone.clone(self, self._seen(source), clone.Wish(name, **more)).id)
        if message is not None:
            self.message(agent, message)
        return agent

    def snapshot(self, name: str | Agent, snapshot: str | None = None) -> Entry:
        """Keep it as it is now, also while it runs: commits, files, conversation, settings."""
        from mngr.actions import snapshots

        return snapshots.create(self, self._seen(name), snapshot)

    def snapshots(self, name: str | Agent | None = None) -> Sequence[Entry]:
        """All snapshots, or those of one agent, oldest first."""
        from mngr.actions import snapshots

        return snapshots.entries(self, self._seen(name) if name is not None else None)

    def restore_snapshot(self, snapshot: str, *, name: str | None = None) -> Restored:
        """Bring its agent back to a snapshot (`NAME` or `AGENT/NAME`); what that replaces is saved. With another name,
        or when the agent is gone, a stopped agent is made of it."""
        from mngr.actions import snapshots

        return snapshots.restore_to(self, snapshots.one(self, snapshot), name=name)

    def place(self, record: Record, pane: Pane | None = None) -> Place:
        """An agent as the driver of its program sees it."""
        from mngr.agents.kinds.driver import Place

        def screen() -> str:
            return self.tmux.capture(pane, escapes=True) if pane is not None else ""

        return Place(self.host, record, self.store.state_dir(record.id), self.environ, screen)

    def _seen(self, name: str | Agent) -> Agent:
        return self.find(name) if isinstance(name, str) else name
