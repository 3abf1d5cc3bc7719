"""The script of a job: which tests it runs, however the project starts pytest."""

import subprocess
import sys
from pathlib import Path

import pytest

from mngr.tmr import rows
from mngr.tmr.jobs import PROBE, Job, Pytest, Surroundings, script

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"


def run(top: Path, command: str, *steps: Pytest) -> dict[str, rows.Rows]:
    """Run the steps at the top of a checkout, as a job does; what came of each."""
    job, out = top / ".mngr" / "task" / "job", top / "out"
    out.mkdir()
    job.mkdir(parents=True)
    (job / "probe").symlink_to(PROBE)
    for name, data in script(Surroundings(command), Job("x", "HEAD", steps)).items():
        (job / name).write_bytes(data)
    env = {"PATH": "/usr/bin:/bin", "MNGR_ARTIFACTS_DIR": str(out), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run(["sh", str(job / "job.sh")], cwd=top, env=env, check=True, timeout=120)
    found = {path.stem: rows.read(path.read_bytes()) for path in out.glob("*.rows")}
    assert found, {path.name: path.read_text() for path in out.glob("*.log")}
    return found


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "app" / "tests").mkdir(parents=True)
    (tmp_path / "app" / "tests" / "test_a.py").write_text(
        "import os\n\n\ndef test_a():\n    assert os.environ.get('X', '1') == '1'\n\n\ndef test_b():\n    pass\n"
    )
    (tmp_path / "activate").write_text("X=1\nexport X\n")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "place"),
    [(f". ./activate && {PYTEST}", "app/"), (f"cd app && {PYTEST}", ""), (f"export X=1; {PYTEST}", "app/")],
)
def test_the_tests_of_a_step_are_run_by_any_command_and_new_ones_again(top: Path, command: str, place: str) -> None:
    file = f"{place}tests/test_a.py"
    listed = Pytest("listed", tests=[f"{file}::test_a"], paths=[file, f"{place}tests/test_gone.py"])
    new = Pytest("new", tests=[f"{file}::test_a"], base=[f"{'-' * 16} {file}::test_a"], again=1)
    named = Pytest("named", args=("--collect-only",), named=["app/tests/test_a.py::test_b"])
    gone = Pytest("gone", tests=[], paths=[f"{place}tests/test_gone.py"])
    found = run(top, command, listed, new, named, gone)
    assert {test: ran.outcome for test, ran in found["listed"].ran.items()} == {f"{file}::test_a": "passed"}
    assert {test.rpartition("::")[2] for test in found["new"].ran} == {"test_a", "test_b"}
    assert list(found["new-again-1"].ran) == [f"{file}::test_b"]
    assert list(found["named"].tests) == [f"{file}::test_b"]
    assert {test.file for test in found["named"].tests.values()} == {"app/tests/test_a.py"}
    assert found["gone"].finished and not found["gone"].tests
