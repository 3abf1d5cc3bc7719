"""`mngr demo`, as a newcomer runs it."""

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.user import MNGR, User, wait_for

NAMES = ["fix-cents", "more-tests", "readme", "round-tip", "add-json"]


def sessions(user: User) -> list[str]:
    return user.tmux("list-sessions", "-F", "#{session_name}").stdout.split()


def agents_of(user: User, demo: Path) -> list[str]:
    listed = user.mngr("list", "--format", "json", env={"MNGR_HOST_DIR": str(demo / "host")}).ok().json
    return [agent["name"] for agent in listed["agents"]]


def test_the_demo_shows_everything_and_leaves_nothing_running(user: User) -> None:
    began = time.monotonic()
    done = user.mngr("demo", cwd=user.root).ok()
    assert time.monotonic() - began < 20
    demo = user.root / "mngr-demo"
    lines = done.stdout.splitlines()
    assert lines[-1] == str(demo / "report.md")
    assert done.stderr == ""
    for name in NAMES:
        assert f"merged 1 commit of {name} into main" in done.stdout
        assert f"$ mngr diff {name} --stat" in lines
    assert any("round-tip is BLOCKED: question: Round a tip" in line for line in lines)
    assert "$ mngr message round-tip -m 'To the cent, please.'" in lines
    assert "  3 tests, 1 fails" in lines
    assert "  7 tests, all pass" in lines
    assert "\x1b" not in done.stdout
    report = (demo / "report.md").read_text()
    for name in NAMES:
        assert f"| {name} |" in report
    repo = demo / "bill"
    assert user.git("status", "--porcelain", cwd=repo) == ""
    assert user.git("worktree", "list", cwd=repo).count("\n") == 0
    assert "half a cent is rounded up" in (repo / "bill.py").read_text()
    assert (sessions(user), agents_of(user, demo)) == ([], [])
    assert user.processes() == []
    assert not user.host_dir.exists()


def test_its_states_are_told_as_json(user: User) -> None:
    done = user.mngr("demo", "--dir", "new/place", "--format", "json", cwd=user.root).ok()
    value = done.json
    assert value["directory"] == str(user.root / "new" / "place")
    assert value["tests"] == {"before": {"ran": 3, "failed": 1}, "after": {"ran": 7, "failed": 0}}
    assert [agent["name"] for agent in value["agents"]] == NAMES
    states = {agent["name"]: [seen["state"] for seen in agent["states"]] for agent in value["agents"]}
    assert states["round-tip"][-4:] == ["RUNNING", "BLOCKED", "RUNNING", "WAITING"]
    assert states["readme"][-1] == "DONE"
    for agent in value["agents"]:
        assert len(agent["commits"]) == 1
        assert agent["files"]
        times = [seen["at_seconds"] for seen in agent["states"]]
        assert times == sorted(times)
    assert Path(value["report"]).is_file()


def test_a_repository_around_it_and_its_agents_are_not_touched(user: User) -> None:
    mine = user.create("fix-cents")
    (user.repo / ".mngr").mkdir()
    (user.repo / ".mngr" / "settings.toml").write_text('[tmux]\nsession_prefix = "other-"\n')
    user.git("add", ".")
    user.git("commit", "-q", "-m", "settings")
    before = user.git("for-each-ref"), user.git("worktree", "list"), (user.repo / ".git" / "config").read_text()
    user.mngr("demo", cwd=user.repo).ok()
    assert user.git("status", "--porcelain") == ""
    assert (user.git("for-each-ref"), user.git("worktree", "list"), (user.repo / ".git/config").read_text()) == before
    assert (user.state("fix-cents"), user.agent("fix-cents")["pid"]) == ("RUNNING", mine["pid"])
    assert sessions(user) == ["mngr-fix-cents"]
    user.create("another")


