"""Variables that agents are given do not get into what is kept or published; the name of their test does."""

from pathlib import Path

import pytest

from tests.support.tmr import FIX_SUB, Project
from tests.support.user import MNGR, User

SECRET = "correct-horse-battery"


@pytest.mark.timeout(300)
def test_a_secret_in_an_agents_words_is_hidden_and_the_name_of_its_test_is_not(user: User) -> None:
    project = Project(user)
    seen = user.root / "seen"
    project.settings["prepare"] = f"tr '\\0' ' ' </proc/$PPID/cmdline >>{seen}; echo \"$TOKEN\" >>{seen}.env"
    project.write(".mngr/settings.toml", project.toml())
    project.commit("look at the process list")
    said = f"say tests/test_calc.py::test_sub with {SECRET}\n"
    project.script("test_sub", FIX_SUB.replace("wait\n", f"wait\n{said}", 1).replace("no more", f"{SECRET} more"))
    words = ("tests/test_calc.py::test_sub", "--no-canary", "--no-baseline", "--env", f"TOKEN={SECRET}")
    user.run([MNGR, *project.words(*words)], timeout=200).ok()  # a start of its own, with its own command line
    assert user.git("log", "-1", "--format=%s", "tmr/r1") == "Subtract *** more than asked"
    (transcript,) = (project.repo / ".mngr/runs/r1/tasks").glob("*/1/transcript.jsonl")
    assert '"tests/test_calc.py::test_sub with ***"' in transcript.read_text()
    rows = user.mngr("tmr", "status", "--format", "json").ok().stdout
    assert SECRET not in rows and "Subtract *** more than asked" in rows

    assert " tmr --name r1 " in seen.read_text() and "--env TOKEN=****" in seen.read_text()
    assert SECRET not in seen.read_text() and SECRET in Path(f"{seen}.env").read_text()
    run = project.repo / ".mngr/runs/r1"
    written = [path for path in run.rglob("*") if path.is_file() and path.name != "outcome.json"]  # the agent's own
    holding = [path for path in written if SECRET.encode() in path.read_bytes()]
    assert [(path.name, path.stat().st_mode & 0o777) for path in holding] == [("private.json", 0o600)]
    Path(f"{seen}.env").unlink()
    user.mngr("tmr", "retry", "r1", "--task", "test_sub", timeout=200).ok()
    assert SECRET in Path(f"{seen}.env").read_text()
    (run / "private.json").unlink()
    assert "variables" in user.mngr("tmr", "retry", "r1", "--task", "test_sub").failed().stderr


@pytest.mark.timeout(300)
def test_work_with_a_secret_in_a_file_is_refused_by_the_name_of_its_variable(user: User) -> None:
    project = Project(user)
    leak = f"write config.ini <<END\ntoken = {SECRET}\nEND\ncommit Subtract"
    project.script("test_sub", FIX_SUB.replace("commit Subtract", leak, 1))
    words = ("tests/test_calc.py::test_sub", "--no-canary", "--no-baseline", "--env", f"TOKEN={SECRET}")
    project.tmr(*words).failed(3)
    told = user.mngr("tmr", "status", "--format", "json").ok().stdout
    assert project.verdicts() == {"test_sub": "refused"}
    assert "`config.ini` holds the value of `TOKEN`" in told and SECRET not in told
    run = project.repo / ".mngr/runs/r1"
    user.mngr("tmr", "report", "r1").ok()
    shown = [path for path in (run / "report").rglob("*") if path.is_file()]
    assert any(b"token = ***" in path.read_bytes() for path in shown)
    assert not [path for path in shown if SECRET.encode() in path.read_bytes()]
    assert "tmr/r1" not in user.git("for-each-ref", "refs/heads")
