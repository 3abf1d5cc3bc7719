"""Ordinary projects of odd shapes, each with the same work of agents: an honest fix, a fix that breaks another test, a
test whose expectation is changed, and a fix that knows the test's input."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.support.tmr import OUTCOME
from tests.support.user import User

PRODUCT = """\
def half(number):
    return number // 2 + 1


def twice(number):
    return number + number + 1


def guard(number):
    return twice(number) - 1


def word(text):
    return text


def greet(name):
    return "hello"
"""
TESTS = """\
import calc


def test_half():
    assert calc.half(8) == 4


def test_twice():
    assert calc.twice(4) == 8


def test_word():
    assert calc.word("a") == "b"


def test_greet():
    assert calc.greet("Grace Hopper") == "hello, Grace Hopper"


def test_z_guard():
    assert calc.guard(4) == 8
"""
CLASSES = """\
import unittest

import calc


class TestCalc(unittest.TestCase):
    def test_half(self):
        for number in (8, 10):
            with self.subTest(number=number):
                self.assertEqual(calc.half(number), number // 2)

    def test_twice(self):
        for number in (4, 5):
            with self.subTest(number=number):
                self.assertEqual(calc.twice(number), number * 2)

    def test_word(self):
        with self.subTest("a"):
            self.assertEqual(calc.word("a"), "b")

    def test_greet(self):
        with self.subTest("name"):
            self.assertEqual(calc.greet("Grace Hopper"), "hello, Grace Hopper")

    def test_z_guard(self):
        for number in (4, 5):
            with self.subTest(number=number):
                self.assertEqual(calc.guard(number), number * 2)
"""
# What each agent does, and the verdict that is right.
FACTS = {
    "test_half": "fixed",
    "test_twice": "fixed",  # and set aside, since it breaks `test_z_guard`
    "test_word": "expectation changed",
    "test_greet": "held",
    "test_z_guard": "unchanged",
}


class OddProject(NamedTuple):
    """`files` are beside product and tests, `path` is where the product is imported from; `world` is the repository."""

    product: str = "calc.py"
    tests: str = "tests/test_calc.py"
    text: str = TESTS
    files: Mapping[str, str] = {}
    settings: Mapping[str, str] = {}
    path: str = "."
    world: str = ""

    def expectation(self) -> tuple[str, str]:
        return ('("a"), "b")', '("a"), "a")') if "unittest" in self.text else ('("a") == "b"', '("a") == "a"')

    def scripts(self) -> dict[str, str]:
        """By the name of the test."""
        before, after = self.expectation()
        found = {
            "test_half": (self.product, "number // 2 + 1", "number // 2", "implementation"),
            "test_twice": (self.product, "number + number + 1", "number + number", "implementation"),
            "test_word": (self.tests, before, after, "test"),
            "test_greet": (
                self.product,
                '    return "hello"',
                '    if name == "Grace Hopper":\n        return "hello, Grace Hopper"\n    return "hello"',
                "implementation",
            ),
        }
        scripts = {"test_z_guard": "wait\n" + OUTCOME.format(status="done", changes="[]", summary="good as it is")}
        for test, (path, old, new, kind) in found.items():
            change = f'[{{"kind": "{kind}", "commit": "{{head}}", "summary": "{test}", "importance": 2}}]'
            claim = OUTCOME.format(status="done", changes=change.replace("{head}", "{{head}}"), summary=test)
            edit = f"wait\nreplace {path} <<END\n{old}\n====\n{new}\nEND\ncommit Work on {test}\n"
            scripts[test] = edit + claim.replace("{{head}}", "{head}")
        return scripts


SRC = OddProject("src/calc/__init__.py", "src/calc/tests/test_calc.py", path="src")
PROJECTS = {
    "plain": OddProject(),
    "stops at the first failure": OddProject(files={"pytest.ini": "[pytest]\naddopts = -x\n"}),
    "a few failures are enough": OddProject(files={"setup.cfg": "[tool:pytest]\naddopts = --maxfail=2 -q\n"}),
    "stepwise and last failed": OddProject(
        files={"tox.ini": "[pytest]\naddopts = --lf --sw\n"}, settings={"test_command": "{python} -m pytest"}
    ),
    "unittest with subtests": OddProject(text=CLASSES),
    "tests below src": SRC._replace(settings={"paths.implementation": '["src/"]'}),
    "a sub-directory": OddProject(
        product="app/calc.py",
        tests="app/tests/test_calc.py",
        settings={"test_command": "cd app && {plain}"},
    ),
    "norecursedirs": OddProject(files={"pytest.ini": "[pytest]\nnorecursedirs = build dist\n"}),
    "settings beside the tests": OddProject(files={"tests/pytest.ini": "[pytest]\naddopts = -ra\n"}),
    "a package of tests": OddProject(files={"tests/__init__.py": ""}),
    "importlib": OddProject(files={"pytest.ini": "[pytest]\naddopts = --import-mode=importlib\n"}),
    "a shallow clone": OddProject(world="shallow"),
    "sha256": OddProject(world="sha256"),
}


class OddRun:
    """A repository of this shape in the user's, and its agents."""

    def __init__(self, user: User, project: OddProject) -> None:
        self.user, self.project = user, project
        self.repo = user.repo
        plain = f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider"
        words = {"plain": plain, "python": shlex.quote(sys.executable)}
        settings = {
            "test_command": plain,
            "env.PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "env.PYTHONPATH": project.path,
            **project.settings,
        }
        lines = [
            f"{key} = {value if value.startswith('[') else repr(value.format(**words))}"
            for key, value in settings.items()
        ]
        if project.world == "sha256":
            shutil.rmtree(f"{self.repo}/.git")
            user.git("init", "-q", "--object-format=sha256", "-b", "main")
        self.write(project.product, PRODUCT)
        self.write(project.tests, project.text)
        self.write(".gitignore", "__pycache__/\n.pytest_cache/\n")
        self.write(".mngr/settings.toml", "\n".join(["[tmr]", "baseline_repeats = 1", "max_jobs = 2", *lines]) + "\n")
        for path, text in project.files.items():
            self.write(path, text)
        user.trust()
        self.commit()
        if project.world == "submodule":
            user.git("clone", "-q", "--bare", str(self.repo), str(user.root / "library"))
            user.git(
                "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(user.root / "library"), "lib"
            )
            self.commit()
        if project.world == "shallow":
            self.write("more", "one more commit\n")
            self.commit()
            whole = user.root / "whole"
            subprocess.run(["mv", str(self.repo), str(whole)], check=True)
            subprocess.run(
                ["git", "clone", "-q", "--depth=1", f"file://{whole}", str(self.repo)], check=True, env=user.env
            )
            user.trust()
        self.scripts = user.root / "scripts"
        self.scripts.mkdir()
        for test, text in project.scripts().items():
            (self.scripts / f"{test}.script").write_text(text)

    def write(self, path: str, text: str) -> None:
        place = self.user.repo / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def commit(self) -> None:
        self.user.git("add", "-A")
        self.user.git("commit", "-q", "-m", "an odd project")

    def tmr(self) -> dict[str, Any]:
        words = ("tmr", "--name", "r1", "--type", "scripted", "--timeout", "300s", "--max-agents", "4")
        ran = self.user.mngr(
            *words,
            "--integrator",
            "none",
            "--no-record",
            "--format",
            "json",
            "--",
            f"{self.scripts}/{{name}}.script",
            timeout=300,
        )
        found: dict[str, Any] = ran.failed(3).json
        return found
