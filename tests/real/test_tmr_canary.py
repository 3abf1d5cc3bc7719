"""A spoiled product: what its commit holds."""

import pytest

from mngr.tmr.judge.paths import Paths
from mngr.tmr.measure import canary
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
