"""`mngr tutorial sync`: an agent writes, our check says what is missing, the agent is told, until the check passes."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr_testing.model_server import ModelServer
from tests.support.greeter import BYE, HELLO, TUTORIAL, add_greeter, document
from tests.support.programs import program, with_program
from tests.support.user import User, wait_for

pytestmark = pytest.mark.timeout(300)

PYTEST = f"{sys.executable} -m pytest -q --disable-plugin-autoload -p mngr.e2e.plugin -p no:cacheprovider tests"
OLD_HELLO = HELLO.replace("Ada", "Bob")
DONE = 'outcome <<END\n{"schema": 1, "status": "done"}\nEND\n'
BOTH = f"wait\nwrite tests/test_hello.py <<END\n{HELLO}END\nwrite tests/test_bye.py <<END\n{BYE}END\n"


def script(user: User, text: str) -> str:
    path = user.root / "agent.script"
    path.write_text(text)
    return str(path)


def sync(user: User, path: str, *words: str, exit_code: int = 0):
    done = user.mngr("tutorial", "sync", "--type", "scripted", *words, "--", path, timeout=250)
    assert done.exit_code == exit_code, done.stdout + done.stderr
    return done


@pytest.fixture
def greeter(user: User) -> User:
    """One citation is of a block that was edited since, and one block has no test."""
    add_greeter(user, test_hello=OLD_HELLO)
    return user


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as made:
        yield made


def test_the_agent_is_told_until_the_check_passes(greeter: User) -> None:
    agent = script(
        greeter,
        f"""wait
write tests/test_hello.py <<END
{HELLO}END
commit Cite the new block
{DONE}wait
run echo {{message}} > told.txt
run mv told.txt "$MNGR_ARTIFACTS_DIR/"
write tests/test_bye.py <<END
{BYE.replace("run(command)", 'run("greet bye")')}END
commit Test the other block
{DONE}wait
run echo {{message}} > told-again.txt
run mv told-again.txt "$MNGR_ARTIFACTS_DIR/"
write tests/test_bye.py <<END
{BYE}END
{DONE}wait
run echo {{message}} > told-third.txt
run mv told-third.txt "$MNGR_ARTIFACTS_DIR/"
commit Run what is cited
{DONE}""",
    )
    done = sync(greeter, agent, "--test-command", PYTEST, "--format", "json")
    found = done.json
    assert found["ok"] and found["end"] == "passed" and found["problems"] == []
    assert [turn["missing"] for turn in found["rounds"]] == [1, 2, 3, 0]
    assert found["agent"] == "sync-tutorial-tests-1" and found["branch"] == "mngr/sync-tutorial"
    told = Path(found["work_dir"]) / ".mngr" / "task" / "artifacts"
    assert "(lines 11-13, `Saying good bye`) is cited by no test" in (told / "told.txt").read_text()
    again = (told / "told-again.txt").read_text()
    assert "failed (exit code 1)" in again and "`greet bye --soon` was not run by a test that passed" in again
    assert (
        "1. tests/test_bye.py:1: not committed, so not checked: tests/test_bye.py"
        in (told / "told-third.txt").read_text()
    )
    assert "git merge mngr/sync-tutorial" in done.stderr
    assert "round 3 of 5: 3 missing" in done.stderr
    greeter.mngr("tutorial", "check").failed()
    greeter.git("merge", "-q", found["branch"])
    greeter.mngr("tutorial", "check").ok()


def test_what_is_run_is_measured_in_a_clean_checkout(user: User) -> None:
    """A file that only the agent's copy has does not count, and neither does a run of its own."""
    add_greeter(user, test_hello=HELLO, test_bye=BYE.replace("run(command)", 'run("greet bye; echo see you")'))
    (user.repo / ".gitignore").write_text("helper.py\n__pycache__\n")
    user.git("add", ".")
    user.git("commit", "-qm", "Ignore")
    user.env["PYTHONDONTWRITEBYTECODE"] = "1"
    assert user.run(["sh", "-c", PYTEST], timeout=100).exit_code == 0
    test = BYE.replace("from mngr", "from helper import NAME\nfrom mngr")
    helper = "write tests/helper.py <<END\nNAME = 1\nEND"
    change = f"wait\n{helper}\nwrite tests/test_bye.py <<END\n{test}END\ncommit Run it\nrun {PYTEST}\n{DONE}"
    words = ("--format", "json")
    agent = script(user, f"{change}wait\nwrite tests/test_bye.py <<END\n{BYE}END\ncommit Need no helper\n{DONE}")
    found = document(sync(user, agent, *words))
    assert [turn["missing"] for turn in found["rounds"]] == [2, 0]
    told = user.mngr("transcript", found["agent"]).ok().stdout
    assert "No module named 'helper'" in told and "-m pytest tests` failed" in told
    assert [row["name"] for row in user.agents()] == ["sync-tutorial-tests-1"]


