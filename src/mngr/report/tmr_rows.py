"""A run of `mngr tmr` in the rows of its pages. Pure: what was read is given."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mngr.mapreduce.state import RunState, TaskState
from mngr.names import nearest
from mngr.report.source import key, picked
from mngr.report.tmr_chart import chart
from mngr.tmr import baseline, headline, verdict
from mngr.tmr.host_words import host_change, host_line, host_rows
from mngr.tmr.places import FOR_A_PERSON, NOT_TRUE, SET_ASIDE, WorkPlace, integration_of, places
from mngr.tmr.rows import GOOD, cases, worst
from mngr.tmr.summary import doing, ended_at, row, seconds, summary, tasks_of, verdict_of, why

_LINE_MAX = 300
_TEXT_MAX = 4000
LISTED_MAX = 400
_ASIDE = "set aside"
# What a reader wants to see first: what needs somebody, then what was achieved, then the rest. A word that is not
# here comes last.
ORDER = (
    *(verdict.BLOCKED, verdict.HELD, verdict.UNPROVEN),
    *(verdict.REFUTED, verdict.REFUSED, verdict.FAILED, verdict.UNCLAIMED),
    *(_ASIDE, "running", "launching", "collecting", "checking", "waiting", verdict.EXPECTATION_CHANGED),
    *(verdict.FIXED, verdict.FIXED_TOGETHER, verdict.FOUND_AND_FIXED, verdict.STRONGER, verdict.SAME, verdict.IMPROVED),
    *(verdict.UNCHANGED, verdict.NOT_STARTED),
)
_NOT_PASSING = (baseline.FAIL, baseline.BROKEN, baseline.FLAKY)


class ReportData(NamedTuple):
    """All that the rows are made of. `tests` are those of the base by id, `measured` what each did there, `functions`
    what all cases of one did there, `at_tip` what each did at the tip of the branch; `trends` say how a test stands
    against earlier runs. `logs` are the directories of measurements, by label."""

    state: RunState
    told: Sequence[Mapping[str, Any]] = ()
    logs: Mapping[str, str] = {}
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
        return integration_of(self.state)


def overview(known: ReportData) -> dict[str, Any]:
    """The first page, with a row for each task; without its branch and its queue."""
    state = known.state
    keys = {task.slug: key(task.slug) for task in state.tasks.values()}
    where = places(state)
    rows = [task_row(known, task, where.get(task.slug)) for task in tasks_of(state)]
    found = headline.headline(state, doing(state, known.going_on), suite(known))
    return {
        "run": _run(known),
        "headline": picked(found, "tone", "title", "more", "commands"),
        "verdicts": _counted(rows),
        "order": order_of(rows),
        "tests": before_and_after(known),
        "chart": chart(state, known.told, known.now if known.going_on else state.last_at),
        "clusters": clusters(known),
        "lines": _lines(known),
        "decisions": [_decision(entry, keys) for entry in known.told if entry["type"] == "decision"][-LISTED_MAX:],
        "changes": [_change(entry) for entry in known.told if _is_change(entry)][-LISTED_MAX:],
        "hosts": [{"name": one["host"], "text": host_line(one)} for one in host_rows(state)],
        "history": {"against": known.against, "counts": dict(Counter(filter(None, known.trends.values())))},
        "tasks": rows,
    }


def suite(known: ReportData) -> headline.Suite:
    """How the tests of the suite did, in three numbers."""
    if not known.at_tip or not known.measured:
        return headline.Suite()
    passed = [test for test, one in known.measured.items() if one.get("verdict") == baseline.PASS]
    after = sum(outcome in GOOD for outcome in known.at_tip.values())
    worse = sum(at_tip(known, test) not in GOOD | {baseline.FLAKY} for test in passed if test in known.at_tip)
    return headline.Suite(len(passed), after, worse)


def at_tip(known: ReportData, test: str) -> str:
    """What a test did at the tip of the branch: `flaky` for one that passed at the base, failed there and passed again,
    which the gate does not count."""
    outcome = known.at_tip.get(test, "")
    unstable = known.measured.get(test, {}).get("verdict") == baseline.PASS and test in known.integration.get(
        "excused", ()
    )
    return baseline.FLAKY if unstable and outcome not in GOOD else outcome


def order_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The kinds in the order of the table, those that nobody here knows last."""
    known = [kind_of(word) for word in ORDER]
    return [*known, *dict.fromkeys(str(one["kind"]) for one in rows if one["kind"] not in known)]


def before(known: ReportData, task: str) -> Mapping[str, Any]:
    """What its test did at the base; the worst of its cases if it has parameters."""
    return known.functions.get(task) or known.measured.get(task, {})


