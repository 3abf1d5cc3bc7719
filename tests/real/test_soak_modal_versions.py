"""The tests of Modal with the other supported versions of its package, each from PyPI: `make soak`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.modal import CANNOT_RUN

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800), pytest.mark.skipif(bool(CANNOT_RUN), reason=CANNOT_RUN)]
FILES = ("test_provider_modal.py", "test_modal_server.py", "test_modal_server_faults.py", "test_tmr_modal.py")


@pytest.mark.parametrize("version", ["1.6.2", "1.6.4"])
def test_everything_of_modal_works_with_another_version_of_its_package(version: str, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path)]
    subprocess.run([*pip, f"modal=={version}"], check=True)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    show = [sys.executable, "-c", "import modal; print(modal.__version__)"]
    assert subprocess.run(show, env=env, capture_output=True, text=True, check=True).stdout == f"{version}\n"
    tests = [str(Path(__file__).with_name(name)) for name in FILES]
    argv = [sys.executable, "-m", "pytest", "-q", "-n", "2", *tests]
    ran = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
