"""Flags: what a person should look at in a change."""

from mngr.tmr.judge import flags
from mngr.tmr.judge.flags import File

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


def test_settings_of_all_tests_are_seen() -> None:
    assert kinds(File("tests/conftest.py", "", "x = 1", implementation=False)) == ["conftest"]
    assert kinds(File(".gitattributes", None, "src/** -diff\n", implementation=False)) == ["attributes"]
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


def marks(path: str, *commands: str, before: str | None = "x = 1\n", after: str | None = "x = 2\n") -> list[str]:
    return kinds(File(path, before, after, implementation=True), commands=commands)


def test_what_the_tests_are_run_with_is_seen() -> None:
    assert marks("scripts/check.sh", "PYTHONPATH=. ./scripts/check.sh -q") == ["test-command"]
    assert marks("Makefile", "python3 -m pytest", "make lint") == ["test-command"]
    assert marks("Makefile", "cd lib&&/usr/bin/make;ls") == ["test-command"]
    assert marks("rules/flags.mk", "make") == marks("build.rs", "cargo test") == ["test-command"]
    assert marks("src/make.py", "make lint") == []
    assert marks(".mngr/settings.toml") == ["test-command"]
    assert kinds(File("flags.inc", "", "x", False, build=True), commands=("make",)) == ["test-command"]


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
    ):
        assert marks(path, before=None) == ["shadow"], path
    assert marks("json.py", before=None) == marks("src/random.py", before=None) == ["shadow"]
    for path in ("src/app/json.py", "src/pytest_notes.py", "docs/pytest/index.md", "tests/test_json.py", "cmd/main.go"):
        assert marks(path, before=None) == [], path
    assert marks("src/sitecustomize.py", after=None) == []


def test_plugins_that_pytest_would_load_are_seen() -> None:
    point = '[project.entry-points.pytest11]\nmine = "app.plugin"\n'
    assert marks("pyproject.toml", before="", after=point) == ["plugin"]
    assert marks("lib/pyproject.toml", before=None, after='[tool.poetry.plugins.pytest11]\na = "b"\n') == ["plugin"]
    assert marks("setup.cfg", before="", after="[options.entry_points]\npytest11 =\n  a = b\n") == ["plugin"]
    assert "plugin" in marks("setup.py", after='setup(entry_points={"pytest11": ["a = b"]})\n')
    assert kinds(File("tests/test_a.py", "", 'pytest_plugins = ["app.plugin"]\n', False)) == ["plugin"]
    assert kinds(File("tests/test_a.py", 'pytest_plugins = ["a"]\n', 'pytest_plugins = ["a"]\nx = 1\n', False)) == []
    other = '[project.entry-points.console_scripts]\na = "b"\n'
    assert marks("pyproject.toml", before="", after=other) == []


def test_settings_of_tools_count_when_the_commands_run_them() -> None:
    def weakened(path: str, text: str, *commands: str) -> list[str]:
        return marks(path, *commands, before="", after=text)

    ruff, mypy = '[tool.ruff]\nignore = ["F"]\n', "[mypy]\nignore_errors = true\n"
    assert weakened("pyproject.toml", ruff, "python -m pytest", "ruff check") == ["test-command"]
    assert weakened("pyproject.toml", ruff, "make check") == ["test-command"]
    assert weakened("setup.cfg", mypy, ".venv/bin/mypy src") == ["test-command"]
    assert weakened("pyproject.toml", ruff, "python -m pytest") == weakened("setup.cfg", mypy, "ruff check") == []


def test_dependencies_are_seen() -> None:
    for path, before, after in (
        ("pyproject.toml", '[project]\ndependencies = ["a"]\n', '[project]\ndependencies = ["a", "evil"]\n'),
        ("pyproject.toml", "", '[dependency-groups]\ntest = ["evil"]\n'),
        ("requirements-dev.txt", "a\n", "a\nevil\n"),
        ("uv.lock", "", "evil\n"),
        ("Cargo.toml", "[dependencies]\n", '[dependencies]\nevil = "1"\n'),
        ("web/package.json", '{"dependencies": {}}', '{"dependencies": {"evil": "1"}}'),
        ("go.mod", "module a\n", "module a\nrequire evil v1.0.0\n"),
        ("setup.cfg", "[options]\n", "[options]\ninstall_requires = evil\n"),
    ):
        assert marks(path, "pip install -e .", before=before, after=after) == ["dependency"], path
    assert marks("package.json", before='{"version": "1"}', after='{"version": "2"}') == []
    assert not {"dependency", "build"} & flags.STEERING and {"dependency", "build"} < flags.HOLDING


def test_build_files_are_seen() -> None:
    for path in ("Makefile", "lib/CMakeLists.txt", "rules/common.mk", "build.rs", "setup.py", "Dockerfile"):
        assert marks(path, "python3 -m pytest") == ["build"], path
    assert kinds(File("flags.inc", "", "x", False, build=True)) == ["build"]
    assert marks("pyproject.toml", before="", after="[tool.setuptools.packages.find]\nwhere = ['x']\n") == ["build"]
    assert marks("package.json", before="{}", after='{"scripts": {"test": "true"}}') == ["build"]
    assert marks("package.json", "npm test", before="{}", after='{"scripts": {"test": "true"}}') == ["test-command"]


def test_claims_are_held_against_what_was_changed() -> None:
    def told(kind: str, implementation: tuple[str, ...] = ()) -> list[str]:
        return [flag.text for flag in flags.misclaimed([{"kind": kind}], implementation)]

    assert told("test") == told("implementation", ("src/a.py",)) == []
    assert told("test", ("src/a.py",)) == ["`src/a.py` is changed, and no change of such kind is claimed"]
    assert told("implementation") == ["a change of the implementation is claimed, and there is none"]