def test_a_test_command_that_cannot_be_started_is_the_users_problem(greeter: User) -> None:
    done = sync(greeter, script(greeter, "wait\n"), "--test-command", "no-such-program tests", exit_code=1)
    assert "`no-such-program tests` cannot be started in a clean checkout" in done.stderr
    assert "tmr.prepare" in done.stderr


def test_what_was_prepared_is_there_for_the_test_command(greeter: User) -> None:
    (greeter.repo / ".mngr").mkdir()
    (greeter.repo / ".mngr" / "settings.toml").write_text('[tmr]\nprepare = "echo yes > prepared"\n')
    greeter.git("add", "-f", ".")
    greeter.git("commit", "-qm", "Settings")
    greeter.mngr("config", "trust", "--yes").ok()
    text = f"{BOTH}commit All\n{DONE}"
    command = f"grep yes prepared && {PYTEST}"
    assert document(sync(greeter, script(greeter, text), "--test-command", command, "--format", "json"))["ok"]


def test_what_a_person_should_look_at_is_listed(greeter: User) -> None:
    (greeter.repo / "tests" / "test_more.py").write_text(
        "def test_gone():\n    assert 3\n\n\ndef test_less():\n    assert 1\n    assert 2\n"
    )
    greeter.git("add", ".")
    greeter.git("commit", "-qm", "More")
    agent = script(
        greeter,
        f"""wait
write tests/test_hello.py <<END
{HELLO}END
write tests/test_bye.py <<END
{BYE}END
write tests/test_more.py <<END
import pytest
@pytest.mark.skip
def test_less():
    assert 1
END
run echo >> tests/conftest.py
run echo >> bin/greet
commit All
{DONE}""",
    )
    done = sync(greeter, agent)
    assert "removed tests:\n  tests/test_more.py: `test_gone` is gone\nlook at these changes:\n" in done.stdout
    assert "  tests/test_more.py: `test_less` had 2 assertions and has 1\n" in done.stdout
    found = document(sync(greeter, agent, "--format", "json"))
    assert found["ok"] and [(flag["kind"], flag["path"]) for flag in found["flags"]] == [
        ("test-deleted", "tests/test_more.py"),
        ("conftest", "tests/conftest.py"),
        ("skip", "tests/test_more.py"),
        ("fewer-assertions", "tests/test_more.py"),
        ("product", "bin/greet"),
    ]


def test_a_recorded_run_of_other_code_needs_no_agent(user: User) -> None:
    add_greeter(user, test_hello=HELLO, test_bye=BYE)
    assert user.run(["sh", "-c", PYTEST], timeout=100).exit_code == 0
    (user.repo / "bin" / "more").touch()
    user.git("add", "bin")
    user.git("commit", "-qm", "More")
    done = user.mngr("tutorial", "sync", "--type", "scripted", "--", "x").failed()
    assert "the citations are complete, but the recorded run" in done.stderr and "run the tests again" in done.stderr
    assert user.agents() == []


def test_the_agent_is_told_names_as_they_are_in_its_copy(greeter: User) -> None:
    deep = greeter.repo / "some where"
    deep.mkdir()
    greeter.git("mv", "tutorial.sh", "the tour.sh")
    greeter.git("commit", "-q", "-m", "Move")
    text = f"{BOTH}commit All\n{DONE}"
    words = ("tutorial", "sync", "--script", "../the tour.sh", "--format", "json")
    prompt = document(greeter.mngr(*words, "--dry-run", cwd=deep).ok())["prompt"]
    assert "The tutorial is `the tour.sh`" in prompt
    assert "`mngr tutorial check --script 'the tour.sh' --tests tests`" in prompt and "../" not in prompt
    done = greeter.mngr(*words, "--type", "scripted", "--", script(greeter, text), cwd=deep, timeout=110)
    assert document(done.ok())["ok"]


