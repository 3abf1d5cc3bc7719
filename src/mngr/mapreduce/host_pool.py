"""The other machines of a run: made or taken from a pool once, used by agents and measurements, found after a kill.

Every host is in the ledger before it is used. A host that does not answer is only left alone; it is lost when its
provider says that it is gone, or when its agents were unknown for as long as the limits of the run say."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

from mngr.actions import find
from mngr.actions.site import Site
from mngr.errors import MngrError
from mngr.fleet import host_verbs
from mngr.fleet.agent import Agent
from mngr.fleet.hosts import FOR_RUN, Hosts
from mngr.fleet.known_hosts import KnownHost
from mngr.mapreduce import observations
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import HOST_LOST
from mngr.providers.provider import GONE, RUNNING, HostRequest, Provider, Unsupported
from mngr.remote.channel import Unreached
from mngr.system.interrupts import held
from mngr.system.waiting import wait_until
from mngr.transfer import create

# What the ledger says of a host.
MAKING, READY, LOST, DESTROYED, UNREACHED = "making", "ready", "lost", "destroyed", "unreached"
# How long a new agent or measurement waits for a host while none answers.
_NONE_SECONDS = 600.0
# A host that takes longer is queued by its provider: meanwhile the run continues with the hosts that it has.
_QUEUED_SECONDS = 20.0
# After a host that could not be made, the run continues with those that it has for this long.
_REFUSED_SECONDS = 60.0
_MADE_AT_ONCE = 20
# After these ends an agent holds no place on its host.
_LEFT = (HOST_LOST, "blocked")


class HostRules(NamedTuple):
    """Which hosts a run uses: those of a provider's pool, or at most `most` that it makes, from `snapshot` if given."""

    provider: str
    agents_per_host: int = 4
    most: int = 1
    jobs_per_host: int = 2
    snapshot: str = ""


