"""The pure middle of the engine: how attempts end, how many run at once, when a run pauses, and a simulated world in
which orchestrators are killed between any two entries of the ledger."""

import math
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.agent.record import timestamp
from mngr.mapreduce import attempt_end, decide, ledger_fold, orders, policy
from mngr.mapreduce.attempt_end import Observation, judge
from mngr.mapreduce.decide import View
from mngr.mapreduce.ledger import LedgerFact, fact
from mngr.mapreduce.limits import RunLimits
from mngr.mapreduce.observations import Looks
from mngr.mapreduce.orders import Order
from mngr.mapreduce.policy import ConcurrencyChange
from mngr.mapreduce.state import Attempt, AttemptUsage, Cluster, Concurrency, RunState, TaskState

LIMITS = RunLimits(timeout_seconds=100, warn_seconds=20, stall_seconds=50, rest_seconds=2, start_seconds=10)
ATTEMPT = Attempt(1, "r-a-1", 0.0, agent_id="agent-1", started_at=0.0)


def sight(state: str, reason: str = "", since: float = 10.0, **more: Any) -> Observation:
    return Observation("r-a-1", "agent-1", state, reason, since, **more)


@pytest.mark.parametrize(
    ("seen", "now", "reason"),
    [
        (sight("RUNNING"), 11, None),
        (sight("RUNNING", outcome=True), 59, None),
        (sight("RUNNING", outcome=True, reports=False, active_at=20), 51, "outcome"),
        (sight("RUNNING", active_at=40), 80, None),
        (sight("RUNNING", active_at=40), 89, None),
        (sight("WAITING", outcome=True), 10, "outcome"),
        (sight("WAITING"), 11, None),
        (sight("BLOCKED", "question: why?"), 11, None),
        (sight("BLOCKED", "question: why?"), 12, "blocked"),
        (sight("BLOCKED", "question: why?", outcome=True), 12, "outcome"),
        (sight("BLOCKED", "rate limit: retry in 30 s"), 54, None),
        (sight("BLOCKED", "rate limit"), 39, None),
        (sight("BLOCKED", "rate limit: resets in 3 hours 12 minutes"), 3 * 3600, None),
        (sight("DONE", outcome=True), 10, "outcome"),
        (sight("DONE"), 10, "no-outcome"),
        (sight("FAILED", "killed by SIGSEGV"), 10, "crash"),
        (sight("FAILED", "exit code 1", outcome=True), 10, "outcome"),
        (sight("FAILED", "its tmux session is gone", lost=True), 10, None),
        (sight("STOPPED", "stopped by `mngr stop`"), 10, "stopped"),
        (sight("STARTING"), 9, None),
        (sight("STARTING"), 10, "launch"),
        (sight("UNKNOWN", "tmux did not answer"), 50, None),
    ],
)
def test_an_attempt_ends_as_it_is_seen(seen: Observation, now: float, reason: str | None) -> None:
    judged = judge(ATTEMPT, seen, LIMITS, now)
    assert (judged.ending.reason if judged.ending else None) == reason
    if reason is None:
        assert judged.again_at > now


def test_what_was_not_heard_of_for_long_is_lost_and_what_vanished_has_crashed() -> None:
    cases = ((sight("UNKNOWN", "no answer"), 120, "host-lost"), (sight("FAILED", "gone", lost=True), 10, "crash"))
    for seen, seconds, reason in cases:
        limits = LIMITS._replace(timeout_seconds=None)
        known = ATTEMPT._replace(state=seen.state, state_at=5.0)
        assert judge(known, seen, limits, 4.9 + seconds).ending is None
        assert ended(judge(known, seen, limits, 5.0 + seconds)) == reason


def ended(judged: attempt_end.AttemptJudgement) -> str:
    return judged.ending.reason if judged.ending is not None else ""


def test_one_that_rests_is_nudged_three_times_and_heard_out() -> None:
    rests = sight("WAITING", since=10)
    nudged = ATTEMPT
    for nudge in range(3):
        at = 12.0 + 10 * nudge
        assert judge(nudged, rests, LIMITS, at).tell == "nudge"
        nudged = nudged._replace(nudged_at=at, nudges=nudge + 1)
        assert judge(nudged, rests, LIMITS, at + 5)[:2] == (None, ""), "it may not have heard it yet"
        rests = sight("WAITING", since=at + 5)
    last = judge(nudged, rests, LIMITS, 50)
    assert last.ending == ("no-outcome", "it waits and wrote no outcome, although it was asked for it 3 times")
    deaf = ATTEMPT._replace(nudged_at=12.0, nudges=1)
    assert judge(deaf, sight("WAITING", since=10), LIMITS, 71)[:2] == (None, "")
    assert judge(deaf, sight("WAITING", since=10), LIMITS, 72).tell == "nudge"


