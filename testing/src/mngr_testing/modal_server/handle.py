"""The server as its owner sees it: start it, point a client at it, make calls fail, read its log, stop it."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mngr.errors import MngrError, TimedOut
from mngr.system.process import environment, start
from mngr.system.waiting import wait_until

if TYPE_CHECKING:
    from types import TracebackType

ANSWER_SECONDS = 90.0
STOP_SECONDS = 30.0


class LoggedCall(NamedTuple):
    """One call that ended. `status` is that of gRPC, or `GONE` when the client did not wait for the answer."""

    at: float
    rpc: str
    seconds: float
    status: str
    message: str
    target: str


class ModalServer:
    """A server process from entering to leaving the context, with all its sandboxes."""

    def __init__(self, root: str = "/", max_sandboxes: int | None = None, show: Sequence[str] = ()) -> None:
        """Sandboxes see nothing of `/home`, `/root`, `/tmp` and the like except the directories to `show`."""
        self._options = ["--root", root] + ([] if max_sandboxes is None else ["--max-sandboxes", str(max_sandboxes)])
        self._options += [word for path in show for word in ("--show", path)]
        self.url = ""
        self.pid = 0

    def __enter__(self) -> ModalServer:
        self._directory = tempfile.mkdtemp(prefix="mngr-modal-server-")
        argv = [sys.executable, "-P", "-m", "mngr_testing.modal_server", "--control", "--log", self._log_path]
        (stdin, self._orders), (self._answers, stdout) = os.pipe(), os.pipe()
        errors = os.open(self._errors_path, os.O_WRONLY | os.O_CREAT, 0o600)
        descriptors = (stdin, stdout, errors)
        self._unread = b""
        self.pid = start([*argv, *self._options], cwd="/", env=environment(), descriptors=descriptors)
        for fd in descriptors:
            os.close(fd)
        try:
            self.url = self._line()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._orders)
        if not wait_until(self._reaped, timeout=STOP_SECONDS):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._answers)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _reaped(self) -> bool:
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
        except ChildProcessError:
            return True

    @property
    def _log_path(self) -> str:
        return f"{self._directory}/calls.jsonl"

    @property
    def _errors_path(self) -> str:
        return f"{self._directory}/errors"

    def env(self) -> dict[str, str]:
        """Variables that point the `modal` client here, and away from the user's own settings."""
        return {
            "MODAL_SERVER_URL": self.url,
            "MODAL_TOKEN_ID": "ak-local",
            "MODAL_TOKEN_SECRET": "as-local",
            "MODAL_CONFIG_PATH": f"{self._directory}/no-such-file",
        }

    def fail(self, rpc: str, status: str, message: str = "", *, times: int = 1) -> None:
        """Refuse the next calls whose name matches the shell pattern, with this status of gRPC."""
        self._order("fault", rpc=rpc, status=status, message=message, times=times)

    def delay(self, rpc: str, seconds: float, *, times: int = 1) -> None:
        """Let the next calls wait."""
        self._order("fault", rpc=rpc, seconds=seconds, times=times)

    def drop(self, rpc: str, *, after: int = 0, times: int = 1) -> None:
        """Carry out the next calls, but break their stream after this many bytes of output."""
        self._order("fault", rpc=rpc, cut_after=after, times=times)

    def slow_start(self, seconds: float, *, times: int = 1) -> None:
        """Let the next sandboxes exist for a while before commands can run in them."""
        self._order("fault", rpc="SandboxCreate*", start_seconds=seconds, times=times)

    def preempt(self, sandbox: str) -> None:
        """Take a sandbox away, as when its machine is needed for something else. Returns when it is gone."""
        self._order("preempt", sandbox=sandbox)

    def pass_time(self, seconds: float) -> None:
        """From now on snapshots are so much older; nothing else is."""
        self._order("pass_time", seconds=seconds)

    def clear_faults(self) -> None:
        self._order("clear")

    def sandboxes(self) -> list[dict[str, Any]]:
        """All that were created: id, name, tags, running, cpu, memory, gpu, image, bytes received, pid, and the
        `definition` that the client sent."""
        found: list[dict[str, Any]] = self._order("list")
        return found

    def images(self) -> list[dict[str, Any]]:
        """The definitions of images that clients sent."""
        found: list[dict[str, Any]] = self._order("images")
        return found

    def calls(self, rpc: str = "") -> list[LoggedCall]:
        """What the log has so far, of one name if given."""
        try:
            with open(self._log_path, "rb") as file:
                entries = [LoggedCall(**json.loads(line)) for line in file.read().splitlines()]
        except FileNotFoundError:
            return []
        return [entry for entry in entries if not rpc or entry.rpc == rpc]

    def _order(self, do: str, **details: object) -> Any:
        os.write(self._orders, json.dumps({"do": do, **details}).encode() + b"\n")
        answer = json.loads(self._line())
        if "error" in answer:
            raise MngrError(f"the local Modal server cannot do `{do}`: {answer['error']}")
        return answer["answer"]

    def _line(self) -> str:
        end = time.monotonic() + ANSWER_SECONDS
        while b"\n" not in self._unread:
            if not select.select([self._answers], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimedOut(f"the local Modal server did not answer within {ANSWER_SECONDS:g} s")
            data = os.read(self._answers, 1 << 16)
            if not data:
                with open(self._errors_path, errors="replace") as file:
                    raise MngrError("the local Modal server ended", details=file.read())
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()
