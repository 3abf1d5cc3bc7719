"""Locks hold also when their files are removed; what must survive a crash is synced."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mngr.errors import TimedOut
from mngr.system import files
from tests.support.user import wait_for


def lock(path: Path, timeout: float = 60, guards: Path | None = None) -> files.locked:
    return files.locked(str(path), timeout=timeout, what="this", guards=str(guards) if guards else None)


def open_here(path: Path) -> int:
    """How many descriptors of this process are open on the file, also when its name is gone."""
    links = (os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
    return sum(os.path.lexists(link) and os.readlink(link).startswith(str(path)) for link in links)


def test_who_waited_for_a_removed_lock_file_takes_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    entered, leave = threading.Event(), threading.Event()
    refused: list[BaseException] = []

    def wait_for_it() -> None:
        with lock(path) as waited:
            assert waited
            entered.set()
            leave.wait(60)

    waiting = threading.Thread(target=wait_for_it)
    with lock(path):
        waiting.start()
        wait_for(lambda: open_here(path) == 2, "the other to wait")
        path.unlink()
    assert entered.wait(60)
    try:
        with lock(path, timeout=0):
            pass
    except TimedOut as error:
        refused.append(error)
    leave.set()
    waiting.join(60)
    assert refused, "two held one lock"


def test_a_lock_file_goes_with_what_it_guards(tmp_path: Path) -> None:
    path, guarded = tmp_path / "lock", tmp_path / "guarded"
    guarded.mkdir()
    with lock(path, guards=guarded):
        pass
    assert path.exists()
    with lock(path, guards=guarded):
        guarded.rmdir()
    assert not path.exists()


def test_a_lock_file_that_is_held_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock(path):
        files.remove_lock(str(path))
        assert path.exists()
        with pytest.raises(TimedOut):
            lock(path, timeout=0).__enter__()
    files.remove_lock(str(path))
    assert not path.exists()
    files.remove_lock(str(path))


def calls_of(doing: Callable[[], None]) -> list[str]:
    """The functions of the operating system that were called meanwhile, in order."""
    found: list[str] = []
    sys.setprofile(lambda _, event, function: found.append(function.__name__) if event == "c_call" else None)
    try:
        doing()
    finally:
        sys.setprofile(None)
    return [name for name in found if name in ("fsync", "replace")]


def test_what_must_survive_a_crash_is_on_the_disk_before_it_gets_its_name(tmp_path: Path) -> None:
    path = str(tmp_path / "record")
    assert calls_of(lambda: files.write_atomic(path, b"1")) == ["replace"]
    assert calls_of(lambda: files.write_atomic(path, b"2", durable=True)) == ["fsync", "replace", "fsync"]


def test_a_claim_of_a_dead_process_is_free_once_its_child_has_let_go_of_it(tmp_path: Path) -> None:
    claim, go = tmp_path / "claim", tmp_path / "go"
    dies = (
        "import os, sys, time\nfrom mngr.system import files\n"
        "files.claimed(sys.argv[1]).__enter__()\n"
        "if os.fork():\n    os._exit(0)\n"
        "while not os.path.exists(sys.argv[2]):\n    time.sleep(0.01)\n"
    )
    subprocess.run([sys.executable, "-c", dies, str(claim), str(go)], check=True)
    assert files.claimant(str(claim)), "its child has it"
    threading.Timer(0.2, go.touch).start()
    with files.claimed(str(claim)):
        assert files.claimant(str(claim)) == os.getpid()
        with pytest.raises(files.Claimed), files.claimed(str(claim)):
            pass
