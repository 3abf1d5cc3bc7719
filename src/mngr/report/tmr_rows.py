"""A run of `mngr tmr` in the rows of its pages. Pure: what was read is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from mngr.mapreduce.state import SETTLED
from mngr.report.source import cut, key, one_line, picked
from mngr.report.tmr_suite import LISTED_MAX, ReportData, at_tip, before, before_and_after, clusters, suite
from mngr.tmr.judge import verdict
from mngr.tmr.measure.rows import cases, worst
from mngr.tmr.run_view import SET_ASIDE, TaskView, tasks_of
from mngr.tmr.words import headline
from mngr.tmr.words.host_words import host_line, host_rows
from mngr.tmr.words.log_lines import line, phase_text
from mngr.tmr.words.questions import FOR_A_PERSON, NOT_TRUE
from mngr.tmr.words.summary import doing, ended_at, row, seconds, summary

# What a reader wants to see first: what needs somebody, then what was achieved, then the rest. A word that is not
# here comes last.
ORDER = (
    *(verdict.BLOCKED, verdict.HELD, verdict.UNPROVEN),
    *(verdict.REFUTED, verdict.REFUSED, verdict.FAILED, verdict.UNCLAIMED),
    *(SET_ASIDE, "running", "launching", "collecting", "checking", "waiting", verdict.NEW_BEHAVIOUR),
    verdict.EXPECTATION_CHANGED,
    *(verdict.FIXED, verdict.FIXED_TOGETHER, verdict.STRONGER, verdict.SAME, verdict.IMPROVED),
    *(verdict.UNCHANGED, verdict.NOT_STARTED),
)
_EVIDENCE_MAX = 20


def overview(known: ReportData) -> dict[str, Any]:
    """The first page, with a row for each task; without its queue."""
    state = known.state
    rows = task_rows(known)
    order = order_of(rows)
    counts = Counter(str(one["kind"]) for one in rows)
    found = headline.headline(known.run, doing(state, known.going_on), suite(known))
    told = [(entry, line(entry, state)) for entry in known.told]
    return {
        "run": _run(known),
        "headline": picked(found, "tone", "title", "more", "commands"),
        "verdicts": {kind: counts[kind] for kind in order if counts[kind]},
        "order": order,
        "tests": before_and_after(known),
        "chart": chart(known, known.now if known.going_on else state.last_at),
        "clusters": clusters(known),
        "lines": _lines(known),
        "log": [{"at": entry["at"], "text": one_line(text, 1000)} for entry, text in told if text][-LISTED_MAX:],
        "hosts": [{"name": one["host"], "text": host_line(one)} for one in host_rows(state)],
        "history": {"against": known.against, "counts": dict(Counter(known.trends.values()))},
        "tasks": rows,
        "branch": branch(known),
    }


def order_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The kinds in the order of the table, those that nobody here knows last."""
    known = [kind_of(word) for word in ORDER]
    return [*known, *dict.fromkeys(str(one["kind"]) for one in rows if one["kind"] not in known)]


def kind_of(word: str) -> str:
    """A verdict as a word without spaces, for addresses and styles."""
    return word.replace(" ", "-")


def task_rows(known: ReportData) -> list[dict[str, Any]]:
    return [task_row(known, task) for task in known.run.tasks]


def task_row(known: ReportData, task: TaskView) -> dict[str, Any]:
    """One task in the table. Work that is set aside is nowhere counted as good, whatever its verdict."""
    found, attempts, place = row(task), task.task.attempts, task.place
    word = found["verdict"]
    shown = SET_ASIDE if place.word == SET_ASIDE and word not in NOT_TRUE | FOR_A_PERSON else word
    file, _, name = task.id.partition("::")
    spans = [max(0.0, (one.ended_at or known.now) - one.intended_at) for one in attempts]
    return {
        "key": key(task.slug),
        "name": name or file,
        "file": file,
        "line": known.tests.get(task.id, {}).get("line", 0),
        "kind": kind_of(shown),
        "rank": ORDER.index(shown) if shown in ORDER else len(ORDER),
        "why": one_line(f"{word}, but {place.reason}" if shown == SET_ASIDE else found["why"]),
        "in_part": place.in_part,
        "before": before(known, task.id).get("verdict", ""),
        "after": found["after"] or "",
        "at_tip": at_tip(known, task.id) or worst([at_tip(known, case) for case in cases(task.id, known.at_tip)]),
        "flags": sorted({str(flag["kind"]) for flag in found["flags"]}),
        "agent": found["agent"] or "",
        "host": found["host"] or "",
        **{name: found[name] for name in ("slug", "verdict", "attempts", "tokens", "cost_usd", "place", "commit")},
        "started_at": attempts[0].intended_at if attempts else None,
        "seconds": round(sum(spans), 2) if spans else None,
        "trend": known.trends.get(task.id, ""),
        "signature": one_line(str(before(known, task.id).get("signature") or "")),
    }