def test_what_a_killed_orchestrator_may_not_have_told_is_told_soon_after_a_resume() -> None:
    rests = sight("WAITING", since=10)
    untold = ATTEMPT._replace(nudged_at=12.0, nudges=1)
    assert judge(untold, rests, LIMITS, 29, resumed_at=20.0)[:2] == (None, ""), "it may be about to begin"
    assert judge(untold, rests, LIMITS, 30, resumed_at=20.0).tell == "nudge"
    assert judge(untold, rests, LIMITS, 30, resumed_at=11.0).tell == "", "this orchestrator is telling it"
    torn = ATTEMPT._replace(returned_at=12.0, returns=1)
    assert ended(judge(torn, sight("WAITING", since=10, outcome=True), LIMITS, 30, resumed_at=20.0)) == "outcome"


def test_one_that_was_not_told_its_task_yet_may_rest() -> None:
    untold = ATTEMPT._replace(to_be_told=True)
    assert judge(untold, sight("WAITING"), LIMITS, 50)[:2] == (None, "")
    assert judge(untold._replace(told_at=20.0), sight("WAITING"), LIMITS, 50).tell == "nudge"


def test_a_warning_comes_once_and_long_enough_before_the_time_is_over() -> None:
    busy = sight("RUNNING", active_at=79)
    assert judge(ATTEMPT, busy, LIMITS, 79) == (None, "", "", 80)
    assert judge(ATTEMPT, busy, LIMITS, 80).tell == "warning"
    warned = ATTEMPT._replace(warned_at=80.0)
    assert judge(warned, sight("RUNNING", active_at=99), LIMITS, 99) == (None, "", "", 100)
    assert ended(judge(warned, sight("RUNNING", active_at=99), LIMITS, 100)) == "timeout"
    assert judge(ATTEMPT, sight("RUNNING", active_at=500), LIMITS, 500).tell == "warning", "late, and never without"
    late = ATTEMPT._replace(warned_at=500.0)
    assert judge(late, sight("RUNNING", active_at=519), LIMITS, 519).ending is None
    assert ended(judge(late, sight("RUNNING", active_at=520), LIMITS, 520)) == "timeout"
    assert not judge(ATTEMPT, busy, LIMITS._replace(warn_seconds=0), 99).tell
    assert judge(ATTEMPT, busy, LIMITS._replace(warn_seconds=500), 50).tell == "warning", "half of its time at most"


def test_one_that_says_nothing_is_asked_before_it_is_ended() -> None:
    hangs, limits = sight("RUNNING", active_at=40), LIMITS._replace(timeout_seconds=None, stall_grace_seconds=20)
    assert judge(ATTEMPT, hangs, limits, 89)[:2] == (None, "")
    assert judge(ATTEMPT, hangs, limits, 90).tell == "stuck"
    asked = ATTEMPT._replace(stirred_at=90.0)
    assert judge(asked, hangs, limits, 109)[:2] == (None, "")
    assert ended(judge(asked, hangs, limits, 110)) == "stalled"
    assert ended(judge(asked, sight("RUNNING", active_at=91), limits, 110)) == "stalled", "that was the message itself"
    woke = sight("RUNNING", active_at=125)
    assert judge(asked, woke, limits, 174)[:2] == (None, "")
    assert judge(asked, woke, limits, 175).tell == "stuck"


def test_time_in_which_nobody_looked_counts_for_no_limit() -> None:
    slept = ((45.0, 4045.0),)
    limits = LIMITS._replace(timeout_seconds=60)
    hangs = sight("RUNNING", active_at=40)
    warned = ATTEMPT._replace(warned_at=41.0)
    assert judge(warned, hangs, limits, 4046, gaps=slept) == (None, "", "", 4061), "15 of 60 seconds are left"
    assert judge(warned, hangs, LIMITS, 4089, gaps=slept)[:2] == (None, ""), "49 of 50 seconds were looked at"
    assert judge(warned, hangs, LIMITS, 4090, gaps=slept).tell == "stuck"
    for state, since in (("STARTING", 0.0), ("UNKNOWN", 10.0)):
        known = ATTEMPT._replace(state=state, state_at=since, started_at=38.0)
        assert judge(known, sight(state), LIMITS, 4046, gaps=slept).ending is None


@pytest.mark.parametrize(
    ("intervals", "seconds"),
    [((), 90), (((0, 5),), 90), (((0, 20),), 80), (((20, 30), (25, 40)), 70), (((95, 900),), 85), (((0, 900),), 0)],
)
def test_what_is_left_out_is_left_out_once(intervals: tuple[tuple[float, float], ...], seconds: float) -> None:
    assert attempt_end.elapsed(10, 100, intervals) == seconds


