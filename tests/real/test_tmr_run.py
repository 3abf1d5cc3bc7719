"""`mngr tmr` from collection to a branch, with real pytest, real git and scripted agents."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from mngr.mapreduce.run import Run
from tests.support.tmr import FIX_SUB, NO_CHANGE, OUTCOME, SCRIPTS, TESTS, Project
from tests.support.user import User, wait_for

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def project(user: User) -> Project:
    return Project(user)


def commits(project: Project, branch: str = "tmr/r1") -> list[str]:
    return project.user.git("log", "--reverse", "--format=%s", f"main..{branch}").splitlines()


def test_a_run_ends_with_a_branch_on_which_the_suite_passes_from_mirrors_and_from_worktrees(project: Project) -> None:
    user = project.user
    before = user.git("status", "--porcelain"), user.git("rev-parse", "HEAD"), user.git("symbolic-ref", "HEAD")
    ran = project.tmr("--transfer", "git-mirror", "--format", "json").ok()
    result = ran.json
    assert project.verdicts() == {"test_add": "unchanged", "test_sub": "fixed", "test_mul": "expectation changed"}
    assert result["integration"]["green"] is True and result["exit_code"] == 0
    assert [commit["kind"] for commit in result["integration"]["commits"]] == ["test", "implementation"]
    assert commits(project)[-1] == "Subtract no more than asked"
    trailers = user.git("log", "-1", "--format=%(trailers)", "tmr/r1")
    assert "Mngr-Run: r1" in trailers and "Mngr-Test: tests/test_calc.py::test_sub" in trailers
    assert result["tokens"] == 1100 and result["cost_usd"] == 0.01
    assert Path(result["report"]).is_file()
    assert (
        user.git("status", "--porcelain"),
        user.git("rev-parse", "HEAD"),
        user.git("symbolic-ref", "HEAD"),
    ) == before
    user.git("switch", "-q", "tmr/r1")
    suite = user.run(["sh", "-c", f"PYTHONPATH=. {project.settings['test_command']}"])
    assert "3 passed" in suite.stdout, suite.stdout
    assert {agent["state"] for agent in user.agents()} == {"STOPPED"}

    user.git("switch", "-q", "main")
    project.tmr("--transfer", "git-worktree", "--no-canary", name="r2").ok()
    trees = [user.git("rev-parse", f"{branch}^{{tree}}") for branch in ("tmr/r1", "tmr/r2")]
    assert trees[0] == trees[1]


def test_only_failing_tests_and_only_those_named_get_an_agent(project: Project) -> None:
    project.tmr("--failing", "-k", "not mul", "--no-canary").ok()
    assert project.verdicts() == {"test_sub": "fixed"}
    agent = project.row("test_sub")["agent"]
    project.user.mngr("destroy", agent, "--force").ok()
    assert (
        "the work that was collected stays"
        in project.user.mngr("tmr", "integrate", "--collect", "sub").failed(1).stderr
    )
    shown = project.tmr("tests/test_calc.py::test_add", "--dry-run", "--format", "json", name="r2").ok().json
    assert [task["task"] for task in shown["tasks"]] == ["tests/test_calc.py::test_add"]


def test_a_dry_run_starts_no_agent_and_leaves_nothing(project: Project) -> None:
    shown = project.tmr("--dry-run", "--format", "json").ok().json
    assert [task["task"] for task in shown["tasks"]] == [f"tests/test_calc.py::{name}" for name in SCRIPTS]
    assert shown["tokens_low"] == 60_000 and shown["tokens_high"] == 150_000
    assert project.user.agents() == [] and not (project.repo / ".mngr" / "runs").exists()


def test_a_run_whose_budget_is_spent_continues_with_a_bigger_one_and_an_agent_with_a_message(project: Project) -> None:
    told = project.tmr("--budget-usd", "0.01", "--max-agents", "1", "--no-canary").failed(3).stdout
    assert "$0.01 of $0.01 are spent." in told and "mngr tmr resume r1 --budget-usd USD" in told
    assert project.verdicts() == {"test_add": "unchanged", "test_sub": "fixed", "test_mul": "not started"}
    user = project.user
    assert "must be at least 1" in user.mngr("tmr", "resume", "r1", "--max-jobs", "0").failed(2).stderr
    assert "for coding agents" in user.mngr("tmr", "resume", "r1", "--permissions", "edits").failed(2).stderr
    user.mngr("tmr", "resume", "r1", "--budget-usd", "5", "--deadline", "1h", "--max-jobs", "1", timeout=200).ok()
    assert project.verdicts()["test_mul"] == "expectation changed"
    facts = Run(str(project.repo / ".mngr/runs/r1")).state.facts
    assert (facts["limits"]["budget_usd"], facts["limits"]["max_agents"], facts["settings"]["max_jobs"]) == (5, 1, 1)
    words = ("tmr", "retry", "r1", "--task", "test_add", "--message", "Look once more.")
    user.mngr(*words, timeout=200).ok()
    row = project.row("test_add")
    assert (row["verdict"], row["attempts"]) == ("unchanged", 1), "the agent that it had"
    events = user.mngr("event", row["agent"], "--format", "json").ok().json
    assert [event["text"] for event in events if event["type"] == "message_queued"][1:] == ["Look once more."]


def test_after_two_crashes_another_agent_continues_from_what_was_committed(project: Project) -> None:
    fix = "sed -i 's/a - b - 1/a - b/' calc.py && git commit -q -a -m 'Subtract what is asked'"
    first = f"test $MNGR_ATTEMPT -gt 1 || test -e tried || {{ touch tried; {fix}; }}"
    project.script(
        "test_sub", f"wait\nrun {first}\nrun! test $MNGR_ATTEMPT -gt 1\n" + FIX_SUB.partition("cost=0.01\n")[2]
    )
    assert project.tmr("tests/test_calc.py::test_sub", env={"MNGR_TEST_KILL_AT": "2"}).exit_code == -signal.SIGKILL
    Run(str(project.repo / ".mngr" / "runs" / "r1")).override(limits={"backoff_seconds": 0.5})
    project.resume().ok()
    row = project.row("test_sub")
    assert (row["verdict"], row["attempts"]) == ("fixed", 2)
    told = {agent["name"]: project.user.events(agent["name"]) for agent in project.user.agents()}
    (second,) = (found for name, found in told.items() if name.endswith("-2"))
    assert "Another agent began this task" in str(second)


def test_verification_that_fails_for_a_reason_of_its_own_is_done_again_by_resume(project: Project) -> None:
    full = project.user.root / "full"
    project.settings["prepare"] = f"test ! -e {full}"
    project.write(".mngr/settings.toml", project.toml())
    project.commit("a prepare command")
    project.script("test_sub", SCRIPTS["test_sub"] + f"run! touch {full}\n")
    project.tmr("--no-canary", "-k", "sub").failed(3)
    row = project.row("test_sub")
    assert (row["verdict"], row["status"]) == ("failed", "checking") and "prepare" in row["why"], row
    full.unlink()
    project.resume().ok()
    row = project.row("test_sub")
    assert (row["verdict"], row["status"], row["attempts"]) == ("fixed", "settled", 1)
    assert "nothing is left to do" in project.resume().ok().stderr


def done(changes: str = "[]") -> str:
    return OUTCOME.format(status="done", changes=changes, summary="done")


CLAIM = '[{"kind": "implementation", "commit": "{head}", "summary": "x", "importance": 1}]'


HOSTILE = "\\u001b[2J\\u001b]0;owned\\u0007<script>alert(1)</script>"
# What an agent does, and what its row must say.
CASES = {
    "nothing_said": ("wait\nexit\n", "unclaimed", "no outcome file"),
    "empty": ("wait\noutcome-raw <<E\nE\n", "unclaimed", "is empty"),
    "other_schema": ('wait\noutcome-raw <<E\n{"schema": 9}\nE\n', "unclaimed", "neither `status` nor `summary`"),
    "huge": ("wait\nrun! head -c 100000000 /dev/zero > $MNGR_OUTCOME_FILE\n", "unclaimed", "more than 1,000,000"),
    "link_as_outcome": ("wait\nrun! ln -s /etc/passwd $MNGR_OUTCOME_FILE\n", "unclaimed", "is empty"),
    "other_task": (
        'wait\noutcome <<E\n{"schema": 1, "task": "x", "status": "done"}\nE\n',
        "refuted",
        "nothing was committed",
    ),
    "no_such_commit": ("wait\n" + done(CLAIM.replace("{head}", "0" * 40)), "refuted", "nothing was committed"),
    "no_tests_left": ("wait\nrun! rm -rf tests && git add -A\ncommit none\n" + done(CLAIM), "refuted", "deleted"),
    "link_committed": ("wait\nrun! ln -s /etc/passwd s\ncommit it\n" + done(CLAIM), "refused", "symbolic link out of"),
    "other_history": (
        "wait\nrun! git checkout -q --orphan new && git rm -q --cached calc.py && git commit -q -m new\n" + done(CLAIM),
        "refuted",
        "its test is",
    ),
    "not_committed": ("wait\nwrite fix.txt <<E\nprecious\nE\n" + done(), "refuted", "nothing was committed"),
    "locked": ("wait\nrun! touch .git/index.lock\n" + done(), "refuted", "nothing was committed"),
    "base_moves": (
        "wait\nrun! git -C {repo} commit -q --allow-empty -m meanwhile\n" + done(),
        "refuted",
        "nothing was committed",
    ),
    "blocked": ("wait\n" + OUTCOME.format(status="blocked", changes="[]", summary="x"), "blocked", "needs: a proxy"),
    "hostile": (
        "wait\n" + OUTCOME.format(status="blocked", changes="[]", summary=HOSTILE).replace("no network", HOSTILE),
        "blocked",
        "alert(1)",
    ),
    "crash_once": (
        "wait\nrun! test $MNGR_ATTEMPT != 1 || kill -9 $PPID\n" + SCRIPTS["test_sub"].removeprefix("wait\n"),
        "fixed",
        "passes now",
    ),
}


# Of the file that does not collect.
MENDED = "import calc\n\n\ndef test_odd():\n    assert calc.add(1, 1) == 2\n"
MEND = f"wait\nwrite tests/test_odd.py <<E\n{MENDED}E\ncommit mend\n" + done(CLAIM.replace("implementation", "test"))


def test_whatever_an_agent_leaves_is_a_row_with_its_reason(user: User) -> None:
    """All of them in one run: none gets in the way of another."""
    tests = "".join(f"def test_{name}():\n    assert calc.sub(3, 2) == 1\n\n\n" for name in CASES)
    project = Project(user, tests=f"import calc\n\n\ndef test_passes():\n    pass\n\n\n{tests}")
    for name, (script, _, _) in CASES.items():
        project.script(f"test_{name}", script.replace("{repo}", str(project.repo)))
    project.write("tests/test_odd.py", "import calc\n\n\ndef test_odd(:\n    assert calc.add(1, 1) == 2\n")
    project.script("test_odd.py", MEND)
    base = project.commit("a file that does not collect")
    ran = project.tmr("--no-canary", "--failing", "--max-agents", "8", timeout=500).failed(3)
    rows = {row["task"].rpartition("::test_")[2]: row for row in project.status()["rows"]}
    for name, (_, verdict, why) in CASES.items():
        assert rows[name]["verdict"] == verdict and why in rows[name]["why"], rows[name]
    assert rows["tests/test_odd.py"]["verdict"] == "expectation changed", (
        "a file that does not collect is a task of its own"
    )
    moved = user.git("log", "-1", "--format=%s"), user.git("merge-base", "main", "tmr/r1")
    assert moved == ("meanwhile", base), "a base that moves during the run changes nothing of it"
    assert rows["crash_once"]["attempts"] == 2
    assert rows["crash_once"]["effect"] and len(rows["crash_once"]["effect"]) > 1, "it mends what fails alike"
    refs = user.git("for-each-ref", "--format=%(refname)", "refs/mngr/runs/r1").splitlines()
    kept = next(ref for ref in refs if "/not-committed" in ref and ref.endswith("-uncommitted"))
    assert user.git("show", f"{kept}:fix.txt") == "precious"
    assert "\x1b[2J" not in ran.stdout + ran.stderr and "\x07" not in ran.stdout + ran.stderr
    assert "<script>" not in (project.repo / ".mngr/runs/r1/pr.md").read_text()


def test_every_agent_failing_is_said_and_is_no_success(project: Project) -> None:
    for name in SCRIPTS:
        project.script(name, "wait\nexit 3\n")
    ran = project.tmr("--max-attempts", "1", "--no-canary")
    assert ran.exit_code in (3, 5), ran
    assert set(project.verdicts().values()) <= {"unclaimed", "not started", "failed"}


def test_tests_that_hang_or_end_pytest_are_rows_of_the_baseline(user: User) -> None:
    project = Project(
        user,
        tests=TESTS
        + "\n\ndef test_hang():\n    import time\n    time.sleep(600)\n"
        + "\n\ndef test_kill():\n    import os\n    os._exit(9)\n",
    )
    for name in ("test_hang", "test_kill", "test_add"):
        project.script(name, "wait\nexit\n")
    user.mngr("config", "set", "--scope", "local", "tmr.test_seconds", "5").ok()
    project.tmr("-k", "hang or kill or add", "--exclude-unclean", "--no-canary").failed(3)
    measured = json.loads((project.repo / ".mngr/runs/r1/baseline.json").read_text())["tests"]
    runs = {test.rpartition("::")[2]: (one["verdict"], one["runs"]) for test, one in measured.items()}
    assert runs["test_hang"] == ("fail", ["timeout", "timeout"]) and runs["test_kill"] == (
        "fail",
        ["crashed", "crashed"],
    )
    assert runs["test_add"] == ("pass", ["passed"])


def test_a_project_without_tests_or_with_a_broken_command_is_told_so(project: Project) -> None:
    ran = project.tmr("-k", "nothing_is_called_so").failed(1)
    assert "there are no tests that fit" in ran.stderr
    project.user.mngr("config", "set", "--scope", "local", "tmr.test_command", "no-such-program").ok()
    ran = project.tmr("--exclude-unclean", name="r2").failed(1)
    assert "pytest could not collect" in ran.stderr and "no-such-program" in ran.stderr


def test_bad_input_begins_nothing(project: Project) -> None:
    assert "not inside this repository" in project.tmr("/etc").failed(2).stderr
    assert "does not exist" in project.tmr("tests/none.py").failed(2).stderr
    assert "no branch or commit" in project.tmr("--base", "nowhere").failed(2).stderr
    assert "at least 1" in project.tmr("--max-agents", "0").failed(2).stderr
    assert "invalid branch name" in project.tmr("--branch", "so so").failed(2).stderr
    project.user.git("branch", "tmr")
    assert "branch `tmr` is in the way" in project.tmr().failed(2).stderr
    project.user.git("branch", "-d", "tmr")
    project.user.mngr("config", "set", "--scope", "user", "tmr.prompt", "prompts/none.j2").ok()
    assert "none.j2` cannot be used" in project.tmr().failed(2).stderr
    project.write("calc.py", "changed = 1\n")
    assert "1 uncommitted change that agents" in project.tmr().failed(1).stderr
    assert not (project.repo / ".mngr" / "runs").exists()


def installed_elsewhere(project: Project) -> None:
    """The product as an editable install of another copy would be: found before the checkout's own."""
    other = project.user.root / "other"
    other.mkdir()
    (other / "calc.py").write_text((project.repo / "calc.py").read_text())
    project.settings["env.PYTHONPATH"] = str(other)
    project.write("tests/conftest.py", f"import sys\nsys.path.insert(0, {str(other)!r})\n")


