"""Create --reuse: the agent that exists is used, if it is what was asked for. Create --edit-message."""

from tests.support.terminals import editor, on_a_terminal
from tests.support.user import User, wait_for

CAT = ("--no-connect", "--command", "cat")


def test_reuse_makes_the_agent_the_first_time_and_uses_it_from_then_on(user: User) -> None:
    first = user.mngr("create", "foo", "--reuse", *CAT, "--format", "json").ok().json
    second = user.mngr("create", "foo", "--reuse", *CAT, "--format", "json").ok().json
    assert (first.pop("reused"), second.pop("reused")) == (False, True)
    assert first == second
    assert user.mngr("create", "foo", "--reuse", "--no-connect").ok().stdout == "using existing agent foo\n"
    assert len(user.agents()) == 1
    assert [event["type"] for event in user.events("foo")].count("started") == 1


def test_reuse_starts_a_stopped_agent_and_delivers_the_message(user: User) -> None:
    user.create("foo", command="cat")
    (user.work_dir("foo") / "work.txt").write_text("kept")
    user.mngr("stop", "foo").ok()
    user.mngr("create", "foo", "--reuse", *CAT, "-m", "hello again").ok()
    assert user.state("foo") == "RUNNING"
    assert (user.work_dir("foo") / "work.txt").read_text() == "kept"
    wait_for(lambda: "hello again" in user.mngr("capture", "foo").stdout, "the message")


def test_reuse_refuses_an_agent_that_is_something_else_and_says_what_differs(user: User) -> None:
    user.create("foo", command="cat")
    user.mngr("stop", "foo").ok()
    ran = user.mngr("create", "foo", "--reuse", "--no-connect", "--command", "sleep 1").failed(1)
    assert "`foo` exists, but it is not what you ask for: its command is `cat`, not `sleep 1`" in ran.stderr
    ran = user.mngr("create", "foo", "scripted", "--reuse", "--no-connect").failed(1)
    assert "its type is `command`, not `scripted`" in ran.stderr
    ran = user.mngr("create", "foo", "--reuse", *CAT, "--transfer", "rsync").failed(1)
    assert "its transfer is `git-worktree`, not `rsync`" in ran.stderr
    other = user.root / "other"
    other.mkdir()
    ran = user.mngr("create", "foo", "--reuse", *CAT, cwd=other).failed(1)
    assert f"its source is `{user.repo}`, not `{other}`" in ran.stderr
    assert user.state("foo") == "STOPPED"
    below = user.repo / "below"
    below.mkdir()
    user.mngr("create", "foo", "--reuse", *CAT, cwd=below).ok()


def test_without_reuse_a_taken_name_says_how_to_use_it(user: User) -> None:
    user.create("foo", command="cat")
    assert "--reuse" in user.mngr("create", "foo", *CAT).failed(1).stderr


def test_reuse_of_many_makes_only_what_is_missing(user: User) -> None:
    user.create("w-2", command="cat")
    user.mngr("stop", "w-2").ok()
    ran = user.mngr("create", "w", "--count", "3", "--reuse", *CAT).ok()
    assert ran.stdout.splitlines() == [
        "created w-1 on branch mngr/w-1",
        "using existing agent w-2",
        "created w-3 on branch mngr/w-3",
    ]
    again = user.mngr("create", "w", "--count", "3", "--reuse", *CAT, "--format", "json").ok()
    assert [(row["name"], row["reused"]) for row in again.json] == [("w-1", True), ("w-2", True), ("w-3", True)]
    ran = user.mngr("create", "-n", "w-1", "-n", "new", "--reuse", "--no-connect", "--command", "sleep 9").failed(3)
    assert "its command is `cat`" in ran.stderr and "created new" in ran.stdout


def test_two_that_reuse_at_once_end_with_one_agent(user: User) -> None:
    children = [user.popen("create", "foo", "--reuse", *CAT) for _ in range(3)]
    answers = [child.communicate(timeout=60) for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], answers
    assert sum(b"created" in stdout for stdout, _ in answers) == 1
    assert user.state("foo") == "RUNNING"


def test_a_dry_run_of_reuse_changes_nothing(user: User) -> None:
    user.create("foo", command="cat")
    user.mngr("stop", "foo").ok()
    ran = user.mngr("create", "foo", "--reuse", *CAT, "--dry-run").ok()
    assert ran.stdout == "would use existing agent foo\n"
    assert user.state("foo") == "STOPPED"


def test_the_message_is_written_in_the_editor(user: User) -> None:
    vi = editor(user, 'cp "$1" "$HOME/seen"; stat -c %a "$(dirname "$1")" > "$HOME/mode"; echo from the editor >> "$1"')
    ran = on_a_terminal(user, "create", "foo", *CAT, "--edit-message", "-m", "given", EDITOR=vi)
    assert ran.ok().stdout.endswith("created foo on branch mngr/foo\n")
    assert (user.home / "seen").read_text().startswith("given\n\n# The agent's first message.")
    assert (user.home / "mode").read_text() == "700\n"
    wait_for(lambda: "from the editor" in user.mngr("capture", "foo").stdout, "the message")
    screen = user.mngr("capture", "foo").stdout
    assert "given" in screen and "#" not in screen


def test_an_empty_message_or_an_editor_that_fails_makes_nothing(user: User) -> None:
    ran = on_a_terminal(user, "create", "foo", *CAT, "--edit-message", EDITOR=editor(user, ': > "$1"'))
    assert "error: the message is empty, so no agent was created" in ran.failed(1).stdout
    ran = on_a_terminal(user, "create", "foo", *CAT, "--edit-message", EDITOR="true")
    assert "the message is empty" in ran.failed(1).stdout
    ran = on_a_terminal(user, "create", "foo", *CAT, "--edit-message", VISUAL="false", EDITOR="true")
    assert "`false` ended with exit code 1" in ran.failed(1).stdout
    ran = on_a_terminal(user, "create", "foo", *CAT, "--edit-message", EDITOR="no-such-editor")
    assert "`no-such-editor` is not installed" in ran.failed(1).stdout
    assert user.agents() == []


def test_without_a_terminal_nobody_can_edit(user: User) -> None:
    ran = user.mngr("create", "foo", *CAT, "--edit-message", env={"EDITOR": "true"}).failed(5)
    assert "cannot open an editor" in ran.stderr
    assert user.agents() == []
