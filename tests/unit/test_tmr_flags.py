"""Flags: what a person should look at in a change."""

from mngr.tmr.judge import flags
from mngr.tmr.judge.flags import File
from mngr.tmr.judge.paths import Paths

TEST = "tests/test_board.py::test_board_shows_all"
BEFORE = """
import pytest

def test_one():
    assert a == 1
    assert b == 2
    expect(result).to_contain("x")

class TestThings:
    def test_two(self):
        run(timeout=5)
        assert c
"""


def kinds(*files: File, commands: tuple[str, ...] = (), paths: Paths | None = None) -> list[str]:
    return [flag.kind for flag in flags.find(files, test=TEST, commands=commands, paths=paths or Paths())]


def changed(old: str, new: str) -> File:
    assert old in BEFORE
    return File("tests/test_board.py", BEFORE, BEFORE.replace(old, new), implementation=False)


def test_the_same_file_has_no_flags() -> None:
    assert kinds(changed("x", "x")) == []


def test_a_stronger_test_has_no_flags() -> None:
    assert kinds(changed("assert c", "assert c\n        assert d")) == []


def test_what_is_measured_has_no_flags() -> None:
    assert kinds(changed("    assert b == 2\n", "")) == kinds(changed("timeout=5", "timeout=500")) == []
    gone = BEFORE[: BEFORE.index("class TestThings")]
    assert kinds(File("tests/test_board.py", BEFORE, gone, implementation=False)) == []


def test_new_skips_are_seen_wherever_they_stand() -> None:
    assert kinds(changed("def test_one", "@pytest.mark.skip(reason='later')\ndef test_one")) == ["skip"]
    assert kinds(changed("    assert a == 1", "    pytest.xfail('later')\n    assert a == 1")) == ["skip"]
    assert kinds(changed("class TestThings", "@pytest.mark.skipif(True, reason='x')\nclass TestThings")) == ["skip"]
    assert kinds(changed("import pytest", "import pytest\npytestmark = pytest.mark.skip")) == ["skip"]


def test_a_file_that_was_not_looked_at_is_seen() -> None:
    assert kinds(File("src/a.py", "x = 1\n", "", True, unread=True)) == ["unread"]


def test_how_tests_are_run_and_judged_is_seen_whatever_reads_it() -> None:
    assert kinds(File("tests/conftest.py", "", "x = 1", implementation=False)) == ["conftest"]
    assert kinds(File("tests/pytest.ini", "", "x = 1", implementation=False)) == ["test-command"]
    for path in (".gitattributes", ".coveragerc", ".github/workflows/a.yml", "tools/.config"):
        assert kinds(File(path, None, "x\n", implementation=False)) == ["beside"], path
    for path in ("pyproject.toml", "setup.cfg", "tox.ini", "Makefile", "requirements-dev.txt", "uv.lock", "build.rs"):
        assert kinds(File(path, "", "[x]\ny = 1\n", implementation=True)) == ["build"], path
    src = Paths(("src/",))
    assert kinds(File("notes/answers.json", None, "{}", implementation=False), paths=src) == ["beside"]
    for path in ("src/a.json", "README.md", "docs/a.txt", "tests/data/a.json", "tutorial.sh"):
        assert kinds(File(path, None, "x\n", implementation=False), paths=src) == [], path
    assert flags.STEERING < flags.HOLDING


def test_what_a_project_says_about_itself_is_no_matter() -> None:
    project = '[project]\nname = "a"\nversion = "1"\ndependencies = ["b"]\n'
    assert kinds(File("pyproject.toml", project, project.replace('"1"', '"2"'), True)) == []
    assert kinds(File("pyproject.toml", project, project.replace('"b"', '"evil"'), True)) == ["build"]
    assert kinds(File("pyproject.toml", project, "[", True)) == ["build"]


def marks(path: str, *commands: str, before: str | None = "x = 1\n", after: str | None = "x = 2\n") -> list[str]:
    return kinds(File(path, before, after, implementation=True), commands=commands)


def test_what_the_tests_are_run_with_is_seen() -> None:
    assert marks("scripts/check.sh", "PYTHONPATH=. ./scripts/check.sh -q") == ["test-command"]
    assert marks("Makefile", "cd lib&&/usr/bin/make;ls") == ["build"]
    assert marks("src/make.py", "make lint") == []
    assert marks(".mngr/settings.toml") == ["test-command"]


def test_files_that_python_or_pytest_would_load_first_are_seen_at_any_depth() -> None:
    for path in (
        "sitecustomize.py",
        "src/sitecustomize.py",
        "src/usercustomize/__init__.py",
        "src/late.pth",
        "lib/deep/pytest.py",
        "src/_pytest/runner.py",
        "vendor/pluggy/__init__.py",
        "src/mngr_tmr_probe.py",
        "tests/mngr_strength_plugin.py",
        "src/pytest.cpython-311-x86_64-linux-gnu.so",
        "src/cheat-1.dist-info/entry_points.txt",
    ):
        assert marks(path, before=None) == ["shadow"], path
    assert marks("json.py", before=None) == marks("src/random.py", before=None) == ["shadow"]
    for path in ("src/app/json.py", "src/pytest_notes.py", "docs/pytest/index.md", "tests/test_json.py", "cmd/main.go"):
        assert marks(path, before=None) == [], path
    assert marks("src/sitecustomize.py", after=None) == []


def test_plugins_that_pytest_would_load_are_seen() -> None:
    assert kinds(File("tests/test_a.py", "", 'pytest_plugins = ["app.plugin"]\n', False)) == ["plugin"]
    assert kinds(File("tests/test_a.py", 'pytest_plugins = ["a"]\n', 'pytest_plugins = ["a"]\nx = 1\n', False)) == []


def test_claims_are_held_against_what_was_changed() -> None:
    def told(kind: str, implementation: tuple[str, ...] = ()) -> list[str]:
        return [flag.text for flag in flags.misclaimed([{"kind": kind}], implementation)]

    assert told("test") == told("implementation", ("src/a.py",)) == []
    assert told("test", ("src/a.py",)) == ["`src/a.py` is changed, and no change of such kind is claimed"]
    assert told("implementation") == ["a change of the implementation is claimed, and there is none"]
