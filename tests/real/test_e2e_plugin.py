"""The pytest plugin in a project that is not ours: what tests see, and what they leave."""

import json
import re
from pathlib import Path

import pytest

from tests.support.project import SEEN, Project
from tests.support.user import User, wait_for

pytestmark = pytest.mark.timeout(300)

SEEDS_TEST = '''
    from mngr.e2e import E2eSession, expect


    def test_help_succeeds(e2e: E2eSession) -> None:
        e2e.write_tutorial_block("""
        # or see the other commands--list, destroy, message, connect, push, pull, clone, and more! These other commands are covered in their own sections below.
        mngr --help
        """)
        result = e2e.run(
            "mngr --help",
            comment="or see the other commands--list, destroy, message, connect, push, pull, clone, and more!",
        )
        expect(result).to_succeed()
        expect(result.stdout).to_contain("Usage")
        expect(result.stdout).to_contain("create")
        expect(result.stdout).to_contain("list")
'''  # noqa: E501


@pytest.fixture
def project(user: User) -> Project:
    return Project(user)


def test_the_first_example_passes_and_leaves_its_transcript(project: Project) -> None:
    project.write("test_help.py", SEEDS_TEST)
    project.pytest("-q").ok()
    [test] = project.runs()[0].tests()
    lines = test.transcript().splitlines()
    assert lines[0] == "# or see the other commands--list, destroy, message, connect, push, pull, clone, and more!"
    assert lines[1] == "$ mngr --help"
    assert lines[2:] == project.user.mngr("--help").ok().stdout.splitlines()
    assert (test.node_id, test.line, test.outcome) == ("test_help.py::test_help_succeeds", 5, "passed")
    assert [block.splitlines()[-1] for block in test.blocks()] == ["mngr --help"]
    assert [(e["number"], e["passed"]) for e in test.events() if e["type"] == "expect"] == [(1, True)] * 4


def test_a_failure_shows_the_end_of_a_long_transcript(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        def test_it(e2e):
            e2e.run("head -c 200000 /dev/zero | tr '\\\\0' x")
            e2e.run("echo the last line")
            assert not e2e
        """,
    )
    said = project.pytest("-q").failed().stdout
    assert len(said) < 40_000 and "before these are left out]\n" in said and "the last line" in said


def test_a_transcript_has_comments_commands_output_and_errors_as_they_came(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        def test_it(e2e):
            (e2e.bin / "seen").write_text(SEEN)
            (e2e.bin / "seen").chmod(0o755)
            e2e.run("echo out; seen out; echo err >&2; seen '! err'; printf 'no end'", comment="first")
            e2e.run("cat <<E >&2\\nhere\\nE")
            e2e.note("a note")
            e2e.run(["printf", "%s\\n", "a b"])
        """,
    )
    project.write("test_it.py", f"SEEN = {SEEN!r}\n" + (project.root / "test_it.py").read_text())
    project.pytest("-q").ok()
    assert project.tests()["test_it"].transcript() == (
        "# first\n$ echo out; seen out; echo err >&2; seen '! err'; printf 'no end'\nout\n! err\nno end\n\n"
        "$ cat <<E >&2\n> here\n> E\n! here\n\n# a note\n\n$ printf '%s\n> ' 'a b'\na b\n"
    )
    exits = [event for event in project.tests()["test_it"].events() if event["type"] == "exit"]
    assert [(event["number"], event["exit_code"]) for event in exits] == [(1, 0), (2, 0), (3, 0)]


