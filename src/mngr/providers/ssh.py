"""Hosts that the system's `ssh` can reach: names of `~/.ssh/config`, addresses, and pools of both.

Connections are shared and kept for a while by ssh itself (ControlMaster), so that the second verb costs no handshake.
Keys, agents, jump hosts and known hosts are ssh's own business: nothing of them is read here."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Mapping

from mngr.actions.site import Site
from mngr.errors import MngrError, UsageError
from mngr.providers.provider import UNKNOWN, HostInfo, SettingsProvider
from mngr.remote.channel import Opening, Unreached
from mngr.system.process import quote, run, run_attached

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

    def __init__(self, name: str, local: Site, values: Mapping[str, object]) -> None:
        super().__init__(name, local, values, KEYS)
        self._hosts = self._texts("hosts")
        self._seconds = self._number("connect_seconds", CONNECT_SECONDS)
        self.max_agents = int(self._number("max_agents")) or None

    def opening(self, host: str) -> Opening:
        common = self._common()
        return Opening(
            host,
            argv=["ssh", *common, "-T", "-o", "BatchMode=yes", "--", host],
            env=self._local.environ,
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
        run(["ssh", *self._common(), "-O", "exit", "--", host], timeout=10, env=self._local.environ, cwd="/")

    def _recover(self, host: str, error: MngrError) -> None:
        """Let ssh ask the person at the terminal, once, where there is one: the connection then stays open for us."""
        known = explain(host, error)
        if not isinstance(known, NeedsPerson) or not _can_ask(self._local.environ):
            raise known
        argv = ["ssh", *self._common(), "-o", "BatchMode=no", "-T", "--", host, "exit"]
        with _ONE_AT_A_TIME:
            if run_attached(argv, env=self._local.environ, timeout=_ASK_SECONDS) != 0:
                raise known

    def _common(self) -> list[str]:
        self._local.host.prepare()
        sockets = self._socket_dir(os.path.join(self._local.host.dir, "ssh"), _LONGEST_SOCKET_DIR)
        keep = ["-o", "ControlMaster=auto", "-o", f"ControlPath={sockets}/%C"]
        keep += ["-o", f"ControlPersist={_KEEP_SECONDS}", "-o", f"ConnectTimeout={max(1, round(self._seconds))}"]
        return [*self._texts("options"), *keep, "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]


def _can_ask(environ: Mapping[str, str]) -> bool:
    """Whether a person is at the terminal and this is the thread that may use it."""
    if environ.get("MNGR_HEADLESS") or threading.current_thread() is not threading.main_thread():
        return False
    return sys.stdin.isatty() and sys.stderr.isatty()


class NeedsPerson(Unreached):
    """ssh wants an answer that only a person can give: a password, a passphrase, whether to trust a host key."""


# The words of ssh, which no locale changes. What is unknown is shown as it was printed.
_REACH = "check that the host runs and can be reached: `ssh -v {} true`"
_NOT_KNOWN = "the host key of `{}` is not known yet", "check and accept it in a terminal: `mngr host prepare {}`"
_SILENT = "`{}` does not answer", _REACH
_CLOSED = "`{}` closed the connection before the login", _REACH
_NOT_WRITABLE = "", "set another `host_dir` for this provider, one that can be written there"
# Words that were printed, what they mean for a host (empty: the message stays), and what a person can do.
_MEANINGS = {
    "Host key verification failed": _NOT_KNOWN,
    "host key is known for": _NOT_KNOWN,
    "Permission denied (": (
        "`{}` refused the login",
        "if it needs a password or a passphrase, give it in a terminal: `mngr host prepare {}`",
    ),
    "Could not resolve hostname": ("no host is called `{}`", "`ssh -G {}` shows the name and address that ssh uses"),
    "Too many authentication failures": ("`{}` refused too many keys", "`ssh -v {} true` shows which were offered"),
    "Connection refused": ("`{}` refuses connections", "check that the host runs and has sshd: `ssh -v {} true`"),
    "timed out": _SILENT,
    "No route to host": _SILENT,
    "Network is unreachable": _SILENT,
    "Bad configuration option": ("ssh cannot read its configuration for `{}`", "`ssh -G {}` shows what it reads"),
    "UNKNOWN port 65535": (
        "the way to `{}` is closed: a jump host or proxy does not let the connection through",
        "`ssh -v {} true` shows which jump host or proxy it is",
    ),
    "Connection closed by": _CLOSED,
    "Connection reset": _CLOSED,
    "restricted": ("", "mngr needs a login shell that is not restricted: `ssh {} 'exec sh -c pwd'` has to work"),
    "No space left on device": ("", "`ssh {} df -h .` shows the disk there; make room, or set another `host_dir`"),
    "Read-only file system": _NOT_WRITABLE,
    "Permission denied": _NOT_WRITABLE,
}


def explain(host: str, error: MngrError) -> MngrError:
    """The same error with a message and a hint that fit what was printed."""
    said, shown = error.details, quote(host)
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in said:
        name = re.search(r"Host key for (\S+) has changed", said)
        file = re.search(r"Offending \S+ key in (.+):\d+", said)
        at = f" -f {quote(file[1])}" if file else ""
        shows = f"`ssh-keygen -l -F {quote(name[1]) if name else shown}{at}` shows the known key"
        return Unreached(
            f"the host key of `{host}` has changed: this may be another machine",
            hint=f"{shows}; `ssh-keygen -R` removes it if the change is right",
            details=said,
        )
    found = next((meaning for words, meaning in _MEANINGS.items() if words in said), None)
    if found is None and error.hint:
        return error
    message, hint = found or ("", "see what the login does: `ssh {} 'echo ok'`")
    kind = NeedsPerson if "mngr host prepare" in hint else Unreached
    return kind(message.format(host) or error.message, hint=hint.format(shown), details=said)
