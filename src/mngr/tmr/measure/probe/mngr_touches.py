"""A pytest plugin that writes what product and tests touch, in this process and in each Python that they start.
Inactive without a job. `$MNGR_TMR_JOB` has `tests` and `product`, the product's files from the top."""

from __future__ import annotations

import os
import tempfile

import mngr_children
import mngr_tmr_probe as probe
import pytest
from mngr_touched import Touched

pytest_cmdline_main = probe.pytest_cmdline_main


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """From before the project's code is loaded."""
    if probe.ROWS and not hasattr(early_config, "workerinput"):
        given = {"top": probe.TOP, "task": probe.TASK, "log": probe.ROWS, "product": probe.JOB["product"]}
        mngr_children.follow(os.path.join(tempfile.mkdtemp(), "start"), "mngr_touched", given)
        early_config.pluginmanager.register(Touches(given), "mngr-touches-active")


class Touches:
    def __init__(self, given: dict[str, object]) -> None:
        self._wanted = set(probe.JOB["tests"])
        self._touched = Touched(given)
        self._touched.start()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        facts = {item: probe.described(item) for item in items}
        items[:] = [item for item in items if {facts[item]["id"], facts[item]["function"]} & self._wanted]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self._touched.end()
