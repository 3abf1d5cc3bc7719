"""Which files changed, seen by inotify and by comparing times."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer

import pytest

from mngr.system import file_watch, waiting
from mngr.system.file_watch import FileWatch


@pytest.fixture(params=["_Inotify", "_Comparison"])
def watch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FileWatch]:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "events.jsonl").write_text("1\n")
    found = getattr(file_watch, request.param)([str(tmp_path)])
    yield found
    found.close()


def seen(watch: FileWatch, path: Path) -> bool:
    """Whether the path is among the changes of the next seconds."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if watch.wait(0.1) and str(path) in watch.changed():
            return True
    return False


def test_nothing_changes_while_nothing_is_written(watch):
    assert not watch.wait(0.02)
    assert not watch.changed()


def test_a_written_file_is_named(watch, tmp_path):
    with (tmp_path / "old" / "events.jsonl").open("a") as file:
        file.write("2\n")
    assert seen(watch, tmp_path / "old" / "events.jsonl")


def test_a_file_replaced_at_once_is_named(watch, tmp_path):
    (tmp_path / "draft").write_text("record")
    os.replace(tmp_path / "draft", tmp_path / "old" / "agent.json")
    assert seen(watch, tmp_path / "old" / "agent.json")


def test_a_removed_file_is_named(watch, tmp_path):
    (tmp_path / "old" / "events.jsonl").unlink()
    assert seen(watch, tmp_path / "old" / "events.jsonl")


def test_files_of_a_new_directory_are_named(watch, tmp_path):
    (tmp_path / "new" / "deep").mkdir(parents=True)
    (tmp_path / "new" / "deep" / "first").write_text("x")
    assert seen(watch, tmp_path / "new" / "deep" / "first")
    (tmp_path / "new" / "deep" / "second").write_text("x")
    assert seen(watch, tmp_path / "new" / "deep" / "second")


def test_an_odd_name_is_the_one_python_has_for_it(watch, tmp_path):
    path = tmp_path / "old" / "\udcff odd"
    path.write_text("x")
    assert seen(watch, path)


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    watch = file_watch.watch([str(tmp_path / "inside")])
    (tmp_path / "outside" / "file").write_text("x")
    assert not watch.wait(0.05)
    watch.close()


def test_a_missing_directory_is_not_an_error(tmp_path):
    watch = file_watch.watch([str(tmp_path / "missing")])
    assert not watch.wait(0.01)
    watch.close()


def test_changes_end_at_the_deadline(tmp_path):
    began = time.monotonic()
    found = list(waiting.changes([str(tmp_path)], deadline=waiting.Deadline(0.1), at_least_every=0.04))
    assert found[0] == () and len(found) >= 3
    assert time.monotonic() - began < 5


def test_a_wake_ends_the_wait_and_is_cleared(tmp_path):
    wake = Event()
    steps = waiting.changes([str(tmp_path)], deadline=waiting.Deadline(30), at_least_every=30, wake=wake)
    next(steps)
    Timer(0.05, wake.set).start()
    assert next(steps) == ()
    assert not wake.is_set()