def test_it_gives_up_after_so_many_rounds(greeter: User) -> None:
    agent = script(greeter, f"repeat 9 <<E\nwait\n{DONE}E\n")
    done = sync(greeter, agent, "--rounds", "2", exit_code=1)
    assert "3 problems left after 2 rounds (out of rounds: " in done.stdout
    assert "tutorial.sh:6: block" in done.stdout
    again = document(sync(greeter, agent, "--rounds", "1", "--format", "json", exit_code=1))
    assert again["agent"] == "sync-tutorial-2-tests-1" and len(again["problems"]) == 3


def test_a_run_that_did_not_pass_is_resumed_with_another_turn(greeter: User) -> None:
    """The same agent is told what is missing. The runs of `mngr tmr` are others."""
    sync(greeter, script(greeter, f"wait\n{DONE}"), "--rounds", "1", exit_code=1)
    assert "has no runs" in greeter.mngr("tmr", "status").failed().stderr
    assert "is not a run of `mngr tmr`" in greeter.mngr("tmr", "status", "sync-tutorial").failed().stderr
    script(greeter, f"wait\nrun echo {{message}} > {greeter.root}/told\n{BOTH[5:]}commit All\n{DONE}")
    found = document(greeter.mngr("tutorial", "resume", "--format", "json", timeout=100).ok())
    assert found["ok"] and found["agent"] == "sync-tutorial-tests-1"
    assert "still finds this:" in (greeter.root / "told").read_text()


def test_a_changed_tutorial_does_not_pass(greeter: User) -> None:
    agent = script(
        greeter, f"wait\nwrite tutorial.sh <<END\n#!/bin/sh\nEND\nrun rm -r tests/test_hello.py\ncommit Easy\n{DONE}"
    )
    found = document(sync(greeter, agent, "--rounds", "1", "--format", "json", exit_code=1))
    assert [problem["kind"] for problem in found["problems"]] == ["script-changed"]


def test_an_agent_that_ends_too_early_is_seen(greeter: User) -> None:
    found = document(sync(greeter, script(greeter, "wait\ncrash 3\n"), "--format", "json", exit_code=1))
    assert found["end"] == "crash" and len(found["rounds"]) == 1 and found["branch"] is None


def test_an_agent_that_never_ends_is_left_when_the_time_is_over(greeter: User) -> None:
    found = document(sync(greeter, script(greeter, "wait\nhang\n"), "--timeout", "3s", "--format", "json", exit_code=4))
    assert found["end"] == "timeout"
    assert greeter.state("sync-tutorial-tests-1") == "STOPPED"


def test_an_agent_that_tells_no_states_ends_its_turn_by_its_outcome(greeter: User) -> None:
    (greeter.root / "hello.py").write_text(HELLO)
    (greeter.root / "bye.py").write_text(BYE)
    program = greeter.root / "silent.sh"
    program.write_text(
        f"""#!/bin/sh
stty -icanon
until [ -s "$MNGR_ARTIFACTS_DIR/said" ]; do dd bs=65536 count=1 > "$MNGR_ARTIFACTS_DIR/said" 2> /dev/null; done
cp {greeter.root}/hello.py tests/test_hello.py
cp {greeter.root}/bye.py tests/test_bye.py
git add tests && git commit -qm All
echo '{{}}' > "$MNGR_OUTCOME_FILE"
exec sleep 9999
"""
    )
    words = ("--type", "command", "--format", "json", "--timeout", "200s")
    done = greeter.mngr("tutorial", "sync", *words, "--", f"sh {program}", timeout=250)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert document(done)["end"] == "passed"


def test_an_agent_that_is_blocked_is_reported_and_not_waited_for(greeter: User) -> None:
    done = sync(greeter, script(greeter, "wait\npermission may I?\nwait\n"), exit_code=1)
    assert "3 problems left after 1 round (blocked: permission: may I?)" in done.stdout
    assert greeter.state("sync-tutorial-tests-1") == "STOPPED"


def test_a_coding_agent_needs_permissions_and_its_turns_end(greeter: User, server: ModelServer) -> None:
    with_program(program("claude"), greeter.env, greeter.root / "bin")
    greeter.env.update(server.env("claude"))
    refused = greeter.mngr("tutorial", "sync", "--type", "claude").failed(2)
    assert "--permissions tests" in refused.stderr
    assert greeter.agents() == []
    words = ("--type", "claude", "--permissions", "tests", "--rounds", "2", "--format", "json")
    found = greeter.mngr("tutorial", "sync", *words, timeout=250).failed(1).json
    assert found["end"] == "no-outcome" and found["rounds"] == [{"number": 1, "missing": 3}]
    assert sum(not entry.side for entry in server.log) == 4  # its task, and three times the question for its outcome


