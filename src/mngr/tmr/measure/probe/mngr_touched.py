"""What the code of a project touches in this process: files, programs, connections, the stack. Each is written once.

By Python's own audit events, which nothing in the process can switch off or miss.
"""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
import tempfile
import threading
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# The place of a path among the arguments of an event.
_CHANGED = {
    **dict.fromkeys(("os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.utime"), (0,)),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink", "shutil.copyfile", "shutil.move"), (0, 1)),
    "shutil.rmtree": (0,),
}
_READ = {"os.listdir": 0, "os.scandir": 0, "sqlite3.connect": 0}
_STARTED = {"subprocess.Popen": 0, "os.system": 0, "os.exec": 0, "os.posix_spawn": 0}
# What counts only where the project itself asks for it: libraries do all of this all the time.
_DIRECT = {
    **dict.fromkeys(("sys._getframe", "sys._current_frames"), "stack"),
    **dict.fromkeys(("gc.get_objects", "gc.get_referrers", "gc.get_referents"), "objects"),
    **dict.fromkeys(("exec", "compile", "marshal.loads", "pickle.find_class"), "code"),
    "ctypes.dlopen": "library",
}
_CONNECTED = {"socket.connect": 1, "socket.sendto": 1, "socket.getaddrinfo": 0, "socket.gethostbyname": 0}
_HEARD = frozenset({"open", *_CHANGED, *_READ, *_STARTED, *_CONNECTED, *_DIRECT})
_RANDOM = re.compile(r"\b[0-9a-f]{8,}\b|\d+")
_TEMPORARY = re.compile(r"[a-z0-9_]{8}(?=\.|$)")  # what `tempfile` puts between its prefix and suffix
_TEXT_MAX = 300


class Touched:
    """`given` says where the checkout and our own files in it are, which files are the product, and where to write."""

    _open, _write, _close = staticmethod(os.open), staticmethod(os.write), staticmethod(os.close)
    _flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    _dumps, _getframe = staticmethod(json.dumps), staticmethod(sys._getframe)

    def __init__(self, given: dict[str, Any]) -> None:
        self._top, self._log = given["top"], given["log"]
        self._product = {os.path.join(self._top, path) for path in given["product"]}
        self._task = os.path.join(given["task"], "")
        self._installed = tuple(
            {os.path.realpath(path) + os.sep for path in (sys.prefix, sys.base_prefix, *sysconfig.get_paths().values())}
        )
        self._temporary, self._home = os.path.realpath(tempfile.gettempdir()), os.path.expanduser("~")
        self._known = {self._top, self._temporary, *self._product}
        self._own = os.path.dirname(os.path.realpath(__file__))
        self._seen: set[tuple[str, str, str]] = set()
        self._sides: dict[str, str] = {}
        self._busy = threading.local()

    def start(self) -> None:
        self._append("process", str(os.getpid()), "")
        sys.addaudithook(self._heard)

    def end(self) -> None:
        self._append("end", "", "")

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _HEARD:
            self._guarded(event, args)

    def _guarded(self, event: str, args: tuple[Any, ...]) -> None:
        if getattr(self._busy, "on", False):
            return
        self._busy.on = True
        try:
            self._note(event, args)
        except Exception:  # noqa: BLE001 -- a hook that raises would change what the test does
            self._append("unknown", event, "")
        finally:
            self._busy.on = False

    def _note(self, event: str, args: tuple[Any, ...]) -> None:
        by, direct = self._side()
        if not by:
            return
        if event in _DIRECT:
            if direct:
                self._add(_DIRECT[event], event, by)
        elif event == "open":
            mode, flags = args[1], args[2]
            writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool((flags or 0) & _WRITES)
            self._path("write" if writes else "read", args[0], by)
        elif event in _CHANGED:
            below = len(args) > 1 and isinstance(args[-1], int) and args[-1] >= 0  # an open directory
            for at in () if below else _CHANGED[event]:
                self._path("write", args[at], by)
        elif event in _READ:
            self._path("read", args[_READ[event]], by)
        elif event in _STARTED:
            self._add("run", self._program(args), by)
        else:
            self._add("connect", self._address(args[_CONNECTED[event]]), by)

    def _side(self) -> tuple[str, bool]:
        """Whose code does this, and whether directly: the innermost of the project's files. Nobody's while a module is
        being imported by it."""
        frame: Any = self._getframe(4)  # of whoever is heard
        direct = True
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith("<frozen importlib"):
                return "", False
            side = self._sides.get(name)
            if side is None:
                side = self._sides[name] = self._side_of(name)
            if side == "ours":
                return "", False
            if side:
                return side, direct
            direct = direct and name.endswith(("/inspect.py", "<string>"))
            frame = frame.f_back
        return "", False

    def _side_of(self, name: str) -> str:
        path = os.path.realpath(name)
        if path.startswith((self._own, self._task)):
            return "ours"
        if path in self._product:
            return "product"
        inside = path.startswith(self._top + os.sep) and not path.startswith(self._installed)
        return "test" if inside and os.path.exists(path) else ""

    def _path(self, kind: str, path: Any, by: str) -> None:
        if isinstance(path, int) or path is None:
            return
        name = os.path.realpath(os.fsdecode(path))
        inside = name.startswith(self._top + os.sep)
        device = name.startswith("/dev/") and not name.startswith("/dev/shm/")
        if device or name.startswith(self._task) or "__pycache__" in name or name in self._known:
            return
        if kind == "read" and (name.startswith(self._installed) or (inside and by == "test")):
            return
        if inside:
            self._add(kind, os.path.relpath(name, self._top), by)
        elif name.startswith(self._temporary + os.sep):
            first, _, rest = os.path.relpath(name, self._temporary).partition(os.sep)
            if not first.startswith("pytest-of-"):
                self._add(
                    kind, "/".join(filter(None, ("<tmp>", _RANDOM.sub("N", _TEMPORARY.sub("N", first)), rest))), by
                )
        elif name.startswith(self._home + os.sep):
            self._add(kind, f"~/{os.path.relpath(name, self._home)}", by)
        else:
            self._add(kind, _RANDOM.sub("N", name) if name.startswith("/proc/") else name, by)

    def _program(self, args: tuple[Any, ...]) -> str:
        words = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) and args[1] else args[0]
        first = words[0] if isinstance(words, (list, tuple)) else words
        text = os.fsdecode(first) if isinstance(first, (str, bytes, os.PathLike)) else str(first)
        name = os.path.basename(text.split()[0] if text.split() else text)
        return "python" if re.fullmatch(r"python[\d.]*", name) else name

    def _address(self, address: Any) -> str:
        if isinstance(address, tuple) and len(address) > 1:
            host = str(address[0])
            return "this machine" if host in ("127.0.0.1", "::1", "localhost") else f"{host}:{address[1]}"
        return _RANDOM.sub("N", str(address))

    def _add(self, kind: str, what: str, by: str) -> None:
        key = (kind, what[:_TEXT_MAX], by)
        if key not in self._seen:
            self._seen.add(key)
            self._append(*key)

    def _append(self, kind: str, what: str, by: str) -> None:
        data = self._dumps({"kind": kind, "what": what, "by": by}) + "\n"
        self._busy.on, was = True, getattr(self._busy, "on", False)
        try:
            file = self._open(self._log, self._flags, 0o600)
            try:
                self._write(file, data.encode())
            finally:
                self._close(file)
        finally:
            self._busy.on = was


def begin(place: str) -> None:
    """In a process that a test started."""
    with open(os.path.join(place, "given.json"), encoding="utf-8") as file:
        Touched(json.load(file)).start()
