"""`mngr tutorial blocks` and `check` on a product that is not ours, with recorded runs of its tests."""

import json
import sys

import pytest

from tests.support.greeter import BYE, HELLO, add_greeter, document
from tests.support.user import User

pytestmark = pytest.mark.timeout(300)

PLAIN = ("--disable-plugin-autoload", "-p", "mngr.e2e.plugin", "-p", "no:cacheprovider")
PYTEST = (sys.executable, "-m", "pytest", "-q", *PLAIN)


def record(user: User) -> None:
    done = user.run([*PYTEST, "tests"], timeout=100)
    assert done.exit_code == 0, done.stdout + done.stderr


@pytest.fixture
def greeter(user: User) -> User:
    add_greeter(user, test_hello=HELLO, test_bye=BYE)
    return user


def test_blocks_lists_them(greeter: User) -> None:
    found = document(greeter.mngr("tutorial", "blocks", "--format", "json").ok())["blocks"]
    assert [(row["kind"], row["first_line"], row["section"]) for row in found] == [
        ("preamble", 1, ""),
        ("heading", 4, "Saying hello"),
        ("example", 6, "Saying hello"),
        ("heading", 9, "Saying good bye"),
        ("example", 11, "Saying good bye"),
    ]
    assert found[4]["commands"] == ["greet bye --soon"]
    assert "greet hello --name Ada" in greeter.mngr("tutorial", "blocks").ok().stdout


def test_all_is_cited_and_run(greeter: User) -> None:
    done = greeter.mngr("tutorial", "check").ok()
    assert "ok: 2 of 2 examples cited, not checked what was run" in done.stdout
    assert "what was run is not checked" in done.stderr
    record(greeter)
    done = greeter.mngr("tutorial", "check").ok()
    assert "ok: 2 of 2 examples cited, 2 of 2 commands run in " in done.stdout
    assert done.stderr == ""
    assert greeter.mngr("tutorial", "check", "--format", "json").ok().json["commands_run"] == 2
    assert greeter.mngr("tutorial", "check", "--no-artifacts", "--format", "json").ok().json["commands_run"] is None


def test_a_removed_citation_fails_with_block_and_line(greeter: User) -> None:
    record(greeter)
    (greeter.repo / "tests" / "test_hello.py").unlink()
    (greeter.repo / "tests" / "test_bye.py").write_text(BYE.split("    def test_wrong")[0])
    done = greeter.mngr("tutorial", "check").failed()
    assert "tutorial.sh:6: block " in done.stdout
    assert "(lines 6-7, `Saying hello`) is cited by no test\n    # say hello to somebody\n    greet" in done.stdout
    assert "1 problem: 1 of 2 examples cited" in done.stdout


def test_an_edited_block_fails_with_a_difference(greeter: User) -> None:
    script = greeter.repo / "tutorial.sh"
    script.write_text(script.read_text().replace("--name Ada", "--name Bea"))
    done = greeter.mngr("tutorial", "check").failed()
    assert "tests/test_hello.py:5: `test_hello` cites a text that is not a block of tutorial.sh" in done.stdout
    assert "    -greet hello --name Bea\n    +greet hello --name Ada\n" in done.stdout
    (uncited, *unknown) = document(greeter.mngr("tutorial", "check", "--format", "json").failed())["problems"]
    assert (uncited["kind"], uncited["line"]) == ("uncited", 6)
    assert {(row["kind"], row["test"]) for row in unknown} == {
        ("unknown", "test_hello"),
        ("unknown", "TestBye::test_wrong"),
    }


def test_a_cited_command_that_is_not_run_fails_with_its_line(greeter: User) -> None:
    test = greeter.repo / "tests" / "test_bye.py"
    test.write_text(BYE.replace("e2e.run(command)", 'e2e.run("greet bye --soon; true")'))
    record(greeter)
    greeter.mngr("tutorial", "check").ok()
    test.write_text(BYE.replace("e2e.run(command)", 'e2e.run("echo see you")'))
    record(greeter)
    done = greeter.mngr("tutorial", "check").failed()
    assert "tutorial.sh:12: block " in done.stdout
    assert "`greet bye --soon` was never run by `TestBye::test_soon` (tests/test_bye.py:6)" in done.stdout


def test_a_test_file_with_a_syntax_error_is_named_and_the_others_count(greeter: User) -> None:
    (greeter.repo / "tests" / "test_broken.py").write_text("def test_broken(:\n")
    done = greeter.mngr("tutorial", "check").failed()
    assert "tests/test_broken.py:1: not valid Python: " in done.stdout
    assert "1 problem: 2 of 2 examples cited" in done.stdout


def test_runs_can_be_named_and_must_be_there(greeter: User) -> None:
    record(greeter)
    (run,) = [path for path in (greeter.repo / ".mngr" / "e2e").iterdir() if path.is_dir()]
    run.rename(greeter.root / "elsewhere")
    greeter.mngr("tutorial", "check", "--artifacts", str(greeter.root / "elsewhere")).ok()
    missing = greeter.mngr("tutorial", "check", "--artifacts", "nowhere").failed()
    assert "holds no recorded run of tests" in missing.stderr
    assert (
        "cannot be used together"
        in greeter.mngr("tutorial", "check", "--artifacts", "x", "--no-artifacts").failed(2).stderr
    )


