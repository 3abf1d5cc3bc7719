"""The script of a job: which tests it runs, however the project starts pytest."""

import subprocess
import sys
from pathlib import Path

import pytest

from mngr.tmr.measure import rows
from mngr.tmr.measure.measurement import PROBE, Measurement, Pytest, SuiteEnvironment, script
from mngr.tmr.measure.rows import NO_BODY

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
    [(f". ./activate && {PYTEST}", ""), (f"cd app && {PYTEST}", "app/"), (f"export X=1; {PYTEST}", "")],
)
def test_the_tests_of_a_step_are_run_by_any_command_and_new_ones_again(top: Path, command: str, place: str) -> None:
    file = "app/tests/test_a.py"
    listed = Pytest("listed", tests=[f"{file}::test_a"], paths=[file, "app/tests/test_gone.py"])
    new = Pytest("new", tests=[f"{file}::test_a"], base={f"{file}::test_a": NO_BODY}, again=1)
    named = Pytest("named", args=("--collect-only",), named=[f"{file}::test_b"])
    gone = Pytest("gone", tests=[], paths=["app/tests/test_gone.py"])
    found = run(top, command, listed, new, named, gone)
    assert {test: ran.outcome for test, ran in found["listed"].ran.items()} == {f"{file}::test_a": "passed"}
    assert {test.rpartition("::")[2] for test in found["new"].ran} == {"test_a", "test_b"}
    assert list(found["new-again-1"].ran) == [f"{file}::test_b"]
    assert {(test.id, test.file, test.place) for test in found["named"].tests.values()} == {
        (f"{file}::test_b", file, place)
    }
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


@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_a_test_run_that_left_out_our_own_tests_is_not_believed(tmp_path: Path, outcome: str) -> None:
    (tmp_path / "test_a.py").write_text(FORGES.replace("OUTCOME", outcome))
    found = run(tmp_path, PYTEST, Pytest("all"))["all"]
    assert found.finished and found.doubt == "a test that always passes was not run"


RED_THEN_GREEN = "def test_a():\n    assert 0\n\n\ndef test_b():\n    assert 0\n\n\ndef test_c():\n    pass\n"


@pytest.mark.parametrize("options", ["-x", "--maxfail=1", "--lf", "--ff", "--sw", "-x --sw --nf", "-rA -v --tb=no"])
def test_options_that_end_a_test_run_early_or_choose_by_an_earlier_one_do_not_count(
    tmp_path: Path, options: str
) -> None:
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = {options}\n")
    (tmp_path / "test_a.py").write_text(RED_THEN_GREEN)
    python = PYTEST.replace(" -p no:cacheprovider", "")
    for step in run(tmp_path, python, Pytest("first"), Pytest("second")).values():
        outcomes = {test.rpartition("::")[2]: ran.outcome for test, ran in step.ran.items()}
        assert outcomes == {"test_a": "failed", "test_b": "failed", "test_c": "passed"}
        assert not step.doubt and step.finished


