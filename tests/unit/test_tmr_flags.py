"""Flags: what a person should look at in a change."""

from mngr.tmr import flags
from mngr.tmr.flags import File

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


def kinds(*files: File, commands: tuple[str, ...] = ()) -> list[str]:
    return [flag.kind for flag in flags.find(files, test=TEST, commands=commands)]


def changed(old: str, new: str) -> File:
    assert old in BEFORE
    return File("tests/test_board.py", BEFORE, BEFORE.replace(old, new), implementation=False)


def test_the_same_file_has_no_flags() -> None:
    assert kinds(changed("x", "x")) == []


def test_a_stronger_test_has_no_flags() -> None:
    assert kinds(changed("assert c", "assert c\n        assert d")) == []


def test_fewer_assertions_of_either_form_are_seen() -> None:
    assert kinds(changed("    assert b == 2\n", "")) == ["fewer-assertions"]
    assert kinds(changed('    expect(result).to_contain("x")\n', "")) == ["fewer-assertions"]


def test_new_skips_are_seen_wherever_they_stand() -> None:
    assert kinds(changed("def test_one", "@pytest.mark.skip(reason='later')\ndef test_one")) == ["skip"]
    assert kinds(changed("    assert a == 1", "    pytest.xfail('later')\n    assert a == 1")) == ["skip"]
    assert kinds(changed("class TestThings", "@pytest.mark.skipif(True, reason='x')\nclass TestThings")) == ["skip"]
    assert kinds(changed("import pytest", "import pytest\npytestmark = pytest.mark.skip")) == ["skip"]


def test_a_longer_timeout_is_seen_and_a_shorter_one_is_not() -> None:
    assert kinds(changed("timeout=5", "timeout=500")) == ["longer-timeout"]
    assert kinds(changed("timeout=5", "timeout=1")) == []


def test_a_deleted_test_is_seen_and_a_renamed_one_is_not() -> None:
    gone = BEFORE[: BEFORE.index("class TestThings")]
    assert "test-deleted" in kinds(File("tests/test_board.py", BEFORE, gone, implementation=False))
    assert "test-deleted" not in kinds(changed("def test_one", "def test_uno"))


def test_a_new_test_without_an_assertion_is_seen() -> None:
    assert kinds(changed("import pytest", "import pytest\n\ndef test_new():\n    pass")) == ["no-assertion"]


def test_product_code_that_knows_its_test_is_seen() -> None:
    def product(line: str) -> File:
        return File("src/board.py", "x = 1\n", f"x = 1\n{line}\n", implementation=True)

    assert kinds(product("if 'test_board_shows_all' in name: return 3")) == ["names-the-test"]
    assert kinds(product("if os.environ.get('PYTEST_CURRENT_TEST'): return 3")) == ["names-the-test"]
    assert kinds(product("if 'pytest' in sys.modules: return 3")) == ["names-the-test"]
    assert kinds(product("return latest_board()")) == []


def test_settings_of_all_tests_are_seen() -> None:
    assert kinds(File("tests/conftest.py", "", "x = 1", implementation=False)) == ["conftest"]
    ini, more = "[pytest]\nminversion = 7\n", "[pytest]\nminversion = 7\naddopts = -k 'not hard'\n"
    project = '[project]\nname = "a"\n[tool.pytest.ini_options]\nxfail_strict = true\n'
    for path, before, after in (
        ("pyproject.toml", "", "[tool.pytest.ini_options]\n"),
        ("pyproject.toml", project, project.replace("true", "false")),
        ("pyproject.toml", project, project.removesuffix("xfail_strict = true\n")),
        ("pyproject.toml", project, "["),
        ("pytest.ini", ini, more),
        ("pytest.ini", more, ini),
        ("tests/pytest.ini", more, None),
        ("tox.ini", ini, more),
        ("setup.cfg", ini.replace("[", "[tool:"), more.replace("[", "[tool:")),
    ):
        assert "pytest-settings" in kinds(File(path, before, after, implementation=True)), (path, after)
    assert kinds(File("pyproject.toml", project, project.replace('"a"', '"b"'), implementation=True)) == []
    assert kinds(File("setup.cfg", ini, ini + "[metadata]\nname = other\n", implementation=True)) == []


def test_what_the_tests_are_run_with_is_seen() -> None:
    def marks(path: str, *commands: str) -> list[str]:
        return kinds(File(path, "x = 1\n", "x = 2\n", implementation=True), commands=commands)

    assert marks("scripts/check.sh", "PYTHONPATH=. ./scripts/check.sh -q") == ["test-command"]
    assert marks("Makefile", "python3 -m pytest", "make lint") == ["test-command"]
    assert marks("Makefile", "python3 -m pytest") == marks("src/make.py", "make lint") == []
    for path in (".mngr/settings.toml", "sitecustomize.py", "pytest.py", "_pytest/runner.py"):
        assert marks(path) == ["test-command"], path


def test_claims_are_held_against_what_was_changed() -> None:
    def told(kind: str, implementation: tuple[str, ...] = ()) -> list[str]:
        return [flag.text for flag in flags.misclaimed([{"kind": kind}], implementation)]

    assert told("test") == told("implementation", ("src/a.py",)) == []
    assert told("test", ("src/a.py",)) == ["`src/a.py` is changed, and no change of such kind is claimed"]
    assert told("implementation") == ["a change of the implementation is claimed, and there is none"]