def test_a_limit_is_waited_for_and_then_the_agent_is_told_to_continue() -> None:
    reason = "rate limit: 5-hour limit reached, resets in 3 hours"
    limited = sight("BLOCKED", reason, since=10)
    over = 10 + 3 * 3600 + LIMITS.limit_grace_seconds
    assert judge(ATTEMPT, limited, LIMITS, over - 1) == (None, "", "", over), "no time limit ends it meanwhile"
    assert judge(ATTEMPT, limited, LIMITS, over).tell == "continue"
    told = ATTEMPT._replace(continued_at=over, continues=1)
    assert judge(told, limited, LIMITS, over + 100)[:2] == (None, "")
    assert judge(told, limited, LIMITS, over + 200).tell == "continue", "twice as long each time"
    assert ended(judge(told._replace(continues=30), limited, LIMITS, over + 9999)) == "rate-limit"
    silent = sight("BLOCKED", "rate limit: last status: 429", since=10)
    assert judge(ATTEMPT, silent, LIMITS, 84)[:2] == (None, "")
    assert judge(ATTEMPT, silent, LIMITS, 85).tell == "continue"
    known = ATTEMPT._replace(state="BLOCKED", state_reason="rate limit: retry in 60 s", limited_until=70.0)
    assert judge(known, sight("BLOCKED", "rate limit: retry in 2 s", since=10), LIMITS, 68).again_at == 85, (
        "a count-down"
    )


def test_what_only_a_person_can_see_to_is_named_and_after_a_resume_the_agent_continues() -> None:
    out = sight("BLOCKED", "login: token expired", since=10)
    assert judge(ATTEMPT, out, LIMITS, 999) == (None, "", "login: token expired", math.inf)
    assert judge(ATTEMPT, out, LIMITS, 999, resumed_at=500).tell == "continue"
    told = ATTEMPT._replace(continued_at=501.0)
    assert judge(told, out, LIMITS, 510, resumed_at=500)[:3] == (None, "", "")
    assert judge(told, out, LIMITS, 999, resumed_at=500).needs == "login: token expired"
    again = out._replace(since=505.0)
    assert judge(told, again, LIMITS, 510, resumed_at=500).needs == "login: token expired"


@pytest.mark.parametrize("reason", attempt_end.REASONS)
def test_only_what_may_go_better_is_retried_each_time_later_and_not_for_ever(reason: str) -> None:
    limits = RunLimits(max_attempts=3, backoff_seconds=5, longest_backoff_seconds=8)
    given = [
        policy.retry_at(TaskState("a", "a", {}, (ATTEMPT,) * tries), reason, limits, now=100, quiet_until=0)
        for tries in (1, 2, 3)
    ]
    if reason in ("launch", "rate-limit", "crash", "host-lost"):
        assert given == [105, 108, None]
    else:
        assert given == [None] * 3
    more = TaskState("a", "a", {}, (ATTEMPT,) * 4, tries_from=3)
    assert policy.retry_at(more, "crash", limits, now=100, quiet_until=999) == 105
    assert policy.retry_at(more, "rate-limit", limits, now=100, quiet_until=999) == 999


def changed(
    now: Concurrency, at: float = 100, running: int = 0, wanted: int = 9, limited: float = 0, most: int = 20
) -> ConcurrencyChange | None:
    limits = RunLimits(max_agents=most, first_agents=4, round_seconds=10)
    return policy.concurrency_change(now, limits, now=at, running=running, wanted=wanted, limited_until=limited)


@pytest.mark.parametrize(
    ("before", "facts", "limit"),
    [
        (Concurrency(0), {}, 4),
        (Concurrency(4, 95), {"running": 4}, None),
        (Concurrency(4, 90), {"running": 4}, 8),
        (Concurrency(4, 90), {"running": 3}, None),
        (Concurrency(4, 99, clean=4), {}, 8),
        (Concurrency(16, 99, clean=16), {}, 20),
        (Concurrency(16, 99, clean=16), {"wanted": 0}, None),
        (Concurrency(20, 10, clean=99), {"running": 20}, None),
        (Concurrency(16, 99, slow_start=False, clean=16), {}, 17),
        (Concurrency(500, 99, slow_start=False, clean=500), {"most": 1000}, 550),
        (Concurrency(9, 50), {"limited": 130}, 4),
        (Concurrency(1, 50), {"limited": 130}, 1),
        (Concurrency(9, 50, quiet_until=120), {"limited": 130}, 9),
        (Concurrency(9, 50, quiet_until=130), {"limited": 130}, None),
        (Concurrency(9, 50, quiet_until=90), {"limited": 100}, None),
        (Concurrency(9, 50, quiet_until=120, clean=99), {}, None),
        (Concurrency(40, 50), {}, 20),
    ],
)
def test_the_number_of_places_begins_small_grows_and_is_cut(
    before: Concurrency, facts: dict[str, Any], limit: int | None
) -> None:
    change = changed(before, **facts)
    assert (change.to.limit if change else None) == limit
    if change is not None:
        assert change.because
    if facts.get("limited") and change is not None:
        assert (change.to.slow_start, change.to.quiet_until) == (False, 130)