def test_only_a_step_that_asks_for_it_ends_after_some_failures(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(RED_THEN_GREEN)
    found = run(tmp_path, PYTEST, Pytest("some", failures_max=1))["some"]
    assert list(found.ran) == ["test_a.py::test_a"]
    assert found.doubt == "pytest ended after 1 of 3 tests: stopping after 1 failures; `test_a.py::test_b` was not run"


SUBTESTS = """
import unittest


class TestIt(unittest.TestCase):
    def test_bad(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertEqual(number, 7)

    def test_some_skipped(self):
        for number in range(3):
            with self.subTest(number=number):
                self.skipTest("not now")

    def test_good(self):
        with self.subTest("one"):
            self.assertTrue(True)

    def test_mark(self):
        import os
        with self.subTest("one"):
            self.assertNotIn("PYTEST_CURRENT_TEST", os.environ)


def test_fixture_bad(subtests):
    for number in range(3):
        with subtests.test(number=number):
            assert number == 1


def test_fixture_good(subtests):
    with subtests.test("one"):
        pass
"""


def test_a_test_with_a_subtest_that_failed_has_failed(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(SUBTESTS)
    found = run(tmp_path, PYTEST, Pytest("all"))["all"]
    assert {test.rpartition("::")[2]: ran.outcome for test, ran in found.ran.items()} == {
        **dict.fromkeys(("test_bad", "test_fixture_bad"), "failed"),
        **dict.fromkeys(("test_some_skipped", "test_good", "test_mark", "test_fixture_good"), "passed"),
    }
    assert not found.doubt


ENDS = {
    "an interrupt": (
        "import os, signal\n\n\ndef pytest_runtest_teardown(item):\n"
        "    if item.name == 'test_b':\n        os.kill(os.getpid(), signal.SIGINT)\n"
    ),
    "pytest.exit": "import pytest\n\n\ndef pytest_runtest_setup(item):\n"
    "    if item.name == 'test_b':\n        pytest.exit('enough')\n",
    "shouldstop": "def pytest_runtest_logfinish(nodeid):\n    ITEM.session.shouldstop = 'enough'\n\n\n"
    "def pytest_runtest_setup(item):\n    global ITEM\n    ITEM = item\n",
    "exit code": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n",
    "dropped": "def pytest_runtest_protocol(item):\n    return True if item.name == 'test_b' else None\n",
    "counted": "def pytest_runtest_teardown(item):\n    item.session.testsfailed = 0\n",
}


@pytest.mark.parametrize("conftest", ENDS.values(), ids=ENDS)
def test_results_that_pytest_itself_does_not_bear_out_are_not_believed(tmp_path: Path, conftest: str) -> None:
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_a.py").write_text(RED_THEN_GREEN)
    assert run(tmp_path, PYTEST, Pytest("all"))["all"].doubt


FROZEN = """
import os, sys, time
import pytest

REAL = {id(getattr(time, name)) for name in ("time", "monotonic", "perf_counter")}


@pytest.fixture
def frozen():
    # In every module that has them, as freezegun does with clocks and pyfakefs with `os`.
    changed = []
    for module in [*sys.modules.values()]:
        for name, value in [*getattr(module, "__dict__", {}).items()]:
            probes = getattr(module, "__name__", "").startswith("mngr_")
            if module is not sys.modules[__name__] and (id(value) in REAL or (probes and value is os)):
                changed.append((module, name, value))
                setattr(module, name, None if value is os else lambda: 0.0)
    yield len(changed)
    for module, name, value in changed:
        setattr(module, name, value)


def test_a(frozen):
    assert frozen > 3 and time.monotonic() == 0


def test_b(frozen):
    pass


def test_c():
    assert time.monotonic()
"""


def test_clocks_and_files_that_a_test_replaces_are_not_those_of_a_measurement(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(FROZEN)
    found = run(tmp_path, PYTEST, Pytest("all"), test_seconds=30)["all"]
    assert [ran.outcome for ran in found.ran.values()] == ["passed"] * 3, [ran.text for ran in found.ran.values()]
    assert not found.doubt


def test_nothing_of_a_measurement_is_collected_whatever_directories_a_project_looks_into(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nnorecursedirs = build\n")
    (tmp_path / "test_a.py").write_text("def test_a():\n    pass\n")
    found = run(tmp_path, PYTEST, Pytest("all"))["all"]
    assert list(found.tests) == ["test_a.py::test_a"] and not found.doubt


@pytest.mark.parametrize(
    "row",
    [
        {"type": "ran"},
        {"type": "ran", "id": ["x"], "outcome": "passed"},
        {"type": "collected", "id": {}},
        {"type": "selected", "tests": 7},
        {"type": "broken", "id": "x", "text": None},
        {"type": "sentinel", "id": []},
    ],
)
def test_a_damaged_row_is_a_reason_to_believe_nothing(row: dict[str, object]) -> None:
    assert rows.gathered([row]).doubt
