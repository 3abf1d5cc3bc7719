"""The branch of a run and what is not on it, in the rows of its pages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mngr.mapreduce.state import RunState
from mngr.report.source import key
from mngr.report.tmr_rows import ReportData, cut, line
from mngr.tmr.summary import flagged

_EVIDENCE_MAX = 20
_PATHS_MAX = 50


def branch(known: ReportData) -> dict[str, Any] | None:
    """The branch and its commits; None before integration."""
    integration = known.integration
    if not integration:
        return None
    links = _links(known.state)
    flags = {task.slug: flagged(task) for task in known.state.tasks.values()}
    commits = [
        {
            "id": str(one["id"]),
            "kind": str(one["kind"]),
            "title": line(str(one["title"])),
            "rank": one["rank"],
            "because": line(str(one["because"])),
            "makers": _makers(one, links),
            "flags": list(dict.fromkeys(flag for slug in one["slugs"] for flag in flags.get(slug, ())))[:_EVIDENCE_MAX],
            "paths": list(one["paths"])[:_PATHS_MAX],
            "needed_by": list(one["needed_by"]),
        }
        for one in integration.get("commits", ())
    ]
    gate = integration.get("gate") or {}
    failures = {one["test"]: str(one["text"]) for one in gate.get("failures", ())[:_EVIDENCE_MAX]}
    return {
        "name": str(integration.get("branch") or ""),
        "green": integration.get("green"),
        "commits": commits,
        "dropped": [links.get(slug, {"slug": slug}) for slug in integration.get("dropped", ())],
        "accepted": [links.get(slug, {"slug": slug}) for slug in integration.get("accepted", ())],
        "failures": [{"test": test, "text": cut(text)} for test, text in failures.items()],
        "narrative": cut(str(integration.get("narrative") or ""), 20_000),
    }


def _links(state: RunState) -> dict[str, dict[str, str]]:
    """Each task as the pages link to it, by slug: under the name of its test."""
    return {
        task.slug: {"key": key(task.slug), "slug": task.slug, "name": task.id.partition("::")[2] or task.id}
        for task in state.tasks.values()
    }


def _makers(one: Mapping[str, Any], links: Mapping[str, Mapping[str, str]]) -> list[dict[str, str]]:
    pairs = zip(one["slugs"], one["agents"], strict=False)
    return [{**links.get(slug, {"slug": slug, "key": ""}), "agent": agent} for slug, agent in pairs]
