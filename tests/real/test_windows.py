"""Windows beside the agent's own, and what is brought and run before it starts."""

from pathlib import Path

from tests.support.leftovers import found
from tests.support.user import User, wait_for


def windows(user: User, session: str) -> list[str]:
    return user.tmux("list-windows", "-t", f"={session}", "-F", "#W").stdout.split()


def written(path: Path) -> str:
    return wait_for(lambda: path.read_text() if path.exists() and path.read_text().endswith("\n") else None, str(path))


def test_a_window_has_the_directory_and_the_variables_of_its_agent(user: User) -> None:
    says = 'echo "$PWD $MNGR_AGENT_NAME $GIVEN $KEPT" > said; sleep 9998'
    user.env["KEPT"] = "inherited"
    agent = user.create("foo", "-w", f"side={says}", "--extra-window", "cat", "--env", "GIVEN=a b")
    assert written(Path(agent["work_dir"]) / "said") == f"{agent['work_dir']} foo a b inherited\n"
    names = windows(user, agent["session"])
    assert names[1:] == ["side", "window-1"]
    current = user.tmux("display-message", "-p", "-t", f"={agent['session']}:", "#{window_index}").stdout
    assert current.strip() == user.tmux("list-windows", "-t", f"={agent['session']}", "-F", "#I").stdout.split()[0]


def test_list_and_capture_see_the_agents_own_window_only(user: User) -> None:
    user.create("foo", "-w", "side=echo from the side; sleep 9998", command="echo from the agent; sleep 9999")
    agents = user.agents()
    assert [(agent["name"], agent["state"]) for agent in agents] == [("foo", "RUNNING")]
    wait_for(lambda: "from the agent" in user.mngr("capture", "foo").stdout, "the agent's screen")
    assert "from the side" not in user.mngr("capture", "foo").stdout


def test_windows_end_with_stop_and_come_back_with_start(user: User) -> None:
    stubborn = "trap '' HUP TERM; echo $$ >> pids; while :; do sleep 1; done"
    agent = user.create("foo", "-w", f"side={stubborn}")
    pids = Path(agent["work_dir"]) / "pids"
    first = int(written(pids))
    assert first in user.processes()
    user.mngr("stop", "foo").ok()
    assert first not in user.processes()
    user.mngr("start", "foo").ok()
    second = wait_for(lambda: pids.read_text().split()[1:], "the window to come back")
    assert int(second[0]) != first
    assert "side" in windows(user, agent["session"])


def test_an_agent_that_ends_is_done_although_its_window_runs_on(user: User) -> None:
    user.create("foo", "-w", "side=sleep 9998", command="true")
    user.wait_for_state("foo", "DONE")
    user.mngr("destroy", "foo").ok()
    assert found(user) == []


def test_a_window_that_cannot_be_meant_is_refused(user: User) -> None:
    for text, said in (
        ("PORT=8000", "`--env PORT=VALUE` sets a variable"),
        ("side=", "window `side` has no command"),
        ("  ", "has no command"),
    ):
        ran = user.mngr("create", "foo", "--no-connect", "--command", "cat", "-w", text).failed(2)
        assert said in ran.stderr
    ran = user.mngr("create", "foo", "--no-connect", "--command", "cat", "-w", "a=x", "-w", "a=y").failed(2)
    assert "two windows are called `a`" in ran.stderr
    assert user.agents() == []


def test_windows_work_for_many(user: User) -> None:
    user.mngr("create", "w", "--count", "2", "--no-connect", "--command", "cat", "-w", "side=sleep 9998").ok()
    for name in ("w-1", "w-2"):
        assert windows(user, user.agent(name)["session"])[1:] == ["side"]


def test_a_command_prepares_the_work_dir_before_the_agent_starts(user: User) -> None:
    agent = user.create(
        "foo", "--extra-provision-command", 'echo "$KEY $MNGR_AGENT_NAME" > made', "--env", "KEY=a value",
        "--extra-provision-command", "cat made made > twice", command="cat twice; sleep 9999",
    )  # fmt: skip
    assert (Path(agent["work_dir"]) / "twice").read_text() == "a value foo\n" * 2
    wait_for(lambda: "a value foo" in user.mngr("capture", "foo").stdout, "the agent to read it")


def test_a_command_that_fails_takes_everything_back_and_shows_its_output(user: User) -> None:
    ran = user.mngr(
        "create", "foo", "--no-connect", "--command", "cat", "--env", "KEY=very-secret",
        "--extra-provision-command", "echo trouble with $KEY >&2; exit 7",
    ).failed(1)  # fmt: skip
    assert "(exit code 7)" in ran.stderr and "  trouble with ***" in ran.stderr
    assert found(user) == []


def test_a_file_is_brought_along(user: User) -> None:
    (user.root / "key file").write_text("secret")
    (user.root / "key file").chmod(0o600)
    (user.root / "folder").mkdir()
    (user.root / "folder" / "inner").write_text("x")
    agent = user.create(
        "foo", "--upload-file", f"{user.root}/key file:conf/key", "--upload-file", f"{user.root}/folder:folder"
    )
    place = Path(agent["work_dir"])
    assert (place / "conf" / "key").read_text() == "secret"
    assert (place / "conf" / "key").stat().st_mode & 0o777 == 0o600
    assert (place / "folder" / "inner").read_text() == "x"


def test_a_file_never_leaves_the_work_dir_and_replaces_nothing_of_the_user(user: User) -> None:
    (user.root / "file").write_text("new")
    for target in ("/etc/x", "../x", "~/x", ".git/hooks/x"):
        ran = user.mngr(
            "create", "foo", "--no-connect", "--command", "cat", "--upload-file", f"{user.root}/file:{target}"
        )
        assert "not a path below the agent's work dir" in ran.failed(2).stderr
    ran = user.mngr("create", "foo", "--no-connect", "--command", "cat", "--upload-file", "nothing:here").failed(2)
    assert "`nothing` does not exist" in ran.stderr
    outside = user.root / "outside"
    outside.mkdir()
    (user.repo / "link").symlink_to(outside)
    user.git("add", "link")
    user.git("commit", "-q", "-m", "link")
    ran = user.mngr(
        "create", "foo", "--no-connect", "--command", "cat", "--upload-file", f"{user.root}/file:link/file"
    ).failed(1)
    assert "`link` leads out of" in ran.stderr and not list(outside.iterdir())
    ran = user.mngr(
        "create", "foo", "--no-connect", "--command", "cat", "--transfer", "none",
        "--upload-file", f"{user.root}/file:README.md",
    ).failed(1)  # fmt: skip
    assert "is not replaced" in ran.stderr and (user.repo / "README.md").read_text() == "hello\n"
    assert found(user) == []
