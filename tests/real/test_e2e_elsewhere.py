"""The wheel of mngr in a new environment, for a product that has nothing to do with it."""

import sys
import zipfile
from pathlib import Path

import pytest

from mngr.e2e import artifacts
from tests.support.user import User

ROOT = Path(__file__).parents[2]

# All that the project has to write, and it is less than 15 lines.
TEST = '''\
from mngr.e2e import E2eSession, expect


def test_sorting_puts_names_in_order(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # names come in any order
        printf 'b\\\\na\\\\n' | sort
    """)
    result = e2e.run("printf 'b\\\\na\\\\n' | sort", comment="names come in any order")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("a\\nb\\n")
    expect(e2e.spawn("echo on a screen; cat")).to_show("on a screen", timeout=60)
'''


@pytest.mark.timeout(400)
def test_a_product_elsewhere_gets_a_passing_test_in_under_15_lines(user: User) -> None:
    assert len(TEST.splitlines()) < 15
    wheels = user.root / "wheels"
    user.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)], cwd=ROOT, timeout=100).ok()
    [wheel] = wheels.glob("*.whl")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if "testing" in name or "_server" in name]
    python = str(user.root / "venv" / "bin" / "python")
    user.run([sys.executable, "-m", "venv", "--without-pip", str(user.root / "venv")]).ok()
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "--disable-pip-version-check",
        "install",
        "-q",
        "--no-compile",
    ]
    user.run([*pip, f"{wheel}[e2e]"], timeout=300).ok()

    project = user.root / "product"
    project.mkdir()
    (project / "test_sorting.py").write_text(TEST)
    user.env["PATH"] = f"{user.root}/venv/bin:/usr/local/bin:/usr/bin:/bin"
    done = user.run([python, "-W", "error", "-m", "pytest", "-q"], cwd=project, timeout=100).ok()
    assert "1 passed" in done.stdout

    demo = user.run([f"{user.root}/venv/bin/mngr", "demo", "--type", "claude"], cwd=project).failed()
    assert "hint: pip install mngr-testing" in demo.stderr
    assert not (project / "mngr-demo").exists()

    [run] = artifacts.runs(project / ".mngr" / "e2e")
    [test] = run.tests()
    assert test.outcome == "passed"
    shown = "# names come in any order\n$ printf 'b\\na\\n' | sort\na\nb\n\n$ echo on a screen; cat\n"
    assert test.transcript() == shown
    assert [recording.title for recording in test.recordings()] == ["echo on a screen; cat"]
