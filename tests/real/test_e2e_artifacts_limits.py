"""What tests leave can be collected: in a directory that a variable names, without secrets, of limited size."""

import pytest

from mngr.e2e import artifacts
from tests.support.project import Project
from tests.support.user import User

pytestmark = pytest.mark.timeout(300)
SECRET = "hunter2-and-more"
KEY = "sk-ant-0123456789abcdefghij"


@pytest.fixture
def project(user: User) -> Project:
    return Project(user)


def test_a_variable_says_where_the_artifacts_go_whatever_the_options_say(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\naddopts = --e2e-dir elsewhere\n")
    project.write("test_it.py", "def test_it(e2e):\n    e2e.run('echo here')\n")
    collected = project.user.root / "collected"
    project.user.env["MNGR_E2E_DIR"] = str(collected)
    project.pytest("-q").ok()
    (run,) = artifacts.runs(collected)
    assert [(test.outcome, test.transcript()) for test in run.tests()] == [("passed", "$ echo here\nhere\n")]
    assert not (project.root / "elsewhere").exists() and project.runs() == []


def test_secrets_of_the_environment_are_in_no_artifact(project: Project) -> None:
    project.write(
        "test_it.py",
        f"""
        from mngr.e2e import expect
        def test_it(e2e):
            e2e.env["SHOP_PASSWORD"] = "second-secret"
            e2e.run("printf %s ${{SHOP_TOKEN%more}}; sleep 0.2; echo more; echo $SHOP_PASSWORD >&2; echo {KEY}")
            e2e.run("echo {SECRET}", comment="it is {SECRET}")
            e2e.note("second-secret")
            screen = e2e.spawn("echo $SHOP_TOKEN; read x")
            expect(screen).to_show("hunter2", timeout=60)
            screen.type("second-secret")
            expect(e2e.run("echo $OTHER_TOKEN", env={{"OTHER_TOKEN": "third-secret"}}).stdout).to_equal("{SECRET}")
        """,
    )
    project.user.env["SHOP_TOKEN"] = SECRET
    project.pytest("-q").failed()
    (test,) = project.runs()[0].tests()
    left = {name.name: name.read_text() for name in sorted((project.root / test.path).iterdir())}
    assert {"transcript.txt", "transcript.jsonl", "result.json", "screen-3.cast"} <= left.keys()
    for name, text in left.items():
        assert not [secret for secret in (SECRET, "second-secret", "third-secret", KEY) if secret in text], name
    lines = test.transcript().splitlines()
    assert lines[1:4] == ["***", "***", "! ***"] or lines[1:4] == ["***", "! ***", "***"], lines
    assert "# it is ***" in lines and "$ echo ***" in lines
    assert "***" in left["screen-3.cast"] and "'***'" in left["result.json"]


def test_ordinary_values_stay_readable(project: Project) -> None:
    project.write("test_it.py", "def test_it(e2e):\n    e2e.run('echo token $MAX_TOKENS $KEY_FILE $DB_PASSWORD')\n")
    project.user.env.update(MAX_TOKENS="200000", KEY_FILE="/etc/keys/one", DB_PASSWORD="password")
    project.pytest("-q").ok()
    assert project.tests()["test_it"].transcript().endswith("token 200000 /etc/keys/one password\n")


def test_large_artifacts_are_left_out_and_named(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        def test_it(e2e):
            e2e.run("echo small > $MNGR_E2E_ARTIFACTS/small.txt; head -c 40000000 /dev/zero > $MNGR_E2E_ARTIFACTS/big")
        def test_talk(e2e):
            for number in range(40):
                e2e.run("yes | head -c 400000")
            e2e.run("echo the last")
        """,
    )
    project.pytest("-q").ok()
    test, talk = project.tests()["test_it"], project.tests()["test_talk"]
    assert "# left out: big (40.0 MB), since the size of artifacts is limited\n" in test.transcript()
    assert test.left_out == ("big",) and test.events()[-1]["text"].startswith("left out: big")
    names = {name.name for name in (project.root / test.path).iterdir()}
    assert "small.txt" in names and "big" not in names
    text = talk.transcript()
    assert len(text) < 10_000_000 and text.endswith("$ echo the last\nthe last\n")
    assert text.count("characters of stdout are left out here") == 40
