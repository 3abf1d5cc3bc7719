"""What runs on a node of a Ray cluster: command lines of one host, with their input and output, and the end of a host.

It is sent to the node by value, so it uses nothing but Python and Ray. The host's directory there holds its home and
its state. Every process of the host has a variable that begins with this directory, by which it is found and ended.
Agents run in tmux, so they outlive the supervisor; the next supervisor of the same host has them again."""

from __future__ import annotations

import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import Any

NAMESPACE = "mngr"
CLUSTER = "cluster"
HOST = "host:"
_CHUNK = 1 << 16
_FORGOTTEN_SECONDS = 90.0
_KEY_FILE = "key"


def _base() -> str:
    """The place of this cluster's hosts on this node. Another cluster's hosts are in another place."""
    from ray.experimental import internal_kv

    cluster = internal_kv._internal_kv_get(CLUSTER, namespace=NAMESPACE).decode()
    return os.path.join(os.path.expanduser("~"), ".mngr-ray", cluster)


def _directory(key: str) -> str:
    return os.path.join(_base(), hashlib.sha256(key.encode()).hexdigest()[:12])


class Supervisor:
    """The actor of a host. `again` says that the host was on this machine before: then its directory must be there."""

    def __init__(self, key: str, env: Mapping[str, str], again: bool) -> None:
        import ray

        sweep()
        self._dir = _directory(key)
        home = os.path.join(self._dir, "h")
        if again and not os.path.isdir(home):
            raise RuntimeError("the files of the host are not on this node")
        os.makedirs(home, 0o700, exist_ok=True)
        os.makedirs(os.path.join(self._dir, "t"), 0o700, exist_ok=True)
        with open(os.path.join(self._dir, _KEY_FILE), "w") as file:
            file.write(key)
        mine = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHON", "MNGR_"))}
        mine.pop("OMP_NUM_THREADS", None)
        tmux = os.path.join(self._dir, "t")
        self._env = {**mine, "HOME": home, "TMUX_TMPDIR": tmux, "MNGR_HOST_DIR": f"{home}/.mngr", **env}
        self._streams: dict[str, _Stream] = {}
        threading.Thread(target=self._end_forgotten, daemon=True).start()
        self._note_node(key, ray.get_runtime_context().get_node_id())

    def _note_node(self, key: str, node: str) -> None:
        import ray
        from ray.experimental import internal_kv

        value = internal_kv._internal_kv_get(HOST + key, namespace=NAMESPACE)
        if value is None:
            raise RuntimeError("the host was destroyed")
        record = {**json.loads(value), "node": node, "address": ray.util.get_node_ip_address()}
        internal_kv._internal_kv_put(HOST + key, json.dumps(record), overwrite=True, namespace=NAMESPACE)

    def ready(self) -> int:
        return os.getpid()

    def open(self, line: str) -> str:
        """Start a command line; the name of its stream."""
        name = os.urandom(8).hex()
        self._streams[name] = _Stream(line, self._env)
        return name

    def write(self, name: str, data: bytes) -> bool:
        """Give it input; nothing is the end of it. Whether it still reads."""
        stream = self._streams.get(name)
        return stream is not None and stream.write(data)

    def read(self, name: str, seconds: float) -> tuple[bytes, bytes, int | None]:
        """What came out within this time, and the exit code once all came out."""
        found = self._streams[name].read(seconds)
        if found[2] is not None:
            del self._streams[name]
        return found

    def close(self, name: str) -> None:
        stream = self._streams.pop(name, None)
        if stream is not None:
            stream.end()

    def _end_forgotten(self) -> None:
        """A stream that nobody reads any more has lost its helper."""
        while True:
            time.sleep(5.0)
            for name, stream in list(self._streams.items()):
                if time.monotonic() - stream.read_at > _FORGOTTEN_SECONDS:
                    self.close(name)


class _Stream:
    def __init__(self, line: str, env: Mapping[str, str]) -> None:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        words = ["/bin/sh", "-c", line]
        self._process = subprocess.Popen(words, cwd=env["HOME"], env=env, bufsize=0, start_new_session=True, **pipes)
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._input = self._process.stdin
        self._open = [self._process.stdout, self._process.stderr]
        self._error = self._process.stderr
        self.read_at = time.monotonic()

    def write(self, data: bytes) -> bool:
        try:
            if not data:
                self._input.close()
            left = memoryview(data)
            while left:
                left = left[self._input.write(left) :]
        except (OSError, ValueError):
            return False
        return True

    def read(self, seconds: float) -> tuple[bytes, bytes, int | None]:
        ready = select.select(self._open, [], [], seconds)[0] if self._open else []
        self.read_at = time.monotonic()
        found = {False: b"", True: b""}
        for pipe in ready:
            data = os.read(pipe.fileno(), _CHUNK)
            found[pipe is self._error] = data
            if not data:
                self._open.remove(pipe)
                pipe.close()
        over = not self._open
        return found[False], found[True], self._process.wait() if over else None

    def end(self) -> None:
        """End the command line and what belongs to it; what it put into a session of its own goes on."""
        self.write(b"")
        for number in (signal.SIGHUP, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
                self._process.wait(3.0)
            except ProcessLookupError:
                return
            except subprocess.TimeoutExpired:
                continue


def end(key: str) -> list[int]:
    """End every process of a host on this node, and remove its files. Returns what did not end. Twice is safe."""
    return _end_below(_directory(key))


def sweep() -> list[str]:
    """End what is left on this node of hosts that were destroyed while their node could not be asked; their keys."""
    from ray.experimental import internal_kv

    base, found = _base(), []
    for name in os.listdir(base) if os.path.isdir(base) else ():
        try:
            with open(os.path.join(base, name, _KEY_FILE)) as file:
                key = file.read()
        except OSError:
            continue
        if internal_kv._internal_kv_get(HOST + key, namespace=NAMESPACE) is None:
            _end_below(os.path.join(base, name))
            found.append(key)
    return found


def _end_below(directory: str) -> list[int]:
    left: list[int] = []
    for number, seconds in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 5.0)):
        until = time.monotonic() + seconds
        while (left := _marked(directory)) and time.monotonic() < until:
            for pid in left:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
            time.sleep(0.1)
    if not left:
        shutil.rmtree(directory, ignore_errors=True)
    return left


def _marked(directory: str) -> list[int]:
    """The processes that have a variable with a path below this directory."""
    mark, found = f"={directory}/".encode(), []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                environ = file.read()
            with open(f"/proc/{name}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark in environ and state != "Z":
            found.append(int(name))
    return found
