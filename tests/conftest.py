"""Fixtures for all tests."""

import os
import signal
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support import browser
from tests.support.user import User

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("busy", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# A job in the background of a script starts with these ignored, and children would inherit that: tests that end a
# command with them would wait for ever.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


def _in_memory(place: str = "/dev/shm", enough: int = 2 << 30) -> None:
    """Put temporary files into memory, where that is possible and no other place was asked for. Tests make and remove
    files all the time: with ext4 that was a third of their CPU time, and its waiting for the disk came on top."""
    if "TMPDIR" in os.environ or not os.access(place, os.W_OK | os.X_OK):
        return
    found = os.statvfs(place)
    if found.f_bavail * found.f_frsize >= enough and not found.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = place
        tempfile.tempdir = None


_in_memory()


@pytest.fixture
def user() -> Iterator[User]:
    """A user in a world of its own; everything it started is ended afterwards."""
    made = User()
    try:
        yield made
    finally:
        made.close()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that may take long begin first: begun last, one of them would keep all other workers waiting."""
    items.sort(key=lambda item: -max((mark.args[0] for mark in item.iter_markers("timeout")), default=0))


def pytest_sessionfinish() -> None:
    browser.end()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What each provider can do, side by side, where these tests ran; and what was found in each odd project."""
    found: dict[str, dict[str, str]] = {}
    odd: dict[str, str] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, value in getattr(report, "user_properties", ()):
                if name == "checks" and report.when == "call":
                    found.setdefault(value[0], {}).update(value[1])
                elif name == "odd project" and report.when == "call":
                    odd[value[0]] = f"{value[0]:40} {value[2]:5.1f} s  {outcome}  {value[1]}"
    if found:
        from mngr_testing.checks.provider_checks import table

        terminalreporter.section("providers and what they do")
        terminalreporter.write_line(table(found))
    if odd:
        terminalreporter.section("odd projects and the verdicts on the work in them")
        terminalreporter.write_line("\n".join(odd[shape] for shape in sorted(odd)))
