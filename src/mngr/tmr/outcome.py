"""What an agent claims about its task: the outcome file, version 1. Pure.

A claim is never believed, only shown beside what was measured. So every sensible spelling of it is accepted, and what
was odd is noted. Only a file that says nothing at all is `Unreadable`.

This file is also a program: it is copied to where agents work, and checks the outcome file there. It therefore needs
nothing but Python's own library.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

SCHEMA = 1
MAX_BYTES = 1_000_000
DONE, BLOCKED = "done", "blocked"
STATUSES = (DONE, BLOCKED)
IMPLEMENTATION, OTHER = "implementation", "other"
CHANGE_KINDS = (IMPLEMENTATION, "test", "tutorial", "docs", OTHER)
_TEXT_MAX = 20_000
_LIST_MAX = 200
_NOTES_MAX = 20
_SHA = re.compile(r"(?<![0-9a-z])[0-9a-f]{7,64}(?![0-9a-z])")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FENCE = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)

_STATUS_WORDS = {
    **dict.fromkeys(
        ("done", "complete", "completed", "finished", "success", "succeeded", "ok", "fixed", "passed"), DONE
    ),
    **dict.fromkeys(("improved", "unchanged", "no change", "no changes"), DONE),
    **dict.fromkeys(("blocked", "stuck", "failed", "failure", "error", "incomplete", "needs help"), BLOCKED),
}
_KIND_WORDS = {
    **dict.fromkeys(("impl", "code", "product", "src", "source"), IMPLEMENTATION),
    **dict.fromkeys(("tests", "testing", "spec"), "test"),
    **dict.fromkeys(("doc", "documentation", "readme"), "docs"),
}
_IMPORTANCE_WORDS = {"none": 0, "trivial": 0, "minor": 1, "low": 1, "normal": 2, "medium": 3, "moderate": 3}
_IMPORTANCE_WORDS |= {"major": 4, "high": 4, "critical": 5, "highest": 5}


class ClaimedChange(NamedTuple):
    """`commit` is empty when the claim names none by its id."""

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
    """`before` and `after` are what the agent says its test did; empty when it does not say. `notes` are what was odd
    about the file, in words."""

    status: str
    changes: tuple[ClaimedChange, ...] = ()
    before: str = ""
    after: str = ""
    blocked_reason: str = ""
    blocked_needs: str = ""
    escalations: tuple[Escalation, ...] = ()
    summary: str = ""
    notes: tuple[str, ...] = ()


class UnreadableOutcome(Exception):
    """The file says nothing that could be shown; the message says why."""


def parse(data: bytes | None, task: str, root: str = "") -> Outcome:
    """The claim in an outcome file, or `Unreadable`. `None` is a missing file. `root` is the agent's work dir: a path
    below it is taken as one of the repository."""
    if data is None:
        raise UnreadableOutcome("no outcome file was written")
    if not data.strip():
        raise UnreadableOutcome("the outcome file is empty")
    if len(data) > MAX_BYTES:
        raise UnreadableOutcome(f"the outcome file has {len(data):,} bytes, more than {MAX_BYTES:,}")
    try:
        text = data.decode("utf-8-sig").strip()
        value = json.loads(_FENCE.sub(r"\1", text))
    except UnicodeDecodeError as error:
        raise UnreadableOutcome(f"the outcome file is not UTF-8: {error.reason} at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableOutcome(f"the outcome file is not JSON: {error}") from None
    return _OutcomeReader(task, root).outcome(value)


class _OutcomeReader:
    """Takes values apart, and notes each one that has another shape than it should, named by its place."""

    def __init__(self, task: str, root: str) -> None:
        self._task, self._root = task, root.rstrip("/")
        self._notes: list[str] = []

    def outcome(self, value: Any) -> Outcome:
        if not isinstance(value, dict):
            raise UnreadableOutcome(f"the outcome is {_shown(value)}, not an object")
        if not any(value.get(name) for name in ("status", "summary", "changes", "blocked", "test")):
            raise UnreadableOutcome("the outcome has neither `status` nor `summary`")
        for name, wanted in (("schema", SCHEMA), ("task", self._task)):
            if value.get(name) != wanted or isinstance(value.get(name), bool):
                self._note(f"`{name}`", value.get(name), f"not {_shown(wanted)}")
        test, blocked = self._object(value.get("test"), "test"), self._object(value.get("blocked"), "blocked", "reason")
        summary = self._text(value.get("summary"), "summary")
        reason = self._text(blocked.get("reason"), "blocked.reason")
        status = self._status(value.get("status"), reason)
        if status == BLOCKED and not reason.strip():
            self._notes.append("`blocked.reason` does not say why")
            reason = summary or "no reason given"
        changes, escalations = (self._list(value.get(name), name) for name in ("changes", "escalations"))
        return Outcome(
            status=status,
            changes=tuple(self._change(item, f"changes[{at}]") for at, item in enumerate(changes)),
            before=self._result(test.get("before"), "test.before"),
            after=self._result(test.get("after"), "test.after"),
            blocked_reason=reason,
            blocked_needs=self._text(blocked.get("needs"), "blocked.needs"),
            escalations=tuple(self._escalation(item, f"escalations[{at}]") for at, item in enumerate(escalations)),
            summary=summary,
            notes=tuple(self._notes[:_NOTES_MAX]),
        )

    def _status(self, value: Any, blocked: str) -> str:
        word = value.strip().lower() if isinstance(value, str) else ""
        known = _STATUS_WORDS.get(word, BLOCKED if blocked.strip() else DONE)
        if word not in STATUSES:
            self._note("`status`", value, f"taken as `{known}`")
        return known

    def _change(self, value: Any, where: str) -> ClaimedChange:
        item = self._object(value, where, "summary")
        return ClaimedChange(
            kind=self._kind(item.get("kind"), where),
            commit=self._commit(item.get("commit"), where),
            summary=self._text(item.get("summary"), f"{where}.summary"),
            importance=self._importance(item.get("importance"), where),
        )

    def _kind(self, value: Any, where: str) -> str:
        word = value.strip().lower() if isinstance(value, str) else ""
        known = word if word in CHANGE_KINDS else _KIND_WORDS.get(word, OTHER)
        if word != known:
            self._note(f"`{where}.kind`", value, f"taken as `{known}`")
        return known

    def _commit(self, value: Any, where: str) -> str:
        """The id in it. A name such as `HEAD` says nothing later."""
        found = _SHA.search(value.lower()) if isinstance(value, str) else None
        if found is None:
            self._note(f"`{where}.commit`", value, "not the id of a commit")
        return found.group() if found else ""

    def _importance(self, value: Any, where: str) -> int:
        if value is None:
            return 0
        text = str(value).strip().lower()
        number = None if isinstance(value, bool) else _NUMBER.match(text)
        known = _IMPORTANCE_WORDS.get(text, 0) if number is None else round(float(number.group()[:20]))
        known = max(0, min(known, 5))
        if isinstance(value, bool) or value != known:
            self._note(f"`{where}.importance`", value, f"taken as {known}")
        return known

    def _escalation(self, value: Any, where: str) -> Escalation:
        item = self._object(value, where, "summary")
        places = self._list(item.get("locations"), f"{where}.locations")
        found = [self._location(place, f"{where}.locations[{at}]") for at, place in enumerate(places)]
        return Escalation(
            kind=self._text(item.get("kind"), f"{where}.kind"),
            summary=self._text(item.get("summary"), f"{where}.summary"),
            locations=tuple(place for place in found if place is not None),
            evidence=self._text(item.get("evidence"), f"{where}.evidence"),
        )

    def _location(self, value: Any, where: str) -> tuple[str, int] | None:
        """A file of the repository and a line; None for a place elsewhere."""
        item = self._object(value, where, "path")
        path, line = self._text(item.get("path"), f"{where}.path"), item.get("line")
        if line is None and path.rpartition(":")[2].isdigit():
            path, _, line = path.rpartition(":")
        if self._root and path.startswith(f"{self._root}/"):
            path = path[len(self._root) + 1 :]
        if not path or path.startswith(("/", "~")) or ".." in path.split("/"):
            self._note(f"`{where}.path`", item.get("path"), "not inside the repository, left out")
            return None
        number = _NUMBER.match(str(line).strip()) if not isinstance(line, bool) else None
        return path, max(0, int(float(number.group()[:9]))) if number else 0

    def _object(self, value: Any, where: str, alone: str = "") -> dict[str, Any]:
        """A text where an object is wanted is taken as its value `alone`."""
        if isinstance(value, dict):
            return value
        if isinstance(value, str) and alone and value.strip():
            if alone != "path":
                self._note(f"`{where}`", value, f"taken as its `{alone}`")
            return {alone: value}
        if value not in (None, "", False) and value != []:
            self._note(f"`{where}`", value, "not an object")
        return {}

    def _list(self, value: Any, where: str) -> Sequence[Any]:
        if isinstance(value, (dict, str)) and value:
            value = [value]
        if not isinstance(value, list):
            if value:
                self._note(f"`{where}`", value, "not a list")
            return ()
        if len(value) > _LIST_MAX:
            self._notes.append(f"`{where}` has {len(value)} entries; the first {_LIST_MAX} are shown")
        return [item for item in value[:_LIST_MAX] if item is not None]

    def _result(self, value: Any, where: str) -> str:
        return ("passed" if value else "failed") if isinstance(value, bool) else self._text(value, where)

    def _text(self, value: Any, where: str) -> str:
        if value is None:
            return ""
        if not isinstance(value, str):
            self._note(f"`{where}`", value, "not a text")
            value = json.dumps(value, ensure_ascii=False, default=str)
        if len(value) > _TEXT_MAX:
            self._notes.append(f"`{where}` has {len(value):,} characters; the first {_TEXT_MAX:,} are shown")
        return str(value[:_TEXT_MAX]).encode("utf-8", "replace").decode()

    def _note(self, what: str, value: Any, comment: str) -> None:
        self._notes.append(f"{what} is missing" if value is None else f"{what} is {_shown(value)}: {comment}")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return f"`{text if len(text) <= 80 else text[:77] + '...'}`"


def main() -> int:
    """Check the outcome file of this agent: exit code 1 when it cannot be read."""
    path = os.environ.get("MNGR_OUTCOME_FILE", "")
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        found = parse(data, os.environ.get("MNGR_TASK", ""), os.environ.get("MNGR_AGENT_WORK_DIR", ""))
    except (OSError, UnreadableOutcome) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    for note in found.notes:
        sys.stdout.write(f"note: {note}\n")
    sys.stdout.write(f"ok: status {found.status}, {len(found.changes)} changes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
