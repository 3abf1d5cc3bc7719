"""Podman with a store of its own, above the image that `scripts/setup --test` made: nothing is global.

The product finds `podman` on PATH, and podman its settings in the environment: `env` is all that a test passes on. When
the process of the tests is killed, a process beside it removes the containers, the mounts and the store."""

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from mngr.e2e.environment import short_place
from mngr.remote.channel import Opening
from tests.support.guard import Guard
from tests.support.net_hosts import cached
from tests.support.sshd import SYSTEM_PATH, program
from tests.support.user import Ran

IMAGE = "localhost/mngr-machine:latest"
# Without own directories and locks in files, podman shares its locks with every other podman here. Limits are
# those that a process without further rights may have.
_CONTAINERS_CONF = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
netns = "none"
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
lock_type = "file"
tmp_dir = "{place}/tmp"
[network]
network_backend = "netavark"
network_config_dir = "{place}/networks"
"""
_STORAGE_CONF = """\
[storage]
driver = "overlay"
graphroot = "{place}/graph"
runroot = "{place}/run"
[storage.options]
additionalimagestores = ["{images}"]
"""
# After the end of a container, a process of podman's own tidies up and makes the directories of the store again.
_REMOVE = """\
podman rm --all --force --time 0
tries=0
while pgrep -f "$PLACE/" && [ $tries -lt 200 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
pkill -KILL -f "$PLACE/"
umount "$PLACE/graph/overlay"
"""


class Containers:
    """One store of containers and images, for a `with` block. Stores of several processes do not see each other."""

    def __init__(self) -> None:
        images = cached("images")
        for name in ("podman", "runc"):
            program(name)
        self._place = Path(tempfile.mkdtemp(prefix="mngr-c-", dir=short_place()))
        (self._place / "containers.conf").write_text(_CONTAINERS_CONF.format(place=self._place))
        (self._place / "storage.conf").write_text(_STORAGE_CONF.format(place=self._place, images=images))
        self.bin = self._place / "bin"
        self.bin.mkdir()
        (self.bin / "docker").symlink_to(program("podman"))
        self._settings = {
            "CONTAINERS_CONF": str(self._place / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self._place / "storage.conf"),
        }
        self._guard = Guard(self._place, _REMOVE, self.env({"PATH": SYSTEM_PATH}))

    def env(self, env: Mapping[str, str]) -> dict[str, str]:
        """An environment in which `podman`, and `docker` by its name, use this store."""
        return {**env, **self._settings, "PATH": f"{self.bin}:{env['PATH']}"}

    def podman(self, *words: str, input: bytes = b"", timeout: float = 60) -> Ran:
        env = self.env({"PATH": SYSTEM_PATH, "HOME": str(self._place)})
        done = subprocess.run(
            ["podman", *words], env=env, cwd="/", input=input, capture_output=True, timeout=timeout, check=False
        )
        return Ran(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def start(self, name: str, *options: str) -> None:
        """A container of the test image that waits; `--init` has it reap what ends, and end at once when asked."""
        self.podman("run", "--detach", "--init", "--name", name, *options, IMAGE, "sleep", "infinity").ok()

    def opening(self, name: str, *, env: Mapping[str, str], seconds: float = 30.0, state_dir: str = "") -> Opening:
        argv, terminal = ([program("podman"), "exec", option, name, "sh", "-c"] for option in ("-i", "-it"))
        return Opening(name, argv, self.env(env), state_dir, seconds, terminal)

    def close(self) -> None:
        """Remove the containers and the store. Twice is safe."""
        self._guard.close()

    def __enter__(self) -> "Containers":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