def test_agents_are_looked_at_after_news_and_once_more_when_that_has_settled() -> None:
    assert Looks().due(0.0, news=False) and Looks().is_old(0.0), "never yet"
    quick = Looks(10.0, 10.1, news=True)
    assert quick.due(10.5, news=True) and not quick.due(10.5, news=False)
    assert quick.due(11.1, news=False), "a state that must last for a while has"
    assert not quick.is_old(11.0) and quick.is_old(11.1)
    assert not Looks(10.0, 10.1).due(14.9, news=False) and Looks(10.0, 10.1).due(15.0, news=False)
    slow = Looks(10.0, 10.8, news=True)
    assert not slow.due(13.9, news=True) and slow.due(14.1, news=True), "looking takes a fifth of the time at most"


def failed(task: str, because: str, reason: str = "crash", **more: Any) -> TaskState:
    return TaskState(task, task, {}, (ATTEMPT._replace(ended=reason, because=because, ended_at=50.0, **more),))


def of_tasks(*tasks: TaskState, **more: Any) -> RunState:
    return RunState(facts={"run": "r"}, tasks={task.id: task for task in tasks}, **more)


def test_the_breaker_opens_for_many_that_fail_alike_and_are_a_share_of_all() -> None:
    limits = RunLimits(breaker_tasks=3, breaker_share=0.5)
    alike = [failed(f"t{n}", f"`x{n}` not found in /tmp/{n} (code {n})") for n in range(3)]
    others = [failed(f"o{n}", "well", reason="outcome", verdict={"ok": True}) for n in range(3)]
    found = policy.tripped(of_tasks(*alike, *others), ["t0", "t1", "t2", "o0", "o1", "o2"], limits)
    example = "crash: `x0` not found in /tmp/0 (code 0)"
    assert found == Cluster("work", "crash: NAME not found in PATH (code N)", example, ("t0", "t1", "t2"))
    fourth = failed("o3", "well", reason="outcome")
    many = of_tasks(*alike, *others, fourth)
    assert policy.tripped(many, many.tasks, limits) is None
    few = of_tasks(*alike[:2])
    assert policy.tripped(few, few.tasks, limits) is None
    crowd = of_tasks(*alike, *(running(f"o{n}") for n in range(100)))
    assert policy.tripped(crowd, crowd.tasks, limits) is None, "what fails ends first"
    old = of_tasks(*alike, resumed_at=60.0)
    assert policy.tripped(old, old.tasks, limits) is None


@pytest.mark.parametrize(
    ("task", "stage"),
    [
        (failed("t", "no type", reason="launch"), "launch"),
        (failed("t", "x", reason="outcome", collect_error="disk"), "collect"),
        (failed("t", "x", reason="outcome", check_error="boom"), "check"),
        (failed("t", "x", reason="outcome", verdict={"failure": "prepare fails"}), "check"),
        (failed("t", "x", reason="blocked"), "work"),
        (failed("t", "x", reason="rate-limit"), None),
        (failed("t", "x", reason="stopped"), None),
    ],
)
def test_a_failure_belongs_to_its_stage(task: TaskState, stage: str | None) -> None:
    found = policy.clusters(of_tasks(task), ["t"])
    assert [one.stage for one in found] == ([stage] if stage else [])


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (RunLimits(), None),
        (RunLimits(budget_usd=2.01), None),
        (RunLimits(budget_usd=2.0), "budget"),
        (RunLimits(budget_tokens=30), "budget"),
        (RunLimits(budget_tokens=31), None),
        (RunLimits(deadline=100.0), "deadline"),
        (RunLimits(deadline=101.0), None),
    ],
)
def test_a_budget_is_over_when_it_is_used(limits: RunLimits, why: str | None) -> None:
    used = failed("t", "", usage=AttemptUsage(10, 20, 500, 2.0))
    found = policy.spent(of_tasks(used), limits, 100.0)
    assert (found[0] if found else None) == why


def test_what_was_collected_is_checked_when_a_budget_is_over_but_not_when_a_person_stops() -> None:
    spent = RunLimits(budget_usd=1.0, when_over="stop")
    done = failed("t", "", reason="outcome", collected={"tip": "c"}, usage=AttemptUsage(cost_usd=2.0), released=True)
    now = of_tasks(done)
    assert decide.decide(now, ["t"], spent, View(100.0, {})).actions == [Order(orders.CHECK, "t", 1)]
    stopped = decide.decide(now, ["t"], spent, View(100.0, {}, stop_asked=True))
    assert (stopped.over, stopped.actions) == ("stopped", ())


class Killed(Exception):
    pass


