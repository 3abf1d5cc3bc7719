"""Which of some lines of Python this process runs: each is appended to a file when it is run for the first time."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

_TOOLS = (4, 3, 1, 0)
BEGAN = "began"  # a process tells its lines from now on


class Lines:
    """`wanted` are lines by the real paths of their files."""

    _open, _write, _close = staticmethod(os.open), staticmethod(os.write), staticmethod(os.close)
    _flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT

    def __init__(self, wanted: dict[str, list[int]], log: str) -> None:
        self._left = {os.path.realpath(path): set(lines) for path, lines in wanted.items()}
        self._log = log
        self._files: dict[str, str | None] = {}

    def start(self) -> None:
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is None:
            threading.settrace(self._called)
            sys.settrace(self._called)
            return
        tool = next(tool for tool in _TOOLS if monitoring.get_tool(tool) is None)
        monitoring.use_tool_id(tool, "mngr")
        monitoring.register_callback(tool, monitoring.events.LINE, self._monitored)
        monitoring.set_events(tool, monitoring.events.LINE)

    def is_on(self) -> bool:
        """Whether nobody else follows the lines in place of this."""
        return hasattr(sys, "monitoring") or sys.gettrace() == self._called

    def _path(self, name: str) -> str | None:
        """The file of some code, if any of its lines is wanted."""
        if name not in self._files:
            path = os.path.realpath(name)
            self._files[name] = path if path in self._left else None
        return self._files[name]

    def _called(self, frame: Any, event: str, argument: Any) -> Any:
        return self._line if self._path(frame.f_code.co_filename) is not None else None

    def _line(self, frame: Any, event: str, argument: Any) -> Any:
        if event == "line":
            self._ran(frame.f_code.co_filename, frame.f_lineno)
        return self._line

    def _monitored(self, code: Any, line: int) -> Any:
        self._ran(code.co_filename, line)
        return sys.monitoring.DISABLE  # type: ignore[attr-defined]

    def _ran(self, name: str, line: int) -> None:
        path = self._path(name)
        if path is not None and line in self._left[path]:
            self._left[path].discard(line)
            file = self._open(self._log, self._flags, 0o600)
            try:
                self._write(file, f"{line}\t{path}\n".encode("utf-8", "surrogateescape"))
            finally:
                self._close(file)


def begin(place: str) -> None:
    """In a process that a test started."""
    with open(os.path.join(place, "given.json"), encoding="utf-8") as file:
        given = json.load(file)
    with open(given["log"], "a", encoding="utf-8") as file:
        file.write(f"{BEGAN}\n")
    Lines(given["lines"], given["log"]).start()