def test_a_failure_shows_what_was_seen_and_the_transcript(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        from mngr.e2e import expect

        def helper(result):
            expect(result).to_succeed()

        def test_it(e2e):
            e2e.run("echo before")
            helper(e2e.run("echo 'no such thing' >&2; exit 4", comment="tries"))
        """,
    )
    printed = project.pytest("-q").failed().stdout
    assert "expected `echo 'no such thing' >&2; exit 4` to succeed, but it ended with exit code 4" in printed
    assert "$ echo before\nbefore\n\n# tries\n$ echo 'no such thing' >&2; exit 4\n! no such thing\n" in printed
    assert "expecting.py" not in printed, "the traceback ends in the project's own code"
    failure = project.tests()["test_it"].failure
    assert failure is not None
    assert failure.phase == "call"
    assert failure.signature.startswith("AssertionError in helper: expected `echo 'no such thing'")
    assert failure.message.startswith("AssertionError: expected")


def test_every_outcome_is_told_from_the_others(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import pytest

        @pytest.fixture
        def broken_after(e2e):
            yield
            raise ValueError("after")

        def test_passed(e2e): pass
        def test_failed(e2e): assert 0
        def test_error(broken_after): pass
        def test_skipped(e2e): pytest.skip("no")
        @pytest.mark.xfail
        def test_xfailed(e2e): assert 0
        @pytest.mark.xfail
        def test_xpassed(e2e): pass
        @pytest.mark.xfail(strict=True)
        def test_strict(e2e): pass
        """,
    )
    project.pytest("-q").failed()
    outcomes = {name: test.outcome for name, test in project.tests().items()}
    expected = {name: name[5:] for name in outcomes}
    assert outcomes == {**expected, "test_strict": "failed"}
    assert len(outcomes) == 7
    failure = project.tests()["test_error"].failure
    assert failure is not None
    assert (failure.phase, failure.signature) == ("teardown", "ValueError in broken_after: after")


def test_a_project_extends_its_sessions_and_they_are_isolated(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        def e2e_environment(session):
            session.env["PRODUCT"] = "greeter"
            program = session.bin / "greet"
            program.write_text("#!/bin/sh\\necho hello from $PRODUCT\\n")
            program.chmod(0o755)
        """,
    )
    project.write("other/conftest.py", "def e2e_environment(session):\n    raise ValueError\n")
    project.write("other/test_other.py", "def test_other(e2e):\n    pass\n")
    project.write("inner/conftest.py", "def e2e_environment(session):\n    session.env['PRODUCT'] += '!'\n")
    project.write("inner/test_in.py", "def test_in(e2e):\n    assert 'greeter!' in e2e.run('greet').stdout\n")
    project.write(
        "test_it.py",
        """
        import os
        from mngr.e2e import expect

        def test_it(e2e):
            expect(e2e.run("greet").stdout).to_equal("hello from greeter\\n")
            expect(e2e.run(["greet"]).stdout).to_equal("hello from greeter\\n")
            seen = dict(line.split("=", 1) for line in e2e.run("env -0 | tr '\\\\n\\\\0' ' \\\\n'").stdout.splitlines())
            assert seen["HOME"] == str(e2e.home) != os.environ["HOME"]
            assert seen["MNGR_HOST_DIR"] == f"{e2e.home}/.mngr"
            assert seen["MNGR_E2E_ARTIFACTS"] == str(e2e.artifacts)
            assert not {"TMUX", "GIT_DIR", "COLUMNS", "MNGR_AGENT_NAME", "XDG_CONFIG_HOME", "PYTEST_CURRENT_TEST"} & set(seen)
            expect(e2e.run("pwd").stdout.strip()).to_equal(str(e2e.cwd))
            expect(e2e.run("git log --format=%an%s; git status --short").stdout).to_equal("Test UserBegin\\n")
            e2e.write_settings("[commands.create]\\ntype = 'scripted'\\n")
            values = e2e.run("mngr config list --format json")
            expect(values.stdout).to_contain("mngr-e2e-connect").to_contain("scripted")
            e2e.run("mngr create foo --no-connect --command 'sleep 5555'")
            expect(e2e.run("mngr list").stdout).to_contain("foo")
        """,  # noqa: E501
    )
    outer = {
        "TMUX": "/tmp/x,1,0",
        "GIT_DIR": "/nowhere",
        "COLUMNS": "40",
        "MNGR_AGENT_NAME": "outer",
        "XDG_CONFIG_HOME": "/nowhere",
    }
    project.user.env.update(outer)
    done = project.pytest("-q").failed()
    assert "2 passed, 1 error" in done.stdout, done.stdout
    assert project.tests()["test_other"].outcome == "error"
    root = project.environment_of("test_it")
    assert _command_lines(str(root)) == [], "the agent ended with its test"


def test_tests_of_the_same_name_do_not_mix(project: Project) -> None:
    body = """
        class TestA:
            def test_x(self, e2e): e2e.run("echo {0} A")
        class TestB:
            def test_x(self, e2e): e2e.run("echo {0} B")
        import pytest
        @pytest.mark.parametrize("v", ["a/b", "a b", "a-b"])
        def test_x(e2e, v): e2e.run(["echo", "{0}", v])
    """
    project.write("one/test_same.py", body.format("one"))
    project.write("two/test_same.py", body.format("two"))
    project.pytest("-q", "--import-mode=importlib").ok()
    found = {test.node_id: test.transcript().splitlines()[1] for test in project.runs()[0].tests()}
    kinds = {"TestA::test_x": "A", "TestB::test_x": "B", **{f"test_x[{v}]": v for v in ("a/b", "a b", "a-b")}}
    assert found == {f"{d}/test_same.py::{k}": f"{d} {v}" for d in ("one", "two") for k, v in kinds.items()}


@pytest.mark.parametrize("dist", ["load", "loadgroup", "each"])
def test_workers_write_into_one_run(project: Project, dist: str) -> None:
    project.write(
        "test_it.py",
        """
        import pytest

        @pytest.mark.parametrize("n", range(4))
        @pytest.mark.xdist_group("g")
        def test_it(e2e, n):
            e2e.run(f"echo {n}; sleep 0.1")
        """,
    )
    project.pytest("-q", "-n", "2", "--dist", dist).ok()
    [run] = project.runs()
    ids = sorted(test.node_id for test in run.tests())
    assert ids == sorted([f"test_it.py::test_it[{n}]" for n in range(4)] * (2 if dist == "each" else 1))
    assert all(len(test.events()) == 3 for test in run.tests())
    assert (run.exit_status, run.args[:3]) == (0, ("-q", "-n", "2"))
    assert run.ended_at is not None


def test_each_attempt_of_a_test_leaves_its_trace(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            for attempt in range(3):
                item._initrequest()
                reports = runtestprotocol(item, nextitem=nextitem, log=attempt == 2)
            return True
        """,
    )
    project.write(
        "test_it.py", "n = 0\ndef test_it(e2e):\n    global n\n    n += 1\n    e2e.run(f'echo {n}')\n    assert n > 1\n"
    )
    project.pytest("-q")
    attempts = project.runs()[0].tests()
    assert [attempt.transcript().splitlines()[-1] for attempt in attempts] == ["1", "2", "3"]
    assert [attempt.outcome for attempt in attempts] == ["failed", "passed", "passed"]


