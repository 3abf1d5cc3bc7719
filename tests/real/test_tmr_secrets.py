"""Variables that agents are given do not get into what is kept or published; the name of their test does."""

import sys
from pathlib import Path

import pytest

from mngr.secrets import forms
from tests.support.tmr import FIX_SUB, Project
from tests.support.user import MNGR, User

SECRET = "correct-horse-battery"


def holding(directory: Path, *values: str) -> list[tuple[str, int]]:
    """The files below a directory that hold one of these values in any form, with their modes."""
    written = [path for path in directory.rglob("*") if path.is_file() and not path.is_symlink()]
    wanted = [form.encode() for form in forms(values)]
    return [
        (str(path.relative_to(directory)), path.stat().st_mode & 0o777)
        for path in written
        if any(form in path.read_bytes() for form in wanted)
    ]


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
    assert holding(run, SECRET) == [("private.json", 0o600)]
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


# What an agent may do with a variable, in all ways that leave a trace: its words, its terminal, its files, its outcome.
_LEAK = """\
wait
say the token is {token}
run printf '%s\\n' "$TOKEN"; printf %s "$TOKEN" | base64; printf %s "user:$TOKEN" | base64
run printf %s "$TOKEN" | {python} -c '\
import sys, json, urllib.parse as u; t = sys.stdin.read(); print(json.dumps(t), u.quote(t))'
run mkdir -p "$MNGR_ARTIFACTS_DIR/deep" && printf '\\0%s\\0' "$TOKEN" > "$MNGR_ARTIFACTS_DIR/deep/binary"
run printf '{{"t": "%s"}}' "$TOKEN" > "$MNGR_ARTIFACTS_DIR/notes.json"
replace calc.py <<END
    return a - b - 1
====
    return a - b
END
append tests/test_calc.py <<END


def test_more():
    import os

    print(os.environ["DATABASE"])
    assert calc.sub(1, 1) == 0, os.environ["DATABASE"]
END
run git add -A && git commit -qm "Subtract, with $TOKEN"
run printf '{{"status": "done", "summary": "used %s", "odd": "%s"}}' "$TOKEN" "$TOKEN" > "$MNGR_OUTCOME_FILE"
"""


@pytest.mark.timeout(300)
def test_values_of_variables_are_in_no_file_of_a_run_but_the_private_one(user: User) -> None:
    """In the form in which they were given, and in those in which programs write them."""
    token, database = "q7/Zx+horse&bat'tery=Ω", 'host=db;password=Kd93/x+yz "stable"'
    project = Project(user)
    user.mngr("config", "set", "--scope", "user", "tmr.env.DATABASE", database).ok()
    project.write("tests/test_env.py", "import os\n\n\ndef test_env():\n    assert os.environ['DATABASE'] == ''\n")
    project.commit("A test that fails with what it was given")
    project.script("test_sub", _LEAK.format(token=token, python=sys.executable))
    (user.root / "token.env").write_text(f'TOKEN="{token}"\n')
    words = ("tests/test_calc.py::test_sub", "--no-canary", "--record", "--env-file", str(user.root / "token.env"))
    project.tmr(*words)
    user.mngr("tmr", "report", "r1").ok()
    run = project.repo / ".mngr/runs/r1"
    (attempt,) = run.glob("tasks/*/1")
    there = {str(path.relative_to(attempt)) for path in attempt.rglob("*") if path.is_file()}
    assert {"agent.cast", "transcript.jsonl", "outcome.json", "artifacts/deep/binary", "artifacts/notes.json"} <= there
    assert '"used ***"' in (attempt / "outcome.json").read_text()  # the agent has said it
    assert "***" in (run / "baseline.json").read_text()  # and so has a test
    assert holding(run, token, database) == [("private.json", 0o600)]
