"""The pytest plugin: the fixture `e2e`, its options, and the trace each test leaves.

Pytest loads it in every project that has mngr installed, so it loads nothing itself before a test asks for `e2e`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.e2e.session import E2eSession
    from mngr.e2e.trial import Trial

_TRIAL: pytest.StashKey[Trial] = pytest.StashKey()
_KEPT = "mngr_e2e_kept"
_OPTIONS = (
    ("dir", "DIR", None, "where the artifacts of e2e tests go (default: .mngr/e2e in the root directory)"),
    ("run-name", "NAME", None, "name of this run's directory in it (default: made from the time)"),
    ("artifacts", None, ("yes", "on-failure", "no"), "keep the artifacts of e2e tests (default: yes)"),
    ("keep-environment", None, ("yes", "on-failure", "no"), "keep what e2e tests leave behind (default: no)"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("e2e", "end-to-end tests (mngr.e2e)")
    for name, metavar, choices, help in _OPTIONS:
        more: dict[str, Any] = {"choices": choices} if choices else {"metavar": metavar}
        key = f"e2e_{name.replace('-', '_')}"
        group.addoption(f"--e2e-{name}", dest=key, default=None, help=help, **more)
        parser.addini(key, help, default="")


@pytest.fixture
def e2e(request: pytest.FixtureRequest) -> Iterator[E2eSession]:
    """A session in a world of its own: run commands, look at what they do, leave a transcript."""
    from mngr.e2e import replay, run

    trial = run.of(request.config).start(request.node)
    request.node.stash[_TRIAL] = trial
    if replay.tape is not None and "tmp_path" in request.fixturenames:
        replay.tape.add_root(str(request.getfixturevalue("tmp_path")))
    try:
        for extend in _extensions(request):
            extend(session=trial.session)
        yield trial.session
    finally:
        trial.close()


def _extensions(request: pytest.FixtureRequest) -> list[Callable[..., object]]:
    """The functions `e2e_environment(session)` of plugins, and of the conftests above the test, outermost first. They
    are no hooks to pytest, whose hooks all have its own name in theirs."""
    found = []
    for plugin in request.config.pluginmanager.get_plugins():
        function = getattr(plugin, "e2e_environment", None)
        directory, file = os.path.split(getattr(plugin, "__file__", None) or "")
        above = file != "conftest.py" or request.path.is_relative_to(directory)
        if callable(function) and above:
            found.append((len(directory) if file == "conftest.py" else 0, function))
    return [function for _, function in sorted(found, key=lambda pair: pair[0])]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    trial = item.stash.get(_TRIAL, None)
    if trial is None:
        return report
    trial.see(report, call.excinfo)
    if report.when == "teardown":
        from mngr.e2e import run

        del item.stash[_TRIAL]
        try:
            kept = trial.finish()
        except OSError as error:  # raised here it would end pytest
            kept = ""
            report.outcome, report.longrepr = "failed", f"e2e: the end of the test cannot be written: {error}"
        run.of(item.config).forget(trial)
        if kept:
            setattr(report, _KEPT, [kept, trial.directory])
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of pytest-xdist: all workers write into one run."""
    from mngr.e2e import run

    node.workerinput[run.SHARED] = run.shared(node.config)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
    try:
        yield
    finally:
        if run := sys.modules.get("mngr.e2e.run"):  # nobody asked for `e2e` otherwise
            run.finish(session.config, int(session.exitstatus))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    if kept := [getattr(report, _KEPT) for report in reports if hasattr(report, _KEPT)]:
        terminalreporter.section("e2e environments kept")
        for root, directory in kept:
            terminalreporter.write_line(f"{root}  remove it: sh {directory}/remove-environment.sh")