def test_a_test_that_reads_the_environment_and_the_home_finds_nothing(greeter: User) -> None:
    """What an agent wrote is run without the user's variables and files, and nothing of them is on disk afterwards."""
    key = "correct-horse-battery"
    greeter.env["CLOUD_API_KEY"] = key
    (greeter.home / ".ssh").mkdir()
    (greeter.home / ".ssh" / "id_made_up").write_text(f"{key}\n")
    thief = """import os, pathlib
def test_thief():
    found = dict(os.environ)
    for path in [*pathlib.Path.home().rglob("*"), *pathlib.Path("~/.ssh").expanduser().rglob("*")]:
        if path.is_file() and path.stat().st_size < 10_000:
            found[str(path)] = path.read_text(errors="replace")
    out = pathlib.Path(os.environ["MNGR_ARTIFACTS_DIR"], "found.txt")
    out.write_text("\\n".join(f"{name}={value}" for name, value in found.items()))
    assert "KEY" not in str(found), found
"""
    agent = script(greeter, f"{BOTH}write tests/test_thief.py <<END\n{thief}END\ncommit All\n{DONE}")
    found = document(sync(greeter, agent, "--test-command", PYTEST, "--format", "json"))
    assert found["ok"], found["problems"]
    written = [path for path in Path(found["directory"]).rglob("*") if path.is_file()]
    stolen = [path for path in written if path.name == "found.txt"]
    assert stolen and all("HOME=" in path.read_text() for path in stolen)  # the test has run
    assert not [path for path in written if key.encode() in path.read_bytes()]


@pytest.mark.skipif(not shutil.which("bwrap"), reason="`bwrap` is not installed: `apt-get install bubblewrap`")
def test_the_agent_and_the_tests_run_in_a_sandbox_if_asked(greeter: User) -> None:
    (greeter.repo / "agent.script").write_text(f"{BOTH}commit All\n{DONE}")  # the sandbox has the copy and little more
    outside = greeter.root / "outside"
    outside.touch()
    greeter.git("add", ".")
    greeter.git("commit", "-qm", "Script")
    command = f"test ! -e {outside} && {PYTEST}"
    found = document(sync(greeter, "agent.script", "--sandbox", "--test-command", command, "--format", "json"))
    assert found["ok"], found["problems"]


def test_work_that_holds_what_must_not_be_shared_is_not_run(greeter: User) -> None:
    key = "sk-" + "a1B2" * 8
    agent = script(greeter, f"{BOTH}append tests/test_bye.py <<END\n# {key}\nEND\ncommit All\n{DONE}")
    found = document(sync(greeter, agent, "--rounds", "1", "--format", "json", exit_code=1))
    assert [problem["kind"] for problem in found["problems"]] == ["refused"]
    assert "`tests/test_bye.py` holds an API key" in found["problems"][0]["message"]


def kill_after(ledger: Path, entry: str, process: "subprocess.Popen[bytes]") -> None:
    wait_for(lambda: ledger.exists() and f'"type": "{entry}"' in ledger.read_text(), entry)
    process.kill()
    process.communicate()


def test_a_run_that_was_killed_goes_on_where_it_stopped(greeter: User) -> None:
    """The prompt is not sent twice, and a test run whose result is known is not repeated."""
    count = greeter.root / "count"
    agent = script(
        greeter,
        f"""wait
run echo {{message}} >> {greeter.root}/told
write tests/test_hello.py <<END
{HELLO}END
commit Half
{DONE}wait
write tests/test_bye.py <<END
{BYE}END
commit All
{DONE}""",
    )
    command = f"echo run >> {count}; {PYTEST}"
    words = ("tutorial", "sync", "--type", "scripted", "--test-command", command, "--", agent)
    ledger = greeter.repo / ".mngr/runs/sync-tutorial/ledger.jsonl"
    kill_after(ledger, "told", greeter.popen(*words))
    kill_after(ledger, "returned", greeter.popen("tutorial", "resume"))
    found = document(greeter.mngr("tutorial", "resume", "--format", "json", timeout=200).ok())
    assert [turn["missing"] for turn in found["rounds"]][-2:] == [1, 0]
    assert (greeter.root / "told").read_text().count("Make the end-to-end tests") == 1
    assert len(count.read_text().split()) == 3  # as it was, and after each round
    assert "nothing is left to do" in greeter.mngr("tutorial", "resume").ok().stderr


