"""Links, pipes and devices where mngr reads and writes below an agent's or a repository's directory."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.support import e2e_runs
from tests.support.tmr import Project
from tests.support.user import User

CREATE = ("--no-connect", "--command", "sleep 9999")


def commit_link(user: User, path: str, target: str | Path) -> None:
    """A repository as it can be cloned: with a link that git carries."""
    place = user.repo / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
    user.git("add", "-f", path)
    user.git("commit", "-q", "-m", "a link")


def write_settings(user: User, text: str) -> None:
    (user.repo / ".mngr").mkdir(exist_ok=True)
    (user.repo / ".mngr" / "settings.toml").write_text(text)


def ignore(user: User, *patterns: str) -> None:
    (user.repo / ".gitignore").write_text("".join(f"{pattern}\n" for pattern in patterns))
    user.git("add", ".gitignore")
    user.git("commit", "-q", "-m", "ignore")


@pytest.mark.parametrize(
    ("link", "transfer"),
    [
        (".mngr", "git-worktree"),
        (".mngr/task", "git-worktree"),
        (".mngr/task", "git-mirror"),
        (".mngr/task/artifacts", "rsync"),
    ],
)
def test_create_refuses_a_task_directory_that_is_a_link(user: User, link: str, transfer: str) -> None:
    outside = user.root / "outside"
    outside.mkdir()
    (outside / ".gitignore").write_text("mine\n")
    commit_link(user, link, outside)
    ran = user.mngr("create", "foo", *CREATE, "--transfer", transfer).failed()
    assert f"{link}` is a link to `{outside}`, which is not followed" in ran.stderr
    assert os.listdir(outside) == [".gitignore"] and (outside / ".gitignore").read_text() == "mine\n"
    assert user.agents() == [] and user.git("branch", "--list", "mngr/*") == ""


@pytest.mark.parametrize("link", [".mngr", ".mngr/task"])
def test_work_that_holds_such_a_link_comes_back(user: User, link: str) -> None:
    """Of an agent that committed it: neither a restore nor a copy of the files fails over it, or follows it."""
    outside = user.root / "outside"
    outside.mkdir()
    user.create("foo")
    change = f"rm -rf {link}; ln -s {outside} {link}; echo new >x; git add -f {link} x; git commit -qm link"
    user.mngr("exec", "foo", change).ok()
    snapshot = user.mngr("snapshot", "create", "foo", "--format", "json").ok().json
    user.mngr("stop", "foo").ok()
    user.mngr("snapshot", "restore", snapshot["id"]).ok()
    assert (user.work_dir("foo") / "x").read_text() == "new\n"
    if link == ".mngr":
        ran = user.mngr("start", "foo").failed()
        assert "not followed" in ran.stderr and "once a directory is there" in ran.stderr
    user.mngr("destroy", "foo", "--force").ok()
    user.mngr("saved", "restore", "foo-1", "--to", str(user.root / "back")).ok()
    assert (user.root / "back" / "x").read_text() == "new\n" and os.listdir(outside) == []


def test_a_link_that_an_agent_puts_in_place_of_its_task_directory_is_replaced(user: User) -> None:
    work_dir = Path(user.create("foo")["work_dir"])
    snapshot = user.mngr("snapshot", "create", "foo", "--format", "json").ok().json
    outside = user.root / "outside"
    outside.mkdir()
    (outside / ".gitignore").write_text("mine\n")
    task = work_dir / ".mngr" / "task"
    for restart in (["stop", "foo"], ["start", "foo"]):
        user.mngr("exec", "foo", f"rm -rf .mngr/task; ln -s {outside} .mngr/task").ok()
        user.mngr(*restart).ok()
    assert task.is_dir() and not task.is_symlink()
    user.mngr("exec", "foo", f"rm -rf .mngr/task; ln -s {outside} .mngr/task").ok()
    user.mngr("snapshot", "restore", snapshot["id"]).ok()
    assert task.is_dir() and not task.is_symlink()
    assert os.listdir(outside) == [".gitignore"] and (outside / ".gitignore").read_text() == "mine\n"


@pytest.mark.parametrize("how", ["copy", "share"])
@pytest.mark.parametrize("git", [True, False])
def test_extra_paths_do_not_leave_the_source_through_a_link(user: User, how: str, git: bool) -> None:
    """As in an unpacked archive: `link/settings.toml` with `link -> ../..` would plant the user's own settings."""
    outside = user.root / "outside"
    outside.mkdir()
    (outside / "settings.toml").write_text("planted\n")
    source = user.repo
    if git:
        commit_link(user, "link", "../outside")
    else:
        source = user.root / "archive" / "a"
        source.mkdir(parents=True)
        (source / "link").symlink_to("../../outside")
    (source / ".mngr").mkdir()
    (source / ".mngr" / "settings.toml").write_text(f'[workspace]\nextra_paths = {{"link/settings.toml" = "{how}"}}\n')
    before = sorted(os.listdir(user.root))
    ran = user.mngr("create", "foo", *CREATE, cwd=source).failed()
    assert f"`link/settings.toml` leads out of `{source}`, to `{outside}" in ran.stderr
    assert sorted(os.listdir(user.root)) == before and os.listdir(outside) == ["settings.toml"]
    assert not (user.host_dir / "settings.toml").exists()


