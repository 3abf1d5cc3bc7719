"""A pytest plugin that tells which of some lines the tests run, in this process and in each Python that they start.
Inactive without a job.

The tests that are named `first` run first; it ends as soon as all lines were run, or after so many `seconds`.
`$MNGR_TMR_JOB` has `lines`, by file from the top, and these. The last row has the `unreached` lines.
"""

from __future__ import annotations

import dis
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from types import CodeType
from typing import Any

import mngr_children
import mngr_tmr_probe as probe
import pytest
from mngr_lines import BEGAN, Lines
from mngr_tmr_watch import Real, Watch

_STARTS = ("subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec")
pytest_cmdline_main = probe.pytest_cmdline_main


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    if probe.ROWS and not hasattr(early_config, "workerinput"):
        if hasattr(early_config.known_args_namespace, "no_cov"):  # pytest-cov follows the lines too
            early_config.known_args_namespace.no_cov = True
        early_config.pluginmanager.register(Reach(), "mngr-reach-active")


class Reach:
    def __init__(self) -> None:
        named = {path: set(lines) for path, lines in probe.JOB["lines"].items()}
        self._wanted = {path: sorted(lines & executable(probe.from_top(path))) for path, lines in named.items()}
        self._first = set(probe.JOB["first"])
        self._log = os.path.join(tempfile.mkdtemp(), "lines")
        given = {probe.from_top(path): lines for path, lines in self._wanted.items()}
        mngr_children.follow(f"{self._log}.d", "mngr_lines", {"lines": given, "log": self._log})
        self._lines = Lines(given, self._log)
        self._programs = 0
        sys.addaudithook(self._note_programs)
        self._began = Real.now()
        self._tests = 0
        self._why = ""
        self._watch = Watch(self._give_up)
        self._lines.start()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        facts = {item: probe.described(item) for item in items}
        near = {test.partition("::")[0] for test in self._first}

        def rank(item: pytest.Item) -> int:
            is_first = bool({facts[item]["id"], facts[item]["function"]} & self._first)
            return 0 if is_first else 1 if facts[item]["file"] in near else 2

        items.sort(key=rank)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._watch.begin("the test", float(probe.JOB.get("test_seconds", 0)))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        yield
        self._tests += 1
        if not self._lines.is_on():
            self._why = "the tests follow the lines themselves"
        if not any(self._unreached().values()):
            item.session.shouldstop = "all lines were run"
        elif Real.now() - self._began > probe.JOB["seconds"]:
            self._why = f"only {self._tests} tests were run in {probe.JOB['seconds']} s"
            item.session.shouldstop = self._why

    def pytest_runtest_logfinish(self) -> None:
        self._watch.end()

    def _unreached(self) -> dict[str, list[int]]:
        ran: dict[str, set[int]] = {}
        if os.path.exists(self._log):
            with open(self._log, encoding="utf-8", errors="surrogateescape") as file:
                for line, _, path in (text.rstrip("\n").partition("\t") for text in file):
                    if path:
                        ran.setdefault(path, set()).add(int(line))
        real = {path: ran.get(os.path.realpath(probe.from_top(path)), set()) for path in self._wanted}
        return {path: [line for line in lines if line not in real[path]] for path, lines in self._wanted.items()}

    def _note_programs(self, event: str, _: object) -> None:
        self._programs += event in _STARTS

    def _followed(self) -> bool:
        """Whether what the tests start tells its lines: not with variables of its own, and not in other languages."""
        if not self._programs:
            return True
        try:
            with open(self._log, encoding="utf-8", errors="surrogateescape") as file:
                return any(line.startswith(BEGAN) for line in file)
        except FileNotFoundError:
            return False

    def _tell(self) -> None:
        found = {path: lines for path, lines in self._unreached().items() if lines}
        if found and not self._followed():
            found, self._why = {}, "what the tests start could not be followed"
        counts = {path: len(lines) for path, lines in self._wanted.items()}
        Real.append(probe.ROWS, {"unreached": found, "lines": counts, "tests": self._tests, "why": self._why})

    def _give_up(self, what: str, seconds: float) -> None:
        self._why = f"{what} did not end within {seconds:g} s"
        self._tell()
        Real.exit(probe.GAVE_UP)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        stopped = str(session.shouldstop or session.shouldfail or "")
        if int(session.exitstatus) > 2 and not self._why:
            self._why = f"pytest ended with exit code {int(session.exitstatus)}"
        if stopped and any(self._unreached().values()):
            self._why = self._why or f"pytest ended early: {stopped}"
        self._tell()


def executable(path: str) -> set[int]:
    """The lines of a file that anything is run in; none of what is there for readers of types."""
    import ast

    try:
        text = pathlib.Path(path).read_bytes()
        tree = ast.parse(text)
        left: list[CodeType] = [compile(text, path, "exec", dont_inherit=True)]
    except (OSError, SyntaxError, ValueError):
        return set()
    found: set[int] = set()
    while left:
        code = left.pop()
        found |= {line for _, line in dis.findlinestarts(code) if line}
        left += [one for one in code.co_consts if isinstance(one, CodeType)]
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in {_name(part) for part in ast.walk(node.test)}:
            found -= {line for one in node.body for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    return found


def _name(node: Any) -> str:
    return getattr(node, "id", "") or getattr(node, "attr", "")
