"""Runs of pytest in other projects, with the result of each test by name."""

import sys
from pathlib import Path
from xml.etree import ElementTree

from tests.support.user import User

# Of the plugins of our own environment only the one that is needed: pytest then starts in half the time.
PLAIN = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "mngr.e2e.plugin"}


def results(user: User, project: Path, *words: str) -> dict[str, str]:
    """`passed`, `failed`, `error` or `skipped` for each test that pytest runs there."""
    report = user.root / "junit.xml"
    report.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *words]
    done = user.run(argv, cwd=project, env=PLAIN, timeout=250)
    assert report.exists(), f"pytest wrote no report\n{done.stdout}\n{done.stderr}"
    return results_in(report)


def results_in(report: Path) -> dict[str, str]:
    """The same from a report of pytest."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        found[case.attrib["name"]] = kinds.pop().replace("failure", "failed") if kinds else "passed"
    return found
