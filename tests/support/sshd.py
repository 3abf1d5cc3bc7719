"""A real sshd on a loopback port, with keys of its own, that logs in to the world of a `User`: its HOME, PATH and tmux.

Nothing of the person who runs the tests is read or written: no `~/.ssh`, no agent, no `.bashrc`. `SshClient` is the
other side: a configuration for `ssh -F`, and a directory for PATH whose `ssh` uses it."""

import atexit
import functools
import os
import pwd
import random
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import pytest

from mngr.remote.channel import Opening
from tests.support.user import User, wait_for

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What the server of a test of ours and the one inside of a namespace host have in common.
SERVER_CONFIG = """\
UsePAM no
UseDNS no
StrictModes no
PermitUserRC no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
LogLevel VERBOSE
MaxStartups 200:30:400
Subsystem sftp internal-sftp
"""
_CLIENT_CONFIG = """\
Host *
IdentityFile {key}
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile {known}
GlobalKnownHostsFile /dev/null
StrictHostKeyChecking yes
UpdateHostKeys no
BatchMode yes
KexAlgorithms curve25519-sha256
"""
# What sshd runs for each login, in place of the shell that the person has in /etc/passwd.
_LOGIN = """\
#!/bin/sh
unset SHLVL OLDPWD _
export SHELL={shell} {environ}
cd "$HOME" || exit 1
[ -n "${{SSH_ORIGINAL_COMMAND+x}}" ] || exec "$SHELL" -l
line=$SSH_ORIGINAL_COMMAND
unset SSH_ORIGINAL_COMMAND
exec "$SHELL" -c "$line"
"""


class Keys(NamedTuple):
    """Files with private keys; the public ones are beside them, with `.pub`."""

    user: Path
    host: Path


