"""Measures the tests of the project in a directory, in a copy that is removed afterwards."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from mngr.errors import MngrError
from mngr.system import files, process
from mngr.system.waiting import wait_until
from mngr.tmr.judge.paths import PathKind, Paths
from mngr.tmr.measure import strength
from mngr.tmr.measure.measurement import PROBE, Measurement, StrengthStep, SuiteEnvironment, script
from mngr.tmr.measure.strength import MeasuredTest

_STEP = "strength"
_SKIPPED = frozenset({".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".mypy_cache"})
_LOG_SHOWN = 3000


class Wanted(NamedTuple):
    """Files, directories and ids of tests from the top of the project, and how many changes each test gets at most."""

    tests: Sequence[str]
    edits: int
    mutants: int


def measure(
    top: str,
    environment: SuiteEnvironment,
    paths: Paths,
    wanted: Wanted,
    on_measured: Callable[[MeasuredTest], None] = lambda one: None,
) -> dict[str, MeasuredTest]:
    """What came of each test. Raises when pytest or the build does not run."""
    listed = list(_files(top))
    product = [path for path in listed if paths.kind(path) == PathKind.IMPLEMENTATION]
    with tempfile.TemporaryDirectory(prefix="mngr-strength-", ignore_cleanup_errors=True) as directory:
        copy, out = os.path.join(directory, os.path.basename(top) or "project"), os.path.join(directory, "out")
        os.mkdir(out)
        _copy(top, copy, listed)
        job = os.path.join(copy, ".mngr", "task", "job")
        shutil.copytree(PROBE, os.path.join(job, "probe"), ignore=shutil.ignore_patterns("__pycache__"))
        step = StrengthStep(
            _STEP,
            tests=None,
            named=wanted.tests,
            product=product,
            mutants=wanted.mutants,
            edits=wanted.edits,
        )
        for name, data in script(environment, Measurement(_STEP, "", [step])).items():
            files.write_atomic(os.path.join(job, name), data)
        env = {**process.environment(), **environment.env, "MNGR_ARTIFACTS_DIR": out}
        over = threading.Event()
        teller = threading.Thread(target=_tell, args=(out, on_measured, over), daemon=True)
        teller.start()
        try:
            process.run(["sh", os.path.join(job, "job.sh")], timeout=environment.job_seconds, cwd=copy, env=env)
        finally:
            over.set()
            teller.join()
        return _results(out)


def _tell(out: str, on_measured: Callable[[MeasuredTest], None], over: threading.Event) -> None:
    """Call a function with each test as soon as it is measured, beside the run."""
    told: set[str] = set()
    while not over.is_set():
        wait_until(over.is_set, timeout=1.0, every=0.1)
        for test, one in strength.in_directory(out).items():
            if one.done and test not in told:
                told.add(test)
                on_measured(one)


def _results(out: str) -> dict[str, MeasuredTest]:
    found = strength.in_directory(out)
    for name in ("prepare", _STEP):
        code = files.content(os.path.join(out, f"{name}.exit")).decode().strip()
        if code not in ("", "0", "5") or (name == _STEP and not found):
            what = "`[tmr] prepare`" if name == "prepare" else "pytest"
            text = files.content(os.path.join(out, f"{name}.log"))[-_LOG_SHOWN:].decode(errors="replace").strip("\n")
            problem = f"{what} failed (exit code {code})" if code not in ("", "0", "5") else "no test was collected"
            raise MngrError(problem, details=text, hint="`mngr tmr init` says how the tests of a project are run")
    return found


def _files(top: str) -> Iterator[str]:
    """The project's files from its top: those that git knows or would add, or all but caches and environments."""
    listed = process.run(["git", "-C", top, "ls-files", "-coz", "--exclude-standard"], timeout=60)
    if listed.ok:
        found: Sequence[str] = listed.stdout.decode(errors="surrogateescape").split("\0")
        yield from (path for path in dict.fromkeys(found) if path and os.path.lexists(os.path.join(top, path)))
        return
    for directory, names, inside in os.walk(top):
        names[:] = [name for name in names if name not in _SKIPPED]
        yield from (os.path.relpath(os.path.join(directory, name), top) for name in inside)


def _copy(top: str, copy: str, listed: Sequence[str]) -> None:
    for path in listed:
        source, target = os.path.join(top, path), os.path.join(copy, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isdir(source) and not os.path.islink(source):  # a submodule
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target, follow_symlinks=False)
