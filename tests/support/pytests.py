"""Runs of pytest in other projects, with the result of each test by name."""

import sys
from pathlib import Path
from xml.etree import ElementTree

from tests.support.user import User


def results(user: User, project: Path, *words: str) -> dict[str, str]:
    """`passed`, `failed`, `error` or `skipped` for each test that pytest runs there."""
    report = user.root / "junit.xml"
    report.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *words]
    done = user.run(argv, cwd=project, timeout=110)
    assert report.exists(), f"pytest wrote no report\n{done.stdout}\n{done.stderr}"
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        found[case.attrib["name"]] = kinds.pop().replace("failure", "failed") if kinds else "passed"
    return found
