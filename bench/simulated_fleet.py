"""A fleet whose hosts and agents are simulated: the real `Fleet` and `Agent` over a site that answers an engine from a
seeded model. Agents start slowly, crash, ask, fall silent, meet rate limits; hosts get lost and are replaced."""

import json
import random
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from bench.simulated_clock import SimulatedClock
from mngr.actions import create, find, lifecycle, message, outcome, transcript, usage
from mngr.actions.create import CreateRequest
from mngr.actions.lifecycle import Stopped
from mngr.actions.message import Delivery
from mngr.actions.site import Site
from mngr.actions.usage import CollectedUsage
from mngr.actions.view import AgentView
from mngr.agent import state as states
from mngr.agent.record import AgentLife, AgentSpec, AgentWorkspace, Record, timestamp
from mngr.agent.state import Status
from mngr.errors import MngrError, NotFoundError
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.mapreduce.recipe import AgentLaunch, Recipe
from mngr.mapreduce.state import Attempt, TaskState
from mngr.programs.driver import ModelUsage
from mngr.system.tmux import Pane

_LIST_SECONDS = 0.02
_LIST_SECONDS_PER_AGENT = 0.005
_REPLACED_SECONDS = 90.0
DONE, CRASH, BLOCKED, SILENT = "done", "crash", "blocked", "silent"


class Troubles(NamedTuple):
    """Shares of all hosts, launches and attempts; `limits` counts moments at which a tenth of the working agents meets
    a rate limit."""

    host_loss: float = 0.05
    launch_errors: float = 0.01
    slow_starts: float = 0.02
    crashes: float = 0.05
    blocked: float = 0.02
    silent: float = 0.02
    limits: int = 2
    work_seconds: float = 300.0


class Host:
    def __init__(self, name: str) -> None:
        self.name, self.up, self.lost_at = name, True, 0.0
        self.agents: list[str] = []


class SimulatedAgent:
    """`turn` counts changes, so that what was planned before one of them is not done after it."""

    def __init__(self, record: Record, host: Host, fate: str, work: float) -> None:
        self.record, self.host, self.fate, self.left = record, host, fate, work
        self.state, self.reason, self.since = states.STARTING, "", 0.0
        self.exit_code: int | None = None
        self.outcome = self.told = self.placed = False
        self.turn, self.worked = 0, 0.0


