"""The agents of one host, on that host's disk: their records and events."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager

from mngr.agent import events, record
from mngr.agent.record import CorruptRecord, Record
from mngr.errors import NotFoundError
from mngr.names import is_id
from mngr.system.files import MOST_BYTES, NOT_PLAIN, last_lines, read_lines
from mngr.system.state_dir import StateDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCREEN = "screen.txt"
RESTORING = "restoring"  # the snapshot that its work dir is brought back to at this moment
_TAIL = 16384
# A state is decided from at most so much of the end of the events; what an agent adds to them cannot cost more.
_MOST_TAIL, _MOST_LINES = 1 << 22, 4096
# Whoever asks for all events gets the last of them.
_MOST_EVENTS = 500_000


class Store:
    def __init__(self, host: StateDir) -> None:
        self.host = host
        self.dir = os.path.join(host.dir, "agents")

    def state_dir(self, agent_id: str) -> str:
        return os.path.join(self.dir, agent_id)

    def is_restoring(self, agent_id: str) -> bool:
        """Whether its work dir is being brought back to a snapshot, or was when that was interrupted."""
        return os.path.exists(os.path.join(self.dir, agent_id, RESTORING))

    def locked(self) -> AbstractContextManager[bool]:
        """Held while names are chosen and records change hands; never during slow work."""
        return self.host.locked("host", timeout=60, what="the state directory")

    def agent_locked(self, agent_id: str) -> AbstractContextManager[bool]:
        """Held while one agent is started, stopped, destroyed or talked to."""
        return self.host.locked(agent_id, timeout=300, what="this agent", guards=self.state_dir(agent_id))

    def records(self, only: Collection[str] | None = None) -> tuple[list[Record], list[CorruptRecord]]:
        """All records, or those with these ids, in order of creation, and those that could not be read."""
        good: list[Record] = []
        bad: list[CorruptRecord] = []
        for name in self.host.entries(self.dir) if only is None else only:
            if not is_id(name):
                continue
            try:
                good.append(self._parsed(name))
            except FileNotFoundError:
                continue  # being made or removed at this moment
            except CorruptRecord as error:
                bad.append(error)
        good.sort(key=lambda r: (r.life.created_at, r.id))
        return good, bad

    def exists(self, agent_id: str) -> bool:
        return os.path.lexists(os.path.join(self.dir, agent_id, "agent.json"))

    def read(self, agent_id: str) -> Record:
        try:
            return self._parsed(agent_id)
        except FileNotFoundError:
            raise NotFoundError(f"agent `{agent_id}` was destroyed in the meantime") from None

    def write(self, changed: Record, *, durable: bool = True) -> None:
        """Replace the whole record. The caller has read it under `locked`, or made it: anybody else's change would be
        lost."""
        self.host.write(os.path.join(self.dir, changed.id, "agent.json"), record.dump(changed), durable=durable)

    def change(self, agent_id: str, **fields: Any) -> Record:
        """Replace fields of the record as it is on disk now."""
        with self.locked():
            changed = self.read(agent_id).changed(**fields)
            self.write(changed)
        return changed

    def log(self, agent_id: str, type: str, **fields: Any) -> dict[str, Any]:
        if "text" in fields:  # the one field that is not in our own words
            from mngr import secrets

            fields = secrets.mask_fields(fields, self.secrets(agent_id))
        event = events.new_event("mngr", type, **fields)
        path = self._events_file(agent_id)
        try:
            self.host.append(path, event)
        except OSError as error:
            if error.strerror != NOT_PLAIN:
                raise
            os.replace(path, f"{path}.{os.urandom(4).hex()}.replaced")  # a pipe, a link or a directory, not by us
            self.host.append(path, event)
        return event

    def secrets(self, agent_id: str) -> tuple[str, ...]:
        """The values of the variables that it was given; none of them belongs into a text that is kept or shown."""
        from mngr.secrets import env_values

        try:
            return env_values(self.host.read(os.path.join(self.dir, agent_id, "env")).decode(errors="surrogateescape"))
        except FileNotFoundError:
            return ()

    def events(self, agent_id: str) -> list[dict[str, Any]]:
        """All events in order, or as many of the last ones as are read at once. Raises OSError when what is there is
        not a plain file."""
        return read_lines(last_lines(self.host.read_tail(self._events_file(agent_id), MOST_BYTES)[0], _MOST_EVENTS))

    def events_from(self, agent_id: str, start: int) -> tuple[list[dict[str, Any]], int]:
        """The whole events that were added after this size of the file, and the size up to which they reach."""
        data = self.host.read_from(self._events_file(agent_id), start)
        end = data.rfind(b"\n") + 1
        return read_lines(last_lines(data[:end], _MOST_EVENTS)), start + (end or len(data) // MOST_BYTES * MOST_BYTES)

    def events_size(self, agent_id: str) -> int:
        try:
            return os.lstat(self._events_file(agent_id)).st_size
        except FileNotFoundError:
            return 0

    def _events_file(self, agent_id: str) -> str:
        return os.path.join(self.dir, agent_id, events.FILE)

    def events_since_start(self, agent_id: str) -> list[dict[str, Any]]:
        """Events of the agent's present process, as far back as its state needs them: to its last `started`, or some
        of the last ones with a state among them, which nothing before them can change. Raises OSError when what is
        there is not a plain file."""
        path = self._events_file(agent_id)
        size = _TAIL
        while True:
            data, whole = self.host.read_tail(path, size)
            start = data.rfind(b'"type": "started"')
            found = read_lines(last_lines(data[data.rfind(b"\n", 0, max(0, start)) + 1 :], _MOST_LINES))
            if whole or start >= 0 or size >= _MOST_TAIL or any(event.get("type") == "state" for event in found):
                return found
            size *= 16

    def forget(self, agent_id: str) -> None:
        """Remove the state directory and the agent's locks."""
        self.host.remove(self.state_dir(agent_id))
        self.forget_locks(agent_id)

    def forget_locks(self, agent_id: str) -> None:
        """Remove the agent's locks. One that is held goes when its holder releases it."""
        for lock in (agent_id, f"{agent_id}.message", f"{agent_id}.recording"):
            self.host.remove_lock(lock)

    def _parsed(self, agent_id: str) -> Record:
        path = os.path.join(self.dir, agent_id, "agent.json")
        try:
            found = record.parse(self.host.read(path), path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CorruptRecord(f"`{path}` cannot be read: {error.strerror}", hint=record.CORRUPT_HINT) from None
        if found.id != agent_id:
            raise CorruptRecord(f"`{path}` is the record of another agent, `{found.id}`", hint=record.CORRUPT_HINT)
        return found

    def names(self) -> Iterable[str]:
        return (r.name for r in self.records()[0])
