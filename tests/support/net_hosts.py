"""Many machines on one: each host has its own network, processes, name and disk, and a real sshd as first process.

All of them live inside one process of namespaces, the world. The kernel ends the world when the process of the tests is
gone, however that went; with it go the hosts' processes, links, mounts and disks, which are in memory."""

import functools
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pytest

from mngr.e2e.environment import short_place
from mngr.remote.channel import Opening
from tests.support import sshd
from tests.support.guard import Guard
from tests.support.user import Ran, wait_for

PACKAGES = Path(__file__).parents[1] / "machines" / "packages"
# Addresses that are set aside for tests of networks: no real machine has one.
_SUBNETS = [f"198.{second}.{third}" for second in (18, 19) for third in range(256)]
_WORLD = """\
mount -t tmpfs -o size=4g tmpfs /mnt && ip link add switch type bridge && ip link set switch up && echo ready &&
exec sleep infinity
"""
# The network of one host outlives the host's processes: a host that died refuses connections until it is started again.
_NETWORK = """\
mkdir -p /mnt/$1/upper/root/.ssh /mnt/$1/upper/etc/ssh /mnt/$1/work /mnt/$1/root
touch /mnt/$1/net
chmod 700 /mnt/$1/upper/root /mnt/$1/upper/root/.ssh
unshare --net=/mnt/$1/net ip -batch - <<END
link set lo up
link add eth0 type veth peer name $1 netns $3
addr add $2/24 dev eth0
link set eth0 up
END
ip link set $1 master switch up
"""
_HOST = """\
set -e
hostname $1
mount -t overlay -o lowerdir=$2,upperdir=/mnt/$1/upper,workdir=/mnt/$1/work overlay /mnt/$1/root
cd /mnt/$1/root
mount -t proc proc proc
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
ln -sf pts/ptmx dev/ptmx
mkdir run/sshd
exec env -i PATH=$3 chroot . /usr/sbin/sshd -D -E /run/sshd.log
"""


def cache() -> Path:
    """Where `scripts/setup --test` keeps what it makes for these tests."""
    named = os.environ.get("MNGR_TEST_MACHINES")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(named) if named else Path(home, "mngr-tests")


def cached(name: str) -> Path:
    """One of those directories, by the list of packages that it was made from. Skips the test where it is missing."""
    found = cache() / f"{name}-{hashlib.sha256(PACKAGES.read_bytes()).hexdigest()[:16]}"
    if os.getuid() != 0:
        pytest.skip("hosts in namespaces and containers need root")
    if not found.is_dir():
        pytest.skip(f"`{found}` is missing: `scripts/setup --test` makes it where it is root and has apt")
    return found


