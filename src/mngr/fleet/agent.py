"""One agent: what it is, its state, and every verb on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from mngr.agent.record import Record, seconds_of, timestamp
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.system.process import Result
from mngr.system.tmux import Pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.actions.clone import CloneRequest
    from mngr.actions.destroy import Destroyed
    from mngr.actions.file_copy import Copied
    from mngr.actions.lifecycle import Stopped
    from mngr.actions.limits import Enforced
    from mngr.actions.message import Delivery, Reply
    from mngr.actions.screen import AgentTerminal
    from mngr.actions.site import Site
    from mngr.actions.transcript import AgentTranscript
    from mngr.actions.view import AgentView
    from mngr.agent.limits import Limits
    from mngr.agent.state import Status
    from mngr.transfer.commits import Pulled
    from mngr.transfer.merge import Merged
    from mngr.workspace.work.entry import SavedEntry
    from mngr.workspace.work.measure import UnsavedWork


_MOMENTS = ("state_since", "create_time", "start_time", "archived_at")
_SAME_TIME_SECONDS = 5.0  # clocks that differ by less are the same clock, seen through a slow connection


class Agent:
    """An agent of a site, with its verbs. `record` is what was known when the agent was found. Its state is looked up
    at the first use and kept; `now()` gives the agent as it is now. A method returns what its verb returns, with an
    agent in place of a record. Every verb raises `MngrError` when it cannot be done."""

    def __init__(self, site: Site, record: Record, view: AgentView | None = None) -> None:
        self.site = site
        self.record = record
        self._view = view

    def __repr__(self) -> str:
        return f"<Agent {self.name} {self.id}>"

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def view(self) -> AgentView:
        """The agent as its site saw it."""
        if self._view is None:
            from mngr.actions import find

            self._view = self.site.run(find.agent, self.id)
        return self._view

    @property
    def status(self) -> Status:
        return self.view.status

    @property
    def state(self) -> str:
        return self.view.state

    @property
    def pane(self) -> Pane | None:
        return self.view.pane

    def as_json(self, now: float | None = None) -> dict[str, Any]:
        """The stable, documented form of `list --format json`, by the clock of this machine. What is not known is
        null."""
        if self.site.is_local:
            return self.view.as_json(now)
        ahead = self.site.clock_skew
        fields = self.view.as_json((time.time() if now is None else now) + ahead)
        for name in _MOMENTS if abs(ahead) > _SAME_TIME_SECONDS else ():
            fields[name] = fields[name] and timestamp(seconds_of(fields[name]) - ahead)
        host = {"id": self.site.name, "name": self.site.name}
        provider = {"provider": self.site.provider, "provider_name": self.site.provider}
        state = "UNKNOWN" if self.state == "UNKNOWN" else "RUNNING"
        return {**fields, "host": {**fields["host"], **host, **provider, "state": state}}

    def now(self) -> Agent:
        """The agent as it is now."""
        from mngr.actions import find

        view = self.site.run(find.agent, self.id)
        return Agent(self.site, view.record, view)

    def start(self) -> tuple[Agent, bool]:
        """Run a stopped or ended agent again. One that runs is left alone, and False comes with it."""
        from mngr.actions import lifecycle

        record, started = self.site.run(lifecycle.start, self.id)
        return Agent(self.site, record), started

    def stop(self, *, graceful_seconds: float = 0.0, reason: str = "") -> Stopped:
        """End its processes; work dir, branch and events stay. Twice is safe."""
        from mngr.actions import lifecycle

        more = {"reason": reason} if reason else {}
        return self.site.run(lifecycle.stop, self.id, graceful_seconds=graceful_seconds, **more)

    def destroy(self, *, force: bool = False, remove_branch: bool = False, discard: bool = False) -> Destroyed:
        """Remove it. Refused while it has work found nowhere else, unless forced; that work is saved first. With
        `discard` it is not: for agents whose results the caller has, and which had no other work."""
        from mngr.transfer import destroy

        return destroy.destroy(self.site, self.record, force=force, remove_branch=remove_branch, discard=discard)

    def check_destroy(self, *, force: bool = False) -> UnsavedWork:
        """What `destroy` would save. Raise HasWork when that is work, unless forced."""
        from mngr.actions import destroy

        return self.site.run(destroy.check, self.id, force=force)

    def archive(self, *, undo: bool = False) -> tuple[Agent, bool]:
        """Stop it and hide it in `list`, or show it again (stopped). Everything of it stays. The second value is
        whether that changed anything."""
        from mngr.actions import lifecycle

        record, changed = self.site.run(lifecycle.unarchive if undo else lifecycle.archive, self.id)
        return Agent(self.site, record), changed

    def rename(self, new: str) -> Agent:
        """Give it another name; branch and work dir keep theirs."""
        from mngr.actions import lifecycle

        return Agent(self.site, self.site.run(lifecycle.rename, self.id, new))

    def check_rename(self, new: str) -> None:
        """Raise what stands in the way of `rename`."""
        from mngr.actions import lifecycle

        self.site.run(lifecycle.check_rename, self.id, new)

    def label(self, labels: Mapping[str, str], remove: Collection[str] = ()) -> Agent:
        """Set and remove labels in one change."""
        from mngr.actions import lifecycle

        return Agent(self.site, self.site.run(lifecycle.label, self.id, labels, tuple(remove)))

    def limit(self, limits: Limits) -> Agent:
        """Stop it, with its work saved, when it ran or was idle for this long; `Limits()` removes all limits."""
        from mngr.actions import limits as limiting

        return Agent(self.site, self.site.run(limiting.change, self.id, limits))

    def enforce_limits(self, *, dry_run: bool = False) -> Enforced:
        """Stop it now if a limit is reached; say how long it has left otherwise."""
        from mngr.actions import limits

        return self.site.run(limits.enforce, self.id, dry_run=dry_run)

    def explain_limits(self) -> str:
        """A line about its limits, for `list --explain`."""
        from mngr.actions import limits

        return self.site.run(limits.explain, self.id)

    def adopt(self) -> Agent:
        """Complete its record when its creator was killed just after it had started the agent. Twice is safe."""
        from mngr.actions import lifecycle

        return Agent(self.site, self.site.run(lifecycle.adopt, self.id))

    def message(self, text: str, *, start: bool = False, tell: Callable[[str], None] | None = None) -> Delivery:
        """Deliver text to its terminal, once and whole, and wait until it confirms the receipt, if its kind can. `tell`
        is called when the message has to wait for the answer to a question."""
        from mngr.actions import message

        told: dict[str, Any] = {} if tell is None else {"tell": tell}
        return self.site.run(message.deliver, self.id, text, start=start, **told)

    def first_message(self, text: str) -> Delivery:
        """Deliver the message that it was created with, unless its program was started with it."""
        from mngr.actions import message

        return self.site.run(message.first, self.id, text)

    def ask(
        self,
        text: str,
        *,
        start: bool = False,
        timeout: float | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> Reply:
        """Deliver text, wait until the agent stops working, and return what it said. `tell` is as for `message`."""
        from mngr.actions import message

        told: dict[str, Any] = {} if tell is None else {"tell": tell}
        return self.site.run(message.ask, self.id, text, start=start, timeout=timeout, **told)

    def exec(self, command: str, *, timeout: float = 600.0, cwd: str | None = None) -> Result:
        """Run a shell command line in its work dir and environment. Any exit code is a result."""
        from mngr.actions import execute

        return self.site.run(execute.execute, self.id, command, timeout=timeout, cwd=cwd)

    def exec_stream(
        self, command: str, *, timeout: float = 600.0, cwd: str | None = None
    ) -> Iterator[tuple[str, bytes]]:
        """Like `exec`, with the output as it comes: `out`, `err` and at the end `exit`, each with its bytes."""
        from mngr.actions import execute

        return self.site.run(execute.streamed, self.id, command, timeout=timeout, cwd=cwd)

    def capture(self, *, history: int = 0, colors: bool = False) -> str:
        """What its terminal shows; of a stopped agent, what it showed last."""
        from mngr.actions import screen

        return self.site.run(screen.read, self.id, history=history, colors=colors)

    def terminal(self) -> AgentTerminal:
        """How to attach to its terminal."""
        from mngr.actions import screen

        return self.site.run(screen.terminal, self.id)

    def recording(self) -> bytes:
        """Its terminal so far, as an asciicast; an error for one that is not recorded."""
        from mngr.actions import screen

        return self.site.run(screen.cast, self.id)

    def events(self) -> Sequence[Mapping[str, Any]]:
        """What happened to it, in order."""
        from mngr.actions import transcript

        return self.site.run(transcript.events, self.id)

    def follow_events(self) -> Iterator[list[dict[str, Any]]]:
        """What happened to it so far, then what is new, for ever."""
        from mngr.actions import transcript

        return self.site.run(transcript.follow_events, self.id)

    def transcript(self) -> AgentTranscript:
        """What was said to it and what it said and did, as `entries`; of a kind that keeps none, only what was said to
        it."""
        from mngr.actions import transcript

        return self.site.run(transcript.read, self.id)

    def follow_transcript(self, shown: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
        """The entries that come after those that were `shown`, for ever."""
        from mngr.actions import transcript

        return self.site.run(transcript.follow, self.id, shown)

    def outcome(self, *, at_most: int = 1_000_000) -> bytes | None:
        """What it wrote to `$MNGR_OUTCOME_FILE`, None when it wrote nothing. A longer file is cut one byte after
        `at_most`; anything but a plain file reads as empty."""
        from mngr.actions import outcome

        return self.site.run(outcome.read, self.id, at_most)

    def outcome_at(self) -> float | None:
        """When it wrote `$MNGR_OUTCOME_FILE` last, in seconds since 1970; None when it wrote nothing."""
        from mngr.actions import outcome

        return self.site.run(outcome.written_at, self.id)

    def secrets(self) -> tuple[str, ...]:
        """The values of its variables, which belong into no text that is kept or shown."""
        from mngr.actions import outcome

        return self.site.run(outcome.secrets, self.id)

    def diff(self, *options: str) -> bytes:
        """Everything it changed since its base, uncommitted and untracked files included, as git prints it."""
        from mngr.actions import commits

        return self.site.run(commits.diff, self.id, *options)

    def summary(self) -> bytes:
        """Its commits and a diffstat, as git prints them."""
        from mngr.actions import commits

        return self.site.run(commits.summary, self.id)

    def pull(self, *, into: str = "branch", dry_run: bool = False) -> Pulled:
        """Fetch its commits: as its branch, into the `current` one (forward only), or `none`."""
        from mngr.transfer import commits

        return commits.pull(self.site, self.id, into=into, dry_run=dry_run)

    def pull_uncommitted(self) -> str | None:
        """Fetch what it has not committed, as a commit on top of its HEAD, and return that; None when there is nothing.
        It is kept as `refs/mngr/pulled/NAME-uncommitted`."""
        from mngr.transfer import commits

        return commits.fetch_uncommitted(self.site, self.id)

    def pull_files(self, path: str = ".", target: str | None = None, *, dry_run: bool = False) -> Copied:
        """Copy files of its work dir to the current directory or `target`. What they replace is saved first."""
        from mngr.transfer import file_copy

        return file_copy.pull(self.site, self.id, path, target, dry_run=dry_run)

    def pull_artifacts(self, target: str | None = None, *, dry_run: bool = False) -> Copied:
        """Copy what it put into `$MNGR_ARTIFACTS_DIR`."""
        from mngr.transfer import file_copy

        return file_copy.pull_artifacts(self.site, self.id, target, dry_run=dry_run)

    def push(self, revision: str = "HEAD", *, dry_run: bool = False) -> tuple[str, int]:
        """Move its branch forward to a commit of the repository: the commit, and how many came."""
        from mngr.transfer import commits

        return commits.push(self.site, self.id, revision, dry_run=dry_run)

    def push_files(self, source: str, path: str = ".", *, dry_run: bool = False) -> Copied:
        """Copy a file or directory into its work dir. What that replaces is saved first."""
        from mngr.transfer import file_copy

        return file_copy.push(self.site, self.id, source, path, dry_run=dry_run)

    def merge(self, *, squash: bool = False, message: str | None = None, dry_run: bool = False) -> Merged:
        """Merge its commits into the current branch; a conflict is found before anything is touched."""
        from mngr.transfer import merge

        return merge.merge(self.site, self.id, squash=squash, message=message, dry_run=dry_run)

    def clone(self, name: str, *, message: str | None = None, **more: Any) -> Agent:
        """Copy it, conversation and uncommitted files included, as a new agent that runs. `more` are the other fields
        of `mngr.actions.clone.CloneRequest`: rest, env, labels, project."""
        from mngr.actions.clone import CloneRequest
        from mngr.transfer import moves

        request = moves.with_command(self.site, self.record, CloneRequest(name, **more))
        agent = Agent(self.site, moves.clone_there(self.site, self.id, request))
        if message is not None:
            agent.message(message)
        return agent

    def check_clone(self, request: CloneRequest) -> tuple[str | None, str]:
        """The branch and the command that a clone on its own machine would have. Raise what stands in the way."""
        from mngr.actions import clone
        from mngr.transfer import moves

        return self.site.run(clone.check, self.id, moves.with_command(self.site, self.record, request))

    def snapshot(self, name: str | None = None) -> SavedEntry:
        """Keep it as it is now, also while it runs: commits, files, conversation, settings."""
        from mngr.actions import snapshots

        return self.site.run(snapshots.create, self.id, name)

    def check_snapshot(self, name: str | None = None) -> str:
        """The name that `snapshot` would give. Raise what stands in the way."""
        from mngr.actions import snapshots

        return self.site.run(snapshots.would_create, self.id, name)


class Listing(NamedTuple):
    """All agents that could be seen, and what could not be."""

    agents: list[Agent]
    errors: list[MngrError]
