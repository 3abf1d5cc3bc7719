"""The books: what agents used whose programs' records are gone, a line for each agent, day and model. Only added to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mngr.agents.record import seconds_of, timestamp
from mngr.files import read_lines
from mngr.hosts.host import Host

FILE = "usage.jsonl"
_TEXTS = ("agent_id", "agent", "project", "type", "day", "model")
_COUNTS = ("answers", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class UsageLine(NamedTuple):
    """Some answers of one agent, all of one day and one model; of all or of none the price is known. `cost_usd` is what
    was known when it was written, None when no price was. Answers up to `until` are in the books, also those that the
    record of the agent's program still holds."""

    agent_id: str
    agent: str
    project: str
    type: str
    day: str
    model: str
    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    until: str = ""

    @property
    def tokens(self) -> tuple[int, int, int, int]:
        return self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens


class UsageLog(NamedTuple):
    """`until` is up to when each agent is in them, by its id."""

    lines: list[UsageLine]
    until: Mapping[str, float]


# What was read last, by path, size and time: agents that run are asked for again and again.
_last: dict[tuple[str, int, int], UsageLog] = {}


def read(host: Host) -> UsageLog:
    """All that is in them now; a line that is torn or makes no sense is passed over."""
    path = _path(host)
    try:
        info = os.stat(path)
    except FileNotFoundError:
        return UsageLog([], {})
    key = (path, info.st_size, info.st_mtime_ns)
    found = _last.get(key)
    if found is None:
        found = parse(host.read(path))
        _last.clear()
        _last[key] = found
    return found


def parse(data: bytes) -> UsageLog:
    lines = [line for value in read_lines(data) if (line := _line(value)) is not None]
    until: dict[str, float] = {}
    for line in lines:
        until[line.agent_id] = max(until.get(line.agent_id, 0.0), _seconds(line.until))
    return UsageLog([line for line in lines if line.answers], until)


def add(host: Host, new: Iterable[UsageLine]) -> None:
    until = timestamp()
    for line in new:
        host.append(_path(host), line._replace(until=until)._asdict())


def start_page(host: Host, agent_id: str) -> None:
    """From now on this agent's answers are its own: what its program's record holds already is counted elsewhere."""
    host.append(_path(host), {"agent_id": agent_id, "until": timestamp()})


def _line(value: dict[str, Any]) -> UsageLine | None:
    if not isinstance(value.get("agent_id"), str):
        return None
    texts = {name: str(value.get(name) or "") for name in (*_TEXTS, "until")}
    counts = {name: value.get(name, 0) for name in _COUNTS}
    cost = value.get("cost_usd")
    if not all(isinstance(count, int) and count >= 0 for count in counts.values()):
        return None
    if cost is not None and not (isinstance(cost, int | float) and 0 <= cost < 1e12):
        return None
    facts: dict[str, Any] = {**texts, **counts, "cost_usd": cost}
    return UsageLine(**facts)


def _seconds(text: str) -> float:
    try:
        return seconds_of(text)
    except ValueError:
        return 0.0


def _path(host: Host) -> str:
    return os.path.join(host.dir, FILE)