def test_extra_paths_follow_links_that_stay_inside(user: User) -> None:
    commit_link(user, "link", "config")
    ignore(user, "/config/.env")
    (user.repo / "config").mkdir()
    (user.repo / "config" / ".env").write_text("KEY=1\n")
    write_settings(user, '[workspace]\nextra_paths = ["link/.env"]\n')
    work_dir = Path(user.create("foo")["work_dir"])
    assert (work_dir / "config" / ".env").read_text() == "KEY=1\n"


def test_an_extra_path_that_is_itself_a_link_stays_one(user: User) -> None:
    ignore(user, "/.env")
    (user.root / "secrets").write_text("KEY=1\n")
    (user.repo / ".env").symlink_to("../secrets")
    write_settings(user, '[workspace]\nextra_paths = [".env"]\n')
    work_dir = Path(user.create("foo")["work_dir"])
    assert os.readlink(work_dir / ".env") == "../secrets"


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror", "rsync"])
def test_extra_paths_name_nothing_of_git_and_nothing_outside(user: User, transfer: str) -> None:
    for path in (".git/config", ".GIT/hooks", "sub/.git/config", "../x", "/etc/passwd"):
        write_settings(user, f'[workspace]\nextra_paths = ["{path}"]\n')
        ran = user.mngr("create", "foo", *CREATE, "--transfer", transfer).failed()
        assert f"`workspace.extra_paths` names `{path}`" in ran.stderr
    assert user.agents() == []


def test_a_pipe_is_not_read_and_not_waited_for_as_an_extra_path(user: User) -> None:
    ignore(user, "/pipe")
    os.mkfifo(user.repo / "pipe")
    write_settings(user, '[workspace]\nextra_paths = ["pipe"]\n')
    work_dir = Path(user.create("foo")["work_dir"])
    assert stat.S_ISFIFO((work_dir / "pipe").lstat().st_mode)


@pytest.mark.parametrize("scope", ["settings.toml", "settings.local.toml"])
def test_settings_of_a_clone_have_to_be_a_regular_file(user: User, scope: str) -> None:
    """Otherwise each verb there would take all memory, or wait for ever."""
    place = user.repo / ".mngr" / scope
    place.parent.mkdir()
    os.mkfifo(user.repo / ".mngr" / "pipe")
    for target in ("/dev/zero", "/dev/stdin", "pipe", ".."):
        place.symlink_to(target)
        ran = user.mngr("list").failed()
        assert ran.stderr.startswith(f"error: cannot read `.mngr/{scope}`: not a plain file\n")
        place.unlink()