def report(known: ReportData) -> dict[str, Any]:
    """The whole run for programs: `report.json`."""
    shown = zip(known.run.tasks, task_rows(known), strict=True)
    names = ("before", "at_tip", "trend", "signature")
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
        "rows": [{**row(task), **{name: one[name] for name in names}} for task, one in shown],
    }


def _run(known: ReportData) -> dict[str, Any]:
    state, facts, finished = known.state, known.state.facts, known.state.finished or {}
    return {
        "id": str(facts.get("run") or ""),
        "repo": str(facts.get("repo") or ""),
        "base": str(facts.get("base") or ""),
        "began_at": state.began_at,
        "seconds": round(seconds(state, known.now if known.going_on else ended_at(state)), 2),
        "state": doing(state, known.going_on),
        "exit_code": finished.get("exit_code"),
        "because": one_line(str((finished.get("summary") or {}).get("because") or "")),
        "type": str((facts.get("workers") or {}).get("type") or ""),
        "budget_usd": (facts.get("limits") or {}).get("budget_usd"),
        **picked(state.usage, "tokens", "unpriced", "cost_usd"),
        "attempts": sum(len(task.attempts) for task in state.tasks.values()),
    }


def _lines(known: ReportData) -> list[dict[str, Any]]:
    """What was found out before any agent worked, a line each."""
    made = []
    for name in ("collect", "canary", "baseline", "select"):
        phase = known.state.phases.get(name)
        if phase is not None:
            over = phase.ended_at is not None
            text = (phase_text(name, phase.data) or "not asked for") if over else "running"
            spent = round(phase.ended_at - phase.began_at, 2) if phase.ended_at is not None else None
            shown = "sanity check" if name == "canary" else name
            made.append({"name": shown, "text": one_line(text, 600), "seconds": spent})
    return made


def chart(known: ReportData, end: float) -> dict[str, Any]:
    """Agents at work over time, in seconds since the beginning: steps of count and limit, and the phases."""
    state, began = known.state, known.state.began_at
    changes: Counter[float] = Counter()
    for attempt in (one for task in state.tasks.values() for one in task.attempts if one.started_at is not None):
        changes[attempt.started_at or 0.0] += 1
        changes[attempt.ended_at if attempt.ended_at is not None else end] -= 1
    steps: list[tuple[float, int]] = []
    for at in sorted(changes):
        steps.append((round(at - began, 2), (steps[-1][1] if steps else 0) + changes[at]))
    limits = [(max(0.0, one["at"] - began), one["limit"]) for one in known.told if one["type"] == "concurrency"]
    spans = {name: (one.began_at, one.ended_at) for name, one in state.phases.items()}
    attempts = [attempt for task in tasks_of(state) for attempt in task.attempts]
    if attempts:  # `map` is no phase of the ledger: it lasts from the first attempt until there is nothing to measure
        over = all(task.status == SETTLED for task in tasks_of(state))
        last = max((attempt.ended_at or 0.0 for attempt in attempts), default=0.0)
        spans["map"] = (
            min(attempt.intended_at for attempt in attempts),
            spans["integrate"][0] if "integrate" in spans else last if over else None,
        )
    return {
        "seconds": round(max(0.0, end - began), 2),
        "agents": steps,
        "limits": limits,
        "phases": [
            {
                "name": name,
                "from": round(start - began, 2),
                "to": round((stop if stop is not None else end) - began, 2),
                "over": stop is not None,
            }
            for name, (start, stop) in sorted(spans.items(), key=lambda item: item[1][0])
        ],
        "most": max((count for _, count in steps), default=0),
    }


def branch(known: ReportData) -> dict[str, Any] | None:
    """The branch and its commits; None before integration."""
    found, tasks = known.run.integrated, {task.slug: task for task in known.run.tasks}
    if found is None:
        return None

    def links(slugs: Iterable[str]) -> list[dict[str, str]]:
        """Tasks as the pages link to them: under the name of their test."""
        there = [task for slug in slugs if (task := tasks.get(slug))]
        return [{"key": key(one.slug), "slug": one.slug, "name": one.id.partition("::")[2] or one.id} for one in there]

    def flags(slugs: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(flag for slug in slugs if slug in tasks for flag in tasks[slug].flags))

    names = ("id", "kind", "title", "rank", "because", "needed_by")
    failures = {one.test: one.text for one in found.failures[:_EVIDENCE_MAX]}
    return {
        "name": found.branch,
        "green": found.green,
        "commits": [
            {
                **picked(one, *names),
                "makers": links(one.slugs),
                "flags": flags(one.slugs)[:_EVIDENCE_MAX],
            }
            for one in found.commits
        ],
        "dropped": links(found.dropped),
        "accepted": links(found.accepted),
        "failures": [{"test": test, "text": cut(text)} for test, text in failures.items()],
        "narrative": cut(found.narrative, 20_000),
    }
