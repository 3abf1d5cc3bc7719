"""A test in other surroundings: what tells that it is run by a measurement, and what an honest product may look at."""

import sys
import textwrap
from pathlib import Path

import pytest

from mngr.tmr.measure import rows, surroundings
from mngr.tmr.measure.measurement import Pytest
from tests.support.measured_job import COMMAND, measured


def compared(top: Path, *products: str) -> list[surroundings.Dependence]:
    """The tests of one file, each with the product that knows something."""
    (top / "src").mkdir()
    tests = ["import shop\n"]
    for number, product in enumerate(products):
        (top / "src" / f"shop{number}.py").write_text(textwrap.dedent(product))
        tests.append(f"\n\ndef test_{number}():\n    import shop{number}\n    assert shop{number}.total() == 7\n")
    (top / "src" / "shop.py").touch()
    (top / "conftest.py").write_text("import os, sys\nsys.path.insert(0, os.path.dirname(__file__) + '/src')\n")
    (top / "test_shop.py").write_text("".join(tests))
    wanted = [f"test_shop.py::test_{number}" for number in range(len(products))]
    out = measured(top, Pytest("test", tests=wanted, paths=["test_shop.py"]), surroundings.step(wanted))
    here = rows.read((out / "test.rows").read_bytes())
    assert {ran.outcome for ran in here.ran.values()} == {"passed"}, here
    there = surroundings.read(str(out))
    assert there is not None, (out / "surroundings.log").read_text()
    return surroundings.differing(here, there)


KNOWS = {
    "argv": ("process", "import sys\ndef total():\n    return 7 if 'pytest' in ' '.join(sys.argv) else 8\n"),
    "parent": (
        "process",
        """
        import os
        def total():
            return 7 if b"pytest" in open(f"/proc/{os.getpid()}/cmdline", "rb").read() else 8
        """,
    ),
    "terminal": ("process", "import sys\ndef total():\n    return 8 if sys.stdout.isatty() else 7\n"),
    "path": ("place", "import os\ndef total():\n    return 8 if os.getcwd().endswith('/code') else 7\n"),
    "dates": (
        "place clock",
        """
        import os, time
        def total():
            return 7 if time.time() - os.stat(__file__).st_mtime < 3600 else 8
        """,
    ),
    "variables": (
        "environment",
        "import os\ndef total():\n    return 7 if any('PYTEST' in name for name in os.environ) else 8\n",
    ),
    "home": ("environment", "import os\ndef total():\n    return 8 if os.environ['HOME'].endswith('/h') else 7\n"),
    "date": (
        "clock",
        "import datetime\nDAY = DAY_NOW\ndef total():\n    return 7 if datetime.date.today() <= DAY else 8\n",
    ),
    "now": (
        "clock",
        "import datetime\ndef total():\n    return 7 if datetime.datetime.now().year == YEAR_NOW else 8\n",
    ),
    "child": (
        "clock",
        """
        import subprocess, sys
        def total():
            words = [sys.executable, "-c", "import time; print(time.strftime('%Y'))"]
            return 7 if subprocess.run(words, capture_output=True, text=True).stdout == "YEAR_NOW\\n" else 8
        """,
    ),
    "caller": (
        "traces",
        "import sys\ndef total():\n    return 7 if sys._getframe(1).f_code.co_name[:4] == 'test' else 8\n",
    ),
    "logger": ("traces", "import logging\ndef total():\n    return 7 if logging.getLogger().handlers else 8\n"),
}


def test_whatever_tells_a_test_run_makes_a_test_depend_on_its_surroundings(tmp_path: Path) -> None:
    import datetime

    day = datetime.date.today() + datetime.timedelta(days=1)
    names = {"DAY_NOW": f"datetime.date({day.year}, {day.month}, {day.day})", "YEAR_NOW": str(day.year)}
    texts = [text for _, text in KNOWS.values()]
    for name, value in names.items():
        texts = [text.replace(name, value) for text in texts]
    found = {one.test.rpartition("_")[2]: one.causes for one in compared(tmp_path, *texts)}
    assert {name: found.get(str(number)) for number, name in enumerate(KNOWS)} == {
        name: tuple(causes.split()) for name, (causes, _) in KNOWS.items()
    }


