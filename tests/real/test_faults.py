"""Bad input: one clear error with a hint, the right exit code, and nothing made."""

import os
from pathlib import Path

import pytest

from tests.support import leftovers
from tests.support.user import User, wait_for

CREATE = ("create", "foo", "--no-connect", "--command", "sleep 9999")


def path_without(user: User, program: str) -> str:
    """A PATH on which every program is found but this one."""
    here = user.root / f"no-{program}"
    here.mkdir()
    for directory in ("/usr/local/bin", "/usr/bin", "/bin"):
        for entry in os.scandir(directory) if os.path.isdir(directory) else ():
            if entry.name != program and not (here / entry.name).is_symlink():
                (here / entry.name).symlink_to(entry.path)
    return str(here)


def test_a_name_that_exists_is_refused_and_the_first_agent_untouched(user: User) -> None:
    before = user.create("foo")
    said = user.mngr(*CREATE).failed().stderr
    assert said.startswith("error: an agent named `foo` exists already\n")
    assert "hint: `mngr connect foo`" in said
    after = user.agent("foo")
    assert {name: after[name] for name in ("id", "pid", "work_dir")} == {
        name: before[name] for name in ("id", "pid", "work_dir")
    }
    assert len(list((user.host_dir / "worktrees").iterdir())) == 1


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("git", ()),
        ("git", ("--transfer", "git-mirror")),
        ("tmux", ()),
        ("rsync", ("--transfer", "rsync")),
    ],
)
def test_a_missing_program_is_named_with_how_to_install_it(user: User, program: str, words: tuple[str, ...]) -> None:
    done = user.mngr(*CREATE, *words, env={"PATH": path_without(user, program)}).failed()
    assert done.stderr.startswith(f"error: `{program}` is not installed or not on PATH\nhint: install it: ")
    assert leftovers.found(user) == []


def test_without_git_an_agent_can_still_work_in_place(user: User) -> None:
    env = {"PATH": path_without(user, "git")}
    user.mngr(*CREATE, "--transfer", "none", env=env).ok()
    user.mngr("destroy", "foo", env=env).ok()
    assert leftovers.found(user) == []


def test_without_tmux_list_says_that_states_are_unknown(user: User) -> None:
    user.create("foo")
    done = user.mngr("list", "--format", "json", env={"PATH": path_without(user, "tmux")}).ok().json
    assert [agent["state"] for agent in done["agents"]] == ["UNKNOWN"]
    assert "`tmux` is not installed" in done["errors"][0]["error"]


def test_without_tmux_nothing_is_destroyed_on_a_guess(user: User) -> None:
    user.create("foo")
    done = user.mngr("destroy", "foo", env={"PATH": path_without(user, "tmux")}).failed()
    assert "whether `foo` runs is not known" in done.stderr
    assert user.state("foo") == "RUNNING"


def test_a_repository_without_a_commit_is_refused(user: User) -> None:
    empty = user.root / "empty"
    empty.mkdir()
    user.git("init", "-q", cwd=empty)
    for words in ((), ("--transfer", "git-mirror")):
        done = user.mngr(*CREATE, *words, cwd=empty).failed()
        assert "has no commit yet" in done.stderr
        assert "git commit --allow-empty" in done.stderr
    assert leftovers.found(user, repo=empty) == []
    user.mngr(*CREATE, "--transfer", "none", cwd=empty).ok()
    user.mngr("destroy", "foo").ok()


def test_a_bare_repository_is_refused(user: User) -> None:
    bare = user.root / "bare.git"
    user.git("clone", "-q", "--bare", str(user.repo), str(bare))
    done = user.mngr(*CREATE, cwd=bare).failed()
    assert "is a bare repository" in done.stderr
    assert "hint: `cd` to a work tree" in done.stderr
    assert leftovers.found(user, repo=bare) == []


def test_a_branch_called_mngr_is_in_the_way_and_said_so(user: User) -> None:
    user.git("branch", "mngr")
    for words in ((), ("--transfer", "git-mirror"), ("--dry-run",)):
        done = user.mngr(*CREATE, *words).failed()
        assert done.stderr.startswith("error: git cannot have `mngr/foo` beside a branch called `mngr`\n")
        assert "--branch ':agents/*'" in done.stderr
    assert leftovers.found(user) == []
    user.mngr(*CREATE, "--branch", ":agents/*").ok()
    assert user.agent("foo")["initial_branch"] == "agents/foo"


@pytest.mark.parametrize("packed", [False, True])
def test_a_branch_that_exists_is_refused_and_kept(user: User, packed: bool) -> None:
    user.git("branch", "mngr/foo")
    if packed:
        user.git("pack-refs", "--all")
    for words in ((), ("--transfer", "git-mirror"), ("--dry-run",)):
        done = user.mngr(*CREATE, *words).failed()
        assert done.stderr.startswith("error: a branch called `mngr/foo` exists already\n")
        assert "--branch mngr/foo" in done.stderr
    assert [line for line in leftovers.found(user) if line != "branch   mngr/foo"] == []
    user.mngr(*CREATE, "--branch", "mngr/foo").ok()
    user.mngr("destroy", "foo").ok()
    assert user.git("branch", "--list", "mngr/foo").strip() == "mngr/foo"


