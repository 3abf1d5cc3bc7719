"""Takes measurements, as `command` agents in fresh copies of the code, each of them once.

The intent and the result of every measurement are in the ledger under a key of what is measured. Whoever asks again,
after a kill too, gets the result that is there, or the agent that is at work on it. A new copy for every measurement,
since what an agent wrote runs there and could spoil it for the next.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from mngr.errors import MngrError, TimedOut
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.mapreduce import observations
from mngr.mapreduce.host_pool import HostPool
from mngr.mapreduce.run import Run
from mngr.system import files, tree_removal
from mngr.system.git import Git
from mngr.system.interrupts import Terminated, held, others_ended
from mngr.system.waiting import Deadline
from mngr.tmr.masking import mask_files
from mngr.tmr.measure import prepared
from mngr.tmr.measure.measurement import (
    PROBE,
    USER,
    Ended,
    Measurement,
    MeasurementResult,
    SuiteEnvironment,
    checked,
    read,
    script,
)
from mngr.tmr.measure.prepared import ARCHIVE, LISTS, Place, Places
from mngr.transfer import create

ROLE = "job"
_KEY = "mngr-measurement"
_TRIES = 3  # of a measurement that is lost
_NAME_MAX = 63
_LOOK_SECONDS = 2.0  # how soon a request to stop is seen


class StopAsked(MngrError):
    """Somebody asked the run to stop while a measurement was waited for."""

    def __init__(self) -> None:
        super().__init__("the run was asked to stop")


class Measurer:
    """Takes at most `at_once` measurements at a time; thread-safe. Without a run nothing is remembered. The files of a
    measurement stay in `directory`, in a directory of its own."""

    def __init__(
        self,
        fleet: Fleet,
        run: Run | None,
        *,
        repo: str,
        directory: str,
        environment: SuiteEnvironment,
        at_once: int,
        stop_asked: Callable[[], bool] = lambda: False,
        pool: HostPool | None = None,
        base: str = "",
    ) -> None:
        """With a pool, the agents are made on its hosts. What `[tmr] prepare` makes at the `base` is kept for further
        copies on this machine."""
        self._pool = pool
        self._fleet, self._run, self._repo, self._directory = fleet, run, repo, directory
        self.environment = environment
        self.at_once = at_once
        self._places = threading.BoundedSemaphore(at_once)
        self._stop_asked = stop_asked
        self._git = Git.of_user(repo)
        room = os.path.join(fleet.local.host.dir, "clones")
        hidden = environment.sandbox and environment.home == USER  # its home is that of one agent
        keeps = environment.prepare and base and run is not None and pool is None and not hidden
        self._base = base
        self._copies = Places(self._git, base, room, at_once) if keeps else None
        self._turn = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}
        self._left: dict[str, Agent] = {}
        self._results: dict[str, Mapping[str, Any]] = dict(_results(run.ledger.entries())) if run is not None else {}

    def take(self, wanted: Measurement) -> MeasurementResult:
        """The result of a measurement: the one that is known, or a new one, for which this blocks. Raises `StopAsked`
        as soon as somebody asks the run to stop."""
        key = self._key(wanted)
        with self._turn:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            result = self._known(key, wanted) or self._taken(key, wanted)
            for _ in range(_TRIES - 1):
                if result.lost:
                    result = self._taken(key, wanted)
            return result

    def take_all(self, wanted: Sequence[Measurement]) -> list[MeasurementResult]:
        """The same for many, side by side, in order. The first error is raised after all have ended. An interrupt
        leaves their agents to whoever resumes the run."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max_workers=max(1, min(2 * self.at_once, len(wanted)))) as pool:
            try:
                return list(pool.map(self.take, wanted))
            except (KeyboardInterrupt, Terminated):
                with held(), others_ended():
                    pool.shutdown(wait=True, cancel_futures=True)
                raise

    def must_take(self, wanted: Measurement) -> MeasurementResult:
        """The result, or an error that shows what was printed. A measurement that failed is not remembered: somebody
        will see to the cause and resume."""
        result = self.take(wanted)
        if result.problem:
            self.forget(wanted)
        return checked(result)

    def forget(self, *wanted: Measurement) -> None:
        """Measure these again when somebody asks again: this machine was at fault, not the code."""
        for key in map(self._key, wanted):
            if self._results.pop(key, None) is not None:
                self._note("forgotten", key=key)

    def gives(self, commit: str) -> bool:
        """Whether a copy of this commit is given what `[tmr] prepare` made at the base."""
        return self._copies is not None and self._copies.known_for(commit) is not None

    def prepare_each(self, why: str) -> None:
        """Run `[tmr] prepare` in each copy from now on."""
        if self._copies is not None:
            self._tell(self._copies.give_up(why))

    def _tell(self, why: str) -> None:
        if why:
            self._note("decision", what="`[tmr] prepare` is run in each copy", because=why)

    def directories(self, label: str) -> list[str]:
        """Of the known measurements whose label begins so."""
        known = [one["directory"] for one in self._results.values() if str(one.get("label")).startswith(label)]
        return [os.path.join(self._directory, directory) for directory in sorted(known)]

    def adopt(self) -> None:
        """Find the agents that a killed orchestrator left at work. Those whose result is known are removed."""
        for agent in self._agents():
            key = agent.record.spec.labels.get(_KEY, "")
            half_made = observations.observe(agent.name, agent).half_made
            if key in self._results or key in self._left or half_made:
                self._remove(agent)
            else:
                self._left[key] = agent.adopt()

    def reap(self) -> None:
        """Remove all agents of measurements of this run; what has no result will be measured again."""
        self._left.clear()
        for agent in self._agents():
            self._remove(agent)
        prepared.remove_archives(self._directory)

    def _agents(self) -> list[Agent]:
        labels = {"mngr-run": self._id, "mngr-role": ROLE}
        return [
            agent for agent in self._fleet.list().agents if labels.items() <= dict(agent.record.spec.labels).items()
        ]

    @property
    def _id(self) -> str:
        return self._run.id if self._run is not None else "dry-run"

    def _key(self, wanted: Measurement) -> str:
        """Of what is measured: the files of the commit, the script that runs there, and its variables."""
        tree = self._git.must("rev-parse", f"{wanted.commit}^{{tree}}", doing="the commit to be measured is not here")
        texts = {name: data.decode(errors="replace") for name, data in script(self.environment, wanted).items()}
        facts = [tree, texts, dict(self.environment.env), wanted.repeat, self.environment.sandbox]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]

    def _known(self, key: str, wanted: Measurement) -> MeasurementResult | None:
        facts = self._results.get(key)
        directory = os.path.join(self._directory, str(facts["directory"])) if facts else ""
        if facts is None or not os.path.isdir(directory):
            return None
        ended = Ended(facts["seconds"], facts["problem"], facts["timed_out"])
        return read(self.environment, wanted, directory, ended)

    def _taken(self, key: str, wanted: Measurement) -> MeasurementResult:
        left = self._left.pop(key, None)
        with self._host(left) as host, self._place(left) as place:
            if place is not None and place.is_behind(wanted.commit):
                base = Measurement("prepared", self._base, [])
                self._run_at(self._key(base), base, host, place, None)
            return self._run_at(key, wanted, host, place, left)

    def _run_at(
        self, key: str, wanted: Measurement, host: str, place: Place | None, left: Agent | None
    ) -> MeasurementResult:
        name = f"{wanted.label}-{key[:8]}" + (f"-{os.path.basename(place.path)}" if not wanted.steps and place else "")
        target = os.path.join(self._directory, name)
        agent: Agent | None = None
        began = time.monotonic()
        try:
            with self._places:
                if self._stop_asked():
                    raise StopAsked
                began = time.monotonic()
                tree_removal.remove_tree(target)
                agent = left or self._start(key, wanted, name, host, place)
                problem, timed_out = self._wait(agent)
                ended = Ended(round(time.monotonic() - began, 3), problem, timed_out)
            # While the next one runs.
            agent.pull_artifacts(target)
            names = (ARCHIVE, *LISTS, *(f"{step.name}.changed" for step in wanted.steps))
            mask_files(target, self._run.secrets if self._run is not None else (), keep=names)
        except MngrError as error:
            if self._pool is None or isinstance(error, StopAsked) or self._pool.answers(host):
                raise
            ended = Ended(round(time.monotonic() - began, 3), f"its host was lost: {error.message}")
        finally:
            if agent is not None:
                self._remove(agent)
        result = read(self.environment, wanted, target, ended)
        if place is not None and place.keeps(wanted.commit):
            self._tell(place.learn(target))
        facts = {"label": wanted.label, "directory": name, "commit": wanted.commit, **ended._asdict()}
        if not result.lost:
            self._results[key] = facts
        self._note("measured", key=key, lost=result.lost, **facts)
        return result

    def _place(self, left: Agent | None) -> AbstractContextManager[Place | None]:
        """Where the copy is made; none if that is wherever `create` says."""
        return self._copies.one() if self._copies is not None and left is None else nullcontext(None)

    def _host(self, left: Agent | None) -> AbstractContextManager[str]:
        """The host of a measurement: empty is this machine."""
        if self._pool is None:
            return nullcontext("")
        return self._pool.job("" if left is None or left.site.is_local else left.site.name)

    def _start(self, key: str, wanted: Measurement, name: str, host: str, place: Place | None) -> Agent:
        """The script stays beside the results: what was run, to the letter."""
        job = os.path.join(self._directory, f"{name}.job")
        tree_removal.remove_tree(job)
        files.make_private_dir(job)
        given = place.given(wanted.commit) if place is not None else None
        keeps = place is not None and place.keeps(wanted.commit)
        for file, data in script(self.environment, wanted, given, keeps=keeps).items():
            files.write_atomic(os.path.join(job, file), data)
        uploads = [(job, ".mngr/task/job"), (PROBE, ".mngr/task/job/probe")]
        uploads += [(given.archive, f".mngr/task/job/{ARCHIVE}")] if given is not None else []
        agent = f"{self._id}-job-{wanted.label}"[: _NAME_MAX - 7] + "-" + os.urandom(3).hex()
        more = {**({"host": host} if host else {}), **({"prepared": given.digest} if given is not None else {})}
        self._note("measuring", key=key, label=wanted.label, agent=agent, **more)
        site = self._pool.site(host) if self._pool is not None else self._fleet.local
        request = create.request_for(
            self._fleet.local,
            agent,
            command="sh .mngr/task/job/job.sh",
            source=self._repo,
            target=place.path if place is not None else None,
            transfer="git-mirror",
            branch=f"{wanted.commit}:mngr-job/{agent}",
            unclean="exclude",
            shared_objects=True,
            sandbox=self.environment.sandbox,
            env=self.environment.env,
            labels={"mngr-run": self._id, "mngr-role": ROLE, _KEY: key},
            extra_paths=self.environment.extra_paths,
            uploads=tuple(uploads),
        )
        (made,) = create.create(site, [request])
        if isinstance(made, MngrError):
            raise made
        return Agent(site, made)

    def _wait(self, agent: Agent) -> tuple[str, bool]:
        """Why it did not come to its end, if it did not, and whether that is because of its time."""
        deadline = Deadline(self.environment.job_seconds)
        ended: Sequence[Agent] = ()
        while not ended:
            try:
                ended = self._fleet.wait([agent], ("DONE", "FAILED", "STOPPED"), timeout=deadline.left(_LOOK_SECONDS))
            except TimedOut:
                if self._stop_asked():
                    raise StopAsked from None
                if deadline.passed:
                    agent.stop()
                    return f"the tests did not end within {self.environment.job_seconds:g} s", True
        state = ended[0]
        if state.state == "DONE":
            return "", False
        why = f": {state.status.reason}" if state.status.reason else ""
        return f"the test run ended as {state.state}{why}", False

    def _remove(self, agent: Agent) -> None:
        """What it ran is a commit of the repository, and its results are here by now or not wanted."""
        try:
            agent.destroy(discard=True)
        except MngrError:
            if self._pool is None or agent.site.is_local or self._pool.answers(agent.site.name):
                raise

    def _note(self, type: str, **facts: Any) -> None:
        if self._run is not None:
            self._run.note(type, **facts)


def _results(entries: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """The measurements that a ledger holds, by key, without those that are to be taken again."""
    found: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        if entry["type"] == "measured" and not entry["lost"]:
            found[entry["key"]] = entry
        elif entry["type"] == "forgotten":
            found.pop(entry["key"], None)
    return found.items()
