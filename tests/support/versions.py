"""Changed versions of tests, labelled by hand, and what measuring them said (`tests/strength`)."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

from mngr.tmr.measure import strength
from mngr.tmr.measure.measurement import PROBE
from tests.support.pytests import PLAIN
from tests.support.user import User

DATA = Path(__file__).parents[1] / "strength"
BEFORE = "before"
_HEAD = re.compile(r"^# (before|stronger|same|weaker|mixed|cannot fail) (\w+)(?:: (.*))?\n", re.MULTILINE)
_IMPORTS = {"till": "from till import book, money\n", "conv": "", "slots": "from slots import plan, times\n"}
_PREPARE = {"till": "", "conv": "make", "slots": ""}


class Version(NamedTuple):
    """One version of a test; `label` compares it with the version before."""

    label: str
    test: str
    change: str
    code: str
    id: str


class Shown(NamedTuple):
    version: Version
    found: strength.Strength

    @property
    def right(self) -> bool:
        return self.found.word == self.version.label


def versions(product: str) -> list[Version]:
    parts = _HEAD.split((DATA / f"{product}.versions").read_text())[1:]
    found = []
    for number, (label, test, change, code) in enumerate(zip(*(parts[n::4] for n in range(4)), strict=True)):
        id = f"test_all.py::{test}_{number}"
        found.append(Version(label, test, change or "", code.replace(f"def {test}(", f"def {test}_{number}("), id))
    return found


def measured(user: User, product: str, chosen: list[Version], **job: Any) -> dict[str, strength.MeasuredTest]:
    """All versions as tests of one file, measured by one run of pytest in a copy of the product."""
    copy = user.root / product
    shutil.copytree(DATA / product, copy)
    (copy / "conftest.txt").rename(copy / "conftest.py")
    imports = f"import pytest\nfrom mngr.e2e import expect\n{_IMPORTS[product]}"
    (copy / "test_all.py").write_text(imports + "".join(version.code for version in chosen))
    if _PREPARE[product]:
        user.run(_PREPARE[product].split(), cwd=copy, timeout=100).ok()
    listed = [
        str(path.relative_to(copy))
        for path in sorted(copy.rglob("*"))
        if path.suffix in (".py", ".c", "") and path.is_file()
    ]
    paths = [path for path in listed if path not in ("conftest.py", "test_all.py", "Makefile", "conv")]
    (user.root / "job").write_text(json.dumps({"product": paths, "prepare": _PREPARE[product], **job}))
    rows = user.root / "rows"
    env = {**PLAIN, "PYTHONPATH": PROBE, "MNGR_TMR_ROWS": str(rows), "MNGR_TMR_JOB": str(user.root / "job")}
    argv = [sys.executable, "-m", "pytest", "-p", "mngr_strength", "-p", "no:cacheprovider", "-q", "--rootdir=."]
    user.run(argv, cwd=copy, env=env, timeout=3000).ok()
    return strength.read(rows.read_bytes())


def compared(chosen: list[Version], found: dict[str, strength.MeasuredTest]) -> list[Shown]:
    """Each version with the one before it."""
    shown, before = [], {version.test: version for version in chosen if version.label == BEFORE}
    for version in chosen:
        if version.label != BEFORE:
            base = found[before[version.test].id]
            shown.append(Shown(version, strength.compare(base, found[version.id])))
    return shown
