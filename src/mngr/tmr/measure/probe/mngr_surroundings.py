"""A pytest plugin that runs the tests of its job once more, in other surroundings. Inactive without a job.

Before the project's code is loaded it copies the checkout to another place and starts pytest there, as a program of
another name, from another parent, at a terminal, with few variables and another home, a year later. Tests that do not
pass there, twice, are run again with each of these changes alone, to tell which of them it is. Rows are as of the
probe, each with what was changed as `varied`. `$MNGR_TMR_JOB` has `tests`, `paths` and `test_seconds`.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import mngr_children
import mngr_tmr_probe as probe
import pytest
from mngr_tmr_watch import Real

# What can be changed; `traces` are names in the stack, log handlers and modules by which a test run is known.
GROUPS = ("place", "process", "environment", "clock", "traces")
AGAIN = "again"
_HERE = os.path.dirname(os.path.abspath(__file__))
_YEAR = 366 * 24 * 3600.0
_START_SECONDS = 60.0
_CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis")
# Directories that tools made, with the place in their files: they stay where they are.
_MADE = ("pyvenv.cfg", "conda-meta")
_DROPPED = ("OLDPWD", "SHLVL", "_", "PWD", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    if not probe.ROWS:
        return
    with _room() as room:
        _measure(room, list(early_config.invocation_params.args))
    sys.stdout.flush()
    os._exit(0)


def _measure(room: str, args: Sequence[str]) -> None:
    wanted = list(probe.JOB["tests"])
    base = {"args": _own_args(args), "cwd": os.getcwd(), "path": sys.path, "argv": sys.argv}
    bad = _run(room, base, wanted, GROUPS)
    bad = _run(room, base, bad, GROUPS, again=True) if bad else []
    if not bad:
        return
    # What does not pass in a process of this kind with nothing changed says nothing.
    bad = sorted(set(bad) - set(_run(room, base, bad, ())))
    for group in GROUPS if bad else ():
        _run(room, base, bad, (group,))


def _own_args(args: Sequence[str]) -> list[str]:
    """The arguments of pytest without this plugin."""
    return [arg for at, arg in enumerate(args) if "mngr_surroundings" not in (arg, *args[at + 1 : at + 2])]


def _run(
    room: str, base: dict[str, Any], tests: Sequence[str], groups: Sequence[str], *, again: bool = False
) -> list[str]:
    """Run these tests with these changes. Those that did not pass."""
    place = tempfile.mkdtemp(dir=room)
    top = _copied(os.path.join(place, "src")) if "place" in groups else probe.TOP
    rows = os.path.join(place, "rows")
    names = os.path.join(place, "tests")
    with open(names, "w", encoding="utf-8") as file:
        file.write("".join(f"{test}\n" for test in tests))
    moved = _moved(base, top)
    given = {
        **moved,
        "groups": groups,
        "probe": _HERE,
        "temporary": os.path.join(place, "t"),
        "marks": {name: value for name, value in os.environ.items() if name.startswith("PYTEST_")},
        "job": {"MNGR_TMR_ROWS": rows, "MNGR_TMR_TOP": top, **_job(names)},
    }
    # A script, which looks for modules in its own directory.
    start = os.path.join(place, "bin", "serve" if "process" in groups else "pytest")
    os.mkdir(os.path.dirname(start))
    os.mkdir(given["temporary"])
    shutil.copyfile(os.path.join(_HERE, "mngr_surroundings_start.py"), start)
    with open(os.path.join(os.path.dirname(start), "given.json"), "w", encoding="utf-8") as file:
        json.dump(given, file)
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    words = [*(sys.executable, *flags, start), *([] if "process" in groups else moved["args"])]
    seconds = _START_SECONDS + float(probe.JOB.get("test_seconds", 120.0)) * len(tests)
    _started(words, moved["cwd"], _environment(place, top, groups), seconds, at_terminal="process" in groups)
    return _told(rows, top, [*groups, AGAIN] if again else groups)


def _job(names: str) -> dict[str, str]:
    """What the probe reads there: its job says what more than the tests."""
    return {"MNGR_TMR_LISTED": names, "job": json.dumps(probe.JOB), "MNGR_TMR_SENTINELS": probe.SENTINELS}


def _told(rows: str, top: str, varied: Sequence[str]) -> list[str]:
    """Write the rows of one run beside the others. The tests that did not pass."""
    found: list[dict[str, Any]] = []
    with suppress(FileNotFoundError), open(rows, encoding="utf-8") as file:
        found = [json.loads(line.replace(top, probe.CHECKOUT)) for line in file]
    for row in found:
        if row["type"] != "collected":
            Real.append(probe.ROWS, {**row, "varied": list(varied)})
    passed = [row["id"] for row in found if row["type"] == "ran" and row["outcome"] in ("passed", "xfailed")]
    return sorted({row["id"] for row in found if row["type"] == "ran"} - set(passed))


def _moved(value: Any, top: str) -> Any:
    """With the other place instead of this one, wherever it is named. Tools stay in theirs."""
    if isinstance(value, str):
        return value if _is_made(value) else value.replace(probe.TOP, top)
    if isinstance(value, list):
        return [_moved(one, top) for one in value if one != _HERE]
    return {name: _moved(one, top) for name, one in value.items()}


def _is_made(path: str) -> bool:
    while len(path) > len(probe.TOP):
        if any(os.path.exists(os.path.join(path, name)) for name in _MADE):
            return True
        path = os.path.dirname(path)
    return False


def _copied(place: str) -> str:
    """The checkout at another place, with all files a year older."""
    name = os.path.basename(probe.TOP) if os.path.exists(os.path.join(probe.TOP, "__init__.py")) else "code"
    top = os.path.join(place, name)
    artifacts = os.path.join(probe.TASK, "artifacts")

    def left_out(directory: str, names: list[str]) -> set[str]:
        paths = {name: os.path.join(directory, name) for name in names}
        return {name for name in names if name in _CACHES or paths[name] == artifacts or _is_tool(paths[name])}

    with suppress(shutil.Error):  # of files that cannot be read, and of pipes and sockets
        shutil.copytree(probe.TOP, top, symlinks=True, ignore=left_out)
    for directory, names, inside in os.walk(probe.TOP):
        there = os.path.join(top, os.path.relpath(directory, probe.TOP))
        for made in [name for name in names if _is_tool(os.path.join(directory, name))]:
            os.symlink(os.path.join(directory, made), os.path.join(there, made))
        names[:] = [name for name in names if os.path.isdir(os.path.join(there, name))]
        names[:] = [name for name in names if not os.path.islink(os.path.join(there, name))]
        for name in inside:
            with suppress(OSError):
                path = os.path.join(there, name)
                then = os.stat(path, follow_symlinks=False).st_mtime - _YEAR
                os.utime(path, (then, then), follow_symlinks=False)
    return os.path.realpath(top)


def _is_tool(path: str) -> bool:
    if os.path.basename(path) == "node_modules":
        return True
    return os.path.isdir(path) and any(os.path.exists(os.path.join(path, name)) for name in _MADE)


def _environment(place: str, top: str, groups: Sequence[str]) -> dict[str, str]:
    env = {name: _moved(value, top) for name, value in os.environ.items() if not name.startswith(("MNGR_", "PYTEST_"))}
    paths = [_moved(path, top) for path in env.pop("PYTHONPATH", "").split(os.pathsep) if path and path != _HERE]
    if "environment" in groups:
        env = {name: value for name, value in env.items() if name not in _DROPPED}
        env["PYTHONHASHSEED"] = "40213"
        home = env.get("HOME", "")
        if home.startswith((_moved(probe.TASK, top), probe.TASK)):
            env["HOME"] = os.path.join(place, "h")
            shutil.copytree(home, env["HOME"], symlinks=True)
        env["TMPDIR"] = os.path.join(place, "t")
    if "clock" in groups:
        paths.insert(0, os.path.join(place, "lib"))
        mngr_children.prepare(paths[0], "mngr_clock")
    return {**env, "PYTHONPATH": os.pathsep.join(paths)} if paths else env


def _started(words: Sequence[str], cwd: str, env: dict[str, str], seconds: float, *, at_terminal: bool) -> None:
    """Run a program to its end, or for so long. At a terminal it is the child of nobody."""
    if not at_terminal:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, timeout=seconds, check=False)
        return
    terminal, theirs = pty.openpty()
    alive, held = os.pipe()
    os.write(terminal, b"\x04" * 64)  # whoever reads from it finds the end
    middle = os.fork()
    if middle == 0:
        _start_alone(words, cwd, env, theirs, held)
    os.close(theirs)
    os.close(held)
    os.waitpid(middle, 0)
    group = int(os.read(alive, 20) or b"0")
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            ready = select.select([terminal, alive], [], [], 1.0)[0]
            if alive in ready:
                break
            if terminal in ready:
                os.write(1, _output(terminal))
    finally:
        with suppress(ProcessLookupError, PermissionError):
            if group:
                os.killpg(group, signal.SIGKILL)
        os.close(terminal)
        os.close(alive)


def _output(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody has it open just now
        time.sleep(0.01)
        return b""


def _start_alone(words: Sequence[str], cwd: str, env: dict[str, str], terminal: int, held: int) -> None:
    """In a forked process: start a program in a session of its own, whose parent is gone."""
    try:
        if os.fork() == 0:
            os.setsid()
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            os.write(held, f"{os.getpid()}\n".encode())
            for fd in (0, 1, 2):
                os.dup2(terminal, fd)
            os.set_inheritable(held, True)
            os.chdir(cwd)
            os.execve(words[0], list(words), env)
    finally:
        os._exit(0)


@contextmanager
def _room() -> Iterator[str]:
    room = tempfile.mkdtemp(prefix="w")
    try:
        yield os.path.realpath(room)
    finally:
        shutil.rmtree(room, ignore_errors=True)
