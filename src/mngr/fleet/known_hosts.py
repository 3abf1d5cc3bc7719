"""The other hosts that agents of this user run on, with what was last seen there: `hosts/PROVIDER/HOST.json`.

A host is remembered from the first agent made there until `mngr host forget` or until the host is destroyed."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mngr.actions.view import AgentView
from mngr.agent import record as records
from mngr.agent import state
from mngr.agent.record import CorruptRecord
from mngr.agent.state import Status
from mngr.named_tuples import NamedTuple
from mngr.system.files import json_bytes
from mngr.system.state_dir import StateDir

_ROOM = "hosts"
_ENDING = ".json"


class KnownHost(NamedTuple):
    """A host and its agents as they were at `seen_at`, by the clock of this machine; that of the host was ahead of it
    by `clock_skew`. `ours` says that mngr made it: `made_for` an agent or a run, which it ends with, by the process
    `maker`; without the first, for a person."""

    provider: str
    name: str
    seen_at: float = 0.0
    ours: bool = False
    details: Mapping[str, str] = {}
    agents: Sequence[Mapping[str, Any]] = ()
    clock_skew: float = 0.0
    made_for: str = ""
    maker: tuple[int, str] | None = None

    def views(self, now: float, why: str) -> list[AgentView]:
        """The agents, all UNKNOWN: their host did not answer. Each says why, what it was and how long ago."""
        found = []
        for agent in self.agents:
            try:
                record = records.parse(json.dumps(agent["record"]).encode(), f"{self.name}{_ENDING}")
            except (CorruptRecord, KeyError, TypeError):
                continue
            age = max(0.0, now - self.seen_at)
            reason = f"{why}; {agent.get('state', 'seen')} {_ago(age)} ago"
            status = Status(state.UNKNOWN, reason, self.seen_at + self.clock_skew, "hosts: last answer")
            found.append(AgentView(record, status, None))
        return found

    @property
    def names(self) -> set[str]:
        return {str(agent.get("record", {}).get(key)) for agent in self.agents for key in ("name", "id")}


def _ago(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


class KnownHosts:
    def __init__(self, host: StateDir) -> None:
        self._host = host
        self._dir = os.path.join(host.dir, _ROOM)

    def all(self) -> list[KnownHost]:
        """Every known host. Without any this costs one look at a directory."""
        found = []
        for provider in self._host.entries(self._dir):
            room = os.path.join(self._dir, provider)
            if not os.path.isdir(room):
                continue
            names = [name for name in self._host.entries(room) if name.endswith(_ENDING)]
            found += [self._read(provider, name.removesuffix(_ENDING)) for name in names]
        return sorted(found, key=lambda host: (host.provider, host.name))

    def get(self, provider: str, name: str) -> KnownHost | None:
        known = name + _ENDING in self._host.entries(os.path.join(self._dir, provider))
        return self._read(provider, name) if known else None

    def remember(self, known: KnownHost) -> None:
        """Write down a host. Twice is safe."""
        room = os.path.join(self._dir, known.provider)
        self._host.make_dir(room)
        self._host.write(os.path.join(room, known.name + _ENDING), json_bytes(known._asdict()))

    def seen(self, known: KnownHost, views: Sequence[AgentView], clock_skew: float) -> None:
        """Note what the host answered. A host that was forgotten meanwhile stays forgotten."""
        agents = [{"record": records.as_json(view.record), "state": view.state} for view in views]
        if known.name + _ENDING in self._host.entries(os.path.join(self._dir, known.provider)):
            self.remember(known._replace(seen_at=time.time(), agents=agents, clock_skew=clock_skew))

    def forget(self, provider: str, name: str) -> None:
        """Twice is safe."""
        for ending in (_ENDING, ".sh"):
            self._host.remove(os.path.join(self._dir, provider, name + ending))

    def _read(self, provider: str, name: str) -> KnownHost:
        try:
            value = json.loads(self._host.read(os.path.join(self._dir, provider, name + _ENDING)))
            maker = (int(value["maker"][0]), str(value["maker"][1])) if value.get("maker") else None
            return KnownHost(**{**value, "provider": provider, "name": name, "maker": maker})
        except (OSError, ValueError, TypeError, LookupError, AttributeError):
            return KnownHost(provider, name)