def task_row(known: ReportData, task: TaskState, place: WorkPlace | None = None) -> dict[str, Any]:
    """One task in the table. Work that is set aside is nowhere counted as good, whatever its verdict."""
    found = row(task)
    word = verdict_of(task)
    place = place or WorkPlace()
    shown = _ASIDE if place.word == SET_ASIDE and word not in NOT_TRUE | FOR_A_PERSON else word
    last = task.last
    file, _, name = task.id.partition("::")
    return {
        "key": key(task.slug),
        "slug": task.slug,
        "name": name or file,
        "file": file,
        "line": known.tests.get(task.id, {}).get("line", 0),
        "verdict": word,
        "kind": kind_of(shown),
        "rank": ORDER.index(shown) if shown in ORDER else len(ORDER),
        "why": line(f"{word}, but {place.reason}" if shown == _ASIDE else why(task)),
        "place": place.word,
        "commit": place.commits[-1] if place.commits else "",
        "in_part": place.in_part,
        "before": before(known, task.id).get("verdict", ""),
        "after": at_commit(task) or found["after"] or "",
        "at_tip": at_tip(known, task.id) or worst([at_tip(known, case) for case in cases(task.id, known.at_tip)]),
        "flags": sorted({str(flag["kind"]) for flag in found["flags"]}),
        "agent": found["agent"] or "",
        "host": found["host"] or "",
        "state": last.state if last is not None and last.goes_on else "",
        **{name: found[name] for name in ("attempts", "tokens", "cost_usd")},
        "started_at": task.attempts[0].intended_at if task.attempts else None,
        "seconds": _seconds(task, known.now),
        "escalations": len(found["escalations"]),
        "trend": known.trends.get(task.id, ""),
        "signature": line(str(before(known, task.id).get("signature") or "")),
    }


def at_commit(task: TaskState) -> str:
    """What its test did at its agent's commit."""
    found = task.verdict
    return str((found.get("marks") or {}).get("t1p1") or found.get("after") or "")


def kind_of(word: str) -> str:
    """A verdict as a word without spaces, for addresses and styles."""
    return word.replace(" ", "-")


def line(text: str, most: int = _LINE_MAX) -> str:
    """In one line, not without end."""
    one = " ".join(text.split())
    return one if len(one) <= most else one[: most - 1] + "…"


def cut(text: str, most: int = _TEXT_MAX) -> str:
    return text if len(text) <= most else text[:most] + "\n… (cut here)"


def before_and_after(known: ReportData) -> dict[str, Any]:
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
        "failing": [linked(test, known.state) for test in dict.fromkeys(integration.get("excused", ()))],
    }


def clusters(known: ReportData) -> list[dict[str, Any]]:
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
                "tests": [linked(test, known.state) for test in tests[:LISTED_MAX]],
                "verdicts": {kind_of(word): count for word, count in words.items()},
                "passing": len(passing) if known.at_tip else None,
                "example": cut(str(known.measured[tests[0]].get("text") or "")[-_TEXT_MAX:]),
            }
        )
    return made[:LISTED_MAX]


def _told(signature: str, texts: list[str]) -> str:
    """How it failed, in its own words where they are the same for all: a signature has 0 in place of every number."""
    found = {nearest(signature, [one[1:].strip() for one in text.splitlines() if one[:2] == "E "]) for text in texts}
    return found.pop() or signature if len(found) == 1 else signature


def report(known: ReportData) -> dict[str, Any]:
    """The whole run for programs: `report.json`."""
    rows = []
    where = places(known.state)
    for task in tasks_of(known.state):
        shown = task_row(known, task, where.get(task.slug))
        more = {name: shown[name] for name in ("before", "at_tip", "trend", "signature", "place", "commit")}
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


def _run(known: ReportData) -> dict[str, Any]:
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
        "seconds": round(seconds(state, known.now if known.going_on else ended_at(state)), 2),
        "state": doing(state, known.going_on),
        "exit_code": finished.get("exit_code"),
        "because": line(str((finished.get("summary") or {}).get("because") or "")),
        "type": str(workers.get("type") or ""),
        "max_agents": limits.get("max_agents"),
        "budget_usd": limits.get("budget_usd"),
        **picked(usage, "tokens", "input_tokens", "output_tokens", "unpriced"),
        "cached_tokens": usage.cache_read_tokens,
        "cost_usd": round(usage.cost_usd, 6),
        "attempts": sum(len(task.attempts) for task in state.tasks.values()),
    }


def _counted(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    rows = list(rows)
    counts = Counter(str(found["kind"]) for found in rows)
    return {kind: counts[kind] for kind in order_of(rows) if counts[kind]}


def _lines(known: ReportData) -> list[dict[str, Any]]:
    """What was found out before any agent worked, a line each."""
    state = known.state
    made = []
    for name in ("collect", "canary", "baseline", "select"):
        phase = state.phases.get(name)
        if phase is not None:
            text = _told_of(name, phase.data) if phase.ended_at is not None else "running"
            seconds = None if phase.ended_at is None else round(phase.ended_at - phase.began_at, 2)
            made.append({"name": _PHASES.get(name, name), "text": line(text, 600), "seconds": seconds})
    return made


_PHASES = {"canary": "sanity check"}


def _told_of(name: str, data: Mapping[str, Any]) -> str:
    if name == "canary":
        if data.get("test"):
            return f"the code was broken on purpose, and `{data['test']}` noticed"
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


def _is_change(entry: Mapping[str, Any]) -> bool:
    return entry["type"] in _CHANGES or (entry["type"] == "host" and bool(host_change(entry)))


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
        "host": host_change(entry) if kind == "host" else "",
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


def linked(test: str, state: RunState) -> dict[str, str]:
    """A test with the page of its task, where it has one."""
    task = state.tasks.get(_task_of(test, state.tasks))
    return {"name": test, "key": key(task.slug) if task is not None and "role" not in task.data else ""}


def _seconds(task: TaskState, now: float) -> float | None:
    if not task.attempts:
        return None
    return round(sum(max(0.0, (one.ended_at or now) - one.intended_at) for one in task.attempts), 2)
