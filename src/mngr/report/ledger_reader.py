"""A ledger that is being written, read as far as it is: each time only what is new."""

from __future__ import annotations

import os
from typing import Any

from mngr.agents.record import seconds_of
from mngr.files import read_lines
from mngr.mapreduce import ledger
from mngr.mapreduce.ledger_fold import fold
from mngr.mapreduce.state import RunState

# Entries that the state does not keep, and the pages show.
_TOLD = frozenset(
    {"decision", "concurrency", "breaker", "measured", "resumed", "retry", "stop", "paused", "waits", "gap", "override"}
    | {"host"}
)
_MOST_TOLD = 5000


class LedgerReader:
    """`state` and `told` are as of the last `refresh`; entries in `told` have their time in seconds. `measured` is the
    directory of each measurement, by its label."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, ledger.FILE)
        self._offset = 0
        self.state = RunState()
        self.told: list[dict[str, Any]] = []
        self.measured: dict[str, str] = {}

    @property
    def read(self) -> int:
        """How much of it was read: differs when there is something new."""
        return self._offset

    def refresh(self) -> RunState:
        """Read the whole lines that are new. A torn last line is left for later."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return self.state
        data = data[: data.rfind(b"\n") + 1]
        if data:
            self._offset += len(data)
            entries = [entry for entry in read_lines(data) if isinstance(entry.get("type"), str)]
            self.state = fold(entries, self.state)
            measured = [entry for entry in entries if entry["type"] == "measured"]
            self.measured |= {str(entry.get("label")): str(entry.get("directory")) for entry in measured}
            self.told += [_timed(entry) for entry in entries if entry["type"] in _TOLD]
            del self.told[:-_MOST_TOLD]
        return self.state


def _timed(entry: dict[str, Any]) -> dict[str, Any]:
    try:
        return {**entry, "at": seconds_of(str(entry.get("at")))}
    except ValueError:
        return {**entry, "at": 0.0}
