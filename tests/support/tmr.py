"""A small project with tests, and scripted agents for them: what the tests of `mngr tmr` work on."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from mngr.tmr import plan
from tests.support.user import Ran, User

PRODUCT = """\
def add(a, b):
    return a + b


def sub(a, b):
    return a - b - 1


def mul(a, b):
    return a * b
"""
TESTS = """\
import calc


def test_add():
    assert calc.add(1, 2) == 3


def test_sub():
    assert calc.sub(3, 2) == 1


def test_mul():
    assert calc.mul(2, 3) == 7
"""
OUTCOME = """\
outcome <<JSON
{{"schema": 1, "task": "{{task}}", "status": "{status}", "changes": {changes}, "summary": "{summary}",
 "blocked": {{"reason": "no network", "needs": "a proxy"}}}}
JSON
"""
NO_CHANGE = "wait\n" + OUTCOME.format(status="done", changes="[]", summary="good as it is")


def _claim(kind: str, summary: str, importance: int) -> str:
    change = {"kind": kind, "commit": "{head}", "summary": summary, "importance": importance}
    return OUTCOME.format(status="done", changes=json.dumps([change]), summary=f"{summary}, since it was wrong")


FIX_SUB = (
    "wait\nreplace calc.py <<END\n    return a - b - 1\n====\n    return a - b\nEND\ncommit Subtract what is asked\n"
    "usage input=1000 output=100 cost=0.01\n" + _claim("implementation", "Subtract no more than asked", 4)
)
FIX_MUL_TEST = (
    "wait\nreplace tests/test_calc.py <<END\ncalc.mul(2, 3) == 7\n====\ncalc.mul(2, 3) == 6\nEND\ncommit Expect six\n"
    + _claim("test", "Expect six", 1)
)
SCRIPTS = {"test_add": NO_CHANGE, "test_sub": FIX_SUB, "test_mul": FIX_MUL_TEST}


class Project:
    """`user`'s repository as a project called `calc` with three tests: one passes, one finds a bug, one is wrong."""

    def __init__(self, user: User, *, product: str = PRODUCT, tests: str = TESTS) -> None:
        self.user = user
        self.repo = user.repo
        self.scripts = user.root / "scripts"
        self.scripts.mkdir()
        self.write("calc.py", product)
        self.write("tests/test_calc.py", tests)
        self.write(".gitignore", "__pycache__/\n")
        # A plain pytest starts in half the time of one that loads every plugin of our own environment.
        self.settings = {
            "test_command": f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider",
            "env.PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "env.PYTHONPATH": ".",
            "baseline_repeats": "1",
            "max_jobs": "2",
        }
        self.write(".mngr/settings.toml", self.toml())
        self.commit("a calculator")
        for name, text in SCRIPTS.items():
            self.script(name, text)

    def toml(self) -> str:
        return "[tmr]\n" + "".join(
            f"{key} = {value if value.isdigit() and '.' not in key else json.dumps(value)}\n"
            for key, value in self.settings.items()
        )

    def write(self, path: str, text: str) -> None:
        place = Path(self.repo) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        if path == ".mngr/settings.toml":
            self.user.trust()

    def commit(self, message: str) -> str:
        self.user.git("add", "-A")
        self.user.git("commit", "-q", "-m", message)
        return self.user.git("rev-parse", "HEAD")

    def slugs(self, *names: str) -> list[str]:
        """What the tests of these names are called in a run."""
        return [plan.slugs([id])[id] for id in (f"tests/test_calc.py::test_{name}" for name in names)]

    def script(self, name: str, text: str) -> None:
        (self.scripts / f"{name}.script").write_text(text)

    def words(self, *words: str, name: str = "r1") -> list[str]:
        return [
            *("tmr", "--name", name, "--type", "scripted", "--timeout", "300s", "--max-agents", "4"),
            *("--integrator", "none", "--no-record", *words, "--", f"{self.scripts}/{{name}}.script"),
        ]

    def tmr(self, *words: str, name: str = "r1", timeout: float = 200, env: dict[str, str] | None = None) -> Ran:
        return self.user.mngr(*self.words(*words, name=name), timeout=timeout, env=env)

    def resume(self, name: str = "r1", env: dict[str, str] | None = None) -> Ran:
        return self.user.mngr("tmr", "resume", name, timeout=200, env=env)

    def status(self, name: str = "r1") -> dict[str, Any]:
        found: dict[str, Any] = self.user.mngr("tmr", "status", name, "--format", "json").ok().json
        return found

    def verdicts(self, name: str = "r1") -> dict[str, str]:
        return {row["task"].rpartition("::")[2]: row["verdict"] for row in self.status(name)["rows"]}

    def row(self, test: str, name: str = "r1") -> dict[str, Any]:
        return next(row for row in self.status(name)["rows"] if row["task"].endswith(test))

    def ledger(self, name: str = "r1") -> list[dict[str, Any]]:
        path = Path(self.repo) / ".mngr" / "runs" / name / "ledger.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


def many_modules(project: Project, count: int) -> list[str]:
    """Give the project this many modules, each wrong in one place, with a test and a scripted agent that commits a fix
    and then works for a while. Returns the files of the tests."""
    for number in range(count):
        project.write(f"m{number}.py", f"def value():\n    return {number} + 1\n")
        test = f"import m{number}\n\n\ndef test_{number}():\n    assert m{number}.value() == {number}\n"
        project.write(f"tests/test_m{number}.py", test)
        project.script(f"test_{number}", f"wait\n{commit_half(number)}think 5\n{claim_fix(number)}")
    project.commit("many modules")
    return [f"tests/test_m{number}.py" for number in range(count)]


def commit_half(number: int) -> str:
    """The steps of an agent that commits the fix of a module, unless an earlier agent did."""
    change = f"run! sed -i 's/return {number} + 1/return {number}/' m{number}.py\n"
    return f"{change}run! git diff --quiet || git commit -qam 'Half of it'\n"


def claim_fix(number: int) -> str:
    return _claim("implementation", f"Return {number}", 3)