def test_the_canary_finds_tests_that_run_another_copy_of_the_code(project: Project) -> None:
    installed_elsewhere(project)
    project.write(".mngr/settings.toml", project.toml())
    project.commit("installed elsewhere")
    ran = project.tmr().failed(1)
    assert "do not run the code of their own checkout" in ran.stderr and "tmr.prepare" in ran.stderr
    assert not project.user.agents()


def test_the_canary_finds_a_program_from_elsewhere_and_prepare_helps(project: Project) -> None:
    """The tests run a program that is on PATH; the one of the checkout has to be put there first."""
    program = project.user.root / "bin" / "calc"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 7\n")
    program.chmod(0o755)
    project.write("bin/calc", "#!/bin/sh\necho 7\n")
    (project.repo / "bin/calc").chmod(0o755)
    project.write(
        "tests/test_calc.py",
        "import subprocess\n\n\ndef test_program():\n    assert subprocess.check_output(['calc']) == b'7\\n'\n",
    )
    project.script("test_program", NO_CHANGE)
    project.settings["env.PATH"] = f"{program.parent}:{project.user.env['PATH']}"
    project.write(".mngr/settings.toml", project.toml())
    project.commit("a program")
    assert "do not run the code of their own checkout" in project.tmr().failed(1).stderr
    project.settings["prepare"] = "mkdir -p .bin && cp bin/calc .bin/calc"
    project.settings["test_command"] = 'env PATH="$PWD/.bin:$PATH" ' + project.settings["test_command"]
    project.write(".mngr/settings.toml", project.toml())
    project.write(".gitignore", "__pycache__/\n.bin/\n")
    project.commit("prepared")
    project.tmr(name="r2").ok()
    assert project.status("r2")["canary"]["test"] == "tests/test_calc.py::test_program"


