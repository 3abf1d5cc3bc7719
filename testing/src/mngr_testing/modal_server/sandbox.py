"""A sandbox: an overlay of image layers in mount, process, host name and IPC namespaces of its own."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from modal_proto import api_pb2

from mngr.errors import MngrError
from mngr.system.process import checked, find_program, require_program, run
from mngr_testing.modal_server.execution import Execution, Size, children, is_alive, open_terminal

SECONDS_TO_START = 60.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Empty in every sandbox, whatever the root directory has there: the machine's own files are nobody's business.
HIDDEN = ("dev", "home", "media", "mnt", "proc", "root", "run", "srv", "sys", "tmp", "var/tmp")

# Arguments: the state directory, the overlay's layers, the sandbox's directory and host name, then pairs of a directory
# and its path inside up to `--`, then the words that run inside. Ends as the first process of the sandbox, in its root.
MOUNTS = """
set -e
cd "$1"
mount -t overlay -o "lowerdir=$2,upperdir=$3/upper,workdir=$3/work,index=off,metacopy=off" overlay "$3/root"
hostname "$4" 2>/dev/null || echo "$4" > /proc/sys/kernel/hostname
cd "$3/root"
shift 4
mount -t proc proc proc
mount -t tmpfs -o mode=755 dev dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
for name in full null random tty urandom zero; do
    : > dev/$name
    mount --bind /dev/$name dev/$name
done
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for name in 0/stdin 1/stdout 2/stderr; do ln -s "fd/${name%/*}" "dev/${name#*/}"; done
while [ "$1" != -- ]; do
    mkdir -p "./$2"
    mount --bind "$1" "./$2"
    shift 2
