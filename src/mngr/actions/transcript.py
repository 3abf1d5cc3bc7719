"""The conversation of an agent in one common form, whatever its kind: what was said by whom, and which tools ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from mngr.actions.site import Site
from mngr.errors import NotFoundError
from mngr.named_tuples import NamedTuple
from mngr.system import waiting
from mngr.system.files import MOST_BYTES

_SECONDS_BETWEEN_LOOKS = 2.0

# `system` is what a program itself tells its model in between, such as the end of a command in the background.
ROLES = ("user", "assistant", "system", "tool_call", "tool_result")


class AgentTranscript(NamedTuple):
    """`kept` says that the agent writes it itself; without, it is only what was sent to it."""

    entries: list[dict[str, Any]]
    kept: bool


def read(site: Site, agent_id: str) -> AgentTranscript:
    """All entries, oldest first: `timestamp`, `role` and `text`, with `tool`, `input` and `exit_code` for tools."""
    from mngr.programs import driver

    record = site.store.read(agent_id)
    known = driver.of(record)
    lines = (known or driver.find("reporting")).transcript(site.place(record))
    if not lines:
        return AgentTranscript(_messages(site.store.events(agent_id)), kept=known is not None)
    return AgentTranscript([_entry(line) for line in lines], kept=True)


def events(site: Site, agent_id: str) -> list[dict[str, Any]]:
    """What happened to the agent, in order."""
    return site.store.events(agent_id)


def follow_events(site: Site, agent_id: str) -> Iterator[list[dict[str, Any]]]:
    """All events, then those that are added, until the agent is destroyed."""
    found, seen = site.store.events_from(agent_id, max(0, site.store.events_size(agent_id) - MOST_BYTES))
    yield found
    for _ in waiting.changes(
        [site.store.state_dir(agent_id)], deadline=waiting.Deadline(None), at_least_every=_SECONDS_BETWEEN_LOOKS
    ):
        found, seen = site.store.events_from(agent_id, min(seen, site.store.events_size(agent_id)))
        if found:
            yield found
        if agent_id not in site.host.entries(site.store.dir):
            return


def follow(site: Site, agent_id: str, shown: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """New entries as they come, each once, until the agent is destroyed. An agent may record an entry late, before
    others that were shown already."""
    seen = Counter(map(_words, shown))
    for _ in waiting.changes(
        [site.store.state_dir(agent_id)], deadline=waiting.Deadline(None), at_least_every=_SECONDS_BETWEEN_LOOKS
    ):
        try:
            entries = read(site, agent_id).entries
        except NotFoundError:
            return
        left, new = seen.copy(), []
        for entry in entries:
            left[_words(entry)] -= 1
            if left[_words(entry)] < 0:
                new.append(entry)
        if new:
            yield new
        seen |= Counter(map(_words, entries))


def _words(entry: dict[str, Any]) -> tuple[str, ...]:
    """What identifies an entry: not its time, which differs between records of the same message."""
    return tuple(str(entry.get(name)) for name in ("role", "text", "tool", "input"))


def _entry(line: dict[str, Any]) -> dict[str, Any]:
    """In one order of keys; what else a kind writes comes after."""
    first = {name: str(line.get(name) or "") for name in ("timestamp", "role", "text")}
    return {**first, **{name: value for name, value in line.items() if name not in first}}


def _messages(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages that reached its terminal, at the moment they did."""
    texts = {_id(event): event.get("text") for event in events if event.get("type") == "message_queued"}
    return [
        {"timestamp": str(event.get("timestamp") or ""), "role": "user", "text": str(texts[_id(event)] or "")}
        for event in events
        if event.get("type") == "message_delivered" and _id(event) in texts
    ]


def _id(event: dict[str, Any]) -> str:
    return str(event.get("message_id"))
