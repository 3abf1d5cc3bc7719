"""A pytest plugin that runs tests with other literals, and records what they compare. Inactive without a job.

The same job on another product gives the same variants, so that the records of two products can be compared: each row
has the id of a test, what was changed, the values that its assertions compared, and how it ended. `$MNGR_TMR_JOB` has
`tests` and `known`: words and numbers of the product itself, which are not changed.
"""

from __future__ import annotations

import gc
import json
import os
import pathlib
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import mngr_generality_source as source
import mngr_generality_variants as variants
import mngr_strength_attempts as attempts
import mngr_strength_live as live
import mngr_tmr_probe as probe
import pytest
from mngr_tmr_watch import Real

_SECONDS = 20.0  # for one test
_SECONDS_MIN, _SLOWER = 2.0, 5
_VALUES_MAX, _TEXT_MAX, _DEPTH_MAX = 300, 2000, 4
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")
_TEMPORARY = re.compile(r"/[\w./-]*?pytest-of-[^/\s]*/pytest-\d+|/tmp/tmp\w+")

pytest_cmdline_main = probe.pytest_cmdline_main


def pytest_configure(config: pytest.Config) -> None:
    if probe.ROWS and not hasattr(config, "workerinput"):
        config.args[:] = [arg for arg in config.args if os.path.exists(arg.partition("::")[0])]
        config.pluginmanager.register(Generality(), "mngr-generality-active")


class Generality:
    def row(self, item: pytest.Item, **facts: object) -> None:
        Real.append(probe.ROWS, {"id": probe.portable(item.nodeid), **facts})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of running the tests: run variants of those that are asked for."""
        session.config.option.tbstyle = "no"
        wanted = set(probe.JOB["tests"])
        for item in session.items:
            facts = probe.described(item)
            if {facts["id"], facts["function"]} & wanted:
                why = self._measure(item)
                self.row(item, type="measured", why=why)
        return True

    def _measure(self, item: pytest.Item) -> str:
        """Run the variants of one test. Why there are none, if so."""
        function = getattr(item, "obj", None)
        if not callable(function) or hasattr(function, "hypothesis"):
            return "it is no function with literals of its own"
        code = getattr(_innermost(function), "__code__", None)
        if code is None:
            return "its source is not known"
        try:
            text = pathlib.Path(code.co_filename).read_text("utf-8")
            found = source.TestSource(text, code.co_name, code.co_firstlineno)
        except (OSError, ValueError, SyntaxError):
            return "its source is not known"
        if not found.found:
            return "its source is not known"
        given = {name: value for name, value in _parameters(item).items() if name not in found.expected}
        free = variants.atoms([*found.given(), *given.values()], probe.JOB["known"])
        chosen = variants.variants(free)
        if not chosen:
            return "it gives no literals that could be others"
        self._run_all(item, _Given(item, code.co_filename, live.Live([code.co_filename]), found, given), chosen)
        return ""

    def _run_all(self, item: pytest.Item, given: _Given, chosen: Sequence[variants.Variant]) -> None:
        """The test as it is comes first, twice: what differs between the two is chance."""
        plain = variants.Variant({}, False)
        gc.collect()
        gc.freeze()
        began = Real.now()
        limit = _SECONDS_MIN
        for number, variant in enumerate([plain, plain, *chosen], -1):
            at = Real.now()

            def work(variant: variants.Variant = variant) -> str:
                return _run(given, variant)

            answer = attempts.in_child(work, seconds=limit * _SLOWER)
            if number <= 0:
                limit = max(limit, Real.now() - at)
            record = json.loads(answer) if answer.startswith("{") else {"values": [], "error": answer, "place": ""}
            facts = {"text": variant.text, "changed": [*variant.literals], "whole": variant.whole}
            self.row(item, type="variant", number=number, **facts, **record)
            if Real.now() - began > _SECONDS:
                break
        gc.unfreeze()  # functions are looked for among what can be collected


class _Given(NamedTuple):
    """A test, the file and the source that it is in, and its parameters that may be others."""

    item: pytest.Item
    file: str
    live: live.Live
    source: source.TestSource
    parameters: Mapping[str, Any]


def _innermost(function: Any) -> Any:
    function = getattr(function, "__func__", function)
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _parameters(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    return dict(callspec.params) if callspec is not None else {}


def _run(given: _Given, variant: variants.Variant) -> str:
    """In a process of its own: run one variant. Its record."""
    item, record = given.item, Record()
    names = _innermost(item.obj).__globals__  # type: ignore[attr-defined]
    names[source.NOTE] = record.note
    given.live.swap(os.path.realpath(given.file), given.source.changed(variant.literals))
    for name, value in given.source.constants.items():
        names[name] = variants.applied(value, variant.literals)
    callspec = getattr(item, "callspec", None)
    for name, value in given.parameters.items():
        for params in (getattr(callspec, "params", {}), getattr(callspec, "funcargs", {})):
            if name in params:
                params[name] = variants.applied(value, variant.literals)
    commands = _recorder(item)
    item.config.pluginmanager.register(record)
    attempts.outcome(item, None)
    if commands is not None:
        for answer in commands.record().answers:
            record.note((answer.exit_code, answer.text("stdout"), answer.text("stderr")))
    return json.dumps({"values": record.values, "error": record.error, "place": record.place})


def _recorder(item: pytest.Item) -> Any:
    """What keeps the answers of the commands of a test that uses `e2e`."""
    if "e2e" not in getattr(item, "fixturenames", ()):
        return None
    try:
        from mngr.e2e import replay
    except ImportError:
        return None
    recorder = replay.Recorder()
    replay.set_tape(recorder)
    return recorder


class Record:
    """What a test compared, as texts, and how it ended: the error, and the name of the function that raised it."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self.error = self.place = ""
        self._repr, self._type, self._vars = repr, type, vars

    def note(self, value: Any) -> Any:
        if len(self.values) < _VALUES_MAX:
            self.values.append(_plain(self._shown(value, 0))[:_TEXT_MAX])
        return value

    def _shown(self, value: Any, depth: int) -> str:
        kind: Any = self._type(value)
        if kind in (list, tuple, set, frozenset, dict) and depth < _DEPTH_MAX:
            if kind is dict:
                inside = [f"{self._shown(key, depth + 1)}: {self._shown(one, depth + 1)}" for key, one in value.items()]
            else:
                inside = [self._shown(one, depth + 1) for one in value]
            return f"{kind.__name__}({', '.join(sorted(inside) if kind in (set, frozenset) else inside)})"
        try:
            if kind.__repr__ is object.__repr__ and depth < _DEPTH_MAX:
                inside = [f"{name}={self._shown(one, depth + 1)}" for name, one in self._vars(value).items()]
                return f"{kind.__name__}({', '.join(inside)})"
            return self._repr(value)
        except Exception as error:  # noqa: BLE001
            return f"{kind.__name__} whose text raises {self._type(error).__name__}"

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_makereport(self, call: Any) -> Any:
        yield
        if call.excinfo is not None and not self.error:
            kind, error, traceback = call.excinfo._excinfo
            self.error = _plain(f"{kind.__name__}: {error}")[:_TEXT_MAX]
            while traceback is not None:
                self.place, traceback = traceback.tb_frame.f_code.co_name, traceback.tb_next


def _plain(text: str) -> str:
    """Without what is another in every process."""
    for place in (probe.TOP, sys.prefix):
        text = text.replace(place, "<checkout>")
    return _TEMPORARY.sub("<tmp>", _ADDRESS.sub("0x", text))