done
shift
: > ../up
exec chroot . "$@"
"""
# The first process of a sandbox: it starts the command, collects orphans while it waits, and ends with its exit code.
# A shell gives `/dev/null` to a command in the background, so that its own input has to go through another number.
FIRST = ': > /dev/.ready; cd "$0" || exit; exec 3<&0 </dev/null; "$@" <&3 3<&- & exec 3<&-; wait $!'
RUN_IN = 'cd "$0" && exec "$@"'


class Layout(NamedTuple):
    """Where the server keeps everything: a directory of its own, and the root directory below all images. Every sandbox
    also sees the directories in `shown`, at the same paths."""

    state: str
    root: str
    shown: tuple[str, ...] = ()

    def prepare(self) -> None:
        """Make the layer that hides what no sandbox may see. Raises MngrError where sandboxes cannot run."""
        for program in ("chroot", "mount", "nsenter", "setpriv", "unshare"):
            require_program(program)
        if os.geteuid() != 0:
            raise MngrError("the local Modal server needs root to make sandboxes")
        inside = f"{os.path.realpath(self.state)}/".startswith(f"{os.path.realpath(self.root)}/".replace("//", "/"))
        if inside and os.stat(self.state).st_dev == os.stat(self.root).st_dev:
            raise MngrError(
                f"`{self.state}` is inside of the root directory `{self.root}`", hint="choose another with `--state`"
            )
        for name in HIDDEN:
            path = f"{self.state}/base/{name}"
            os.makedirs(path, mode=0o755)
            os.chmod(path, 0o1777 if name.endswith("tmp") else 0o755)
            os.setxattr(path, "trusted.overlay.opaque", b"y")
        for name in ("boxes", "images", "volumes"):
            os.mkdir(f"{self.state}/{name}")


class Sandbox:
    """One sandbox from its creation until `result` says how it ended; its record stays after that."""

    def __init__(self, layout: Layout, id: str, definition: api_pb2.Sandbox, env: Mapping[str, str]) -> None:
        self.id = id
        self.task_id = f"ta-{id.removeprefix('sb-')}V"
        self.definition = definition
        self.name = definition.name
        self.tags: dict[str, str] = {}
        self.app_id = ""
        self.created_at = time.time()
        self.starts_at = 0.0
        self.result: api_pb2.GenericResult | None = None
        self.ended = asyncio.Event()
        self.executions: dict[str, Execution] = {}
        self.main: Execution | None = None
        self._env = {"HOME": "/root", "PATH": PATH, "MODAL_SANDBOX_ID": id, "MODAL_TASK_ID": self.task_id, **env}
        self._layout = layout
        self._directory = f"boxes/{id}"
        self._first_process = 0
        self._came_up = False
        self._why: api_pb2.GenericResult | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._idle: asyncio.TimerHandle | None = None
        self._burial: asyncio.Task[None] | None = None  # a task that nobody holds may vanish

    async def start(self, command: Sequence[str], layers: Sequence[str], volumes: Mapping[str, str]) -> None:
        """Without a command it ends at once. Raises MngrError, with what the programs said, when it did not come up;
        then nothing is left of it."""
        for name in ("upper", "work", "root"):
            os.makedirs(f"{self._layout.state}/{self._directory}/{name}")
        os.chmod(f"{self._layout.state}/{self._directory}/upper", 0o755)
        lower = ":".join([*layers, "base", self._layout.root])
        mounts = [word for path, volume in volumes.items() for word in (f"{self._layout.state}/volumes/{volume}", path)]
        mounts += [word for path in self._layout.shown for word in (path, path)]
        network = ["--net"] if self._has_no_network() else []
        words = ["unshare", "--mount", "--pid", "--uts", "--ipc", *network, "--fork", "--kill-child", "--"]
        words += ["sh", "-c", MOUNTS, "sh", self._layout.state, lower, self._directory, self.id, *mounts, "--"]
        words += ["/bin/sh", "-c", FIRST, self.definition.workdir or "/", *(command or ["true"])]
        self.main = Execution(_bound_to_us(words), self._env, None, self._main_ended)
        await self._wait_until_up(self.main)
        self._arm(self.definition.timeout_secs, api_pb2.GenericResult.GENERIC_STATUS_TIMEOUT)
        self.touch()

    def _has_no_network(self) -> bool:
        blocked = api_pb2.NetworkAccess.NetworkAccessType.BLOCKED
        return self.definition.block_network or self.definition.network_access.network_access_type == blocked

    async def _wait_until_up(self, main: Execution) -> None:
        end = time.monotonic() + SECONDS_TO_START
        while True:
            for pid in children(main.pid):
                if os.path.exists(f"/proc/{pid}/root/dev/.ready"):
                    self._first_process = pid
                    if self._why is not None:  # it was to end before it was up
                        self.kill(self._why.status)
                    return
            if main.done.is_set() or time.monotonic() > end:
                break
            await asyncio.sleep(0.005)
        main.kill()
        await self.ended.wait()
        if not self._came_up:
            said = b"".join([part async for part in main.stderr.read(0)]).decode(errors="replace").strip()
            raise MngrError(f"sandbox `{self.id}` did not start", details=said)

    def execute(self, id: str, argv: Sequence[str], env: Mapping[str, str], cwd: str, size: Size | None) -> None:
        """Start a command inside, with a terminal when it has a size. The same id again changes nothing. Raises OSError
        when the sandbox is about to end."""
        if id in self.executions:
            return
        if self._why is not None or self.main is None or self.main.done.is_set():
            raise OSError(errno.ESRCH, "it is about to end")
        pid = self._first_process
        words = ["nsenter", "--target", str(pid), "--mount", "--uts", "--ipc", "--pid", "--root", "--wd"]
        words += ["--net"] if self._has_no_network() else []
        terminal = None if size is None else open_terminal(f"/proc/{pid}/root/dev/pts/ptmx", size)
        inner = ["/bin/sh", "-c", RUN_IN, cwd or self.definition.workdir or "/", *argv]
        words += ["--", *(["setsid", "--ctty"] if size else []), *inner]
        if self._idle:
            self._idle.cancel()
        self.executions[id] = Execution(_bound_to_us(words), {**self._env, **env}, terminal, self.touch)

    def touch(self) -> None:
        """Something happened here: the time without any command begins again."""
        if self._idle:
            self._idle.cancel()
        seconds = self.definition.idle_timeout_secs
        if seconds and all(execution.done.is_set() for execution in self.executions.values()):
            self._idle = self._arm(seconds, api_pb2.GenericResult.GENERIC_STATUS_IDLE_TIMEOUT)

    def _arm(self, seconds: float, status: api_pb2.GenericResult.GenericStatus.ValueType) -> asyncio.TimerHandle | None:
        if not seconds:
            return None
        timer = asyncio.get_running_loop().call_later(seconds, self.kill, status)
        self._timers.append(timer)
        return timer

    def kill(self, status: api_pb2.GenericResult.GenericStatus.ValueType, exception: str = "") -> None:
        """End every process of the sandbox; `ended` is set soon after. Twice is safe: the first reason counts."""
        if self._why is None:
            self._why = api_pb2.GenericResult(status=status, exitcode=137, exception=exception)
        # Commands go first: one that is still on its way in would find the namespaces gone, and end with 1.
        for execution in self.executions.values():
            if not execution.done.is_set():
                execution.kill()
        if self._first_process and self.main and not self.main.done.is_set():
            with suppress(ProcessLookupError):  # it ended by itself at this moment
                os.kill(self._first_process, signal.SIGKILL)

    def _main_ended(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._burial = asyncio.get_running_loop().create_task(self._bury(), name=f"end of {self.id}")

    async def _bury(self) -> None:
        """Wait until no process is left, then remove the files. Only then the sandbox has ended."""
        while is_alive(self._first_process):
            await asyncio.sleep(0.005)
        for execution in list(self.executions.values()):
            execution.kill()
            await execution.done.wait()
        assert self.main is not None
        code = self.main.code or 0
        failed = api_pb2.GenericResult.GENERIC_STATUS_FAILURE
        status = failed if code else api_pb2.GenericResult.GENERIC_STATUS_SUCCESS
        own = api_pb2.GenericResult(status=status, exitcode=code if code >= 0 else 128 - code)
        directory = f"{self._layout.state}/{self._directory}"
        self._came_up = os.path.exists(f"{directory}/up")
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
        self.result = self._why or own
        self.ended.set()

    def copy_changes(self, image: str) -> str:
        """Keep what differs from the image now, as a layer for further sandboxes: its path in the state directory."""
        layer = f"images/{image}"
        argv = ["cp", "--archive", f"{self._layout.state}/{self._directory}/upper", f"{self._layout.state}/{layer}"]
        result = run(argv, timeout=600)
        # The sandbox goes on meanwhile: a file that was removed before it was copied is not part of the snapshot.
        if not all(line.endswith(b": No such file or directory") for line in result.stderr.splitlines()):
            checked(result, "cannot copy the files of the sandbox")
        return layer


def _bound_to_us(words: list[str]) -> list[str]:
    """The command as one that the kernel kills when this process ends, however it ends."""
    setpriv, program = find_program("setpriv"), find_program(words[0])
    assert setpriv and program
    return [setpriv, "--pdeathsig", "KILL", program, *words[1:]]
