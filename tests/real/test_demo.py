"""`mngr demo`, as a newcomer runs it: agents that fix, crash, ask, clash and lie, and one branch of what holds."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mngr.demo import sample
from mngr.e2e.screen import Screen
from mngr.programs.scripted.script import parse
from tests.real.test_schemas import validator
from tests.support.user import MNGR, User, wait_for

pytestmark = pytest.mark.timeout(700)

# The demo runs the tests of its sample project with pytest, which takes these words from anyone.
TWO_TESTS = {"PYTEST_ADDOPTS": '-k "due_names_the_thirsty or the_list_shows_one_room"'}


def sessions(user: User) -> list[str]:
    return user.tmux("list-sessions", "-F", "#{session_name}").stdout.split()


def agents_of(user: User, demo: Path) -> list[dict[str, Any]]:
    listed = user.mngr("list", "--format", "json", env={"MNGR_HOST_DIR": str(demo / "host")}).ok().json
    found: list[dict[str, Any]] = listed["agents"]
    return found


def hostile_world(user: User) -> dict[str, str]:
    """Settings of git that ask, sign or run hooks, a repository around the demo with settings of its own, and the
    environment of an agent of mngr."""
    (user.home / "hooks").mkdir()
    (user.home / "hooks" / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (user.home / "hooks" / "pre-commit").chmod(0o755)
    (user.repo / ".mngr").mkdir()
    (user.repo / ".mngr" / "settings.toml").write_text('[tmux]\nsession_prefix = "other-"\n')
    user.git("add", ".")
    user.git("commit", "-q", "-m", "settings")
    (user.home / ".gitconfig").write_text(
        "[user]\n\tuseConfigOnly = true\n[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = false\n"
        f"[core]\n\thooksPath = {user.home}/hooks\n\tautocrlf = true\n[init]\n\tdefaultBranch = trunk\n"
    )
    return {"GIT_DIR": str(user.repo / ".git"), "MNGR_AGENT_NAME": "outer", "MNGR_TASK": "outer", "TMUX": "/none,1,0"}


def test_two_agents_are_kept_and_the_world_around_is_as_it_was(user: User) -> None:
    """Two of the tests are enough for this. A whole run is in `tests/sessions/test_getting_started.py`."""
    mine = user.create("mine")
    env = {**hostile_world(user), **TWO_TESTS}
    before = user.git("for-each-ref"), user.git("worktree", "list"), (user.repo / ".git" / "config").read_text()
    words = ("demo", "--keep", "--dir", "a place/demo", "--format", "json")
    found = user.mngr(*words, env=env, timeout=600).ok().json
    directory = user.repo / "a place" / "demo"
    repo = directory / "sprout"

    assert user.git("status", "--porcelain") == ""
    assert (
        user.git("for-each-ref"),
        user.git("worktree", "list"),
        (user.repo / ".git" / "config").read_text(),
    ) == before
    assert (user.state("mine"), user.agent("mine")["pid"]) == ("RUNNING", mine["pid"])

    validator("demo")(found)
    assert (found["repository"], found["agents_kept"], found["exit_code"]) == (str(repo), True, 3)
    assert sorted(row["verdict"] for row in found["rows"]) == ["fixed", "refused"]
    integration = found["integration"]
    assert integration["green"] is True
    log = user.git("log", "--reverse", "--format=%H", f"main..{integration['branch']}", cwd=repo).split()
    assert log == [commit["id"] for commit in integration["commits"]] != []
    report = Path(found["report"])
    assert report.name == "index.html" and report.is_file() and report.is_relative_to(directory)

    left = agents_of(user, directory)
    # One for each test, and one for the words of the pull request. No run of tests is among them.
    assert len(left) == 3 and {agent["type"] for agent in left} == {"scripted"}
    assert {agent["state"] for agent in left} <= {"STOPPED", "FAILED"}
    assert sessions(user) == ["mngr-mine"]
    user.mngr("destroy", "--all", "--force", cwd=repo, env={"MNGR_HOST_DIR": str(directory / "host")}).ok()
    assert agents_of(user, directory) == []


def test_the_command_that_it_shows_is_the_one_that_it_runs(user: User) -> None:
    """Up to its first job; then it is ended, and the shown words are typed to see what they would do."""
    child = user.popen("demo", "--dir", "with space", cwd=user.root)
    stdout = ended(user, child, signal.SIGTERM, 1).decode()
    lines = stdout.replace("\\\n", "").splitlines()
    typed = "\n".join(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
    assert "mngr tmr --name demo --type scripted" in typed
    script = typed.replace("git log", "git --no-pager log").replace(
        "--name demo", "--name again --dry-run --format json"
    )
    shown = user.run(["sh", "-euc", script], cwd=user.root, timeout=300).ok()
    assert len(json.loads(shown.stdout[shown.stdout.index("\n{") :])["tasks"]) == 18
    facts = json.loads((user.root / "with space/sprout/.mngr/runs/demo/ledger.jsonl").read_text().splitlines()[0])
    assert facts["workers"]["args"] == [str(user.root / "with space/scripts/{name}.script")]


def test_hung_up_on_it_leaves_nothing_running(user: User) -> None:
    """While two runs of the tests are under way, in threads. Ctrl-C is tried on a terminal below."""
    ended(user, user.popen("demo", cwd=user.root), signal.SIGHUP, 2)


def ended(user: User, child: "subprocess.Popen[bytes]", number: signal.Signals, jobs: int) -> bytes:
    """Send the signal once so many jobs run; what it printed. All that it started is gone then."""
    try:
        wait_for(lambda: len(sessions(user)) >= jobs, f"{jobs} jobs to run", timeout=300)
        child.send_signal(number)
        stdout, stderr = child.communicate(timeout=200)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == 128 + number, stderr
    assert b"the demo's agents were destroyed" in stderr
    assert b"Traceback" not in stderr
    (demo,) = [path.parent for path in user.root.glob("*/sprout")]
    nothing_is_left(user, demo)
    return stdout


def nothing_is_left(user: User, demo: Path) -> None:
    assert (sessions(user), agents_of(user, demo)) == ([], [])
    wait_for(lambda: not user.processes(), "the tmux server to end, which has nothing left to serve")


# Agents run their tests with this `python`: they are at work until somebody has seen it.
ENDLESS = f"""#!/bin/sh
[ -z "$MNGR_TASK" ] || exec sleep 9999
exec {sys.executable} "$@"
"""


@pytest.fixture
def screen(user: User) -> Iterator[Screen]:
    endless = user.root / "endless" / "python"
    endless.parent.mkdir()
    endless.write_text(ENDLESS)
    endless.chmod(0o755)
    made = Screen(
        [MNGR, "demo"],
        env={**user.env, **TWO_TESTS, "PATH": f"{endless.parent}:{user.env['PATH']}"},
        cwd=str(user.root),
        columns=100,
        rows=50,
        directory=str(user.tmux_dir),
        cast_path=str(user.root / "demo.cast"),
        title="mngr demo",
        number=1,
        on_keys=lambda keys: None,
    )
    try:
        yield made
    finally:
        made.close()


def test_on_a_terminal_its_agents_are_seen_at_work_until_ctrl_c(user: User, screen: Screen) -> None:
    # All of it at once: between two screens there is half of one.
    wanted = (" RUNNING ", "/2", "$ mngr tmr --name demo")
    wait_for(lambda: all(text in shown for text in wanted) if (shown := screen.text) else None, "an agent at work", 600)
    assert all(len(line) <= 100 for line in screen.text.splitlines())
    screen.press("C-c")
    wait_for(lambda: not screen.alive, "its end", timeout=200)
    assert screen.exit_code == 130
    assert "the demo's agents were destroyed" in screen.text
    written = (user.root / "demo.cast").read_text()
    assert written.rfind("\\u001b[?25h") > written.rfind("\\u001b[?25l") >= 0, "the cursor is back"
    nothing_is_left(user, user.root / "mngr-demo")


def test_when_nobody_reads_it_any_more_it_leaves_nothing_running(user: User) -> None:
    user.run(["sh", "-c", "mngr demo | head -n 1"], cwd=user.root, timeout=300)
    wait_for(lambda: not sessions(user) and not user.processes(), "all to be gone")


def test_a_wanted_directory_must_be_empty(user: User) -> None:
    (user.root / "full").mkdir()
    (user.root / "full" / "file").write_text("mine\n")
    refused = user.mngr("demo", "--dir", "full", cwd=user.root).failed(2)
    assert "`full` exists and is not an empty directory" in refused.stderr
    assert [path.name for path in (user.root / "full").iterdir()] == ["file"]


def test_every_test_of_the_sample_has_a_script_that_can_be_read() -> None:
    tests = Path(sample.source()) / "tests"
    names = {
        line.partition("(")[0].removeprefix("def ")
        for path in tests.glob("test_*.py")
        for line in path.read_text().splitlines()
        if line.startswith("def test_")
    }
    scripts = {path.stem: path for path in Path(sample.SCRIPTS).iterdir()}
    assert set(scripts) == {*names, "integrator"}
    for path in scripts.values():
        assert parse(path.read_text())
