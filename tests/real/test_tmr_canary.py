"""A spoiled product: what its commit holds, and what a run says of the tests that noticed."""

import pytest

from mngr.tmr.judge.paths import Paths
from mngr.tmr.measure import canary
from tests.support.odd_projects import PROJECTS, OddProject
from tests.support.odd_run import OddRun
from tests.support.tmr import NO_CHANGE
from tests.support.user import User
from tests.support.work import Project

PRODUCT = {
    "src/app/__init__.py": "",
    "src/app/core.py": "def one():\n    return 1\n",
    "src/broken.py": "def (\n",
    "src/run.sh": "echo 1\n",
    "src/data.bin": "1\n",
    "tests/test_app.py": "import app\n",
}


@pytest.mark.parametrize(("returns", "body"), [(False, "raise RuntimeError"), (True, "return object()")])
def test_a_product_that_can_still_be_imported_is_spoiled_in_its_functions_and_programs(
    returns: bool, body: str
) -> None:
    project = Project(PRODUCT)
    try:
        spoiled = canary.spoiled(project.git, project.base, Paths(), importable=True, returns=returns)
        assert spoiled is not None
        assert body in project.show(spoiled, "src/app/core.py")
        assert project.show(spoiled, "src/app/__init__.py") == ""  # without it nothing could be imported
        assert canary.MARK in project.show(spoiled, "src/broken.py")
        assert canary.MARK in project.show(spoiled, "src/run.sh")
        for path in ("src/data.bin", "tests/test_app.py"):
            assert project.show(spoiled, path) == project.show(project.base, path)
    finally:
        project.close()


def test_a_product_in_an_unknown_language_cannot_be_spoiled() -> None:
    project = Project({"src/data.bin": "1\n", "tests/test_app.py": "import app\n"})
    try:
        assert canary.spoiled(project.git, project.base, Paths()) is None
    finally:
        project.close()


# Its tests need what `prepare` makes last, as a project does that installs itself into an environment.
BUILT = {"prepare": "make && ln -s {python} python", "test_command": "./python -m pytest -q -p no:cacheprovider"}


def answer(user: User, project: OddProject, which: str) -> dict[str, str]:
    """What the run of one idle agent says."""
    run = OddRun(user, project)
    script = run.scripts / "idle.script"
    script.write_text(NO_CHANGE)
    words = ("tmr", "--type", "scripted", "--integrator", "none", "--no-record", "--format", "json", "--no-baseline")
    found: dict[str, str] = user.mngr(*words, "-k", which, "--", str(script), timeout=120).json["canary"]
    return found


@pytest.mark.parametrize("python_too", [True, False])
def test_a_build_that_fails_when_the_product_is_broken(user: User, python_too: bool) -> None:
    program = PROJECTS["a program built by make"]
    text = program.text + "\n\ndef test_a_python():\n    import words\n\n    assert words.count('a b') == 2\n"
    files = {**program.files, "words.py": "def count(text):\n    return len(text.split())\n"}
    project = program._replace(text=text, files=files) if python_too else program
    found = answer(user, project._replace(settings=BUILT), "python or guard")
    if python_too:
        assert found["test"].endswith("test_a_python")
    else:
        assert found == {"test": None, "why": canary.NOT_BUILT}


def test_a_conftest_that_runs_the_product_proves_less(user: User) -> None:
    files = {"tests/conftest.py": "import calc\n\ncalc.guard(1)\n"}
    found = answer(user, PROJECTS["plain"]._replace(files=files), "guard")
    assert found == {"test": "pytest itself", "why": canary.NO_TEST}


def test_a_product_of_nothing_but_names_is_spoiled_as_a_whole(user: User) -> None:
    files = {"tests/test_names.py": "import names\n\n\ndef test_names():\n    assert names.system\n"}
    names = OddProject("names.py", source="from os import system\n", text="", files=files)
    assert answer(user, names, "names")["test"].startswith("tests/test_names.py")