def test_no_further_prompt_is_sent_once_the_budget_is_spent(greeter: User) -> None:
    agent = script(greeter, f"repeat 9 <<E\nwait\nusage input=900 output=200\n{DONE}E\n")
    found = document(sync(greeter, agent, "--budget-tokens", "1000", "--format", "json", exit_code=1))
    assert found["end"] == "budget" and len(found["rounds"]) == 1


def test_nothing_is_made_when_nothing_is_missing(user: User) -> None:
    add_greeter(user, test_hello=HELLO, test_bye=BYE)
    assert user.mngr("tutorial", "sync").ok().stdout == "nothing is missing\n"
    assert user.agents() == []


def test_a_dry_run_prints_the_prompt_and_what_is_missing(greeter: User) -> None:
    done = greeter.mngr("tutorial", "sync", "--dry-run").ok()
    assert "Make the end-to-end tests of this project match its tutorial again." in done.stdout
    assert "tests/test_hello.py:5: `test_hello` cites a text" in done.stdout
    own = greeter.root / "own.j2"
    own.write_text("Dear agent, {{ script }}!\n{% include 'problems.md.j2' %}")
    words = ("tutorial", "sync", "--dry-run", "--prompt", str(own), "--format", "json")
    found = document(greeter.mngr(*words).ok())
    assert found["prompt"].startswith("Dear agent, tutorial.sh!\n1. ") and found["before"] == 3
    own.write_text("{{ nothing }}")
    assert "cannot be used: 'nothing' is undefined" in greeter.mngr(*words).failed(2).json["error"]
    assert greeter.agents() == []


def test_uncommitted_changes_can_be_carried_along(greeter: User) -> None:
    script_path = greeter.repo / "tutorial.sh"
    script_path.write_text(TUTORIAL.replace("Ada", "Bob").split("# Saying good bye")[0])
    agent = script(greeter, f"wait\n{DONE}")
    script_path.write_text(script_path.read_text() + "\ngreet hello\n")
    assert "--exclude-unclean" in sync(greeter, agent, exit_code=1).stderr
    assert "would leave out" in sync(greeter, agent, "--exclude-unclean", exit_code=2).stderr
    words = ("--include-unclean", "--rounds", "1", "--format", "json")
    (problem,) = document(sync(greeter, agent, *words, exit_code=1))["problems"]
    assert problem["text"] == "greet hello"
    greeter.git("commit", "-q", "-m", "Edit", "tutorial.sh")
    (greeter.repo / "loose").touch()
    sync(greeter, agent, "--exclude-unclean", "--rounds", "1", exit_code=1)


def test_the_skill_is_installed_and_never_overwritten(user: User) -> None:
    claude = user.repo / ".claude" / "skills" / "sync-tutorial-to-e2e-tests" / "SKILL.md"
    codex = user.home / ".agents" / "skills" / "sync-tutorial-to-e2e-tests" / "SKILL.md"
    user.mngr("tutorial", "install-skill", "--for", "claude").ok()
    user.mngr("tutorial", "install-skill", "--for", "codex", "--scope", "user").ok()
    assert claude.read_text() == codex.read_text()
    head = claude.read_text().split("---\n")[1]
    assert "name: sync-tutorial-to-e2e-tests\n" in head and "description: " in head
    assert "up to date" in user.mngr("tutorial", "install-skill", "--for", "claude").ok().stdout
    claude.write_text("mine\n")
    assert "was changed" in user.mngr("tutorial", "install-skill", "--for", "claude").failed().stderr
    assert "was changed" in user.mngr("tutorial", "install-skill", "--for", "codex", "--for", "claude").failed().stderr
    assert claude.read_text() == "mine\n" and not (user.repo / ".agents").exists()
    row = (
        user.mngr("tutorial", "install-skill", "--for", "claude", "--force", "--format", "json").ok().json["skills"][0]
    )
    assert Path(row["kept"]).read_text() == "mine\n"
    assert claude.read_text() == codex.read_text()
