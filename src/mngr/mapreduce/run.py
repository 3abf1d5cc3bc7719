"""A run on disk: its directory, its ledger and state, and the lock that one orchestrator at a time holds."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from mngr import secrets
from mngr.errors import MngrError, NotFoundError
from mngr.mapreduce import ledger, ledger_fold, policy, task_names
from mngr.mapreduce.clock import MACHINE, Clock
from mngr.mapreduce.ledger import Entry, Ledger, LedgerFact
from mngr.mapreduce.state import RunState
from mngr.names import check_name, suggest
from mngr.system import inside
from mngr.system.files import (
    Claimed,
    claimant,
    claimed,
    content,
    json_bytes,
    make_private_dir,
    read_lines,
    write_atomic,
)
from mngr.system.tree_removal import remove_tree

RUNS = os.path.join(".mngr", "runs")
CONTROL = "control"
PRIVATE = "private.json"
_WORDS = frozenset({"because", "error", "message", "problem", "reason", "what"})


class Run:
    """Everybody who works for a run writes through `note`, so that `state` is always what the ledger says."""

    def __init__(self, directory: str, clock: Clock = MACHINE) -> None:
        """Read a run that exists; nothing is changed."""
        self.directory, self.clock = os.path.abspath(directory), clock
        self.ledger = Ledger(os.path.join(self.directory, ledger.FILE), clock.time)
        self._state = ledger_fold.fold(self.ledger.entries())
        self._turn = threading.RLock()
        self._listeners: list[Callable[[Entry], None]] = []

    @property
    def id(self) -> str:
        return str(self._state.facts.get("run") or os.path.basename(self.directory))

    @property
    def state(self) -> RunState:
        return self._state

    @property
    def private(self) -> Mapping[str, Any] | None:
        return private_facts(self.directory)

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """The values that this run was given to keep out of everything that it writes."""
        return secret_values(self.private or {})

    def refresh(self) -> RunState:
        """Read the ledger again: for those who only watch a run that another process works on."""
        with self._turn:
            self._state = ledger_fold.fold(self.ledger.entries())
        return self._state

    def note(self, type: str, /, **data: Any) -> None:
        """Append an entry, from any thread; when this returns, it is on disk and in `state`."""
        self.note_all([LedgerFact(type, data)])

    def note_all(self, facts: Sequence[LedgerFact]) -> None:
        """Append several entries with one wait for the disk. A kill may leave the first few of them."""
        if not facts:
            return
        if self.secrets:
            facts = [one._replace(data=_without(one.data, self.secrets)) for one in facts]
        with self._turn:
            for entry in self.ledger.append(*facts):
                self._state = ledger_fold.fold([entry], self._state)
                for listener in self._listeners:
                    listener(entry)

    @contextmanager
    def heard_by(self, listener: Callable[[Entry], None]) -> Iterator[None]:
        """Call the listener with every entry written meanwhile, one at a time, in the thread that wrote it."""
        with self._turn:
            self._listeners.append(listener)
        try:
            yield
        finally:
            with self._turn:
                self._listeners.remove(listener)

    def phase(self, name: str) -> Mapping[str, Any] | None:
        """What a phase wrote down at its end; None while it has not ended."""
        found = self._state.phases.get(name)
        return found.data if found is not None and found.ended_at is not None else None

    def begin_phase(self, name: str, asked: Mapping[str, Any] | None = None) -> None:
        """Begin it, also once more. `asked` is kept for the one that goes on if this process does not end it."""
        self.note("phase", name=name, status="began", **({"data": dict(asked)} if asked else {}))

    def end_phase(self, name: str, data: Mapping[str, Any]) -> None:
        self.note("phase", name=name, status="ended", data=dict(data))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the orchestrator, for as long as this lasts. Raises an error that names the process when another one is;
        the lock ends with its process, so it is never stale. The ledger is read again: another may have written."""
        try:
            with claimed(self._lock):
                self.refresh()
                yield
        except Claimed as error:
            raise MngrError(
                f"run `{self.id}` is being worked on by process {error.pid or 'of another `mngr`'}",
                hint=f"watch it: `mngr tmr status {self.id}`; end it: `mngr tmr stop {self.id}`",
            ) from None

    def orchestrator(self) -> int | None:
        """The process that holds the lock now; None when nobody does."""
        return claimant(self._lock)

    def override(self, **facts: Any) -> None:
        """Change what the run was begun with, from now on: values of these names take the place of those before."""
        self.note("override", **facts)

    def resume(self, **data: Any) -> None:
        """Note that this process goes on with the run: an old request to stop is over, and an open circuit breaker is
        closed, with further attempts for all tasks that failed like those that opened it. What could not be collected,
        checked or stopped is tried again; that needs no further attempt."""
        trip = self._state.trip
        alike: tuple[str, ...] = ()
        if trip is not None and trip.stage in (policy.LAUNCH, policy.WORK):
            found = policy.clusters(self._state, self._state.tasks)
            same = (one.tasks for one in found if (one.stage, one.signature) == (trip.stage, trip.signature))
            alike = next(same, trip.tasks)
        remove_tree(self._stop)
        self.note("resumed", pid=os.getpid(), **data)
        for task in alike:
            self.retry(task, because=f"the run was resumed after: {trip.example}" if trip is not None else "")

    def retry(self, task: str, *, because: str, message: str = "") -> None:
        """Give a settled task further attempts. One that is being worked on is left alone. A message goes to the agent
        that it had, which continues; when that is gone, to the next one with its task."""
        self.note("retry", task=task, because=because, **({"message": message} if message else {}))

    def ask_to_stop(self) -> None:
        """Tell the orchestrator to save all work and end; it sees this at once. Twice is safe."""
        make_private_dir(self.control)
        write_atomic(self._stop, f"{os.getpid()}\n".encode())

    @property
    def stop_asked(self) -> bool:
        return os.path.exists(self._stop)

    @property
    def control(self) -> str:
        """The directory that the orchestrator watches for requests."""
        return os.path.join(self.directory, CONTROL)

    def task_dir(self, slug: str) -> str:
        """Where the files of a task go; made when it is not there."""
        path = os.path.join(self.directory, "tasks", slug)
        make_private_dir(path)
        return path

    @property
    def _lock(self) -> str:
        return os.path.join(self.directory, "lock")

    @property
    def _stop(self) -> str:
        return os.path.join(self.control, "stop")