class World:
    """Agents that exist beside the orchestrators. Each was made by one attempt, does something for a while, and ends in
    one of a few ways. Entries of the ledger stay; everything else is gone with an orchestrator that is killed."""

    def __init__(self, seed: int, tasks: int, kills: set[int], limits: RunLimits) -> None:
        self.random = random.Random(seed)
        self.ledger: list[dict[str, Any]] = [{"at": timestamp(0), "type": "run", "run": "r"}]
        self.agents: dict[str, Observation] = {}
        self.fate: dict[str, tuple[float, Observation]] = {}
        self.made: list[str] = []
        self.most = 0
        self.now = 1_000_000.0
        self.kills, self.limits = kills, limits
        self.state = RunState()
        self.tasks = [f"t{number}" for number in range(tasks)]

    def note(self, type: str, **data: Any) -> None:
        self.ledger.append({"at": timestamp(self.now), "type": type, **data})
        self.state = ledger_fold.fold([self.ledger[-1]], self.state)
        if len(self.ledger) in self.kills:
            raise Killed

    def orchestrate(self) -> str:
        self.state = ledger_fold.fold(self.ledger)
        self.note("resumed")
        for task in self.tasks:
            if task not in self.state.tasks:
                self.note("task", task=task, slug=task)
        while True:
            self.pass_time()
            view = View(self.now, dict(self.seen()))
            decision = decide.decide(self.state, self.tasks, self.limits, view)
            if decision.over:
                return decision.over
            for action in decision.actions:
                self.do(action)
            if not decision.actions:
                next_event = min((at for at, _ in self.fate.values()), default=math.inf)
                self.now = max(self.now, min(decision.again_at, next_event))

    def seen(self) -> Mapping[str, Observation]:
        open_ones = {a.agent for task in self.state.tasks.values() for a in task.attempts if not a.released}
        return {name: seen for name, seen in self.agents.items() if name in open_ones}

    def pass_time(self) -> None:
        for name, (at, then) in list(self.fate.items()):
            if at <= self.now:
                self.agents[name] = then
                del self.fate[name]
        self.most = max(self.most, sum(one.alive for one in self.agents.values()))

    def make(self, name: str) -> None:
        half = self.random.random()
        if half < 0.1 and len(self.ledger) % 3 == 0:
            self.agents[name] = Observation(name, f"id-{name}", "FAILED", half_made=True, lost=True)
            raise Killed
        self.made.append(name)
        self.run(name)

    def run(self, name: str) -> None:
        half = self.random.random()
        ends = [("DONE", True), ("WAITING", True), ("FAILED", False), ("WAITING", False), ("BLOCKED", False)]
        end, outcome = self.random.choice(ends)
        at = self.now + self.random.choice([0.0, 1.0, 7.0])
        self.agents[name] = Observation(name, f"id-{name}", "RUNNING", since=self.now)
        reason = "question: x" if end == "BLOCKED" else ""
        self.fate[name] = (at, Observation(name, f"id-{name}", end, reason, at, outcome=outcome))
        if half > 0.95:
            raise Killed  # before anybody could note that it was made

    def do(self, action: Any) -> None:
        match action:
            case Order(do=orders.START, task=task, number=number, fresh=fresh):
                agent = f"run-{task}-{number}"
                if fresh:
                    self.note("attempt", task=task, number=number, agent=agent)
                assert agent not in self.agents or self.agents[agent].half_made, f"{agent} would be made twice"
                self.make(agent)
                self.note("started", task=task, number=number, agent_id=f"id-{agent}")
            case Order(do=orders.RESTART, task=task, number=number, fresh=fresh, counts=counts):
                if fresh:
                    self.note("restarted", task=task, number=number, counts=counts)
                agent = self.state.tasks[task].attempts[number - 1].agent
                assert not self.agents[agent].alive, f"{agent} would run twice"
                self.run(agent)
                self.note("started", task=task, number=number, agent_id=f"id-{agent}")
            case Order(do=orders.ADOPT, task=task, number=number, agent_id=agent_id):
                self.note("started", task=task, number=number, agent_id=agent_id)
            case Order(do=orders.TELL, task=task, number=number, what=what):
                self.note(orders.NOTED[what], task=task, number=number)
                name = self.state.tasks[task].attempts[number - 1].agent
                self.agents[name] = self.agents[name]._replace(since=self.now + 0.001)
                self.now += 0.002
            case Order(do=orders.COLLECT, task=task, number=number):
                self.note("collected", task=task, number=number, data={})
            case Order(do=orders.CHECK, task=task, number=number):
                self.note("verdict", task=task, number=number, data={"ok": True})
            case Order(do=orders.STOP, task=task, number=number):
                name = self.state.tasks[task].attempts[number - 1].agent
                self.agents[name] = self.agents[name]._replace(state="STOPPED")
                self.fate.pop(name, None)
                self.note("released", task=task, number=number)
            case LedgerFact(type, data):
                self.note(type, **data)
            case _:
                raise AssertionError(action)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    tasks=st.integers(1, 7),
    kills=st.sets(st.integers(2, 150), max_size=25),
    places=st.integers(1, 5),
)
def test_whatever_is_killed_when_every_task_is_settled_and_no_agent_made_twice(
    seed: int, tasks: int, kills: set[int], places: int
) -> None:
    limits = RunLimits(max_agents=places, first_agents=places, max_launching=places, breaker_tasks=0, max_attempts=2)
    world = World(seed, tasks, kills, limits)
    for _ in range(len(kills) + 200):
        try:
            over = world.orchestrate()
            break
        except Killed:
            world.now += 0.5
    else:
        pytest.fail("it does not come to an end")
    assert over == decide.SETTLED
    assert len(world.made) == len(set(world.made))
    assert world.most <= places
    found = ledger_fold.fold(world.ledger)
    assert found == world.state
    for task in found.tasks.values():
        assert 1 <= task.tries <= 2
        assert all(attempt.released for attempt in task.attempts if attempt.agent_id)
        assert [attempt.number for attempt in task.attempts] == list(range(1, len(task.attempts) + 1))
    assert {a.agent for task in found.tasks.values() for a in task.attempts if a.agent_id} == set(world.made)


