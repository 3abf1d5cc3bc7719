"""The one door to other processes."""

import gc
import os
import time

import pytest

from mngr.errors import MngrError, TimedOut
from mngr.system import process
from mngr.system.process import ProgramMissing


def test_output_errors_and_exit_code_come_back():
    result = process.run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout=60)
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert not result.ok


def test_a_signal_is_a_negative_exit_code():
    assert process.run(["sh", "-c", "kill -9 $$"], timeout=60).exit_code == -9


def test_large_input_and_output_pass_whole():
    data = os.urandom(3_000_000)
    assert process.run(["cat"], timeout=60, input=data).stdout == data


def test_a_program_that_reads_no_input_does_not_hang_or_fail():
    assert process.run(["true"], timeout=60, input=b"x" * 1_000_000).ok


def test_past_the_deadline_the_whole_group_is_killed():
    started = time.monotonic()
    with pytest.raises(TimedOut):
        process.run(["sh", "-c", "sleep 9999 & echo $! >&2; sleep 9999"], timeout=0.3)
    assert time.monotonic() - started < 60


def test_a_background_child_that_holds_the_output_is_not_waited_for():
    started = time.monotonic()
    result = process.run(["sh", "-c", "sleep 9999 & echo $!"], timeout=100)
    os.kill(int(result.stdout), 9)
    assert result.ok
    assert time.monotonic() - started < 60


def test_a_program_that_closes_its_output_is_still_waited_for():
    result = process.run(["sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 4"], timeout=60)
    assert result.exit_code == 4


def test_it_runs_in_the_directory_and_environment_given(tmp_path):
    place = tmp_path / "a b'c"
    place.mkdir()
    result = process.run(
        ["sh", "-c", 'pwd; echo "$X"'], timeout=60, cwd=str(place), env={"X": "y z", "PATH": os.defpath}
    )
    assert result.text == f"{place}\ny z"


def test_a_missing_program_names_how_to_install_it():
    with pytest.raises(ProgramMissing) as caught:
        process.run(["tmux-does-not-exist"], timeout=60)
    assert "tmux-does-not-exist" in caught.value.message
    assert "apt-get install tmux" in ProgramMissing("tmux").hint


def test_a_missing_directory_is_named():
    with pytest.raises(MngrError, match="does not exist"):
        process.run(["true"], timeout=60, cwd="/nowhere/at/all")


def test_children_do_not_inherit_that_python_ignores_broken_pipes():
    assert process.run(["sh", "-c", "yes | head -n 1"], timeout=60).stdout == b"y\n"


def test_pointers_of_git_hooks_do_not_reach_children_by_themselves():
    os.environ["GIT_INDEX_FILE"] = "/nowhere"
    try:
        assert process.run(["sh", "-c", 'echo "${GIT_INDEX_FILE-unset}"'], timeout=60).text == "unset"
        explicit = process.run(["sh", "-c", 'echo "$GIT_INDEX_FILE"'], timeout=60, env={"GIT_INDEX_FILE": "/mine"})
        assert explicit.text == "/mine"
    finally:
        del os.environ["GIT_INDEX_FILE"]


def test_no_file_descriptor_is_left_open():
    def count() -> int:
        return len(os.listdir("/dev/fd"))

    gc.collect()  # what other tests forgot to close is not closed while this one counts
    before = count()
    for _ in range(5):
        process.run(["cat"], timeout=60, input=b"x")
        with pytest.raises(ProgramMissing):
            process.run(["no-such-program"], timeout=60)
    assert count() == before


def test_the_end_of_a_process_that_was_noted_by_nobody_is_no_error():
    # As after a signal that comes between the end of the process and the note of its exit code.
    child = process._Child(["true"], None, None, None)
    os.waitpid(child.pid, 0)
    child.end()
    child.close()
    assert child.status is not None


def test_an_error_of_git_names_the_command_and_not_its_directories():
    for place in (["-C", "/"], ["-C", "/", "--git-dir", "/nowhere", "--work-tree", "/"]):
        with pytest.raises(MngrError, match=r"^`git rev-parse HEAD` failed"):
            process.checked(process.run(["git", *place, "rev-parse", "HEAD"], timeout=60))
