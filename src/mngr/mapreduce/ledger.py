"""The ledger of a run, `ledger.jsonl`: append-only, on disk before anybody acts on it, the only truth."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from mngr.agent.record import timestamp
from mngr.system.files import append_line, read_lines

Entry = dict[str, Any]
FILE = "ledger.jsonl"
# A fault for tests: this process kills itself after its Nth append, or, given as `N.5`, just before that one.
KILL_AT = "MNGR_TEST_KILL_AT"


class LedgerFact(NamedTuple):
    """What an entry will say beside its time."""

    type: str
    data: Mapping[str, Any]


def fact(type: str, /, **data: Any) -> LedgerFact:
    return LedgerFact(type, data)


class Ledger:
    """Lines that are appended whole, one at a time, also by several threads."""

    def __init__(self, path: str, now: Callable[[], float] = time.time) -> None:
        self.path, self._now = path, now
        self._turn = threading.Lock()
        self._appended = 0
        self._kill_at = os.environ.get(KILL_AT, "")

    def append(self, *facts: LedgerFact) -> list[Entry]:
        """Write entries, in this order, and wait until the disk has them. On failure the first few of them, or a torn
        line that readers pass over, may be left."""
        entries = []
        with self._turn:
            for number, fact in enumerate(facts, start=1):
                entry = {"at": timestamp(self._now()), "type": fact.type, **fact.data}
                self._die_at(f"{self._appended + 1}.5")
                append_line(self.path, entry, durable=number == len(facts))
                self._appended += 1
                self._die_at(str(self._appended))
                entries.append(entry)
        return entries

    def entries(self) -> Iterator[Entry]:
        """All entries, oldest first; none while there is no ledger. A torn line is passed over."""
        try:
            with open(self.path, "rb") as file:
                for line in file:
                    yield from (entry for entry in read_lines(line) if isinstance(entry.get("type"), str))
        except FileNotFoundError:
            return

    def _die_at(self, point: str) -> None:
        if self._kill_at == point:
            os.kill(os.getpid(), 9)