def test_a_stop_ends_what_runs_with_its_work_collected_and_begins_nothing() -> None:
    running = TaskState("a", "a", {}, (ATTEMPT,))
    waiting = TaskState("b", "b", {})
    known = of_tasks(running, waiting, concurrency=Concurrency(4))
    view = View(50.0, {"r-a-1": sight("RUNNING", active_at=49)}, stop_asked=True)
    actions = decide.decide(known, ["a", "b"], LIMITS, view).actions
    assert names(actions) == ["state", "ended"]
    assert actions[-1] == orders.ended("a", 1, "stopped", "somebody stopped the run", 0.0)
    over = decide.decide(of_tasks(waiting, stopped_at=1.0), ["b"], LIMITS, View(50.0, {}))
    assert (over.over, over.actions) == ("stopped", ())


def test_work_that_is_under_way_is_not_decided_again() -> None:
    known = of_tasks(TaskState("a", "a", {}), TaskState("b", "b", {}), concurrency=Concurrency(1, 49))
    decision = decide.decide(known, ["a", "b"], LIMITS, View(50.0, {}, busy={("a", 1)}))
    assert decision.actions == []
    done = of_tasks(failed("a", "", reason="outcome"), concurrency=Concurrency(1))
    view = View(50.0, {"r-a-1": sight("WAITING", outcome=True)}, busy={("a", 1)})
    assert decide.decide(done, ["a"], LIMITS, view).actions == []
    assert names(decide.decide(done, ["a"], LIMITS, view._replace(busy=set())).actions) == ["collect"]


def tell(task: str, what: str) -> Order:
    return Order(orders.TELL, task, 1, what=what)


def names(actions: Any) -> list[str]:
    return [one.type if isinstance(one, LedgerFact) else one.do for one in actions]


def running(task: str, **more: Any) -> TaskState:
    return TaskState(task, task, {}, (ATTEMPT._replace(agent=f"r-{task}-1", agent_id=f"id-{task}", **more),))


def seen_as(*sights: Observation, **more: Any) -> View:
    return View(more.pop("now", 100.0), {one.agent: one for one in sights}, **more)


def seen(task: str, state: str, reason: str = "", since: float = 10.0, **more: Any) -> Observation:
    return Observation(f"r-{task}-1", f"id-{task}", state, reason, since, **more)


NO_TIMES = RunLimits(timeout_seconds=None, stall_seconds=None, breaker_tasks=0)


def test_a_reason_that_counts_down_is_noted_once() -> None:
    first = decide.decide(
        of_tasks(running("a"), concurrency=Concurrency(1, quiet_until=999)),
        ["a"],
        NO_TIMES,
        seen_as(seen("a", "BLOCKED", "rate limit: retry in 300 s", 100.0)),
    ).actions
    assert first == [
        fact("state", task="a", number=1, state="BLOCKED", reason="rate limit: retry in 300 s", until=400.0)
    ]
    known = running(
        "a", state="BLOCKED", state_reason="rate limit: retry in 300 s", state_at=100.0, limited_until=400.0
    )
    state = of_tasks(known, concurrency=Concurrency(1, quiet_until=999))
    for left in (299, 150, 1):
        view = seen_as(seen("a", "BLOCKED", f"rate limit: retry in {left} s", 100.0), now=400.0 - left)
        assert decide.decide(state, ["a"], NO_TIMES, view).actions == []
    longer = seen_as(seen("a", "BLOCKED", "rate limit: retry in 900 s", 100.0))
    assert names(decide.decide(state, ["a"], NO_TIMES, longer).actions)[0] == "state"
    other = seen_as(seen("a", "BLOCKED", "rate limit: weekly: retry in 300 s", 100.0))
    assert names(decide.decide(state, ["a"], NO_TIMES, other).actions)[0] == "state"