@pytest.mark.parametrize("kills", [("4", "5.5", "9"), pytest.param(("16", "3.5", "7", "2"), marks=pytest.mark.soak)])
def test_a_run_that_is_killed_ends_as_one_that_is_not(project: Project, kills: tuple[str, ...]) -> None:
    killed = project.user.mngr(*project.words("--no-canary"), env={"MNGR_TEST_KILL_AT": kills[0]}, timeout=110)
    assert killed.exit_code == -9, killed
    for at in kills[1:]:
        assert project.resume(env={"MNGR_TEST_KILL_AT": at}).exit_code == -9
    project.resume().ok()
    assert project.user.git("rev-parse", "tmr/r1^{tree}") == mended(project)
    attempts = [(entry["task"], entry["number"]) for entry in project.ledger() if entry["type"] == "attempt"]
    assert len(attempts) == len(set(attempts)) == 3, "no task is paid for twice"
    assert {agent["labels"]["mngr-role"] for agent in project.user.agents()} == {"map"}, "no job is left"


def mended(project: Project) -> str:
    """The tree that an undisturbed run gives: base with both fixes in it."""
    with_fixes = project.user.root / "mended"
    project.user.git("clone", "-q", str(project.repo), str(with_fixes))
    for path, old, new in (("calc.py", "a - b - 1", "a - b"), ("tests/test_calc.py", "== 7", "== 6")):
        (with_fixes / path).write_text((with_fixes / path).read_text().replace(old, new))
    project.user.git("commit", "-q", "-a", "-m", "mended", cwd=with_fixes)
    return project.user.git("rev-parse", "HEAD^{tree}", cwd=with_fixes)