def private_facts(directory: str) -> Mapping[str, Any] | None:
    """What a run was given to keep out of its ledger; None when there is nothing, or it is gone."""
    return next(iter(read_lines(content(os.path.join(directory, PRIVATE)))), None)


def secret_values(private: Mapping[str, Any]) -> tuple[str, ...]:
    """The values of variables in what a run was given to keep: all of those that its user named for it, and those in
    settings that may be secret."""
    return tuple(sorted({*(private.get("env") or {}).values(), *(private.get("secret_settings") or ())}))


def _without(data: Mapping[str, Any], values: tuple[str, ...]) -> dict[str, Any]:
    """A fact without secrets in the words of other programs."""
    return {
        name: secrets.mask(text, values) if name in _WORDS and isinstance(text, str) else text
        for name, text in data.items()
    }


def new(
    root: str,
    *,
    id: str | None = None,
    directory: str | None = None,
    private: Mapping[str, Any] | None = None,
    clock: Clock = MACHINE,
    **facts: Any,
) -> Run:
    """Make a run in `.mngr/runs` below `root`, or in `directory`, and write its first entry with these facts. What is
    `private` goes to a file that only the user can read. A directory that holds something else is refused."""
    name = check_name(id or time.strftime("%y%m%d-%H%M%S-", time.gmtime()) + os.urandom(2).hex(), "run name")
    if len(name) > task_names.LONGEST_RUN:
        raise MngrError(f"`{name}` is too long for a run: at most {task_names.LONGEST_RUN} characters")
    place = os.path.abspath(directory or os.path.join(root, RUNS, name))
    if _holds_something(place):
        raise MngrError(f"`{place}` is not empty", hint="name another directory, or go on with `mngr tmr resume`")
    if directory is None:
        inside.make_directory(root, os.path.dirname(RUNS))
        inside.make_directory(root, RUNS, 0o700)
        inside.make_directory(root, f"{RUNS}/{name}", 0o700)
        if inside.facts(root, f"{RUNS}/.gitignore") is None:
            inside.write(root, f"{RUNS}/.gitignore", b"*\n")
    make_private_dir(place)
    made = Run(place, clock)
    make_private_dir(made.control)
    if private:
        write_atomic(os.path.join(place, PRIVATE), json_bytes(private))
    made.note("run", run=name, version=1, pid=os.getpid(), **facts)
    return made