def test_a_long_limit_makes_everybody_wait_and_is_noted_once() -> None:
    reason = "rate limit: try again in 3 hours"
    known = running("a", state="BLOCKED", state_reason=reason, state_at=100.0, limited_until=10_900.0)
    state = of_tasks(known, TaskState("b", "b", {}), concurrency=Concurrency(4))
    view = seen_as(seen("a", "BLOCKED", reason, 100.0))
    actions = decide.decide(state, ["a", "b"], NO_TIMES, view).actions
    assert fact("waits", until=10_900.0, because=reason) in actions and "start" not in names(actions)
    waits = state._replace(waits_until=10_900.0, concurrency=Concurrency(2, quiet_until=130.0))
    later = decide.decide(waits, ["a", "b"], NO_TIMES, view._replace(now=5000.0))
    assert names(later.actions) == ["concurrency"] and not later.over
    answered = waits._replace(concurrency=Concurrency(2, quiet_until=10_900.0))
    for now in (5000.0, 10_905.0):
        assert decide.decide(answered, ["a"], NO_TIMES, view._replace(now=now)).actions == [], "it was answered"
    told = answered._replace(tasks={"a": known._replace(attempts=(known.attempts[0]._replace(continued_at=10_920.0),))})
    assert decide.decide(told, ["a"], NO_TIMES, view._replace(now=10_921.0)).actions == [], "it is about to continue"
    assert decide.decide(waits, ["a", "b"], NO_TIMES, view._replace(now=10_920.0)).actions[0] == tell("a", "continue")


def test_an_account_that_cannot_be_used_pauses_the_run_and_is_named_once() -> None:
    locked = {"state": "BLOCKED", "state_reason": "login: token expired", "state_at": 20.0}
    state = of_tasks(
        running("a", **locked), running("b", **locked), TaskState("c", "c", {}), concurrency=Concurrency(4)
    )
    view = seen_as(seen("a", "BLOCKED", "login: token expired"), seen("b", "BLOCKED", "login: token expired"))
    tasks = ["a", "b", "c"]
    assert decide.decide(state, tasks, NO_TIMES, view).actions == [fact("paused", because="login: token expired")]
    paused = state._replace(paused="login: token expired")
    assert decide.decide(paused, tasks, NO_TIMES, view)[2:] == ("paused", "login: token expired")
    works = seen_as(view.seen["r-a-1"], seen("b", "RUNNING", since=99.0))
    assert not decide.decide(paused, tasks, NO_TIMES, works).over, "who can work works"
    resumed = state._replace(resumed_at=90.0)
    assert decide.decide(resumed, tasks, NO_TIMES, view).actions[:2] == [
        tell("a", "continue"),
        tell("b", "continue"),
    ]
    assert "start" in names(decide.decide(resumed, tasks, NO_TIMES, view).actions)
    both = seen_as(seen("a", "RUNNING", since=99.0), seen("b", "RUNNING", since=99.0))
    assert fact("paused", because="") in decide.decide(paused, tasks, NO_TIMES, both).actions, (
        "somebody logged in meanwhile"
    )


def over_early(reason: str, **more: Any) -> TaskState:
    facts = {"ended_at": 50.0, "retry": True, "collected": {"tip": "c"}, "released": True, "restartable": True}
    return running("a", ended=reason, **{**facts, **more})


@pytest.mark.parametrize(
    ("task", "action"),
    [
        (over_early("crash"), "restart"),
        (over_early("crash", restarts=1), "start"),
        (over_early("crash", restartable=False), "start"),
        (over_early("crash", released=False, release_at=math.inf), "start"),
        (over_early("stopped", restarts=1), "restart"),
        (over_early("launch"), "start"),
        (over_early("blocked")._replace(tries_from=1), "start"),
        (over_early("blocked")._replace(tries_from=1, message="do it so"), "restart"),
        (over_early("host-lost", collected=None), "start"),
    ],
)
def test_the_next_try_is_the_same_agents_where_that_helps(task: TaskState, action: str) -> None:
    state = of_tasks(task, concurrency=Concurrency(4, 99))
    view = seen_as(seen("a", "UNKNOWN")) if task.last and task.last.collected is None else seen_as()
    assert action in names(decide.decide(state, ["a"], NO_TIMES, view).actions)


def test_an_agent_is_stopped_before_it_is_started_again() -> None:
    state = of_tasks(over_early("crash", released=False), concurrency=Concurrency(4, 99))
    assert names(decide.decide(state, ["a"], NO_TIMES, seen_as(seen("a", "FAILED"))).actions) == ["stop"]


def test_what_failed_is_tried_again_later_and_keeps_no_run_from_its_end() -> None:
    def known(task: TaskState) -> RunState:
        return of_tasks(task, concurrency=Concurrency(4))

    uncollected = over_early(
        "outcome", retry=False, released=False, collected=None, collect_error="disk", collect_at=120.0
    )
    view = seen_as(seen("a", "WAITING", outcome=True))
    assert decide.decide(known(uncollected), ["a"], NO_TIMES, view) == ([], 120.0, "", "")
    assert names(decide.decide(known(uncollected), ["a"], NO_TIMES, view._replace(now=120.0)).actions) == ["collect"]
    given_up = over_early("outcome", retry=False, released=False, collected=None, collect_at=math.inf)
    assert decide.decide(known(given_up), ["a"], NO_TIMES, view).over == "settled"
    running_on = over_early("outcome", retry=False, verdict={}, released=False, release_error="x", release_at=120.0)
    assert decide.decide(known(running_on), ["a"], NO_TIMES, view) == ([], 120.0, "", "")
    unchecked = over_early("outcome", retry=False, verdict={"failure": "disk"}, check_at=120.0)
    assert decide.decide(known(unchecked), ["a"], NO_TIMES, seen_as()) == ([], 120.0, "", "")
    assert names(decide.decide(known(unchecked), ["a"], NO_TIMES, seen_as(now=120.0)).actions) == ["check"]


