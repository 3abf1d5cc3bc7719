"""The script of a job: which tests it runs, however the project starts pytest."""

import subprocess
import sys
from pathlib import Path

import pytest

from mngr.tmr import rows
from mngr.tmr.measurement import PROBE, Measurement, Pytest, SuiteEnvironment, script
from mngr.tmr.rows import NO_BODY

ENV = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"


def run(top: Path, command: str, *steps: Pytest, test_seconds: float = 120) -> dict[str, rows.Rows]:
    """Run the steps at the top of a checkout, as a job does; what came of each."""
    job, out = top / ".mngr" / "task" / "job", top / "out"
    out.mkdir()
    job.mkdir(parents=True)
    (job / "probe").symlink_to(PROBE)
    environment = SuiteEnvironment(command, env=ENV, test_seconds=test_seconds)
    for name, data in script(environment, Measurement("x", "HEAD", steps)).items():
        (job / name).write_bytes(data)
    env = {"PATH": "/usr/bin:/bin", "MNGR_ARTIFACTS_DIR": str(out), **ENV}
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
    new = Pytest("new", tests=[f"{file}::test_a"], base={f"{file}::test_a": NO_BODY}, again=1)
    named = Pytest("named", args=("--collect-only",), named=["app/tests/test_a.py::test_b"])
    gone = Pytest("gone", tests=[], paths=[f"{place}tests/test_gone.py"])
    found = run(top, command, listed, new, named, gone)
    assert {test: ran.outcome for test, ran in found["listed"].ran.items()} == {f"{file}::test_a": "passed"}
    assert {test.rpartition("::")[2] for test in found["new"].ran} == {"test_a", "test_b"}
    assert list(found["new-again-1"].ran) == [f"{file}::test_b"]
    assert list(found["named"].tests) == [f"{file}::test_b"]
    assert {test.file for test in found["named"].tests.values()} == {"app/tests/test_a.py"}
    assert found["gone"].finished and not found["gone"].tests


def test_ids_with_the_place_of_the_checkout_are_the_same_in_every_copy(tmp_path: Path) -> None:
    id, seen = "test_a.py::test_a[<checkout>/one.txt]", []
    for name in ("copy", "other é"):
        top = tmp_path / name
        top.mkdir()
        (top / "one.txt").touch()
        (top / "test_a.py").write_text(
            "import glob, os, pytest\n\nHERE = os.path.dirname(__file__)\n\n\n"
            "@pytest.mark.parametrize('path', glob.glob(HERE + '/*.txt'))\n"
            "def test_a(path):\n    assert os.path.exists(path)\n"
        )
        found = run(top, PYTEST, Pytest("all", tests=[id], base={id: NO_BODY}))["all"]
        seen.append({test: (one.function, found.outcome(test)) for test, one in found.tests.items()})
    assert seen == [{id: ("test_a.py::test_a", "passed")}] * 2


SLOW = """
import time, pytest

@pytest.fixture(scope="session")
def server():
    time.sleep(1.2)
    yield
    time.sleep(1.2)

@pytest.fixture(scope="module")
def loaded(server):
    time.sleep(0.3)

def test_first(loaded):
    pass

@pytest.mark.timeout(30)
def test_long():
    time.sleep(1.2)

@pytest.mark.timeout(0)
def test_any():
    time.sleep(1.2)

def test_hangs():
    time.sleep(60)

@pytest.mark.timeout(0.3)
def test_ended():
    time.sleep(60)

@pytest.mark.timeout(0.3, method="thread")
def test_killed():
    time.sleep(60)

def test_last(server):
    pass
"""


def test_only_its_own_time_counts_for_a_test_and_a_limit_of_its_own_is_kept(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(SLOW)
    found = run(tmp_path, f"{PYTEST} -p pytest_timeout", Pytest("all"), test_seconds=1)["all"]
    assert {test.rpartition("::")[2]: ran.outcome for test, ran in found.ran.items()} == {
        **dict.fromkeys(("test_first", "test_long", "test_any", "test_last"), "passed"),
        **dict.fromkeys(("test_hangs", "test_ended", "test_killed"), "timeout"),
    }
    assert found.ran["test_a.py::test_first"].seconds < 1
    assert found.ran["test_a.py::test_hangs"].signature == "timeout: the test did not end within 1 s"


def test_a_shared_fixture_that_hangs_is_named(tmp_path: Path) -> None:
    hangs = "import time, pytest\n\n\n@pytest.fixture(scope='session')\ndef server():\n    time.sleep(60)\n"
    (tmp_path / "test_a.py").write_text(f"{hangs}\n\ndef test_a(server):\n    pass\n")
    found = run(tmp_path, PYTEST, Pytest("all"), test_seconds=0.1)["all"]
    said = "timeout: the set-up of the session fixture `server` did not end within 0.5 s"
    assert found.ran["test_a.py::test_a"].signature == said


def test_a_failure_that_further_runs_do_not_show_is_cleared_and_one_that_they_show_is_not() -> None:
    def seen(**outcomes: str) -> rows.Rows:
        return rows.gathered(
            {"type": "ran", "id": test, "outcome": outcome, "seconds": 0, "text": "", "signature": ""}
            for test, outcome in outcomes.items()
        )

    first = seen(a="failed", b="timeout", c="passed", d="skipped")
    assert rows.doubtful(first, "abcdx") == ["a", "b"]
    cleared = rows.cleared(first, ["a", "b"], [seen(a="passed", b="passed"), seen(a="passed", b="failed")])
    assert {test: ran.outcome for test, ran in cleared.ran.items()} == {
        "a": "passed",
        "b": "timeout",
        "c": "passed",
        "d": "skipped",
    }
    assert rows.cleared(first, ["a"], []) == first


FORGES = """
import os


def test_a(request):
    probe = request.config.pluginmanager.get_plugin("mngr-tmr-probe-active")
    facts = {"outcome": "OUTCOME", "phase": "call", "seconds": 0.1, "text": "", "signature": ""}
    probe.row("ran", id="test_a.py::test_a", **facts)
    probe.row("finished", exit_code=1)
    os._exit(1)
"""


@pytest.mark.parametrize(("outcome", "doubt"), [("passed", "a test that always fails was not run"), ("failed", "")])
def test_a_test_run_that_says_it_passed_and_left_out_our_own_tests_is_not_believed(
    tmp_path: Path, outcome: str, doubt: str
) -> None:
    (tmp_path / "test_a.py").write_text(FORGES.replace("OUTCOME", outcome))
    found = run(tmp_path, PYTEST, Pytest("all"))["all"]
    assert found.finished and (doubt in found.doubt) and bool(doubt) == bool(found.doubt)
