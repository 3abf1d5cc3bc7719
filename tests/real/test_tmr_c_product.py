"""`mngr tmr` on a program written in C, from nothing to a branch, as somebody would who never saw mngr."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.tmr import OUTCOME, Project
from tests.support.user import User

pytestmark = [
    pytest.mark.timeout(500),
    pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("make")), reason="there is no gcc and make here"),
]

WORDCOUNT = """\
#include <ctype.h>
#include <stdio.h>

int main(void) {
    int c, inside = 0, words = 0, lines = 0;
    while ((c = getchar()) != EOF) {
        if (c == '\\n') lines++;
        if (isspace(c)) inside = 0;
        else if (!inside) { inside = 1; words++; }
    }
    printf("%d %d\\n", lines, words + 1);
    return 0;
}
"""
MAKEFILE = "CC = gcc\n\nwordcount: wordcount.c\n\t$(CC) -o $@ $<\n\nclean:\n\trm -f wordcount\n"
TESTS = """\
import subprocess


def wordcount(text):
    return subprocess.run(["./wordcount"], input=text, capture_output=True, text=True).stdout.split()


def test_lines():
    assert wordcount("a b\\nc\\n")[0] == "2"


def test_words():
    assert wordcount("a b\\nc\\n")[1] == "3"


def test_empty():
    assert wordcount("") == ["0", "0"]
"""


def claim(summary: str) -> str:
    changes = json.dumps([{"kind": "implementation", "commit": "{head}", "summary": summary, "importance": 4}])
    return OUTCOME.format(status="done", changes=changes, summary=summary)


FIX = "wait\nreplace wordcount.c <<E\nwords + 1\n====\nwords\nE\ncommit Count right\n" + claim("Count words, no more")
BREAK = "wait\nreplace wordcount.c <<E\nwords + 1);\n====\nwords)\nE\ncommit Count\n" + claim("Count")
NOTHING = "wait\n" + OUTCOME.format(status="done", changes="[]", summary="good as it is")


@pytest.fixture
def project(user: User) -> Project:
    project = Project(user, product="", tests="")
    for name in ("calc.py", "tests/test_calc.py", ".mngr/settings.toml"):
        (project.repo / name).unlink()
    for name, text in {"wordcount.c": WORDCOUNT, "Makefile": MAKEFILE, "tests/test_wordcount.py": TESTS}.items():
        project.write(name, text)
    project.write(".gitignore", "wordcount\n.mngr/\n")
    project.commit("count words")
    for name, text in {"test_lines": NOTHING, "test_words": FIX, "test_empty": BREAK}.items():
        project.script(name, text)
    user.mngr("config", "set", "tmr.test_command", f"{sys.executable} -m pytest -q -p no:cacheprovider").ok()
    user.mngr("config", "set", "tmr.env.PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1").ok()
    user.mngr("config", "set", "tmr.baseline_repeats", "0").ok()
    return project


def test_a_program_in_c_goes_from_nothing_to_a_branch(project: Project) -> None:
    user = project.user
    told = project.tmr("--no-canary").failed(1).stderr
    assert "not one of 3 tests passes at the base, and no agent was started" in told
    assert "No such file or directory: './wordcount'" in told
    assert "`mngr tmr init` sets `tmr.prepare` to `make` (Makefile)" in told
    assert user.agents() == []

    assert "make" in user.mngr("tmr", "init").ok().stdout
    ran = project.tmr(name="r2").failed(3)
    assert "not checked whether" not in ran.stderr
    assert project.status("r2")["canary"]["test"] == "tests/test_wordcount.py::test_lines"
    assert project.verdicts("r2") == {"test_lines": "unchanged", "test_words": "fixed", "test_empty": "refuted"}
    assert "its work breaks the build: wordcount.c:11:" in project.row("test_empty", "r2")["why"]
    assert "error: expected" in project.row("test_empty", "r2")["why"]
    assert user.git("log", "--format=%s", "main..tmr/r2") == "Count words, no more"


def test_what_cannot_be_built_is_told_before_an_agent_is_paid(project: Project) -> None:
    user = project.user
    user.mngr("tmr", "init").ok()
    tools = user.root / "tools"
    tools.mkdir()
    for program in {path.name: path for place in ("/bin", "/usr/bin") for path in Path(place).iterdir()}.values():
        if "gcc" not in program.name:
            (tools / program.name).symlink_to(program)
    without = {"PATH": f"{sys.exec_prefix}/bin:{tools}"}
    for words in (("--dry-run",), ()):
        told = project.tmr(*words, env=without).failed(1).stderr
        assert "`[tmr] prepare` failed (exit code 2): make: gcc: No such file or directory" in told
        assert "hint: install `gcc`, or add its directory to PATH" in told

    project.write("wordcount.c", WORDCOUNT.replace("return 0;", "return 0"))
    project.commit("forget a semicolon")
    told = project.tmr(name="r2").failed(1).stderr
    assert "`[tmr] prepare` failed (exit code 2): wordcount.c:12:13: error: expected" in told
    assert "hint: fix it, commit, and begin again" in told
    assert user.agents() == []