def test_a_run_is_stopped_with_its_work_and_goes_on(project: Project) -> None:
    project.script("test_sub", "wait\nwrite half.txt <<E\nhalf\nE\nthink 600\n")
    child = project.user.popen(*project.words("tests/test_calc.py::test_sub", "--no-canary"))
    try:
        wait_for(
            lambda: any(Path(agent["work_dir"], "half.txt").exists() for agent in project.user.agents()),
            "the agent to work",
            100,
        )
        project.user.mngr("tmr", "stop", timeout=100).ok()
        assert child.wait(timeout=60) != 0
    finally:
        child.kill()
        child.communicate()
    kept = project.user.git("for-each-ref", "--format=%(refname)", "refs/mngr/runs/r1")
    assert "-uncommitted" in kept
    project.script("test_sub", SCRIPTS["test_sub"])
    project.resume()
    assert project.row("test_sub")["verdict"] in ("fixed", "unclaimed")


def test_a_run_is_stopped_in_its_baseline_and_goes_on(user: User) -> None:
    sign = user.root / "hurry"
    slow = f"    import os, time\n    while not os.path.exists({str(sign)!r}):\n        time.sleep(0.05)\n"
    project = Project(user, tests=f"{TESTS}\n\ndef test_slow():\n{slow}")
    child = user.popen(*project.words("-k", "add", "--no-canary"))
    try:
        wait_for(lambda: any("baseline" in agent["name"] for agent in user.agents()), "the baseline to begin", 100)
        user.mngr("tmr", "stop", timeout=100).ok()
        assert child.wait(timeout=60) == 1
    finally:
        child.kill()
        child.communicate()
    assert user.agents() == []
    assert project.status()["state"] == "stopped"
    assert "no work to integrate yet" in user.mngr("tmr", "integrate").failed(1).stderr
    sign.touch()
    project.resume().ok()
    assert project.status()["state"] == "over" and project.verdicts() == {"test_add": "unchanged"}


