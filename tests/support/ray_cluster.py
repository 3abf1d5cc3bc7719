"""A real Ray cluster on one machine: each node has a network of its own, so that it can be cut off.

Everything of it lives inside one process of namespaces, the world, and ends with it."""

import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from mngr.e2e.environment import short_place
from tests.support import sshd
from tests.support.guard import Guard
from tests.support.pods import add_settings
from tests.support.user import MNGR, User, wait_for

CANNOT_RUN = (
    "the package `ray` is not installed: `pip install 'mngr[ray]'`"
    if importlib.util.find_spec("ray") is None
    else ""
    if sys.platform == "linux" and os.geteuid() == 0
    else "nodes in network namespaces need root"
)
PORT = 6379
_SUBNET = "198.18.255"
# A node that does not answer is dead after some seconds; sooner, and a busy machine loses nodes that are well.
_FAST = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "3000",
    "RAY_health_check_failure_threshold": "4",
}
_WORLD = """\
mount -t tmpfs tmpfs /mnt && ip link add switch type bridge && ip link set switch up &&
echo ready && exec sleep infinity
"""
_NETWORK = """\
set -e
touch /mnt/$1
unshare --net=/mnt/$1 ip -batch - <<END
link set lo up
link add eth0 type veth peer name $1 netns $3
addr add $2/24 dev eth0
link set eth0 up
END
ip link set $1 master switch up
"""
# Ray looks for its own processes by their ids inside of the world.
_OWN_PROC = 'mount -t proc proc /proc && cd "$0" && exec "$@"'


class RayCluster:
    """Nodes `n1` (the head, with a CPU for drivers only) to `nN`. For a `with` block."""

    def __init__(self, nodes: int, *, cpus: int) -> None:
        self._cpus = cpus
        self.place = Path(tempfile.mkdtemp(prefix="mngr-r-", dir=short_place()))
        self._guard = Guard(self.place)
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _WORLD]
        self._world = subprocess.Popen([*sshd.dying_with_us(), *unshare], stdout=subprocess.PIPE)
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        try:
            assert self._world.stdout is not None and self._world.stdout.readline() == b"ready\n"
            (self._inside,) = sshd.children(self._world.pid)
            for name in self.names:
                words = ["sh", "-c", _NETWORK, "sh", name, self.ip(name), str(self._inside)]
                subprocess.run(["nsenter", "-t", str(self._inside), "-n", "-m", *words], check=True)
            for name in self.names:
                self.start(name)
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        return f"{self.ip('n1')}:{PORT}"

    def ip(self, name: str) -> str:
        return f"{_SUBNET}.{name[1:]}"

    def home(self, name: str) -> Path:
        return self.place / name

    def enter(self, name: str = "n1", *, cwd: str | Path = "/") -> list[str]:
        """The words that run a program on a node."""
        world = f"/proc/{self._inside}/root/mnt/{name}"
        return [
            "nsenter",
            f"--net={world}",
            "-t",
            str(self._inside),
            "-m",
            "-p",
            "unshare",
            "--mount",
            "sh",
            "-c",
            _OWN_PROC,
            str(cwd),
        ]

    def start(self, name: str) -> None:
        """Start Ray on a node; returns when the node is a part of the cluster."""
        self.home(name).mkdir(exist_ok=True)
        # A busy machine must not keep Ray from its health checks; what Ray starts is nicer by 15.
        words = ["nice", "-n", "-10", str(Path(sys.executable).with_name("ray")), "start", "--block"]
        words += ["--disable-usage-stats"]
        words += ["--node-ip-address", self.ip(name), "--object-store-memory", "80000000", "--memory", "500000000"]
        if name == "n1":
            words += ["--head", "--port", str(PORT), "--num-cpus", "0", "--include-dashboard", "false"]
            words += ["--temp-dir", str(self.place / "s")]
        else:
            words += ["--address", self.address, "--num-cpus", str(self._cpus)]
        path = f"{Path(sys.executable).parent}:{sshd.SYSTEM_PATH}"
        env = {"PATH": path, "HOME": str(self.home(name)), "LANG": "C.UTF-8", "RAY_LOG_TO_DRIVER": "0", **_FAST}
        log = self.place / f"{name}.log"
        with open(log, "wb") as file:
            self._nodes[name] = subprocess.Popen(
                [*self.enter(name), *words], env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )

        def started() -> bool:
            assert self._nodes[name].poll() is None, log.read_text()
            return "Ray runtime started" in log.read_text()

        wait_for(started, f"Ray to start on {name}", 120)

    def ended(self, name: str) -> bool:
        """Whether Ray on this node has ended by itself, as it does when it learns that it was declared dead."""
        return self._nodes[name].poll() is not None

    def cut(self, name: str) -> None:
        self._link(name, "down")

    def mend(self, name: str) -> None:
        self._link(name, "up")

    def _link(self, name: str, state: str) -> None:
        subprocess.run(["nsenter", "-t", str(self._inside), "-n", "ip", "link", "set", name, state], check=True)

    def processes(self) -> list[str]:
        """The command lines of all processes of hosts, on all nodes."""
        found = []
        for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
            try:
                environ = Path(f"/proc/{pid}/environ").read_bytes()
                if f"{self.place}/".encode() in environ and b"/.mngr-ray/" in environ:
                    found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return [line for line in found if line]

    def files(self) -> list[Path]:
        """The directories of hosts, on all nodes."""
        return sorted(path.parent for name in self.names for path in self.home(name).glob(".mngr-ray/*/*/key"))

    def close(self) -> None:
        """End the world, and with it all of Ray. Twice is safe."""
        self._world.kill()
        self._world.communicate()
        for node in self._nodes.values():
            node.wait(timeout=30)
        self._guard.close()

    def __enter__(self) -> "RayCluster":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def give(user: User, stack: ExitStack) -> None:
    """A cluster that this user reaches from outside of its network, as programs that have no Ray do: through the one
    process that joined the cluster, which is kept for as long as the stack lasts."""
    cluster = stack.enter_context(RayCluster(2, cpus=2))
    add_settings(user, f'[providers.ray]\naddress = "{cluster.address}"\n')
    user.run([*cluster.enter(cwd=user.repo), MNGR, "host", "list"], timeout=120).ok()
    (path,) = [path for path in (user.host_dir / "hosts" / "ray").iterdir() if path.is_socket()]
    stack.enter_context(socket.socket(socket.AF_UNIX)).connect(str(path))