def test_a_named_run_is_replaced_and_another_directory_is_refused(project: Project) -> None:
    project.write("test_it.py", "def test_a(e2e): e2e.run('true')\ndef test_b(e2e): e2e.run('true')\n")
    project.pytest("-q", "--e2e-run-name", "mine").ok()
    project.pytest("-q", "--e2e-run-name", "mine", "-k", "test_b").ok()
    assert [run.name for run in project.runs()] == ["mine"]
    assert list(project.tests()) == ["test_b"], "what did not run is not there"
    (project.root / "src").mkdir()
    (project.root / "src" / "precious").touch()
    printed = project.pytest("-q", "--e2e-dir", ".", "--e2e-run-name", "src").failed().stdout
    assert "is not a test run" in printed
    assert [path.name for path in (project.root / "src").iterdir()] == ["precious"]
    assert not (project.root / ".gitignore").exists(), "a directory of theirs is not ignored"
    assert "invalid run name" in project.pytest("-q", "--e2e-run-name", "../x").failed().stdout


def test_artifacts_are_kept_as_told(project: Project) -> None:
    project.write("test_it.py", "def test_a(e2e): e2e.run('echo hi')\ndef test_b(e2e): e2e.run('echo hi'); assert 0\n")
    project.pytest("-q", "--e2e-artifacts", "on-failure").failed()
    assert list(project.tests()) == ["test_b"]
    project.pytest("-q", "--e2e-artifacts", "no", "--e2e-dir", "other").failed()
    assert not (project.root / "other").exists()
    project.write("pytest.ini", "[pytest]\ne2e_artifacts = on-failure\ne2e_dir = mine/e2e\ne2e_run_name = r\n")
    project.pytest("-q").failed()
    assert [path.name[:14] for path in (project.root / "mine/e2e/r/tests").iterdir()] == ["test_it-test_b"]
    project.write("pytest.ini", "[pytest]\ne2e_artifacts = maybe\n")
    assert "e2e_artifacts is 'maybe'" in project.pytest("-q").stdout


