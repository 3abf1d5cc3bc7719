"""Hosts that the system's `ssh` can reach: names of `~/.ssh/config`, addresses, and pools of both.

Connections are shared and kept for a while by ssh itself (ControlMaster), so that the second verb costs no handshake.
Keys, agents, jump hosts and known hosts are ssh's own business: nothing of them is read here."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mngr.errors import MngrError, UsageError
from mngr.files import make_private_dir
from mngr.process import run, run_attached
from mngr.providers.provider import UNKNOWN, HostInfo, Provider
from mngr.providers.ssh_errors import NeedsPerson, explain
from mngr.remote.channel import Opening

if TYPE_CHECKING:
    from mngr.actions.site import Site

KEYS = frozenset({"hosts", "options", "host_dir", "connect_seconds", "max_agents"})
CONNECT_SECONDS = 10.0
# Past the time for the connection: for a slow login shell, and so that ssh's own words arrive before the deadline.
_LOGIN_SECONDS = 4.0
_KEEP_SECONDS = 300
_ASK_SECONDS = 300.0
_LONGEST_SOCKET = 100  # in bytes; ssh appends 17 of its own while it makes the socket, and `%C` becomes 40
_ONE_AT_A_TIME = threading.Lock()


class Ssh(Provider):
    """`hosts` makes it a pool; `options` are further arguments for ssh; `host_dir` is the state directory there, in
    which `{host}` stands for the name of the host; `max_agents` limits the agents of each host of a pool."""

    def __init__(self, name: str, near: Site, values: Mapping[str, object]) -> None:
        super().__init__(name)
        if unknown := sorted({key for key in values if key != "type"} - KEYS):
            raise UsageError(
                f"`providers.{name}.{unknown[0]}` is not a setting of a provider of type `ssh`",
                hint="`mngr help providers` shows the settings of each type",
            )
        self._near = near
        self._hosts = _texts(values.get("hosts"))
        self._options = _texts(values.get("options"))
        self._host_dir = str(values.get("host_dir") or "")
        seconds, most = values.get("connect_seconds"), values.get("max_agents")
        self._seconds = float(seconds) if isinstance(seconds, int | float) else CONNECT_SECONDS
        self.max_agents = most if isinstance(most, int) else None

    def opening(self, host: str) -> Opening:
        common = self._common()
        argv = ["ssh", *common, "-T", "-o", "BatchMode=yes", "--", host]
        terminal = ["ssh", *common, "-t", "--", host]
        state_dir = self._host_dir.replace("{host}", host)
        seconds = self._seconds + _LOGIN_SECONDS
        return Opening(
            host, argv, self._near.environ, state_dir, seconds, terminal, lambda error: self._recover(host, error)
        )

    def hosts(self) -> list[HostInfo]:
        return [HostInfo(name, UNKNOWN) for name in self._hosts]

    def host(self, name: str) -> HostInfo:
        return HostInfo(name, UNKNOWN)

    def pool(self) -> list[str]:
        if not self._hosts:
            raise UsageError(
                f"provider `{self.name}` has no hosts to choose from",
                hint=f"name one: `NAME@HOST`, or list some: `mngr config set providers.{self.name}.hosts`",
            )
        return self._hosts

    def disconnect(self, host: str) -> None:
        run(["ssh", *self._common(), "-O", "exit", "--", host], timeout=10, env=self._near.environ, cwd="/")

    def _recover(self, host: str, error: MngrError) -> None:
        """Let ssh ask the person at the terminal, once, where there is one: the connection then stays open for us."""
        known = explain(host, error)
        if not isinstance(known, NeedsPerson) or not _can_ask(self._near.environ):
            raise known
        argv = ["ssh", *self._common(), "-o", "BatchMode=no", "-T", "--", host, "exit"]
        with _ONE_AT_A_TIME:
            if run_attached(argv, env=self._near.environ, timeout=_ASK_SECONDS) != 0:
                raise known

    def _common(self) -> list[str]:
        keep = ["-o", "ControlMaster=auto", "-o", f"ControlPath={self._sockets()}/%C"]
        keep += ["-o", f"ControlPersist={_KEEP_SECONDS}", "-o", f"ConnectTimeout={max(1, round(self._seconds))}"]
        return [*self._options, *keep, "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]

    def _sockets(self) -> str:
        """A directory of our own for the sockets of open connections: in the state directory, or where its path is too
        long, in the first place that is short enough."""
        host, environ = self._near.host, self._near.environ
        host.prepare()
        path = os.path.join(host.dir, "ssh")
        if _is_short(path):
            make_private_dir(path)
            return path
        import hashlib

        key = hashlib.sha256(os.fsencode(host.dir)).hexdigest()[:8]
        for place in (environ.get("XDG_RUNTIME_DIR"), environ.get("TMPDIR"), "/tmp"):
            path = os.path.join(place or "", f"mngr-{os.getuid()}-{key}")
            if place and os.path.isdir(place) and _is_short(path):
                make_private_dir(path)
                found = os.lstat(path)
                if found.st_uid == os.getuid() and not found.st_mode & 0o077:
                    return path
        raise MngrError("no private directory for the connections of ssh", hint=f"look at `{path}`")


def _is_short(directory: str) -> bool:
    return len(os.fsencode(directory)) + 1 + 40 + 17 <= _LONGEST_SOCKET


def _can_ask(environ: Mapping[str, str]) -> bool:
    """Whether a person is at the terminal and this is the thread that may use it."""
    if environ.get("MNGR_HEADLESS") or threading.current_thread() is not threading.main_thread():
        return False
    return sys.stdin.isatty() and sys.stderr.isatty()


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []
