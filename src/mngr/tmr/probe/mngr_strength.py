"""A pytest plugin that measures how much tests notice, as JSON lines in `$MNGR_STRENGTH_ROWS`. Inactive without it.

Stands alone, like the probe: it is loaded by path into the Python of the project under test. Every attempt is a forked
child, so that tests are collected once. Output edits are attempts whose commands are answered from a record, with one
edit; source mutants are attempts with one change in the product. The product's files are changed in place and restored:
it must be started in a copy of the project.

MNGR_STRENGTH_TESTS    file: ids of tests or of their functions, a line each (default: all that are collected); only
                       their files are collected, and each is measured as if it were the only one
MNGR_STRENGTH_PRODUCT  file: the product's files, from the top, a line each; without it there are no source mutants
MNGR_STRENGTH_TOP      the top of the copy (default: the current directory)
MNGR_STRENGTH_PREPARE  shell command that builds the product; run for every mutant
MNGR_STRENGTH_EDITS    how many output edits a test gets at most (default: 300; 0 for none)
MNGR_STRENGTH_MUTANTS  how many source mutants a test gets that starts commands (default: 20; 0 for none)
MNGR_STRENGTH_ONLY     file: ids of edits and mutants, a line each; no others are tried
MNGR_STRENGTH_SECONDS  how long one test may be measured in each of the two ways (default: 120)
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import mngr_strength_attempts as attempts
import mngr_strength_edits
import mngr_strength_mutants
import pytest

_MAY_PASS = 3  # runs without a change that must pass before anything follows from a failure


def pytest_configure(config: pytest.Config) -> None:
    path = os.environ.get("MNGR_STRENGTH_ROWS")
    if path and not hasattr(config, "workerinput"):
        listed = {test.partition("::")[0] for test in _lines("MNGR_STRENGTH_TESTS") or ()}
        config.args[:] = sorted(filter(os.path.exists, listed)) or config.args
        config.pluginmanager.register(StrengthPlugin(path, config), "mngr-strength-active")


@pytest.hookimpl(hookwrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Iterator[None]:
    """Without workers of pytest-xdist: children are forked here."""
    if os.environ.get("MNGR_STRENGTH_ROWS") and hasattr(config.option, "numprocesses"):
        config.option.numprocesses = 0
        config.option.dist = "no"
        config.option.tx = []
    yield


def _lines(variable: str) -> list[str] | None:
    """The lines of the file that a variable names; None without one."""
    path = os.environ.get(variable)
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        return [line for line in file.read().split("\n") if line]


def _number(variable: str, default: int) -> int:
    return int(os.environ.get(variable) or default)


class StrengthPlugin:
    """Writes a row as soon as a fact is known."""

    def __init__(self, path: str, config: pytest.Config) -> None:
        self.path = path
        listed = _lines("MNGR_STRENGTH_TESTS")
        self.wanted = None if listed is None else set(listed)
        only = _lines("MNGR_STRENGTH_ONLY")
        self.only = None if only is None else set(only)
        self.seconds = float(os.environ.get("MNGR_STRENGTH_SECONDS") or 120)
        self.product = _lines("MNGR_STRENGTH_PRODUCT")
        self.top = os.path.realpath(os.environ.get("MNGR_STRENGTH_TOP") or os.getcwd())
        self.edits_max = _number("MNGR_STRENGTH_EDITS", 300)
        self.mutants_max = _number("MNGR_STRENGTH_MUTANTS", 20) if self.product is not None else 0
        self.plain: dict[str, float] = {}  # seconds of each test
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        config.option.e2e_artifacts = "no"
        config.option.e2e_keep_environment = "no"

    def row(self, kind: str, **facts: object) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"type": kind, **facts}) + "\n")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.row("broken", id=report.nodeid, text=str(report.longrepr)[-4000:])

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if self._chosen(item)]
        left_out = [item for item in items if item not in chosen]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
        items[:] = chosen

    def _chosen(self, item: pytest.Item) -> bool:
        if self.wanted is None:
            return True
        plain = item.nodeid[: len(item.nodeid) - len(item.name)] + (getattr(item, "originalname", None) or item.name)
        return item.nodeid in self.wanted or plain in self.wanted

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of running the tests: measure them. One that does not pass, or not always, is not measured."""
        session.config.option.tbstyle = "no"  # nobody reads why an attempt fails
        passing = [item for item in session.items if self._plain(item)]
        if self.edits_max:
            for item in passing:
                began = time.monotonic()
                self._edits(item)
                seconds = round(time.monotonic() - began, 3)
                self.row("measured", id=item.nodeid, seconds=seconds, done=not self.mutants_max)
        if self.mutants_max:
            mutants = mngr_strength_mutants.Mutants(
                self.row,
                top=self.top,
                product=self.product or (),
                prepare=os.environ.get("MNGR_STRENGTH_PREPARE", ""),
                only=self.only,
                most=self.mutants_max,
                seconds=self.seconds,
            )
            mutants.measure({item: self.plain[item.nodeid] for item in passing}, together=self.wanted is None)
        self.row("finished")
        return True

    def _plain(self, item: pytest.Item) -> bool:
        longest = 0.0
        for _ in range(_MAY_PASS):
            began = time.monotonic()
            outcome = attempts.attempt(item, seconds=self.seconds)
            longest = max(longest, time.monotonic() - began)
            if outcome != "passed":
                self.row("test", id=item.nodeid, outcome=outcome, seconds=round(longest, 3))
                return False
        self.plain[item.nodeid] = longest
        self.row("test", id=item.nodeid, outcome="passed", seconds=round(longest, 3))
        return True

    def _edits(self, item: pytest.Item) -> None:
        if "e2e" not in getattr(item, "fixturenames", ()):
            self.row("replay", id=item.nodeid, why="it does not use `e2e`", commands=[])
            return
        limit = max(60.0, 5 * self.plain[item.nodeid]) + self.seconds
        measured = attempts.in_child(
            lambda: mngr_strength_edits.measure(
                item, self.row, most=self.edits_max, only=self.only, seconds=self.seconds
            ),
            seconds=limit,
        )
        if measured != "done":
            self.row("replay", id=item.nodeid, why=f"measuring it ended with: {measured}", commands=[])