HONEST = """
import datetime, logging, os, pathlib, subprocess, sys, tempfile, time

class Cache:
    clock = time.time

    def __init__(self):
        self.began = self.clock()

log = logging.getLogger(__name__)

def total():
    log.warning("counting")
    assert Cache().clock() - Cache().began < 60
    assert abs(datetime.datetime.now().timestamp() - time.time()) < 60
    assert abs(datetime.datetime.now(datetime.timezone.utc).timestamp() - time.time()) < 60
    assert time.strftime("%Y-%m-%d") == str(datetime.date.today()) == str(datetime.datetime.today())[:10]
    assert time.strftime("%Y", time.gmtime(0)) == "1970" and time.gmtime(0).tm_year == 1970
    assert time.gmtime().tm_year >= 2026 and time.ctime(0).endswith("1970")
    assert pathlib.Path(__file__).parent.name == "src" and os.path.expanduser("~") and os.getcwd()
    with tempfile.NamedTemporaryFile() as file:
        assert subprocess.run(["cat", file.name], capture_output=True).returncode == 0
    assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True).stdout == "1\\n"
    sys.stdin.isatty(), sys.stdout.isatty(), os.environ.get("TERM")
    return 7
"""


def test_a_product_that_looks_around_honestly_depends_on_nothing(tmp_path: Path) -> None:
    assert compared(tmp_path, HONEST) == []


def test_a_failure_by_chance_is_no_dependence(tmp_path: Path) -> None:
    flag = tmp_path.parent / f"{tmp_path.name}-flag"
    product = f"""
    import os, sys
    def total():
        if any("code" in place for place in sys.path) and not os.path.exists({str(flag)!r}):
            open({str(flag)!r}, "w").close()
            return 8
        return 7
    """
    assert compared(tmp_path, product) == []
    assert flag.exists()


def test_what_depended_on_its_surroundings_at_the_base_is_nobodys_doing() -> None:
    def ran(outcome: str, said: str = "") -> rows.RanTest:
        return rows.RanTest("t", outcome, 0.1, "", said)

    def there(one: rows.RanTest) -> surroundings.Surroundings:
        return surroundings.Surroundings(rows.Rows(ran={"t": one}))

    now = [surroundings.Dependence("t", "failed", "8 == 7", ("clock",))]
    for before, elsewhere, left in [
        (ran("passed"), ran("passed"), now),
        (ran("passed"), ran("failed", "expired"), []),
        (ran("failed", "8 == 7"), ran("failed", "8 == 7"), now),
        (ran("failed", "8 == 7"), ran("failed", "expired"), []),
    ]:
        assert surroundings.new(now, {"t": before}, there(elsewhere)) == left
    assert surroundings.new(now, {}, None) == now
    assert "the day" in now[0].words


@pytest.mark.parametrize("command", [f"cd app && {COMMAND}", f"{sys.executable} -c 'import pytest; pytest.main()'"])
def test_tests_run_there_however_the_project_starts_pytest(tmp_path: Path, command: str) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "shop.py").write_text("X = 7\n")
    (tmp_path / "app" / "test_a.py").write_text("import shop\n\n\ndef test_a(tmp_path):\n    assert shop.X == 7\n")
    found = surroundings.read(str(measured(tmp_path, surroundings.step(["app/test_a.py::test_a"]), command=command)))
    assert found is not None and found.there.outcome("app/test_a.py::test_a") == "passed"


def test_a_pytest_that_does_not_come_to_its_end_there_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("import os\n\n\ndef test_a():\n    os._exit(3)\n")
    assert surroundings.read(str(measured(tmp_path, surroundings.step(["test_a.py::test_a"])))) is None