class HostPool:
    """The hosts of one run; thread-safe. Making one touches nothing."""

    def __init__(self, run: Run, hosts: Hosts, rules: HostRules) -> None:
        self._run, self._hosts, self.rules = run, hosts, rules
        self._lock, self._turn = threading.RLock(), threading.Lock()
        self._jobs: Counter[str] = Counter()
        self._queued: dict[str, Future[str]] = {}
        self._refused_at = -math.inf
        self.unreached: dict[str, str] = {}  # why, by host

    def open(self) -> None:
        """Name the hosts of a pool, or take over those of a killed orchestrator. Twice is safe."""
        provider, known = self._provider, self._run.state.hosts
        for name in known:
            self._hosts.take_over(provider.name, name, self._made_for)
        for name in [name for name, host in known.items() if host.state == MAKING]:
            state = provider.host(name).state
            if state not in (RUNNING, GONE):
                provider.destroy(name)
            if state != RUNNING:
                self._hosts.known.forget(provider.name, name)
            self._note(name, READY if state == RUNNING else DESTROYED)
        for name in provider.pool() if not known else ():
            self._hosts.local.host.prepare()
            if self._hosts.known.get(provider.name, name) is None:
                self._hosts.known.remember(KnownHost(provider.name, name))
            self._note(name, READY)
        if not self._run.state.hosts:
            provider.require("create")

    def check(self) -> None:
        """Ask all hosts: those that do not answer are not used until they do. Raises when none of a pool answers."""
        names = self.names
        if names and not self._any_answers(names) and not self._makes:
            raise self._none_answers()

    @property
    def names(self) -> list[str]:
        """The hosts that can be used, whether they answer at the moment or not."""
        return [name for name, host in self._run.state.hosts.items() if host.state in (READY, UNREACHED)]

    @property
    def room(self) -> int:
        """How many agents can work at the same time. No more than the hosts have places while there are no more."""
        count = self.rules.most - len(self.names) + len(self._up) if self._may_make else len(self._up)
        return max(1, count * self.rules.agents_per_host)

    @property
    def _up(self) -> list[str]:
        return [name for name in self.names if name not in self.unreached]

    @property
    def cut_off(self) -> bool:
        """Whether none of the hosts answers."""
        return bool(self.names) and not self._up

    @property
    def room_for_jobs(self) -> int:
        return max(1, (self.rules.most if self._makes else len(self.names)) * self.rules.jobs_per_host)

    @cached_property
    def _provider(self) -> Provider:
        return self._hosts.provider(self.rules.provider)

    @cached_property
    def _makes(self) -> bool:
        return not self._provider.pool()

    @property
    def _snapshot(self) -> str:
        return self._run.state.prepared or self.rules.snapshot

    @property
    def _made_for(self) -> str:
        return FOR_RUN + self._run.id

    def site(self, name: str) -> Site:
        return self._hosts.site(name, self.rules.provider) if name else self._hosts.local

    def is_lost(self, name: str) -> bool:
        """Whether the provider said that the host is gone."""
        host = self._run.state.hosts.get(name)
        return host is not None and host.state in (LOST, DESTROYED)

    def answers(self, name: str) -> bool:
        """Ask the host now. One that does not answer is not used until it does."""
        return not name or self._any_answers([name])

    def _any_answers(self, names: Sequence[str]) -> bool:
        answers = self._hosts.ask_each([self.site(name) for name in names], lambda site: site.run(find.listing, ()))
        for name, (_, answer) in zip(names, answers, strict=True):
            if isinstance(answer, MngrError):
                self.fail(name, answer.message)
            else:
                self.reached(name)
        return any(name not in self.unreached for name in names)

    def reached(self, name: str) -> bool:
        """Note that a host answers; whether it did not before."""
        with self._lock:
            back = self.unreached.pop(name, None) is not None
            if back and not self.is_lost(name):
                self._note(name, READY, back=True)
        return back

    def fail(self, name: str, why: str) -> None:
        """Note that a host did not answer, and ask its provider about it."""
        with self._lock:
            if name not in self.unreached and not self.is_lost(name):
                self._note(name, UNREACHED, because=why)
            self.unreached[name] = why
        known = self._hosts.known.get(self.rules.provider, name)
        if known is None or not known.ours:
            return
        try:
            gone = host_verbs.state_of(self._hosts, known).state == GONE
        except MngrError:
            return
        if gone and not self.is_lost(name):
            self._note(name, LOST, because=why)

    def ask(self, names: Mapping[str, Sequence[Any]], verb: Callable[..., Any]) -> dict[str, Any]:
        """What each host answers to the verb with its arguments; for those that do not answer, an error. One that did
        not before is not asked."""
        asked = [name for name in names if name not in self.unreached and not self.is_lost(name)]
        found = {name: MngrError(self.unreached.get(name) or f"`{name}` is gone") for name in names}
        sites = [self.site(name) for name in asked]
        answers = self._hosts.ask_each(sites, lambda site: site.run(verb, *names[site.name])) if asked else []
        for name, (_, answer) in zip(asked, answers, strict=True):
            found[name] = answer
            if isinstance(answer, MngrError):
                self.fail(name, answer.message)
        return found

    def assign(self, agents: Sequence[str]) -> dict[str, str]:
        """A host with a free place for each of these new agents, except for those that wait until there are more hosts.
        Raises when there is none at all, and none to wait for."""
        with self._turn:
            open_ones = (attempt for _, attempt in observations.open_attempts(self._run.state) if attempt.host)
            load = Counter(one.host for one in open_ones if one.goes_on or (one.agent_id and one.ended not in _LEFT))
            self._make_for(len(agents), load, self.rules.agents_per_host)
            found: dict[str, str] = {}
            for agent in agents:
                if host := self._choose(load, self.rules.agents_per_host):
                    found[agent] = host
                    load[host] += 1
        if agents and not found:
            wait_until(lambda: self._may_make, timeout=5.0, every=0.2)
        return found

    @contextmanager
    def job(self, host: str = "") -> Iterator[str]:
        """A host for a measurement, for as long as that lasts; `host` is where it runs already."""
        chosen = wait_until(lambda: self._take_job(host), timeout=math.inf, every=0.5)
        assert chosen is not None
        host = chosen
        try:
            yield host
        finally:
            with self._turn:
                self._jobs[host] -= 1

    def _take_job(self, host: str) -> str:
        with self._turn:
            if not host:
                self._make_for(1, self._jobs, self.rules.jobs_per_host)
                host = self._choose(self._jobs, self.rules.jobs_per_host)
            if host:
                self._jobs[host] += 1
            return host

    def _choose(self, load: Mapping[str, int], most: int) -> str:
        """The least loaded host that answers; nothing while it is full and another one is to be made."""
        best = min(self._up, key=lambda name: load.get(name, 0), default=None)
        if self._makes and (best is None or load.get(best, 0) >= most) and len(self.names) < self.rules.most:
            return ""
        if best is not None:
            return best
        wait_until(lambda: self._run.stop_asked or self._any_answers(self.names), timeout=_NONE_SECONDS, every=5.0)
        if not (up := self._up):
            raise self._none_answers()
        return up[0]

    def _none_answers(self) -> MngrError:
        why = next(iter(self.unreached.values()), "")
        return Unreached(
            f"no host of `{self.rules.provider}` answers" + (f": {why}" if why else ""),
            hint=f"`mngr host list` shows them; `mngr tmr resume {self._run.id}` continues",
        )

    def _make_for(self, count: int, load: Mapping[str, int], most: int) -> None:
        """Have hosts made for this many more agents or measurements, and wait for them. Those that take long are
        queued. Raises why none could be made, if the run has no host."""
        if not self._may_make:
            if self._run.stop_asked and not self.names:
                raise MngrError("the run was asked to stop while its first host was queued")
            return
        free = sum(max(0, most - load.get(name, 0)) for name in self._up)
        missing = min(-(-(count - free) // most), self.rules.most - len(self.names), _MADE_AT_ONCE)
        making = {f"{self._run.id}-h{len(self._run.state.hosts) + 1 + n}": Future[str]() for n in range(missing)}
        for name, future in making.items():
            self._note(name, MAKING)
            threading.Thread(target=self._create, args=(name, future), daemon=True, name=f"make {name}").start()

        def done() -> bool:
            return all(future.done() for future in making.values())

        try:
            wait_until(done, timeout=_QUEUED_SECONDS, every=0.02)
        except BaseException:
            with held():
                wait_until(done, timeout=_QUEUED_SECONDS, every=0.02)
            raise
        self._queued = {name: future for name, future in making.items() if not future.done()}
        errors = [error for future in making.values() if future.done() and (error := future.exception())]
        if errors and not self.names and not self._queued:
            raise errors[0]

    @property
    def _may_make(self) -> bool:
        """Whether more hosts may be asked for now."""
        waits = self._run.clock.monotonic() < self._refused_at + _REFUSED_SECONDS
        return self._makes and not waits and all(future.done() for future in self._queued.values())

    def _create(self, name: str, making: Future[str]) -> None:
        try:
            request = HostRequest(name, snapshot=self._snapshot)
            self._hosts.create(self.rules.provider, request, lambda text: None, made_for=self._made_for)
            self._note(name, READY)
        except BaseException as error:  # noqa: BLE001 (it is raised by whoever asks for the result)
            if self.names:
                self._refused_at = self._run.clock.monotonic()
            details = error.details if isinstance(error, MngrError) else ""
            self._note(name, DESTROYED, because=f"{error}: {details}" if details else str(error))
            making.set_exception(error)
        else:
            making.set_result(name)

    def cancel_queued(self) -> None:
        """Cancel the requests for hosts that nobody waits for any more."""
        waiting = {name: future for name, future in self._queued.items() if not future.done()}
        for name in waiting:
            self._provider.destroy(name)
        wait_until(lambda: all(one.done() for one in waiting.values()), timeout=_NONE_SECONDS, every=0.2)

    def keep_prepared(self) -> None:
        """Snapshot the first host, on which the code has been prepared by now, so that further ones begin with that.
        Only where the provider can, while no agent is there, and once."""
        if not self._makes or self._snapshot or self.rules.most < 2 or len(self.names) != 1:
            return
        (name,) = self.names
        views = self.ask({name: ()}, find.listing)[name]
        if isinstance(views, MngrError) or views[0]:
            return
        try:
            snapshot = self._provider.snapshot(name, f"{self._run.id}-prepared")
        except Unsupported:
            return
        self._run.note("host_snapshot", name=name, snapshot=snapshot)

    def create_each(
        self, hosts: Mapping[str, str], options: Mapping[str, Mapping[str, Any]]
    ) -> list[Agent | MngrError]:
        """Make these agents, each on its host, all hosts at the same time. For each, in order, the agent, or why it was
        not made."""
        groups: dict[str, dict[str, Mapping[str, Any]]] = {}
        for agent, own in options.items():
            groups.setdefault(hosts[agent], {})[agent] = own
        with ThreadPoolExecutor(len(groups)) as threads:
            made = dict(
                pair for some in threads.map(lambda host: self._create_on(host, groups[host]), groups) for pair in some
            )
        return [made[agent] for agent in options]

    def _create_on(self, host: str, options: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Agent | MngrError]]:
        site = self.site(host)
        results = create.create(site, create.requests_for(site, options))
        made = [one if isinstance(one, MngrError) else Agent(site, one) for one in results]
        if any(isinstance(one, MngrError) for one in made):
            self.answers(host)
        self.note_agents(host)
        return list(zip(options, made, strict=True))

    def note_agents(self, host: str) -> None:
        """Keep what is on a host, for the time when it does not answer."""
        if host and not isinstance(found := self.ask({host: ()}, find.listing)[host], MngrError):
            self._hosts.note(self.site(host), found[0])

    def finish(self) -> list[str]:
        """Destroy the hosts that mngr made for the run, and return the problems. One with work that is not home, or
        that does not answer, stays. One that is lost is removed with what is there, should it come back."""
        problems = []
        attempts = [attempt for task in self._run.state.tasks.values() for attempt in task.attempts]
        uncollected = [(one.host, one.agent) for one in attempts if one.agent_id and one.collected is None]
        for name in [name for name, host in self._run.state.hosts.items() if host.state in (READY, UNREACHED, LOST)]:
            known = self._hosts.known.get(self.rules.provider, name)
            if known is None or not known.ours:
                continue
            if not self.is_lost(name) and (left := [agent for host, agent in uncollected if host == name]):
                problems.append(f"`{name}` is kept: the work of {', '.join(left)} was not collected")
                continue
            try:
                host_verbs.destroy(self._hosts, known, force=True, discard=True)
            except MngrError as error:
                problems.append(f"`{name}` could not be destroyed: {error.message}")
            else:
                self._note(name, DESTROYED)
        return problems

    def _note(self, name: str, state: str, **more: Any) -> None:
        self._run.note("host", name=name, provider=self.rules.provider, state=state, **more)