def test_a_second_orchestrator_is_refused(project: Project) -> None:
    project.script("test_sub", "wait\nthink 600\n")
    child: subprocess.Popen[bytes] = project.user.popen(*project.words("tests/test_calc.py::test_sub", "--no-canary"))
    try:
        ledger = project.repo / ".mngr/runs/r1/ledger.jsonl"
        wait_for(lambda: ledger.exists() and Run(str(ledger.parent)).orchestrator() == child.pid, "the run to begin")
        refused = project.resume().failed(1)
        assert f"process {child.pid}" in refused.stderr
    finally:
        child.kill()
        child.communicate()


def test_dropped_and_held_work_is_a_persons_choice_that_is_not_forgotten(project: Project) -> None:
    project.script(
        "test_add",
        "wait\nwrite tests/conftest.py <<E\n# for all\nE\ncommit settle\n"
        + done(CLAIM.replace("implementation", "test")),
    )
    project.tmr("--no-canary").failed(3)
    assert project.verdicts()["test_add"] == "held"
    assert "tests/conftest.py" not in project.user.git("ls-tree", "-r", "--name-only", "tmr/r1")
    project.user.mngr("tmr", "integrate", "--accept", "add", timeout=110)
    assert "tests/conftest.py" in project.user.git("ls-tree", "-r", "--name-only", "tmr/r1")
    drop_but_be_killed(project, project.row("test_sub")["slug"])
    project.resume().failed(3)
    assert project.status()["integration"]["dropped"] == [project.row("test_sub")["slug"]]
    assert "Subtract no more than asked" not in commits(project)
    project.user.mngr("tmr", "integrate", "--accept", "nobody").failed(2)
    assert "has no task `nobody`" in project.user.mngr("tmr", "review", "--drop", "nobody").failed(2).stderr
    assert project.status()["state"] == "over"
    project.user.mngr("tmr", "review", "--drop", "add", "--drop", "mul", timeout=110).failed(3)
    assert not project.user.git("log", "--format=%s", "main..tmr/r1"), "a change of a test can be dropped too"
    project.user.mngr("tmr", "integrate", "--accept", "sub", timeout=110).failed(3)
    assert commits(project)[-1] == "Subtract no more than asked"
    assert project.status()["integration"]["branch"] == "tmr/r1"


def drop_but_be_killed(project: Project, slug: str) -> None:
    """When what is left begins to be integrated anew."""
    before = len(project.ledger())
    asked = project.user.mngr("tmr", "review", "--drop", slug, env={"MNGR_TEST_KILL_AT": "2"})
    assert asked.exit_code == -9, asked
    assert [(one["type"], one.get("name")) for one in project.ledger()[before:]] == [
        ("resumed", None),
        ("phase", "integrate"),
    ]
    found = project.status()
    assert (found["integration"], found["state"]) == (None, "broken off")
