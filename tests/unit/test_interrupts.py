"""Signals that end a command."""

import signal
import subprocess
import sys

import pytest

ENDING = """
import os, sys
from mngr.system import interrupts
interrupts.install()
{before}
os.kill(os.getpid(), int(sys.argv[1]))
sys.exit("nothing happened")
"""


def ended(before: str, number: int) -> "subprocess.CompletedProcess[str]":
    """A process that gets a signal after these lines."""
    code = [sys.executable, "-c", ENDING.format(before=before), str(int(number))]
    return subprocess.run(code, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_after_the_end_of_a_command_ends_the_process_without_a_word(number: int) -> None:
    assert "Traceback" in ended("", number).stderr
    for before in ("interrupts.leave()", "interrupts.leave(); interrupts.held().__enter__()"):
        done = ended(before, number)
        assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "")


def test_a_command_that_is_run_inside_a_program_does_not_end_it() -> None:
    before = "from mngr.cli.main import main; main(['help', '--topics']); main(['no-such-verb'])"
    assert "KeyboardInterrupt" in ended(before, signal.SIGINT).stderr


_WATCHING = """
import threading, time
from mngr.system.interrupts import others_ended
from mngr.mapreduce.host_watch import HostWatch
from mngr.system.waiting import wait_until

class Hosts:
    names = ["a", "b"]
    def is_lost(self, name): return False
    def site(self, name): return self
    def run(self, verb):
        wait_until(lambda: False, timeout=60)

watch = HostWatch(Hosts(), threading.Event())
watch.follow()
assert threading.active_count() == 3
with others_ended():
    while threading.active_count() > 1:
        time.sleep(0.01)
"""


def test_threads_that_watch_hosts_end_quietly_when_the_command_is_interrupted() -> None:
    done = subprocess.run([sys.executable, "-c", _WATCHING], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