def test_settings_may_be_a_link_to_a_file(user: User) -> None:
    (user.root / "elsewhere.toml").write_text('[commands.list]\nformat = "json"\n')
    commit_link(user, ".mngr/settings.toml", "../../elsewhere.toml")
    assert user.mngr("list").ok().json["agents"] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#" * 250_000 + "\n", "is larger than 250 kB"),
        (".".join(["a"] * 20_000) + " = 1\n", "is nested too deeply"),
        (".".join(['"a"'] * 20_000) + " = 1\n", "is nested too deeply"),
        ("a = " + "{a = " * 20_000 + "1" + "}" * 20_000, "is nested too deeply"),
    ],
)
def test_settings_of_a_clone_have_a_limit(user: User, text: str, why: str) -> None:
    write_settings(user, text)
    assert f"`.mngr/settings.toml` {why}" in user.mngr("list").failed(1 if "larger" in why else 2).stderr


def test_pages_of_e2e_runs_show_nothing_through_a_link(user: User) -> None:
    """The runs may have come with a clone, and the pages are made to be shared."""
    base = user.repo / ".mngr" / "e2e"
    made = e2e_runs.make_run(user.root / "outside", "run")
    events = e2e_runs.command(1, "echo canary-7f", e2e_runs.START)
    test = e2e_runs.make_test(made, "tests/x.py::test_x", blocks=["canary-7f"], events=events, doc="canary-7f")
    (test / "a.cast").write_text('{"version": 2, "width": 80, "height": 24}\n[0.1, "o", "canary-7f"]\n')
    (test / "a.cast.json").write_text('{"title": "canary-7f"}')
    (test / "result.json").write_text('{"outcome": "failed", "failure": {"phase": "call", "message": "canary-7f"}}')
    test.rename(made / "tests" / "t")
    names = ("tutorial_block.txt", "transcript.jsonl", "a.cast", "a.cast.json", "result.json", "test.json", "")
    links = [*(f"tests/t/{name}".rstrip("/") for name in names), "tests", "run.json"]
    for number, link in enumerate(links):
        for kind in ("link", "pipe", "/dev/zero"):
            run = base / f"run-{number}-{kind.strip('/').replace('/', '-')}"
            shutil.copytree(made, run)
            for file in run.rglob("*"):
                if file.is_file():
                    file.write_text(file.read_text().replace("canary-7f", "innocent"))
            place = run / link
            shutil.rmtree(place) if place.is_dir() else place.unlink()
            if kind == "pipe":
                os.mkfifo(place)
            else:
                place.symlink_to(made / link if kind == "link" else kind)
    (base / "run").symlink_to(made)
    user.mngr("e2e", "report", timeout=200).ok()
    pages = b"".join(file.read_bytes() for file in (base / "report").rglob("*") if file.is_file())
    assert b"innocent" in pages and b"canary-7f" not in pages


@pytest.mark.parametrize("link", [".mngr/e2e", ".mngr/e2e/report"])
def test_pages_of_e2e_runs_are_not_written_elsewhere(user: User, link: str) -> None:
    outside = user.root / "outside"
    e2e_runs.make_run(outside if link == ".mngr/e2e" else user.repo / ".mngr" / "e2e", "run")
    outside.mkdir(exist_ok=True)
    before = sorted(os.listdir(outside))
    place = user.repo / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside)
    assert f"to `{outside}" in user.mngr("e2e", "report").failed().stderr
    assert sorted(os.listdir(outside)) == before


@pytest.mark.parametrize("link", [".mngr/runs", ".mngr/runs/r1", ".mngr/runs/.gitignore"])
def test_a_run_of_tests_is_not_written_elsewhere(user: User, link: str) -> None:
    project = Project(user)
    outside = user.root / "outside"
    outside.mkdir()
    (outside / ".gitignore").write_text("mine\n")
    commit_link(user, link, outside / (".gitignore" if link.endswith(".gitignore") else "new"))
    if link != ".mngr/runs/.gitignore":
        (outside / "new").mkdir()
    ran = project.tmr("-k", "nothing_is_called_so", "--exclude-unclean").failed()
    if link == ".mngr/runs":
        assert "not followed" in user.mngr("tmr", "status", cwd=project.repo).failed().stderr
    if link != ".mngr/runs/.gitignore":
        assert f"{link}` is a link to `{outside}/new`, which is not followed" in ran.stderr
        assert os.listdir(outside / "new") == []
    assert (outside / ".gitignore").read_text() == "mine\n"


