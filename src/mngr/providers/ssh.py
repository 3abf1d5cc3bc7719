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
from mngr.process import run, run_attached
from mngr.providers.provider import UNKNOWN, HostInfo, SettingsProvider
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
_LONGEST_SOCKET_DIR = 42  # in bytes, of 100: `/%C` becomes 41, and ssh appends 17 while it makes the socket
_ONE_AT_A_TIME = threading.Lock()


class Ssh(SettingsProvider):
    """`hosts` makes it a pool; `options` are further arguments for ssh; `host_dir` is the state directory there, in
    which `{host}` stands for the name of the host; `max_agents` limits the agents of each host of a pool."""

    def __init__(self, name: str, near: Site, values: Mapping[str, object]) -> None:
        super().__init__(name, near, values, KEYS)
        self._hosts = self._texts("hosts")
        self._seconds = self._number("connect_seconds", CONNECT_SECONDS)
        self.max_agents = int(self._number("max_agents")) or None

    def opening(self, host: str) -> Opening:
        common = self._common()
        return Opening(
            host,
            argv=["ssh", *common, "-T", "-o", "BatchMode=yes", "--", host],
            env=self._near.environ,
            state_dir=self._text("host_dir").replace("{host}", host),
            seconds=self._seconds + _LOGIN_SECONDS,
            terminal=["ssh", *common, "-t", "--", host],
            recover=lambda error: self._recover(host, error),
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
        self._near.host.prepare()
        sockets = self._socket_dir(os.path.join(self._near.host.dir, "ssh"), _LONGEST_SOCKET_DIR)
        keep = ["-o", "ControlMaster=auto", "-o", f"ControlPath={sockets}/%C"]
        keep += ["-o", f"ControlPersist={_KEEP_SECONDS}", "-o", f"ConnectTimeout={max(1, round(self._seconds))}"]
        return [*self._texts("options"), *keep, "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]


def _can_ask(environ: Mapping[str, str]) -> bool:
    """Whether a person is at the terminal and this is the thread that may use it."""
    if environ.get("MNGR_HEADLESS") or threading.current_thread() is not threading.main_thread():
        return False
    return sys.stdin.isatty() and sys.stderr.isatty()
