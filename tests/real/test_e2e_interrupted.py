"""Pytest interrupted, ended, killed: the trace so far stays, and nothing keeps running."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.e2e import cleanup
from tests.support.project import Project, running_in
from tests.support.user import User, wait_for

pytestmark = pytest.mark.timeout(300)

TEST = """
    import pytest

    @pytest.mark.parametrize("n", range({count}))
    def test_it(e2e, n):
        e2e.run("echo begun; sleep 7777 & setsid -f sleep 7777 </dev/null >/dev/null 2>&1; tmux new -d sleep 7777")
        e2e.run("printf 'half a line'; echo; trap '' INT; echo waiting; sleep 7777", timeout=300)
"""


@pytest.fixture
def project(user: User) -> Iterator[Project]:
    made = Project(user)
    try:
        yield made
    finally:
        for test in [test for run in made.runs() for test in run.tests()]:
            for event in test.events():
                if event["type"] == "command":
                    cleanup.clean(str(Path(event["cwd"]).parent))


def started(project: Project, name: str) -> Path:
    root = project.environment_of(name)
    wait_for(lambda: "\nwaiting\n" in project.tests()[name].transcript(), "the second command to begin", 100)
    return root


def finished(running: "subprocess.Popen[bytes]") -> str:
    printed, _ = running.communicate(timeout=100)
    return printed.decode()


def check_nothing_is_left(root: Path) -> None:
    wait_for(lambda: not root.exists(), f"{root} to be removed")
    assert running_in(root) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_a_signal_to_pytest_leaves_the_trace_and_nothing_else(project: Project, number: signal.Signals) -> None:
    project.write("test_it.py", TEST.format(count=1))
    running = project.popen("-q")
    root = started(project, "test_it[0]")
    wait_for(lambda: len(running_in(root)) >= 4, "all that it started")
    os.kill(running.pid, number)
    finished(running)
    check_nothing_is_left(root)
    [test] = project.runs()[0].tests()
    assert test.outcome is None, "it never came to its end"
    text = test.transcript()
    printed = [line for line in text.splitlines() if not line.startswith("$ ")]
    assert printed == ["begun", "", "half a line", "waiting"], text
    assert (project.runs()[0].ended_at is None) == (number != signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_pytest_and_its_workers_leaves_nothing(project: Project, number: signal.Signals) -> None:
    project.write("test_it.py", TEST.format(count=2))
    running = project.popen("-q", "-n", "2", "--dist", "load")
    roots = [started(project, f"test_it[{n}]") for n in range(2)]
    os.killpg(running.pid, number)  # as a terminal does
    finished(running)
    for root in roots:
        check_nothing_is_left(root)
    assert all("\nwaiting\n" in test.transcript() for test in project.runs()[0].tests())


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_the_timeout_of_a_whole_test_cleans_up_too(project: Project, method: str) -> None:
    project.write("test_it.py", TEST.format(count=1))
    # Of the test alone: before it, an environment is made for it, which may take as long.
    running = project.popen("-q", "--timeout", "8", "--timeout-method", method, "-o", "timeout_func_only=true")
    root = project.environment_of("test_it[0]")
    printed = finished(running)
    assert "Timeout" in printed
    check_nothing_is_left(root)
    assert project.tests()["test_it[0]"].outcome == ("failed" if method == "signal" else None)


def test_a_test_that_ends_pytest_itself_leaves_nothing(project: Project) -> None:
    project.write("test_it.py", "import os\ndef test_it(e2e):\n    e2e.run('sleep 7777 &')\n    os._exit(3)\n")
    running = project.popen("-q")
    root = project.environment_of("test_it")
    finished(running)
    assert running.returncode == 3
    check_nothing_is_left(root)


def test_a_forked_child_does_not_keep_the_clean_up_waiting(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import os, time

        def test_it(e2e):
            e2e.run("sleep 7777 &")
            if os.fork() == 0:
                time.sleep(300)
                os._exit(0)
            os.kill(os.getpid(), 9)
        """,
    )
    running = project.popen("-q", "-p", "no:randomly")
    root = project.environment_of("test_it")
    check_nothing_is_left(root)
    os.killpg(running.pid, signal.SIGKILL)
    finished(running)