@pytest.fixture
def keys(user: User) -> Path:
    """A directory that no agent may write."""
    place = user.home / ".ssh"
    place.mkdir()
    (place / "authorized_keys").write_text("mine\n")
    return place


def unchanged(keys: Path) -> None:
    assert os.listdir(keys) == ["authorized_keys"] and (keys / "authorized_keys").read_text() == "mine\n"


@pytest.mark.parametrize("tree", [False, True])
def test_push_does_not_leave_the_work_dir_through_a_link(user: User, keys: Path, tree: bool) -> None:
    work_dir = Path(user.create("foo")["work_dir"])
    (work_dir / "in").symlink_to(keys)
    (work_dir / "deep").symlink_to(".")
    source = user.root / "authorized_keys"
    if tree:
        source.mkdir()
    (source / "authorized_keys" if tree else source).write_text("planted\n")
    for path in ("in/authorized_keys", "in", "in/", "in/new/deep", "in/../in/authorized_keys", "deep/in"):
        ran = user.mngr("push", f"foo:{path}", str(source)).failed()
        assert f"to `{keys}" in ran.stderr and "leads out of" in ran.stderr
    unchanged(keys)


def test_push_replaces_a_link_in_the_tree_and_keeps_it(user: User, keys: Path) -> None:
    work_dir = Path(user.create("foo")["work_dir"])
    (work_dir / "in").mkdir()
    (work_dir / "in" / "sub").symlink_to(keys)
    (work_dir / "in" / "file").symlink_to(keys / "authorized_keys")
    source = user.root / "in"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "authorized_keys").write_text("new\n")
    (source / "file").write_text("new\n")
    ran = user.mngr("push", "foo:in", str(source), "--format", "json").ok().json
    assert (work_dir / "in" / "sub" / "authorized_keys").read_text() == "new\n"
    unchanged(keys)
    user.mngr("saved", "restore", ran["saved"], "--to", str(user.root / "kept")).ok()
    assert os.readlink(user.root / "kept" / "sub") == str(keys)
    assert os.readlink(user.root / "kept" / "file") == str(keys / "authorized_keys")


def test_pull_takes_nothing_from_outside_of_the_work_dir(user: User, keys: Path) -> None:
    work_dir = Path(user.create("foo")["work_dir"])
    (work_dir / "link").symlink_to(keys)
    (work_dir / "deep").symlink_to(".")
    for path in ("link", "link/authorized_keys", "deep/link/", "deep/../link/authorized_keys"):
        ran = user.mngr("pull", f"foo:{path}", "got").failed()
        assert "leads out of" in ran.stderr and not (user.repo / "got").exists()


def test_artifacts_are_not_taken_through_a_link(user: User, keys: Path) -> None:
    user.create("foo")
    user.mngr("exec", "foo", f"rmdir $MNGR_ARTIFACTS_DIR; ln -s {keys} $MNGR_ARTIFACTS_DIR").ok()
    assert "does not exist" not in user.mngr("pull", "foo", "--artifacts", "got").failed().stderr
    assert not (user.repo / "got").exists()
    user.mngr("exec", "foo", f"rm -rf .mngr/task; ln -s {keys} .mngr/task").ok()
    assert "not followed" in user.mngr("pull", "foo", "--artifacts", "got").failed().stderr
    assert not (user.repo / "got").exists()