def _holds_something(place: str) -> bool:
    """Whether a directory is more than what a run left that was killed before its first entry."""
    found = set(os.listdir(place)) if os.path.isdir(place) else set()
    return bool(found - {CONTROL, PRIVATE, ledger.FILE}) or any(Ledger(os.path.join(place, ledger.FILE)).entries())


def all_of(root: str) -> Sequence[str]:
    """The directories of the runs below `root`, oldest first. Links are none; one on the way is an error."""
    try:
        names = sorted(name for name, facts in inside.entries(root, RUNS).items() if stat.S_ISDIR(facts.st_mode))
    except FileNotFoundError:
        return []
    found = [os.path.join(root, RUNS, name) for name in names]
    ledgers = [path for path in found if os.path.isfile(os.path.join(path, ledger.FILE))]
    return sorted(ledgers, key=_began)


def find(root: str, name: str | None = None, recipes: Sequence[str] = ()) -> Run:
    """The run of this id, or of the only id that begins so, or in this directory; without a name, the latest. With
    recipes, raises for a run of another one."""
    if name is not None and os.path.isfile(os.path.join(name, ledger.FILE)):
        return _of_recipe(Run(name), recipes)
    places = {os.path.basename(place): place for place in all_of(root)}
    if name is None:
        every = map(Run, reversed(places.values()))
        latest = (run for run in every if not recipes or run.state.facts.get("recipe") in recipes)
        if (found := next(latest, None)) is not None:
            return found
    if name is None or not places:
        raise NotFoundError(f"`{root}` has no runs", hint=f"`{_verb_of((*recipes, 'tmr')[0])}` begins one")
    fitting = [name] if name in places else [one for one in places if one.startswith(name)]
    if len(fitting) == 1:
        return _of_recipe(Run(places[fitting[0]]), recipes)
    if fitting:
        raise NotFoundError(f"`{name}` could be any of {', '.join(f'`{one}`' for one in fitting)}")
    raise NotFoundError(f"no run is called `{name}`", hint=suggest(name, tuple(places), "run"))


def _of_recipe(found: Run, recipes: Sequence[str]) -> Run:
    recipe = str(found.state.facts.get("recipe"))
    if recipes and recipe not in recipes:
        raise MngrError(
            f"`{found.directory}` is not a run of `{_verb_of(recipes[0])}`",
            hint=f"it is one of `{_verb_of(recipe)}`",
        )
    return found


def _verb_of(recipe: str) -> str:
    """The verb that begins runs of this recipe."""
    return f"mngr {recipe.replace('-', ' ')}"


def _began(place: str) -> tuple[str, str]:
    """The time of the first entry: a run keeps its place in the order whatever its name is."""
    with open(os.path.join(place, ledger.FILE), "rb") as file:
        first = next(iter(read_lines(file.readline())), {})
    return str(first.get("at") or ""), place