class SimulatedSite(Site):
    """Answers the verbs that an engine uses. Every agent name may be made once."""

    def __init__(
        self, clock: SimulatedClock, directory: str, seed: int, hosts: int, per_host: int, troubles: Troubles
    ) -> None:
        super().__init__(environ={"HOME": directory, "MNGR_HOST_DIR": f"{directory}/mngr"}, cwd=directory)
        self.clock, self._seed, self._per_host, self._troubles = clock, seed, per_host, troubles
        self._chance = random.Random(seed)
        self.agents: dict[str, SimulatedAgent] = {}
        self.names: set[str] = set()
        self._free: deque[Host] = deque()
        self.hosts: list[Host] = []
        self.counts: Counter[str] = Counter()
        self._pooled = not hosts
        self._lock = threading.RLock()
        for _ in range(hosts):
            self._add_host()
        self._verbs: dict[object, Callable[..., Any]] = {
            find.listing: self._listing,
            find.records: self._records,
            find.agent: lambda id: self._view(self._known(id)),
            create.create: self._create_each,
            outcome.listing: self._outcomes,
            outcome.exists: lambda id: self.agents[id].outcome,
            outcome.read: self._outcome,
            transcript.events: self._events,
            message.deliver: self._deliver,
            lifecycle.start: self._start,
            lifecycle.stop: self._stop,
            lifecycle.adopt: lambda id: self._known(id).record,
            usage.collected: self._usage,
        }

    def run(self, verb: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return self._verbs[verb](*args, **options)

    def plan_troubles(self, seconds: float, hosts: int) -> None:
        """Lose a share of this many hosts and meet limits at moments of the next so many seconds."""
        now, chance = self.clock.now, self._chance
        for _ in range(round(hosts * self._troubles.host_loss)):
            self.clock.at(now + chance.uniform(0.1, 0.9) * seconds, self._lose_one)
        for _ in range(self._troubles.limits):
            self.clock.at(now + chance.uniform(0.2, 0.8) * seconds, self._limit)

    def _add_host(self) -> None:
        host = Host(f"h{len(self.hosts)}")
        self.hosts.append(host)
        self._free.extend([host] * self._per_host)

    def _lose_one(self) -> None:
        up = [host for host in self.hosts if host.up]
        if not up:
            return
        host = self._chance.choice(up)
        self.counts["hosts lost"] += 1
        host.up, host.lost_at = False, self.clock.now
        for agent in self.agents.values():
            if agent.host is host and agent.state in states.ALIVE and not agent.outcome:
                self.counts["agents lost"] += 1
                self._become(agent, states.UNKNOWN, f"host `{host.name}` did not answer within 10 s")
        if not self._pooled:
            self.clock.at(self.clock.now + _REPLACED_SECONDS, self._add_host)

    def _limit(self) -> None:
        running = [agent for agent in self.agents.values() if agent.state == states.RUNNING]
        for agent in self._chance.sample(running, len(running) // 10):
            self.counts["rate limits"] += 1
            agent.left = max(1.0, agent.left - (self.clock.now - agent.since))
            self._become(agent, states.BLOCKED, f"rate limit: retry in {self._chance.randint(60, 120)} s")

    def _become(self, agent: SimulatedAgent, state: str, reason: str = "") -> None:
        if agent.state == states.RUNNING:
            agent.worked += self.clock.now - agent.since
        agent.state, agent.reason, agent.since = state, reason, self.clock.now
        agent.turn += 1
        self.clock.change(f"{self.host.dir}/agents/{agent.record.id}/events.jsonl")

    def _later(self, agent: SimulatedAgent, seconds: float, deed: Callable[[SimulatedAgent], None]) -> None:
        turn = agent.turn

        def do() -> None:
            if agent.turn == turn:
                deed(agent)

        self.clock.at(self.clock.now + seconds, do)

    def _create_each(self, requests: Sequence[CreateRequest], progress: object) -> list[Record | MngrError]:
        made: list[Record | MngrError] = []
        for request in requests:
            while self._free and not self._free[0].up:
                self._free.popleft()
            result = self._create(request, self._free[0]) if self._free else MngrError("no host has room")
            if not isinstance(result, MngrError):
                self._free.popleft()
            made.append(result)
        return made

    def create_on(self, host: Host, requests: Sequence[CreateRequest]) -> list[Record | MngrError]:
        """Called by a thread for each host."""
        with self._lock:
            return [self._create(request, host) for request in requests]

    def _create(self, request: CreateRequest, host: Host) -> Record | MngrError:
        name = request.name
        assert name not in self.names, f"`{name}` is made twice"
        chance, troubles = random.Random(f"{self._seed} {name}"), self._troubles
        if chance.random() < troubles.launch_errors:
            self.counts["launch errors"] += 1
            return MngrError("the host refused another session")
        self.names.add(name)
        id, now = f"agent-{len(self.agents):08d}", timestamp(self.clock.now)
        record = Record(
            id,
            name,
            AgentSpec("simulated", "simulated", labels=request.labels, reports=True),
            AgentWorkspace("/work", "none"),
            AgentLife(name, now, started_at=now),
        )
        point, fate = chance.random(), DONE
        for word, share in ((CRASH, troubles.crashes), (BLOCKED, troubles.blocked), (SILENT, troubles.silent)):
            if 0 <= point < share:
                fate = word
            point -= share
        work = chance.lognormvariate(0.0, 0.5) * troubles.work_seconds
        agent = self.agents[id] = SimulatedAgent(record, host, fate, work)
        host.agents.append(id)
        agent.placed = True
        slow = chance.random() < troubles.slow_starts
        self.counts["slow starts"] += slow
        self._boot(agent, chance.uniform(150, 300) if slow else chance.uniform(3, 15))
        return record

    def _boot(self, agent: SimulatedAgent, seconds: float) -> None:
        self._become(agent, states.STARTING)
        self._later(agent, seconds, lambda one: self._work(one) if one.told else self._become(one, states.WAITING))

    def _work(self, agent: SimulatedAgent) -> None:
        self._become(agent, states.RUNNING)
        early = agent.left * {CRASH: 0.5, BLOCKED: 0.3}.get(agent.fate, 1.0)
        self._later(agent, early, self._reach_fate)

    def _reach_fate(self, agent: SimulatedAgent) -> None:
        fate, agent.fate = agent.fate, DONE
        self.counts[fate] += 1
        match fate:
            case "crash":
                agent.exit_code = 1
                self._become(agent, states.FAILED, "exit code 1")
            case "blocked":
                self._become(agent, states.BLOCKED, "question: which of the two is right?")
            case "silent":
                agent.left = 20.0
                self._become(agent, states.WAITING)
            case _:
                agent.outcome = True
                self._become(agent, states.WAITING)

    def _known(self, id: str) -> SimulatedAgent:
        agent = self.agents.get(id)
        if agent is None:
            raise NotFoundError(f"no agent has the id `{id}`")
        return agent

    def _answers(self, agent: SimulatedAgent) -> bool:
        """Agents at work are lost with their host; of those that had ended, the replacement has the disk, unless the
        pool has the say: then a host that is lost is gone."""
        back = (
            not self._pooled
            and agent.state != states.UNKNOWN
            and self.clock.now >= agent.host.lost_at + _REPLACED_SECONDS
        )
        return agent.host.up or back

    def _reached(self, id: str) -> SimulatedAgent:
        agent = self._known(id)
        if not self._answers(agent):
            raise MngrError(f"host `{agent.host.name}` did not answer within 10 s")
        return agent

    def _deliver(self, id: str, text: str, *, start: bool = False) -> Delivery:
        agent = self._reached(id)
        if agent.state not in states.ALIVE:
            raise MngrError(f"`{agent.record.name}` is {agent.state}")
        first, agent.told = not agent.told, True
        if agent.state in (states.WAITING, states.BLOCKED) and (first or not agent.outcome):
            self._work(agent)
        return Delivery("m", agent.record.name, True, False)

    def _start(self, id: str) -> tuple[Record, bool]:
        agent = self._reached(id)
        agent.exit_code = None
        self._boot(agent, 5.0)
        agent.told = False
        return agent.record, True

    def _stop(self, id: str, *, graceful_seconds: float = 0.0) -> Stopped:
        agent = self._reached(id)
        if agent.placed and not self._pooled:
            self._free.append(agent.host)
            agent.placed = False
        self._become(agent, states.STOPPED, "stopped by `mngr stop`")
        agent.record = agent.record.changed(stopped_at=timestamp(self.clock.now))
        return Stopped(agent.record, True)

    def _view(self, agent: SimulatedAgent) -> AgentView:
        record, now = agent.record, self.clock.now
        if not self._answers(agent):
            silence = f"host `{agent.host.name}` did not answer within 10 s"
            return AgentView(record, Status(states.UNKNOWN, silence, agent.since, "simulated"), None)
        status = Status(agent.state, agent.reason, agent.since, "simulated", agent.exit_code)
        if agent.state not in states.ALIVE and agent.state != states.FAILED:
            return AgentView(record, status, None)
        died_at = agent.since if agent.state == states.FAILED else None
        pane = Pane(
            record.id, record.life.session, "%1", 1, "", died_at is not None, agent.exit_code, None, died_at, now, False
        )
        return AgentView(record, status, pane)

    def _listing(self, only: Collection[str] | None = None) -> tuple[list[AgentView], list[MngrError]]:
        found = [self.agents[id] for id in (self.agents if only is None else only) if id in self.agents]
        if not self._pooled:
            self.clock.spend(_LIST_SECONDS + _LIST_SECONDS_PER_AGENT * len(found))
        return [self._view(agent) for agent in found], []

    def _outcomes(self, ids: Collection[str]) -> tuple[list[tuple[AgentView, bool]], list[MngrError]]:
        views, errors = self._listing(ids)
        return [(view, self.agents[view.id].outcome) for view in views], errors

    def _records(self, words: Sequence[str]) -> list[Record]:
        return [self._known(word).record for word in words]

    def _outcome(self, id: str, at_most: int = 0) -> bytes | None:
        written = {"schema": 1, "status": "done", "summary": "done", "changes": [], "escalations": []}
        return json.dumps(written).encode() if self._reached(id).outcome else None

    def _events(self, id: str) -> list[dict[str, Any]]:
        told = self._known(id).told
        return [{"type": "message_queued"}, {"type": "message_delivered"}] if told else []

    def _usage(self, ids: Sequence[str] | None = None) -> CollectedUsage:
        found = []
        for agent in (self._known(id) for id in ids or ()):
            running = self.clock.now - agent.since if agent.state == states.RUNNING else 0.0
            tokens = int(agent.worked + running) * 50
            used = ModelUsage(timestamp(self.clock.now), "simulated", tokens, tokens // 10, cost_usd=tokens * 1e-6)
            found.append((agent.record, [used] if tokens else []))
        return CollectedUsage(found, [], [])


class SimulatedFleet(Fleet):
    def __init__(self, site: SimulatedSite) -> None:
        self.local = site


class SimulatedRecipe(Recipe):
    """`accepted` counts for each task the outcomes that were collected and checked."""

    def __init__(self) -> None:
        self.accepted: Counter[str] = Counter()

    def launch(self, task: TaskState, attempt: Attempt) -> AgentLaunch:
        return AgentLaunch("command", ("simulated",), message="Do your task.")

    def collect(self, task: TaskState, attempt: Attempt, agent: Agent) -> Mapping[str, Any]:
        written = agent.site.run(outcome.read, agent.id)
        claim = json.loads(written) if written else {}
        return {"tip": "c" * 40 if claim else "", "outcome": claim}

    def check(self, task: TaskState, attempt: Attempt, collected: Mapping[str, Any]) -> Mapping[str, Any]:
        if not collected.get("outcome"):
            return {"verdict": "unclaimed", "reasons": [attempt.because], "flags": []}
        self.accepted[task.id] += 1
        return {"verdict": "improved", "reasons": ["passes before and after"], "flags": []}