@pytest.mark.parametrize("cwd", ["repo", "h", "elsewhere"])
def test_pull_does_not_write_through_a_link_that_an_earlier_pull_brought(user: User, keys: Path, cwd: str) -> None:
    work_dir = Path(user.create("foo")["work_dir"])
    place = user.root / cwd
    place.mkdir(exist_ok=True)
    (work_dir / "out").symlink_to(keys)
    user.mngr("pull", "foo", "--files", str(place)).ok()
    assert os.readlink(place / "out") == str(keys)
    (work_dir / "out").unlink()
    (work_dir / "out").mkdir()
    (work_dir / "out" / "authorized_keys").write_text("planted\n")
    for words in (("foo:out", "out"), ("foo:out/authorized_keys", "out"), ("foo:out", str(place / "out"))):
        ran = user.mngr("pull", *words, cwd=place).failed()
        assert f"is a link to `{keys}`, which is not followed" in ran.stderr and "name the place" in ran.stderr
    user.mngr("pull", "foo", "--files", ".", cwd=place).ok()
    assert (place / "out" / "authorized_keys").read_text() == "planted\n" and not (place / "out").is_symlink()
    unchanged(keys)


def test_a_link_that_pull_replaces_is_saved_as_a_link(user: User) -> None:
    work_dir = Path(user.create("foo")["work_dir"])
    (work_dir / "data").mkdir()
    (work_dir / "data" / "f").write_text("theirs\n")
    big, mine = user.root / "big", user.root / "mine"
    for place in (big, mine):
        place.mkdir()
    (big / "f").write_text("mine\n")
    (mine / "data").symlink_to(big)
    ran = user.mngr("pull", "foo", "--files", str(mine), "--format", "json").ok().json
    assert (mine / "data" / "f").read_text() == "theirs\n" and (big / "f").read_text() == "mine\n"
    user.mngr("saved", "restore", ran["saved"], "--to", str(user.root / "kept")).ok()
    assert os.readlink(user.root / "kept" / "data") == str(big)


def test_an_upload_stays_in_the_work_dir(user: User, keys: Path) -> None:
    commit_link(user, "link", keys)
    commit_link(user, "conf", "config")
    (user.root / "file").write_text("new\n")
    upload = ("create", "foo", *CREATE, "--upload-file")
    assert "leads out of" in user.mngr(*upload, f"{user.root}/file:link/authorized_keys").failed().stderr
    assert "is not replaced" in user.mngr(*upload, f"{user.root}/file:link").failed().stderr
    assert "not a path below" in user.mngr(*upload, f"{user.root}/file:sub/.git/config").failed(2).stderr
    unchanged(keys)
    user.mngr(*upload, f"{user.root}/file:conf/file").ok()
    assert (user.work_dir("foo") / "config" / "file").read_text() == "new\n"


@pytest.mark.parametrize("link", [".mngr", ".mngr/settings.toml"])
def test_settings_of_a_project_are_not_written_elsewhere(user: User, link: str) -> None:
    outside = user.root / "outside"
    outside.mkdir()
    (outside / "settings.toml").write_text("[list]\n")
    commit_link(user, link, outside if link == ".mngr" else outside / "settings.toml")
    ran = user.mngr("config", "set", "--scope", "project", "commands.list.format", "json").failed()
    assert f"leads out of `{user.repo}`, to `{outside}" in ran.stderr
    assert (outside / "settings.toml").read_text() == "[list]\n"


def test_a_skill_is_not_installed_elsewhere(user: User) -> None:
    outside = user.root / "outside"
    outside.mkdir()
    commit_link(user, ".claude", outside)
    ran = user.mngr("tutorial", "install-skill", "--for", "claude").failed()
    assert f"leads out of `{user.repo}`, to `{outside}" in ran.stderr and os.listdir(outside) == []


def test_devices_and_pipes_in_a_clone_are_not_read(user: User) -> None:
    """By verbs that look at other files of a repository than its settings."""
    commit_link(user, "tests/test_zero.py", "/dev/zero")
    (user.repo / "tutorial.sh").write_text("# a\nls\n")
    os.mkfifo(user.repo / "tests" / "test_pipe.py")
    assert "not a plain file" in user.mngr("tutorial", "check", "--no-artifacts").failed().stdout
    (user.repo / "tutorial.sh").unlink()
    (user.repo / "tutorial.sh").symlink_to("/dev/zero")
    assert "not a plain file" in user.mngr("tutorial", "blocks").failed().stderr