def test_a_branch_below_the_new_one_is_named(user: User) -> None:
    user.git("branch", "mngr/foo/deeper")
    done = user.mngr(*CREATE).failed()
    assert "mngr/foo/deeper" in done.stderr
    assert [line for line in leftovers.found(user) if "deeper" not in line] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("creat", "foo"), "the closest verb is `create`"),
        (("create", "foo", "--comand", "x"), "`--command`"),
        (("list", "--runing"), "`--running`"),
        (("list", "--sort", "nam"), "`name`"),
        (("destroy", "fop"), "the closest name is `foo`"),
        (("-S", "tmux.history_line=5", "list"), "`history_lines`"),
        (("create", "bar", "--transfer", "git-mirrow", "--command", "x"), "`git-mirror`"),
        (("create", "bar", "--type", "scriptd"), "`scripted`"),
    ],
)
def test_a_typo_changes_nothing_and_names_the_nearest(user: User, words: tuple[str, ...], said: str) -> None:
    user.create("foo")
    done = user.mngr(*words)
    assert done.exit_code == (1 if words[0] == "destroy" else 2), done
    assert said in done.stderr
    assert [agent["name"] for agent in user.agents()] == ["foo"]


@pytest.mark.parametrize("name", ["", "-x", "a b", "a;b", "a/b", "..", "é", "a\nb", "$(touch x)", "a" * 64, "a.b"])
def test_a_name_that_is_none_is_refused(user: User, name: str) -> None:
    done = user.mngr("create", f"--name={name}", "--no-connect", "--command", "sleep 9999").failed(2)
    assert "\n" not in done.stderr.split("\n")[0]
    assert leftovers.found(user) == []


ODD = [
    'a b\'s "c"',
    "$(touch pwned)`touch pwned`;touch pwned&|*?",
    "new\nline\ttab",
    "#{session_name}#(touch pwned)##%H~\\{a,b}",
    "-ünï-✓-日本",
    b"not-utf8-\xff".decode("utf-8", "surrogateescape"),
]


# Each oddity alone in the usual mode, and all of them at once in the others.
@pytest.mark.parametrize(
    ("name", "transfer"),
    [*((odd, "git-worktree") for odd in ODD), *(("".join(ODD), mode) for mode in ("git-mirror", "rsync", "none"))],
)
def test_an_odd_repository_path_works_in_every_mode(user: User, name: str, transfer: str) -> None:
    user.repo = user.repo.rename(user.root / name)
    agent = user.create("foo", "--transfer", transfer, command="pwd > pwd.txt; exec sleep 9999")
    assert agent["state"] == "RUNNING"
    assert os.fsencode(agent["repo"]) == os.fsencode(user.repo)
    assert user.mngr("exec", "foo", "cat README.md").ok().stdout == "hello\n"
    assert not list(user.root.glob("**/pwned"))
    work = Path(agent["work_dir"])
    pwd = work / "pwd.txt"
    wait_for(lambda: pwd.exists() and pwd.read_bytes().endswith(b"\n"), "the agent to write its directory")
    assert pwd.read_bytes() == os.fsencode(work) + b"\n"
    if transfer == "none":
        user.mngr("destroy", "foo").ok()
    else:
        user.mngr("destroy", "foo").failed()
        user.mngr("destroy", "foo", "--force").ok()
        user.mngr("saved", "restore", "foo").ok()
        assert (user.work_dir("foo") / "pwd.txt").read_bytes() == os.fsencode(work) + b"\n"
        user.mngr("destroy", "foo", "--force").ok()
    assert [line for line in leftovers.found(user) if "refs/mngr/saved" not in line] == []


@pytest.mark.parametrize("name", [odd for odd in ODD if "\n" not in odd])
def test_an_odd_home_works(user: User, name: str) -> None:
    user.home = user.home.rename(user.root / name)
    user.host_dir = user.home / ".mngr"
    user.env["HOME"] = str(user.home)
    more = ("--record", "--timeout", "1h", "--extra-window", "two=pwd > two.txt; exec sleep 9999")
    user.mngr("create", "foo", "--no-connect", *more, "--command", "pwd > pwd.txt; exit 3").ok()
    user.mngr("wait", "foo", "FAILED").ok()
    agent = user.agent("foo")
    assert (agent["state"], agent["exit_code"]) == ("FAILED", 3)
    work = next((user.host_dir / "worktrees").iterdir())
    assert (work / "pwd.txt").read_bytes() == os.fsencode(work) + b"\n"
    two = work / "two.txt"
    wait_for(lambda: two.exists() and two.read_bytes() == os.fsencode(work) + b"\n", "the second window")
    wait_for((user.host_dir / "agents" / agent["id"] / "recording.cast").exists, "the recording")
    assert [event["exit_code"] for event in user.events("foo") if event["type"] == "exited"] == [3]
    user.mngr("destroy", "foo", "--force").ok()
    assert not list(user.root.glob("**/pwned"))


def test_a_socket_path_that_is_too_long_is_an_error_and_nothing_is_made(user: User) -> None:
    long = user.root / ("x" * 120)
    long.mkdir()
    done = user.mngr(*CREATE, env={"TMUX_TMPDIR": str(long)}).failed()
    assert "socket is too long" in done.stderr and "bug" not in done.stderr
    assert leftovers.found(user) == []


def test_a_state_directory_with_a_newline_in_its_path_is_refused(user: User) -> None:
    done = user.mngr(*CREATE, env={"MNGR_HOST_DIR": str(user.root / "new\nline")}).failed()
    assert "newline" in done.stderr
    assert leftovers.found(user) == []
    assert not (user.root / "new\nline").exists()