@functools.cache
def _can_unshare() -> str:
    """Why this machine gives us no namespaces; empty when it does."""
    words = [
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--uts",
        "--ipc",
        "--fork",
        "mount",
        "-t",
        "tmpfs",
        "tmpfs",
        "/mnt",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stderr.strip()


class NetHost:
    """One host: its address, and its first process while it runs."""

    def __init__(self, name: str, address: str) -> None:
        self.name, self.address = name, address
        self.process: subprocess.Popen[bytes] | None = None
        self.first = 0

    @property
    def root(self) -> Path:
        """Its files, from outside while it runs. An absolute symbolic link there leads out of it."""
        return Path(f"/proc/{self.first}/root")

    def run(self, argv: Sequence[str], *, input: str = "", env: Mapping[str, str] | None = None) -> Ran:
        """Run a program on the host, as its root and without the network."""
        enter = ["nsenter", "-t", str(self.first), "-m", "-u", "-i", "-n", "-p", "-r", "-w"]
        words = [
            f"{name}={value}" for name, value in {"HOME": "/root", "PATH": sshd.SYSTEM_PATH, **(env or {})}.items()
        ]
        done = subprocess.run(
            [*enter, "env", "-i", *words, *argv], input=input.encode(), capture_output=True, timeout=60, check=False
        )
        return Ran(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


class NetHosts:
    """Hosts `h1` to `hN`, or by the given names (at most 15 letters), all known to `client`. For a `with` block."""

    def __init__(self, names: int | Sequence[str], *, server_config: str = "") -> None:
        self._lower = cached("root")
        if why := _can_unshare():
            pytest.skip(f"hosts in namespaces cannot be made here: {why}")
        found = [f"h{number}" for number in range(1, names + 1)] if isinstance(names, int) else names
        self._server_config = f"{server_config}\nMaxSessions 100\n{sshd.SERVER_CONFIG}"
        self._place = Path(tempfile.mkdtemp(prefix="mngr-n-", dir=short_place()))
        self._guard = Guard(self._place)
        self._claim, subnet = _claim_subnet()
        self._link = f"mt{os.getpid()}-{subnet.split('.', 1)[1].replace('.', '-')}"[:15]
        self.hosts = {name: NetHost(name, f"{subnet}.{number}") for number, name in enumerate(found, 2)}
        self.client = sshd.SshClient(self._place / "client")
        self._world: subprocess.Popen[bytes] | None = None
        try:
            self._begin(subnet)
            self.start(*found)
        except BaseException:
            self.close()
            raise

    def _begin(self, subnet: str) -> None:
        """Make the world with its switch, our link to it, and the network and disk of each host."""
        unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _WORLD]
        self._world = subprocess.Popen([*sshd.dying_with_us(), *unshare], stdout=subprocess.PIPE)
        assert self._world.stdout is not None
        assert self._world.stdout.readline() == b"ready\n"
        (self._inside,) = sshd.children(self._world.pid)
        _ip(
            f"link add {self._link} type veth peer name outside netns {self._inside}",
            f"addr add {subnet}.1/24 dev {self._link}",
        )
        _ip(f"link set {self._link} up")
        self._enter(["ip", "link", "set", "outside", "master", "switch", "up"])
        lines = "\n".join(f"network {host.name} {host.address} {self._inside}" for host in self.hosts.values())
        self._enter(["sh", "-e", "-c", f"network() {{\n{_NETWORK}}}\n{lines}"])
        for host in self.hosts.values():
            self.client.add(host.name, host.address, login="root")
            self.client.trust(host.address)
            self._write_disk(host.name)

    def _write_disk(self, name: str) -> None:
        upper = Path(f"/proc/{self._inside}/root/mnt/{name}/upper")
        key = upper / "etc/ssh/host_key"
        key.write_bytes(sshd.keys().host.read_bytes())
        key.chmod(0o600)
        (upper / "etc/ssh/sshd_config").write_text(f"{self._server_config}\nHostKey /etc/ssh/host_key\nPidFile none\n")
        (upper / "etc/hostname").write_text(f"{name}\n")
        (upper / "etc/hosts").write_text(f"127.0.0.1 localhost {name}\n")
        shutil.copy(sshd.keys().user.with_suffix(".pub"), upper / "root/.ssh/authorized_keys")

    def start(self, *names: str) -> None:
        """Start hosts that do not run, with the disk they had; returns when all of them accept connections."""
        for host in map(self.hosts.__getitem__, names):
            enter = [
                "nsenter",
                f"--net=/proc/{self._inside}/root/mnt/{host.name}/net",
                "-t",
                str(self._inside),
                "-m",
                "-p",
            ]
            unshare = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
            script = ["sh", "-c", _HOST, "sh", host.name, str(self._lower), sshd.SYSTEM_PATH]
            with open(self._place / f"{host.name}.log", "wb") as log:
                words = [*enter, "--", *unshare, *script]
                host.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for host in map(self.hosts.__getitem__, names):
            wait_for(functools.partial(self._listens, host), f"{host.name} to listen")

    def _listens(self, host: NetHost) -> bool:
        assert host.process is not None
        assert host.process.poll() is None, (self._place / f"{host.name}.log").read_text()
        found = list(sshd.descendants(host.process.pid))
        if len(found) < 2:
            return False
        host.first = found[1]
        try:
            return "listening" in (host.root / "run/sshd.log").read_text()
        except OSError:
            return False

    def kill(self, name: str) -> None:
        """End all processes of a host at once. Its disk stays, and its network refuses connections."""
        host = self.hosts[name]
        assert host.process is not None
        os.kill(host.first, signal.SIGKILL)
        host.process.wait(timeout=30)
        host.process, host.first = None, 0

    def reboot(self, name: str) -> None:
        self.kill(name)
        self.start(name)

    def cut(self, name: str) -> None:
        """Unplug a host: nothing gets there any more, and nothing says so."""
        self._enter(["ip", "link", "set", name, "down"])

    def mend(self, name: str) -> None:
        self._enter(["ip", "link", "set", name, "up"])

    def opening(self, name: str, *, env: Mapping[str, str], seconds: float = 30.0, state_dir: str = "") -> Opening:
        return self.client.opening(name, env=env, seconds=seconds, state_dir=state_dir)

    def _enter(self, argv: Sequence[str]) -> None:
        done = subprocess.run(
            ["nsenter", "-t", str(self._inside), "-n", "-m", *argv], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{argv[:6]}: {done.stderr}"

    def close(self) -> None:
        """End the world. Twice is safe."""
        if self._world is not None:
            self._world.kill()
            self._world.communicate()
            _ip(f"link del {self._link}", check=False)  # the kernel does it too, later
        for host in self.hosts.values():
            if host.process is not None:
                host.process.wait(timeout=30)
        self._claim.close()
        self._guard.close()

    def __getitem__(self, name: str) -> NetHost:
        return self.hosts[name]

    def __enter__(self) -> "NetHosts":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _claim_subnet() -> tuple[socket.socket, str]:
    """A subnet that no other process of tests on this machine has. It is ours as long as the socket is open."""
    begin = os.getpid() % len(_SUBNETS)
    for subnet in (*_SUBNETS[begin:], *_SUBNETS[:begin]):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0mngr-tests-{subnet}")
        except OSError:
            claim.close()
        else:
            return claim, subnet
    raise AssertionError("no subnet is left")


def _ip(*lines: str, check: bool = True) -> None:
    done = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, f"ip {lines}: {done.stderr}"
