"""A run of `mngr tmr` in the rows of its pages. Pure: what was read is given."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mngr.mapreduce.state import RunState, TaskState
from mngr.names import nearest
from mngr.report.source import key
from mngr.report.tmr_chart import chart
from mngr.tmr import baseline, verdict
from mngr.tmr.rows import GOOD, cases, worst
from mngr.tmr.summary import doing, flagged, row, summary, tasks_of, verdict_of, why

_LINE_MAX = 300
_TEXT_MAX = 4000
_EVIDENCE_MAX = 20
_LISTED_MAX = 400
# What a reader wants to see first: what needs somebody, then what was achieved, then the rest.
ORDER = (
    *(verdict.BLOCKED, verdict.HELD, verdict.REFUTED, verdict.REFUSED, verdict.FAILED, verdict.UNCLAIMED),
    *("running", "launching", "collecting", "checking", "waiting"),
    *(verdict.FIXED, verdict.IMPROVED, verdict.UNCHANGED, verdict.NOT_STARTED),
)
_NOT_PASSING = (baseline.FAIL, baseline.BROKEN, baseline.FLAKY)


class Known(NamedTuple):
    """All that the rows are made of. `tests` are those of the base by id, `measured` what each did there, `functions`
    what all cases of one did there, `at_tip` what each did at the tip of the branch; `trends` say how a test stands
    against earlier runs."""

    state: RunState
    told: Sequence[Mapping[str, Any]] = ()
    tests: Mapping[str, Mapping[str, Any]] = {}
    measured: Mapping[str, Mapping[str, Any]] = {}
    at_tip: Mapping[str, str] = {}
    functions: Mapping[str, Mapping[str, Any]] = {}
    trends: Mapping[str, str] = {}
    against: str = ""
    going_on: bool = False
    now: float = 0.0

    @property
    def integration(self) -> Mapping[str, Any]:
        """What integration wrote down at its end; empty before."""
        phase = self.state.phases.get("integrate")
        return phase.data if phase is not None and phase.ended_at is not None else {}


def overview(known: Known) -> dict[str, Any]:
    """The first page, with a row for each task."""
    state = known.state
    keys = {task.slug: key(task.slug) for task in state.tasks.values()}
    rows = [task_row(known, task) for task in tasks_of(state)]
    integration = known.integration
    return {
        "run": _run(known),
        "verdicts": _counted(rows),
        "order": [kind_of(word) for word in ORDER],
        "tests": before_and_after(known),
        "chart": chart(state, known.told, known.now if known.going_on else state.last_at),
        "branch": _branch(known, keys),
        "aside": [_aside(one, keys, state) for one in integration.get("set_aside", ())],
        "clusters": clusters(known),
        "asks": _asks(known),
        "lines": _lines(known),
        "decisions": [_decision(entry, keys) for entry in known.told if entry["type"] == "decision"][-_LISTED_MAX:],
        "changes": [_change(entry) for entry in known.told if entry["type"] in _CHANGES][-_LISTED_MAX:],
        "history": {"against": known.against, "counts": dict(Counter(filter(None, known.trends.values())))},
        "tasks": rows,
    }


def before(known: Known, task: str) -> Mapping[str, Any]:
    """What its test did at the base; the worst of its cases if it has parameters."""
    return known.functions.get(task) or known.measured.get(task, {})


def task_row(known: Known, task: TaskState) -> dict[str, Any]:
    """One task in the table."""
    found = row(task)
    word = verdict_of(task)
    last = task.last
    file, _, name = task.id.partition("::")
    return {
        "key": key(task.slug),
        "slug": task.slug,
        "name": name or file,
        "file": file,
        "line": known.tests.get(task.id, {}).get("line", 0),
        "verdict": word,
        "kind": kind_of(word),
        "rank": ORDER.index(word) if word in ORDER else len(ORDER),
        "why": line(why(task)),
        "before": before(known, task.id).get("verdict", ""),
        "after": found["after"] or "",
        "at_tip": known.at_tip.get(task.id) or worst([known.at_tip[case] for case in cases(task.id, known.at_tip)]),
        "flags": sorted({str(flag["kind"]) for flag in found["flags"]}),
        "agent": found["agent"] or "",
        "state": last.state if last is not None and last.goes_on else "",
        "attempts": found["attempts"],
        "tokens": found["tokens"],
        "cost_usd": found["cost_usd"],
        "started_at": task.attempts[0].intended_at if task.attempts else None,
        "seconds": _seconds(task, known.now),
        "escalations": len(found["escalations"]),
        "trend": known.trends.get(task.id, ""),
        "signature": line(str(before(known, task.id).get("signature") or "")),
    }


def kind_of(word: str) -> str:
    """A verdict as a word without spaces, for addresses and styles."""
    return word.replace(" ", "-")


def line(text: str, most: int = _LINE_MAX) -> str:
    """In one line, not without end."""
    one = " ".join(text.split())
    return one if len(one) <= most else one[: most - 1] + "…"


def cut(text: str, most: int = _TEXT_MAX) -> str:
    return text if len(text) <= most else text[:most] + "\n… (cut here)"


def before_and_after(known: Known) -> dict[str, Any]:
    """All tests of the suite: at the base, and at the tip of the branch as its gate measured them."""
    before = Counter(str(one.get("verdict")) for one in known.measured.values())
    after: Counter[str] = Counter()
    for outcome in known.at_tip.values():
        after["pass" if outcome in GOOD else "skipped" if outcome == "skipped" else "fail"] += 1
    integration = known.integration
    return {
        "before": dict(before),
        "after": dict(after) if known.at_tip else None,
        "new": len(set(known.at_tip) - set(known.tests)) if known.at_tip else 0,
        "failing": [_linked(test, known.state) for test in dict.fromkeys(integration.get("excused", ()))],
    }


def clusters(known: Known) -> list[dict[str, Any]]:
    """Tests that did not pass at the base, put together by how they failed; the biggest cluster first."""
    found: dict[str, list[str]] = {}
    for test, one in known.measured.items():
        if one.get("verdict") in _NOT_PASSING:
            found.setdefault(str(one.get("signature") or "") or f"no words ({one.get('verdict')})", []).append(test)
    by_id = {task.id: task for task in tasks_of(known.state)}
    made = []
    for signature, tests in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        words = Counter(verdict_of(by_id[id]) for test in tests if (id := _task_of(test, by_id)) in by_id)
        passing = [test for test in tests if known.at_tip.get(test) in GOOD]
        made.append(
            {
                "signature": line(signature),
                "title": line(_told(signature, [str(known.measured[test].get("text") or "") for test in tests])),
                "count": len(tests),
                "tests": [_linked(test, known.state) for test in tests[:_LISTED_MAX]],
                "verdicts": {kind_of(word): count for word, count in words.items()},
                "passing": len(passing) if known.at_tip else None,
                "example": cut(str(known.measured[tests[0]].get("text") or "")[-_TEXT_MAX:]),
            }
        )
    return made[:_LISTED_MAX]


def _told(signature: str, texts: list[str]) -> str:
    """How it failed, in its own words where they are the same for all: a signature has 0 in place of every number."""
    found = {nearest(signature, [one[1:].strip() for one in text.splitlines() if one[:2] == "E "]) for text in texts}
    return found.pop() or signature if len(found) == 1 else signature


def claim_of(task: TaskState) -> Mapping[str, Any]:
    """What its agent says; empty when it says nothing that can be read."""
    last = task.last
    return ((last.collected if last is not None else None) or {}).get("outcome") or {}


def report(known: Known) -> dict[str, Any]:
    """The whole run for programs: `report.json`."""
    rows = []
    for task in tasks_of(known.state):
        shown = task_row(known, task)
        more = {name: shown[name] for name in ("before", "at_tip", "trend", "signature")}
        rows.append({**row(task), **more})
    return {
        "schema": 1,
        **summary(known.state),
        "state": doing(known.state, known.going_on),
        "tests": before_and_after(known),
        "clusters": clusters(known),
        "decisions": [
            {name: entry.get(name) for name in ("at", "what", "because", "about")}
            for entry in known.told
            if entry["type"] == "decision"
        ],
        "against": known.against or None,
        "rows": rows,
    }


def _run(known: Known) -> dict[str, Any]:
    state = known.state
    facts = state.facts
    usage = state.usage
    finished = state.finished or {}
    workers = facts.get("workers") or {}
    limits = facts.get("limits") or {}
    return {
        "id": str(facts.get("run") or ""),
        "repo": str(facts.get("repo") or ""),
        "base": str(facts.get("base") or ""),
        "began_at": state.began_at,
        "seconds": round((known.now if known.going_on else state.last_at) - state.began_at, 2),
        "state": doing(state, known.going_on),
        "exit_code": finished.get("exit_code"),
        "because": line(str((finished.get("summary") or {}).get("because") or "")),
        "type": str(workers.get("type") or ""),
        "max_agents": limits.get("max_agents"),
        "budget_usd": limits.get("budget_usd"),
        "tokens": usage.tokens,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_tokens,
        "cost_usd": round(usage.cost_usd, 6),
        "unpriced": usage.unpriced,
        "attempts": sum(len(task.attempts) for task in state.tasks.values()),
    }


def _counted(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    counts = Counter(str(found["kind"]) for found in rows)
    return {kind_of(word): counts[kind_of(word)] for word in ORDER if counts[kind_of(word)]}


def _branch(known: Known, keys: Mapping[str, str]) -> dict[str, Any] | None:
    integration = known.integration
    if not integration:
        return None
    flags = {task.slug: flagged(task) for task in known.state.tasks.values()}
    commits = [
        {
            "id": str(one["id"]),
            "kind": str(one["kind"]),
            "title": line(str(one["title"])),
            "rank": one["rank"],
            "because": line(str(one["because"])),
            "makers": [
                {"key": keys.get(slug, ""), "slug": slug, "agent": agent}
                for slug, agent in zip(one["slugs"], one["agents"], strict=False)
            ],
            "flags": list(dict.fromkeys(flag for slug in one["slugs"] for flag in flags.get(slug, ()))),
            "paths": list(one["paths"])[:50],
            "needed_by": list(one["needed_by"]),
            "clean": None if one.get("revert") is None else bool(one["revert"]["clean"]),
        }
        for one in integration.get("commits", ())
    ]
    gate = integration.get("gate") or {}
    return {
        "name": str(integration.get("branch") or ""),
        "tip": str(integration.get("tip") or ""),
        "green": integration.get("green"),
        "commits": commits,
        "dropped": [{"key": keys.get(slug, ""), "slug": slug} for slug in integration.get("dropped", ())],
        "accepted": [{"key": keys.get(slug, ""), "slug": slug} for slug in integration.get("accepted", ())],
        "failures": [
            {"test": test, "text": cut(text)}
            for test, text in {
                one["test"]: str(one["text"]) for one in gate.get("failures", ())[:_EVIDENCE_MAX]
            }.items()
        ],
        "narrative": cut(str(integration.get("narrative") or ""), 20_000),
    }


def _aside(one: Mapping[str, Any], keys: Mapping[str, str], state: RunState) -> dict[str, Any]:
    by_agent = {attempt.agent: task.slug for task in state.tasks.values() for attempt in task.attempts}
    against = [{"agent": agent, "key": keys.get(by_agent.get(agent, ""), "")} for agent in one.get("against", ())]
    return {
        "makers": [
            {"key": keys.get(slug, ""), "slug": slug, "agent": agent}
            for slug, agent in zip(one["slugs"], one["agents"], strict=False)
        ],
        "what": str(one.get("what") or ""),
        "reason": line(str(one["reason"]), 1000),
        "branch": str(one.get("branch") or ""),
        "commit": str(one.get("commit") or ""),
        "paths": list(one.get("paths", ()))[:50],
        "against": against,
        "evidence": [cut(str(text)) for text in one.get("evidence", ())[:_EVIDENCE_MAX]],
    }


def _asks(known: Known) -> dict[str, Any]:
    """What waits for a person."""
    blocked, held, escalations = [], [], []
    for task in tasks_of(known.state):
        claim, word, link = claim_of(task), verdict_of(task), _linked(task.id, known.state)
        if word == verdict.BLOCKED:
            reason = str(claim.get("blocked_reason") or why(task))
            blocked.append({**link, "reason": cut(reason), "needs": cut(str(claim.get("blocked_needs") or ""))})
        if word == verdict.HELD:
            held.append({**link, "slug": task.slug, "reason": line(why(task), 1000)})
        for one in claim.get("escalations", ()):
            places = [f"{path}:{number}" if number else path for path, number in one["locations"]]
            texts = {name: cut(str(one[name])) for name in ("summary", "evidence")}
            escalations.append({**link, **texts, "about": line(str(one["kind"])), "locations": places[:20]})
    return {"blocked": blocked, "held": held, "escalations": escalations[:_LISTED_MAX]}


def _lines(known: Known) -> list[dict[str, Any]]:
    """What was found out before any agent worked, a line each."""
    state = known.state
    made = []
    for name in ("collect", "canary", "baseline", "select"):
        phase = state.phases.get(name)
        if phase is not None:
            text = _told_of(name, phase.data) if phase.ended_at is not None else "at it"
            seconds = None if phase.ended_at is None else round(phase.ended_at - phase.began_at, 2)
            made.append({"name": name, "text": line(text, 600), "seconds": seconds})
    return made


def _told_of(name: str, data: Mapping[str, Any]) -> str:
    if name == "canary":
        if data.get("test"):
            return f"the tests run this very code: with the product spoiled, `{data['test']}` failed"
        return f"cannot tell whether the tests run this code: {data.get('why')}"
    if name == "collect":
        broken = data.get("broken") or ()
        more = f"; {len(broken)} files cannot be collected: {', '.join(map(str, broken))}" if broken else ""
        return f"{data.get('tests')} tests in the suite, {data.get('chosen')} chosen{more}"
    if name == "select":
        more = f", {data['left_out']} left out because they pass" if data.get("left_out") else ""
        return f"{data.get('tasks')} tasks{more}"
    return ", ".join(f"{count} {word}" for word, count in data.items()) or "not measured"


_CHANGES = frozenset({"concurrency", "breaker", "resumed", "retry", "stop", "paused", "waits", "gap", "override"})


def _change(entry: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(entry["type"])
    texts = {
        "concurrency": f"at most {entry.get('limit')} agents at once: {entry.get('because')}",
        "breaker": f"paused: {len(entry.get('tasks') or ())} tasks failed in the same way: {entry.get('example')}",
        "resumed": "the run went on in another process",
        "retry": f"another attempt for {entry.get('task')}: {entry.get('because')}",
        "stop": "the run was asked to stop",
        "paused": f"paused: {entry['because']}" if entry.get("because") else "agents can continue",
        "waits": f"all agents wait until {_time(entry.get('until'))}: {entry.get('because')}",
        "gap": f"nobody looked at the agents since {_time(entry.get('since'))}",
        "override": f"changed: {', '.join(sorted(set(entry) - {'type', 'at'}))}",
    }
    return {"at": entry["at"], "text": line(texts[kind], 600)}


def _time(at: object) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if isinstance(at, int | float) else ""


def _decision(entry: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    about = [str(slug) for slug in entry.get("about") or ()]
    return {
        "at": entry["at"],
        "what": line(str(entry.get("what"))),
        "because": line(str(entry.get("because")), 1000),
        "about": [{"slug": slug, "key": keys.get(slug, "")} for slug in about[:50]],
    }


def _task_of(test: str, tasks: Container[str]) -> str:
    """The task of a test: its own, or that of the function whose case it is."""
    return test if test in tasks else test.partition("[")[0]


def _linked(test: str, state: RunState) -> dict[str, str]:
    """A test with the page of its task, where it has one."""
    task = state.tasks.get(_task_of(test, state.tasks))
    return {"name": test, "key": key(task.slug) if task is not None and "role" not in task.data else ""}


def _seconds(task: TaskState, now: float) -> float | None:
    if not task.attempts:
        return None
    return round(sum(max(0.0, (one.ended_at or now) - one.intended_at) for one in task.attempts), 2)