def test_places_come_from_options_settings_and_the_project(greeter: User) -> None:
    deep = greeter.repo / "some" / "where"
    deep.mkdir(parents=True)
    record(greeter)
    found = document(greeter.mngr("tutorial", "check", "--format", "json", cwd=deep).ok())
    assert found["script"] == "../../tutorial.sh" and found["commands_run"] == 2
    assert greeter.mngr("e2e", "report", "--format", "json", cwd=deep).ok().json["tests"] == 3
    greeter.git("mv", "tutorial.sh", "tour.sh")
    greeter.git("mv", "tests", "checks")
    assert "there is no tutorial at" in greeter.mngr("tutorial", "check").failed().stderr
    greeter.mngr("tutorial", "check", "--script", "tour.sh", "--tests", "checks").ok()
    (greeter.repo / ".mngr").mkdir(exist_ok=True)
    (greeter.repo / ".mngr" / "settings.toml").write_text('[tutorial]\nscript = "tour.sh"\ntests = ["checks"]\n')
    greeter.mngr("tutorial", "check").ok()
    greeter.mngr("tutorial", "check", cwd=deep).ok()


def test_a_tutorial_from_windows(greeter: User) -> None:
    script = greeter.repo / "tutorial.sh"
    script.write_bytes(script.read_bytes().replace(b"\n", b"\r\n").rstrip(b"\r\n"))
    greeter.mngr("tutorial", "check").ok()


def test_a_project_without_tests_has_all_examples_uncited(greeter: User) -> None:
    greeter.git("rm", "-qr", "tests")
    assert "2 problems: 0 of 2 examples cited" in greeter.mngr("tutorial", "check").failed().stdout
    assert "there are no tests at" in greeter.mngr("tutorial", "check", "--tests", "tests").failed().stderr


def stale(user: User) -> str:
    (problem,) = document(user.mngr("tutorial", "check", "--format", "json").failed())["problems"]
    assert problem["kind"] == "stale" and problem["hint"] == "run the tests again"
    return str(problem["message"]).partition("does not count: ")[2]


def commit(user: User) -> str:
    user.git("add", "-A")
    user.git("commit", "-q", "-m", "Change")
    return user.git("rev-parse", "--short=7", "HEAD").strip()


def test_a_run_of_another_commit_does_not_count(greeter: User) -> None:
    before = greeter.git("rev-parse", "--short=7", "HEAD").strip()
    record(greeter)
    program = greeter.repo / "bin" / "greet"
    program.write_text(program.read_text() + "# another word\n")
    after = commit(greeter)
    assert stale(greeter) == f"it was recorded at {before}, now at {after}, and bin/greet changed"
    said = greeter.mngr("tutorial", "check").failed()
    assert "1 problem: 2 of 2 examples cited, not checked what was run" in said.stdout and said.stderr == ""
    greeter.mngr("tutorial", "check", "--no-artifacts").ok()
    record(greeter)
    assert greeter.mngr("tutorial", "check", "--format", "json").ok().json["commands_run"] == 2


def test_a_commit_of_what_was_tested_and_of_documentation_keeps_the_run(greeter: User) -> None:
    test = greeter.repo / "tests" / "test_hello.py"
    test.write_text(test.read_text() + "\n# an edit\n")
    (greeter.repo / "tests" / "test_more.py").write_text("def test_more():\n    pass\n")
    record(greeter)
    commit(greeter)
    (greeter.repo / "README.md").write_text("# Greet\n")
    script = greeter.repo / "tutorial.sh"
    script.write_text(script.read_text() + "\n# A word about it, and nothing to type.\n")
    commit(greeter)
    greeter.mngr("tutorial", "check").ok()


def test_edits_that_are_not_committed_are_named_and_do_not_fail(greeter: User) -> None:
    record(greeter)
    test = greeter.repo / "tests" / "test_hello.py"
    test.write_text(test.read_text() + "\n# an edit\n")
    done = greeter.mngr("tutorial", "check").ok()
    assert "edited since the tests were run, and not committed: tests/test_hello.py" in done.stderr
    assert greeter.mngr("tutorial", "check", "--format", "json").ok().json["uncommitted"] == ["tests/test_hello.py"]
    record(greeter)
    assert "edited since" not in greeter.mngr("tutorial", "check").ok().stderr
    greeter.git("checkout", "-q", "tests/test_hello.py")
    assert stale(greeter) == "it was recorded with uncommitted changes of tests/test_hello.py that are gone"


def test_a_run_whose_commit_is_not_known_does_not_count(greeter: User) -> None:
    record(greeter)
    (path,) = (greeter.repo / ".mngr" / "e2e").glob("*/run.json")
    known = json.loads(path.read_text())
    path.write_text(json.dumps({**known, "commit": "0123456" + "0" * 33}))
    assert stale(greeter) == "it was recorded at 0123456, which this repository does not have"
    del known["commit"]
    path.write_text(json.dumps(known))
    assert stale(greeter) == "it has no record of its commit"


def test_what_a_failed_test_ran_does_not_count(greeter: User) -> None:
    test = greeter.repo / "tests" / "test_bye.py"
    test.write_text(test.read_text().replace('"see you"', '"see me"'))
    assert greeter.run([*PYTEST, "tests"], timeout=100).exit_code == 1
    done = greeter.mngr("tutorial", "check").failed()
    said = "`greet bye --soon` was not run by a test that passed: `TestBye::test_soon` (tests/test_bye.py:6) ended as"
    assert f"{said} failed\n" in done.stdout, done.stdout