def test_one_that_was_lost_and_is_back_goes_on_or_is_collected() -> None:
    lost = over_early("host-lost", collected=None, released=False, retry_at=500.0)
    state = of_tasks(lost, concurrency=Concurrency(4, 99))
    assert decide.decide(state, ["a"], NO_TIMES, seen_as(seen("a", "UNKNOWN"))).actions == []
    assert decide.decide(state, ["a"], NO_TIMES, seen_as(seen("a", "RUNNING"))).actions == [
        fact("back", task="a", number=1)
    ]
    younger = lost._replace(attempts=(*lost.attempts, ATTEMPT._replace(number=2, agent="r-a-2", state="RUNNING")))
    view = seen_as(seen("a", "RUNNING"), sight("RUNNING")._replace(agent="r-a-2"))
    assert decide.decide(of_tasks(younger), ["a"], NO_TIMES, view).actions[0] == Order(orders.COLLECT, "a", 1, "id-a")


def test_one_whose_host_does_not_answer_is_told_its_task_when_it_does() -> None:
    untold = running("a", to_be_told=True, state="UNKNOWN", state_at=95.0, host="h1")
    state = of_tasks(untold, concurrency=Concurrency(4, 99))
    silent = decide.decide(state, ["a"], NO_TIMES, seen_as(seen("a", "UNKNOWN")))
    assert silent.actions == [] and silent.again_at > 100.0
    told = decide.decide(state, ["a"], NO_TIMES, seen_as(seen("a", "WAITING"))).actions
    assert told[-1] == tell("a", orders.TASK)


def test_work_that_is_not_home_is_lost_with_its_host_and_retried() -> None:
    done = over_early("outcome", retry=False, collected=None, released=False, host="h1")
    unknown = seen_as(seen("a", "UNKNOWN"))
    first = decide.decide(of_tasks(done, concurrency=Concurrency(4, 99)), ["a"], NO_TIMES, unknown).actions
    assert first == [fact("state", task="a", number=1, state="UNKNOWN", reason="")]
    (attempt,) = done.attempts
    waits = done._replace(attempts=(attempt._replace(state="UNKNOWN", state_at=unknown.now - 10),))
    assert decide.decide(of_tasks(waits, concurrency=Concurrency(4, 99)), ["a"], NO_TIMES, unknown).actions == []
    gone = seen_as(seen("a", "UNKNOWN", lost=True))
    for late, view in ((NO_TIMES._replace(lost_seconds=5), unknown), (NO_TIMES, gone)):
        (lost,) = decide.decide(of_tasks(waits, concurrency=Concurrency(4, 99)), ["a"], late, view).actions
        assert isinstance(lost, LedgerFact) and lost.type == "lost" and lost.data["retry"] is True
    here = done._replace(attempts=(attempt._replace(host=""),))
    assert decide.decide(of_tasks(here, concurrency=Concurrency(4, 99)), ["a"], NO_TIMES, gone).actions == []


def test_the_breaker_stays_closed_for_the_agents_of_one_lost_host() -> None:
    limits = RunLimits(breaker_tasks=3)
    for host, opens in (("h1", False), ("", True)):
        tasks = [running(name, ended="host-lost", ended_at=50.0, because="no answer", host=host) for name in "abc"]
        assert (policy.tripped(of_tasks(*tasks), "abc", limits) is not None) is opens


def test_the_breaker_opens_for_claims_that_are_alike_and_lets_nothing_be_checked_that_cannot_be() -> None:
    limits = RunLimits(breaker_tasks=3)
    claims = [failed(f"t{n}", "", reason="outcome", verdict={"blocked": "no network"}) for n in range(3)]
    found = policy.tripped(of_tasks(*claims), ["t0", "t1", "t2"], limits)
    assert found is not None and (found.stage, found.example) == ("work", "blocked: no network")
    broken: list[dict[str, Any]] = [{"verdict": {"failure": "`prepare` failed"}}, {"check_error": "`prepare` failed"}]
    done = {"collected": {"x": 1}, "released": True, "checked_at": 80.0, "check_at": 0.0}
    full = [failed(f"t{n}", "", "outcome", **done, **one) for n, one in enumerate(broken * 2)]
    state = of_tasks(*full, resumed_at=70.0)
    opened = decide.decide(state, list(state.tasks), limits, View(100.0, {})).actions
    assert names(opened) == ["breaker"], "and no `Check`"
    over = decide.decide(
        state._replace(trip=Cluster("check", "x", "`prepare` failed", tuple(state.tasks))),
        list(state.tasks),
        limits,
        View(100.0, {}),
    )
    assert (over.over, over.because) == ("breaker", "4 tasks failed in the same way: `prepare` failed")