@functools.cache
def keys() -> Keys:
    """The keys of this process's tests: making some takes longer than starting a server."""
    place = Path(tempfile.mkdtemp(prefix="mngr-keys-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return Keys(new_key(place / "user"), new_key(place / "host"))


def new_key(path: Path) -> Path:
    subprocess.run([program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return path


def program(name: str) -> str:
    """The path of a program of the system. Skips the test where it is not installed."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")
    if found is None:
        pytest.skip(f"`{name}` is not installed: `scripts/setup --test` installs it where apt does that")
    return found


class SshClient:
    """The files of an `ssh` that knows some hosts by name, and those only."""

    def __init__(self, place: Path) -> None:
        self.config, self.known_hosts, self.bin = place / "config", place / "known_hosts", place / "bin"
        self.bin.mkdir(parents=True)
        self.known_hosts.touch()
        self.config.write_text("")
        self._common = _CLIENT_CONFIG.format(key=keys().user, known=self.known_hosts)
        script = self.bin / "ssh"
        script.write_text(f'#!/bin/sh\nexec {program("ssh")} -F {self.config} "$@"\n')
        script.chmod(0o755)

    def add(self, name: str, address: str, *, port: int = 22, login: str = "", more: Sequence[str] = ()) -> None:
        """Make a host known by a name, with further lines of configuration."""
        lines = [f"Host {name}", f"HostName {address}", f"Port {port}", *more]
        lines += [f"User {login}"] if login else []
        block = "\n".join(lines)
        self.config.write_text(f"{block}\n{self.config.read_text().removesuffix(self._common)}{self._common}")

    def trust(self, address: str, *, port: int = 22, key: Path | None = None) -> None:
        """Accept this key of a host, and no longer the ones before."""
        kind, public = (key or keys().host).with_suffix(".pub").read_text().split()[:2]
        place = address if port == 22 else f"[{address}]:{port}"
        lines = [line for line in self.known_hosts.read_text().splitlines() if line.split()[0] != place]
        self.known_hosts.write_text("\n".join([*lines, f"{place} {kind} {public}", ""]))

    def public_key(self) -> str:
        """The line for `authorized_keys` that lets this client in."""
        return keys().user.with_suffix(".pub").read_text().strip()

    def argv(self, name: str, *options: str) -> list[str]:
        return [program("ssh"), "-F", str(self.config), *options, name]

    def env(self, env: Mapping[str, str]) -> dict[str, str]:
        """An environment in which `ssh` is this one."""
        return {**env, "PATH": f"{self.bin}:{env['PATH']}"}

    def opening(self, name: str, *, env: Mapping[str, str], seconds: float = 30.0, state_dir: str = "") -> Opening:
        return Opening(name, self.argv(name), env, state_dir, seconds, self.argv(name, "-t"))


class Sshd:
    """A server that logs in to the world of `far`; at the end of the `with` block it and all its connections are gone.

    `shell` is the login shell, `bashrc` what it reads first; `extra` are further lines of sshd's configuration, which
    win over ours."""

    def __init__(
        self,
        far: User,
        *,
        name: str = "box",
        shell: str = "/bin/bash",
        bashrc: str = "",
        banner: str = "",
        extra: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.far, self.name, self.shell = far, name, shell
        self._place = far.root / f"sshd-{name}"
        self._place.mkdir()
        self._log = self._place / "log"
        self.set_bashrc(bashrc)
        known = {name: far.env[name] for name in ("HOME", "PATH", "TMUX_TMPDIR", "LANG")}
        words = " ".join(f"{name}='{value}'" for name, value in {**known, **(environ or {})}.items())
        (self._place / "login").write_text(_LOGIN.format(shell=shell, environ=words))
        (self._place / "banner").write_text(banner)
        lines = [*extra, f"Banner {self._place}/banner"] if banner else [*extra]
        self._config = "\n".join([*lines, *self._own_lines(), SERVER_CONFIG])
        self._process, self.port = self._start()
        self.client = SshClient(self._place / "client")
        self.client.add(name, "127.0.0.1", port=self.port, login=pwd.getpwuid(os.getuid()).pw_name)
        self.client.trust("127.0.0.1", port=self.port)

    def _own_lines(self) -> Iterator[str]:
        yield "ListenAddress 127.0.0.1"
        yield f"HostKey {keys().host}"
        yield f"AuthorizedKeysFile {keys().user}.pub"
        yield "PidFile none"
        yield "MaxSessions 100"
        # An empty HOME for the shell that starts ours: it would read the person's files otherwise.
        yield f"SetEnv HOME={self._place}"
        yield f"ForceCommand exec /bin/sh {self._place}/login"

    def _start(self, tries: int = 20) -> "tuple[subprocess.Popen[bytes], int]":
        if os.getuid() == 0:
            os.makedirs("/run/sshd", 0o755, exist_ok=True)
        for _ in range(tries):
            port = random.SystemRandom().randrange(20000, 32000)  # below the ports of outgoing connections
            self._log.write_text("")
            (self._place / "sshd_config").write_text(f"Port {port}\n{self._config}")
            argv = [program("sshd"), "-D", "-f", str(self._place / "sshd_config"), "-E", str(self._log)]
            process = subprocess.Popen([*dying_with_us(), *argv], env={"PATH": SYSTEM_PATH}, cwd="/")
            self._settle(process)
            if process.poll() is None:
                return process, port
            assert "already in use" in self.log(), self.log()
        raise AssertionError(f"no port for sshd:\n{self.log()}")

    def _settle(self, process: "subprocess.Popen[bytes]") -> None:
        wait_for(lambda: process.poll() is not None or "listening" in self.log(), "sshd to listen")

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def set_bashrc(self, text: str) -> None:
        (self.far.home / ".bashrc").write_text(text)

    def opening(self, *, seconds: float = 30.0, state_dir: str = "") -> Opening:
        return self.client.opening(self.name, env=self.far.env, seconds=seconds, state_dir=state_dir)

    def connections(self) -> list[int]:
        """The processes of sshd that serve a connection."""
        return [pid for pid in descendants(self._process.pid) if _name(pid).startswith("sshd")]

    def drop(self) -> None:
        """Lose all connections at once. New ones are possible."""
        _kill(self.connections())

    def close(self) -> None:
        """End the server, as on a machine that went down: connections are lost and refused. Twice is safe."""
        left = self.connections()
        self._process.kill()
        self._process.wait()
        _kill(left)

    def __enter__(self) -> "Sshd":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def dying_with_us() -> list[str]:
    """Put before a command: the kernel kills it when the thread that started it is gone, however that went."""
    return [program("setpriv"), "--pdeathsig", "KILL"]


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descendants(pid: int) -> Iterator[int]:
    for child in children(pid):
        yield child
        yield from descendants(child)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