def test_artifacts_stay_out_of_git(project: Project) -> None:
    project.write("test_it.py", "def test_a(e2e): e2e.run('true')\n")
    project.user.git("init", "-q", cwd=project.root)
    project.pytest("-q", "-p", "no:cacheprovider").ok()
    status = project.user.git("status", "--short", cwd=project.root)
    assert re.findall(r"\?\? (.*)", status) == ["pytest.ini", "test_it.py"] or "__pycache__" in status
    assert ".mngr" not in status


def test_a_kept_environment_lives_until_its_script_removes_it(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        def test_a(e2e): assert e2e.run("sleep 6666 & echo x > kept").exit_code
        def test_b(e2e): e2e.run("sleep 6666 &")
        """,
    )
    done = project.pytest("-q", "--e2e-keep-environment", "on-failure").failed()
    tests = project.tests()
    assert tests["test_b"].environment is None
    root = tests["test_a"].environment
    assert root is not None and f"{root}  remove it: sh " in done.stdout
    command = re.search(r"remove it: (sh \S+)", done.stdout)
    assert command is not None
    # The shell that left it may have been quicker than the program in it.
    wait_for(lambda: _command_lines(root) == ["sleep 6666"], "what the test left to run, and nothing else")
    assert project.user.run(["cat", f"{root}/repo/kept"]).ok().stdout == "x\n"
    project.user.run(command[1].split()).ok()
    assert _command_lines(root) == []
    assert project.user.run(["ls", root]).exit_code != 0
    assert project.tests()["test_a"].environment is None


def test_a_run_without_the_fixture_costs_and_leaves_nothing(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import sys
        def test_it():
            loaded = sorted(name for name in sys.modules if name.partition(".")[0] in ("mngr", "tomlkit"))
            assert loaded == ["mngr", "mngr.e2e", "mngr.e2e.plugin"]
        """,
    )
    project.pytest("-q").ok()
    project.pytest("-q", "-n", "2").ok()
    assert not (project.root / ".mngr").exists()


def test_the_answers_of_pytest_itself_are_as_ever(project: Project) -> None:
    project.write("test_it.py", "def test_a(e2e): pass\n")
    project.write("test_broken.py", "def test_a(:\n")
    done = project.pytest("-q", "--continue-on-collection-errors")
    assert "test_broken.py" in done.stdout and "1 passed, 1 error" in done.stdout
    project.pytest("--collect-only", "-q", "test_it.py").ok()
    assert "--e2e-keep-environment={yes,on-failure,no}" in project.pytest("--help").ok().stdout
    assert "e2e" in project.pytest("--fixtures", "-q", "test_it.py").ok().stdout
    report = project.root / "junit.xml"
    project.pytest("-q", "test_it.py", f"--junitxml={report}").ok()
    assert "testcase" in report.read_text()
    data = json.loads((project.root / ".mngr" / "e2e" / project.runs()[0].name / "run.json").read_text())
    assert data["exit_status"] == 0


def test_a_test_that_removes_its_own_artifacts_is_told_so(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import shutil
        def test_a(e2e):
            e2e.run("sleep 6666 &")
            shutil.rmtree(e2e.artifacts)
        def test_b(e2e):
            shutil.rmtree(e2e.home.parent)
        """,
    )
    done = project.pytest("-q").failed()
    assert "e2e: the end of the test cannot be written" in done.stdout
    assert "2 passed, 1 error" in done.stdout and "INTERNALERROR" not in done.stdout, done.stdout


def _command_lines(root: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"HOME={root}/home\0".encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip())
        except OSError:
            continue
    return found
