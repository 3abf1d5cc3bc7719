"""The program that runs pytest in other surroundings: `mngr_surroundings` copies it there with what it is given."""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = os.path.join(HERE, "given.json")
with open(PATH, encoding="utf-8") as file:
    GIVEN: dict[str, Any] = json.load(file)
os.remove(PATH)
GROUPS = GIVEN["groups"]


def main() -> int:
    sys.path[:] = GIVEN["path"]
    job = dict(GIVEN["job"])
    job["MNGR_TMR_JOB"] = os.path.join(HERE, "job.json")
    with open(job["MNGR_TMR_JOB"], "w", encoding="utf-8") as file:
        file.write(job.pop("job"))
    os.environ.update(job)
    os.environ.update(GIVEN["marks"])
    sys.path.insert(0, GIVEN["probe"])
    import mngr_tmr_probe
    import pytest

    sys.path.remove(GIVEN["probe"])
    args = [*GIVEN["args"], f"--basetemp={GIVEN['temporary']}/data"]
    if "process" in GROUPS:
        sys.argv[:] = [sys.argv[0]]
        args.append("--capture=no")
    else:
        sys.argv[:] = GIVEN["argv"]
    plugins: list[object] = [mngr_tmr_probe]
    if "traces" in GROUPS:
        plugins.append(Traceless())
        for name in [name for name in sys.modules if name.startswith("mngr_")]:
            del sys.modules[name]
    if "environment" in GROUPS:
        plugins.append(Unmarked())
    return int(pytest.main(args, plugins))


class Unmarked:
    """Takes the variables of pytest out of the environment once pytest has read them."""

    def pytest_collection(self) -> None:
        for name in [name for name in os.environ if name.startswith("PYTEST_")]:
            del os.environ[name]


class Traceless:
    """While a test runs, its function and its files have other names, and the root logger is as in a fresh Python."""

    def pytest_collection(self) -> None:
        from _pytest.tmpdir import TempPathFactory

        plain: Any = TempPathFactory.mktemp

        def mktemp(self: Any, basename: str, numbered: bool = True) -> Any:
            return plain(self, "data" if basename.startswith("test") else basename, numbered)

        TempPathFactory.mktemp = mktemp  # type: ignore[method-assign]

    def pytest_runtest_call(self, item: Any) -> None:
        function = getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))
        while function is not None:
            if isinstance(function, types.FunctionType):
                names: dict[str, Any] = {
                    name: "work" for name in ("co_name", "co_qualname") if hasattr(function.__code__, name)
                }
                function.__code__ = function.__code__.replace(**names)
            function = getattr(function, "__wrapped__", None)
        if "caplog" in getattr(item, "fixturenames", ()):
            return
        import logging

        root = logging.getLogger()
        root.handlers[:] = [one for one in root.handlers if not type(one).__module__.startswith("_pytest.")]


sys.exit(main())