def test_it_needs_no_git_identity_and_heeds_no_git_setting_that_would_ask(user: User) -> None:
    (user.home / "hooks").mkdir()
    (user.home / "hooks" / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (user.home / "hooks" / "pre-commit").chmod(0o755)
    (user.home / ".gitconfig").write_text(
        "[user]\n\tuseConfigOnly = true\n[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = false\n"
        f"[core]\n\thooksPath = {user.home}/hooks\n[merge]\n\tff = only\n[init]\n\tdefaultBranch = trunk\n"
    )
    done = user.mngr("demo", cwd=user.root, env={"GIT_DIR": str(user.repo / ".git")}).ok()
    assert "  7 tests, all pass" in done.stdout.splitlines()
    assert user.git("log", "-1", "--format=%an", cwd=user.root / "mngr-demo" / "bill") == "mngr demo"


def test_the_commands_it_shows_do_the_same_by_hand(user: User) -> None:
    value = user.mngr("demo", "--dir", "with space", "--format", "json", cwd=user.root).ok().json
    report = Path(value["report"]).read_text()
    blocks = [part.split("```")[0] for part in report.split("```sh\n")[1:]]
    script = "set -e\n" + "".join(blocks)
    assert script.count("mngr list --watch") == 1
    lines = [line for line in script.splitlines() if not line.startswith("mngr list --watch")]
    lines[lines.index("python3 -m unittest")] += " || true"
    done = user.run(["sh", "-c", "\n".join(lines)], cwd=user.root).ok()
    assert "merged 1 commit of add-json into again" in done.stdout
    assert done.stdout.count("destroyed ") == 5
    assert "OK" in done.stderr
    assert user.git("diff", "--stat", "main", "again", cwd=user.root / "with space" / "bill") == ""


def test_kept_agents_are_still_there(user: User) -> None:
    done = user.mngr("demo", "--keep", cwd=user.root).ok()
    demo = user.root / "mngr-demo"
    assert sorted(agents_of(user, demo)) == sorted(NAMES)
    assert len(sessions(user)) == 5
    assert f"export MNGR_HOST_DIR={demo}/host" in done.stdout
    assert done.stdout.splitlines()[-1] == str(demo / "report.md")
    user.mngr("destroy", "--all", env={"MNGR_HOST_DIR": str(demo / "host")}).ok()
    assert sessions(user) == []


def test_a_second_demo_gets_another_directory_and_a_wanted_one_must_be_empty(user: User) -> None:
    (user.root / "mngr-demo").mkdir()
    (user.root / "full").mkdir()
    (user.root / "full" / "file").write_text("mine\n")
    refused = user.mngr("demo", "--dir", "full", cwd=user.root).failed(2)
    assert "`full` exists and is not an empty directory" in refused.stderr
    assert [path.name for path in (user.root / "full").iterdir()] == ["file"]
    assert user.mngr("demo", "-q", cwd=user.root).ok().stdout == f"{user.root}/mngr-demo-2/report.md\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_stops_what_it_started(user: User, number: signal.Signals) -> None:
    child = user.popen("demo", cwd=user.root)
    try:
        wait_for(lambda: len(sessions(user)) >= 3, "three agents to run")
        child.send_signal(number)
        _, stderr = child.communicate(timeout=20)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == 128 + number
    assert b"the agents of the demo are stopped" in stderr
    assert (sessions(user), agents_of(user, user.root / "mngr-demo")) == ([], [])
    assert user.processes() == []


def test_when_nobody_reads_it_any_more_it_stops_what_it_started(user: User) -> None:
    done = user.run(["sh", "-c", "mngr demo | head -n 20"], cwd=user.root)
    assert len(done.stdout.splitlines()) == 20
    wait_for(lambda: not sessions(user) and not user.processes(), "all to be gone")


def test_an_agent_that_fails_ends_the_demo_with_its_last_words(user: User) -> None:
    """A `python3` that cannot run the tests makes the first agent fail."""
    fake = user.root / "bin"
    fake.mkdir()
    (fake / "sh").write_text('#!/bin/sh\ncase "$*" in *unittest*) echo broken; exit 9;; esac\nexec /bin/sh "$@"\n')
    (fake / "sh").chmod(0o755)
    done = user.mngr("demo", cwd=user.root, env={"PATH": f"{fake}:{user.env['PATH']}"})
    assert done.exit_code == 1
    assert "is FAILED: exit code 1" in done.stderr
    assert "ended with exit code 9" in done.stderr
    assert sessions(user) == []


def test_on_a_terminal_the_states_are_redrawn_in_place(user: User) -> None:
    screen = on_terminal(user, [MNGR, "demo"], rows=50, columns=100)
    assert "\x1b[5F" in screen
    assert screen.count("What they do, live") == 1
    assert "\x1b[1;31mBLOCKED\x1b[0m" in screen
    assert screen.rfind("\x1b[?25h") > screen.rfind("\x1b[?25l") >= 0
    assert screen.rstrip().endswith(str(user.root / "mngr-demo" / "report.md"))
    for line in screen.split("\x1b[5F")[1].splitlines()[:5]:
        assert len(visible(line)) <= 100


def test_a_low_terminal_gets_plain_lines(user: User) -> None:
    assert "\x1b[5F" not in on_terminal(user, [MNGR, "demo"], rows=8, columns=60)


def visible(text: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).rstrip("\r\n")


def on_terminal(user: User, argv: list[str], *, rows: int, columns: int) -> str:
    """Run on a terminal of that size and return all that was written to it."""
    import fcntl
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    child = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, cwd=user.root, env=user.env)
    os.close(slave)
    data = bytearray()
    read: Callable[[], bytes] = lambda: os.read(master, 65536)  # noqa: E731
    try:
        while chunk := read():
            data += chunk
    except OSError:  # the end, as Linux says it
        pass
    finally:
        os.close(master)
    assert child.wait(20) == 0, data.decode()
    return data.decode()


def test_the_data_of_the_demo_is_complete_and_its_scripts_can_be_read() -> None:
    from mngr.agents.kinds.scripted.script import parse
    from mngr.demo.cast import CAST

    directory = Path(__file__).parents[2] / "src" / "mngr" / "demo"
    scripts = {path.stem: path for path in (directory / "agents").iterdir()}
    assert sorted(scripts) == sorted(part.name for part in CAST) == sorted(NAMES)
    for path in scripts.values():
        assert parse(path.read_text())
    assert json.dumps(sorted(path.name for path in (directory / "project").iterdir() if path.is_file())) == json.dumps(
        [".gitignore", "README.md", "bill.py", "test_bill.py"]
    )
