"""A pytest plugin that measures how much tests notice, as JSON lines in `$MNGR_TMR_ROWS`. Inactive without it.

Stands alone, like the probe: it is loaded by path into the Python of the project under test. Every attempt is a forked
child, so that tests are collected once. Output edits are attempts whose commands are answered from a record, with one
edit; source mutants are attempts with one change in the product. The product's files are changed in place and restored:
it must be started in a copy of the project.

Each row has the id of a test and some of the fields of `strength.MeasuredTest`. `$MNGR_TMR_JOB` has:

tests    ids of tests or of their functions (default: all that are collected); only their files are collected, and each
         is measured as if it were the only one
product  the product's files, from the top; without it there are no source mutants
prepare  shell command that builds the product; run for every mutant
edits    how many output edits a test gets at most (default: 300; 0 for none)
mutants  how many source mutants a test gets that starts commands (default: 20; 0 for none)
only     ids of edits and mutants; no others are tried
"""

from __future__ import annotations

import json
import os
import time

import mngr_strength_attempts as attempts
import mngr_strength_edits
import mngr_strength_mutants
import mngr_tmr_probe as probe
import pytest

_MAY_PASS = 3  # runs without a change that must pass before anything follows from a failure
_SECONDS = 120.0  # how long one test may be measured in each of the two ways

pytest_cmdline_main = probe.pytest_cmdline_main


def pytest_configure(config: pytest.Config) -> None:
    if probe.ROWS and not hasattr(config, "workerinput"):
        listed = {probe.from_top(test.partition("::")[0]) for test in probe.listed() or ()}
        config.args[:] = sorted(filter(os.path.exists, listed)) or config.args
        config.pluginmanager.register(StrengthPlugin(config), "mngr-strength-active")


class StrengthPlugin:
    """Writes a row as soon as a fact is known."""

    def __init__(self, config: pytest.Config) -> None:
        tests, only = probe.listed(), probe.JOB.get("only")
        self.wanted = None if tests is None else set(tests)
        self.only = None if only is None else set(only)
        self.edits_max = probe.JOB.get("edits", 300)
        self.mutants_max = probe.JOB.get("mutants", 20) if probe.JOB.get("product") is not None else 0
        self.plain: dict[pytest.Item, float] = {}  # seconds of each test
        self.spent: dict[pytest.Item, float] = {}
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        config.option.e2e_artifacts = "no"
        config.option.e2e_keep_environment = "no"

    def row(self, item: pytest.Item, **facts: object) -> None:
        with open(probe.ROWS, "a", encoding="utf-8") as file:
            file.write(json.dumps({"id": probe.portable(item.nodeid), **facts}) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        wanted = self.wanted
        facts = {item: probe.described(item) for item in items}
        chosen = [item for item in items if wanted is None or {facts[item]["id"], facts[item]["function"]} & wanted]
        left_out = [item for item in items if item not in chosen]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
        items[:] = chosen

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of running the tests: measure them. One that does not pass, or not always, is not measured."""
        session.config.option.tbstyle = "no"  # nobody reads why an attempt fails
        passing = [item for item in session.items if self._passes(item)]
        for item in passing if self.edits_max else ():
            began = time.monotonic()
            self._edits(item)
            self.spent[item] = time.monotonic() - began
            self.row(item, seconds=round(self.spent[item], 3), done=not self.mutants_max)
        if self.mutants_max:
            mutants = mngr_strength_mutants.Mutants(only=self.only, most=self.mutants_max, seconds=_SECONDS)
            began = time.monotonic()
            for item, facts in mutants.measure({one: self.plain[one] for one in passing}, together=self.wanted is None):
                seconds = self.spent.get(item, 0.0) + time.monotonic() - began
                self.row(item, **facts, seconds=round(seconds, 3), done=True)
                began = time.monotonic()
        return True

    def _passes(self, item: pytest.Item) -> bool:
        outcome = "passed"
        for _ in range(_MAY_PASS):
            began = time.monotonic()
            outcome = attempts.attempt(item, seconds=_SECONDS)
            self.plain[item] = max(self.plain.get(item, 0.0), time.monotonic() - began)
            if outcome != "passed":
                break
        self.row(item, outcome=outcome)
        return outcome == "passed"

    def _edits(self, item: pytest.Item) -> None:
        if "e2e" not in getattr(item, "fixturenames", ()):
            self.row(item, no_edits="it does not use `e2e`")
            return

        def measured() -> str:
            self.row(item, **mngr_strength_edits.measure(item, most=self.edits_max, only=self.only, seconds=_SECONDS))
            return "done"

        came = attempts.in_child(measured, seconds=max(60.0, 5 * self.plain[item]) + _SECONDS)
        if came != "done":
            self.row(item, no_edits=f"measuring it ended with: {came}")
