"""What an agent claims about its task: the outcome file, version 1, parsed strictly. Pure.

A claim is never believed, only shown beside what was measured. A file that is missing, huge, torn, of another shape or
about another task is an outcome of its own, with what was wrong in words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mngr.records import NamedTuple

SCHEMA = 1
MAX_BYTES = 1_000_000
IMPLEMENTATION = "implementation"
CHANGE_KINDS = (IMPLEMENTATION, "test", "tutorial", "docs")
STATUSES = ("done", "blocked")
_TEXT_MAX = 20_000
_LIST_MAX = 200
_SHA = re.compile(r"[0-9a-f]{7,64}")


class Change(NamedTuple):
    kind: str
    commit: str
    summary: str
    importance: int


class Escalation(NamedTuple):
    kind: str
    summary: str
    locations: tuple[tuple[str, int], ...]
    evidence: str


class Outcome(NamedTuple):
    """`before` and `after` are what the agent says its test did; empty when it does not say."""

    status: str
    changes: tuple[Change, ...] = ()
    before: str = ""
    after: str = ""
    blocked_reason: str = ""
    blocked_needs: str = ""
    escalations: tuple[Escalation, ...] = ()
    summary: str = ""


class Wrong(Exception):
    """The file cannot be used; the message says why."""


def parse(data: bytes | None, task: str) -> Outcome:
    """The claim in an outcome file, or `Wrong`. `None` is a file that is not there."""
    if data is None:
        raise Wrong("no outcome file was written")
    if not data.strip():
        raise Wrong("the outcome file is empty")
    if len(data) > MAX_BYTES:
        raise Wrong(f"the outcome file has {len(data):,} bytes, more than {MAX_BYTES:,}")
    try:
        value = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Wrong(f"the outcome file is not UTF-8: {error.reason} at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise Wrong(f"the outcome file is not JSON: {error}") from None
    return _Reader(task).outcome(value)


class _Reader:
    """Takes values apart; whatever has another shape than it should is `Wrong`, named by its place."""

    def __init__(self, task: str) -> None:
        self._task = task

    def outcome(self, value: Any) -> Outcome:
        top = self._object(value, "the outcome", ("schema", "task", "status"))
        if top["schema"] != SCHEMA or isinstance(top["schema"], bool):
            raise Wrong(f"`schema` is {_shown(top['schema'])}, not {SCHEMA}")
        if top["task"] != self._task:
            raise Wrong(f"`task` is {_shown(top['task'])}, but this task is `{self._task}`")
        status = self._choice(top["status"], "status", STATUSES)
        test = self._object(top.get("test", {}), "`test`")
        blocked = self._object(top.get("blocked") or {}, "`blocked`")
        if status == "blocked" and not str(blocked.get("reason", "")).strip():
            raise Wrong("`status` is `blocked`, but `blocked.reason` does not say why")
        changes = self._list(top.get("changes", []), "changes")
        escalations = self._list(top.get("escalations", []), "escalations")
        return Outcome(
            status=status,
            changes=tuple(self._change(item, f"changes[{at}]") for at, item in enumerate(changes)),
            before=self._text(test.get("before", ""), "test.before"),
            after=self._text(test.get("after", ""), "test.after"),
            blocked_reason=self._text(blocked.get("reason", ""), "blocked.reason"),
            blocked_needs=self._text(blocked.get("needs", ""), "blocked.needs"),
            escalations=tuple(self._escalation(item, f"escalations[{at}]") for at, item in enumerate(escalations)),
            summary=self._text(top.get("summary", ""), "summary"),
        )

    def _change(self, value: Any, where: str) -> Change:
        item = self._object(value, f"`{where}`", ("kind", "commit"))
        commit = self._text(item["commit"], f"{where}.commit")
        if not _SHA.fullmatch(commit):
            raise Wrong(f"`{where}.commit` is {_shown(commit)}, not the id of a commit")
        importance = item.get("importance", 0)
        if isinstance(importance, bool) or not isinstance(importance, int) or not 0 <= importance <= 5:
            raise Wrong(f"`{where}.importance` is {_shown(importance)}, not a whole number from 0 to 5")
        return Change(
            kind=self._choice(item["kind"], f"{where}.kind", CHANGE_KINDS),
            commit=commit,
            summary=self._text(item.get("summary", ""), f"{where}.summary"),
            importance=importance,
        )

    def _escalation(self, value: Any, where: str) -> Escalation:
        item = self._object(value, f"`{where}`", ("kind", "summary"))
        places = []
        for at, place in enumerate(self._list(item.get("locations", []), f"{where}.locations")):
            spot = self._object(place, f"`{where}.locations[{at}]`", ("path",))
            path = self._text(spot["path"], f"{where}.locations[{at}].path")
            if path.startswith(("/", "~")) or ".." in path.split("/"):
                raise Wrong(f"`{where}.locations[{at}].path` is {_shown(path)}, which is not inside the repository")
            line = spot.get("line", 0)
            if isinstance(line, bool) or not isinstance(line, int) or line < 0:
                raise Wrong(f"`{where}.locations[{at}].line` is {_shown(line)}, not a line number")
            places.append((path, line))
        return Escalation(
            kind=self._text(item["kind"], f"{where}.kind"),
            summary=self._text(item["summary"], f"{where}.summary"),
            locations=tuple(places),
            evidence=self._text(item.get("evidence", ""), f"{where}.evidence"),
        )

    def _object(self, value: Any, what: str, needed: Sequence[str] = ()) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise Wrong(f"{what} is {_shown(value)}, not an object")
        for name in needed:
            if name not in value:
                raise Wrong(f"{what} lacks `{name}`")
        return value

    def _list(self, value: Any, where: str) -> Sequence[Any]:
        if not isinstance(value, list):
            raise Wrong(f"`{where}` is {_shown(value)}, not a list")
        if len(value) > _LIST_MAX:
            raise Wrong(f"`{where}` has {len(value)} entries, more than {_LIST_MAX}")
        return value

    def _text(self, value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise Wrong(f"`{where}` is {_shown(value)}, not a text")
        if len(value) > _TEXT_MAX:
            raise Wrong(f"`{where}` has {len(value):,} characters, more than {_TEXT_MAX:,}")
        return value.encode("utf-8", "replace").decode()

    def _choice(self, value: Any, where: str, allowed: Sequence[str]) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise Wrong(f"`{where}` is {_shown(value)}, not one of {', '.join(f'`{word}`' for word in allowed)}")
        return value


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return f"`{text if len(text) <= 80 else text[:77] + '...'}`"
