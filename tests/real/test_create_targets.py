"""`create NAME:PATH`: what is at the path already stays as it is, whatever fails."""

import pytest

import mngr
from mngr.actions.create import CreateRequest, reserve
from mngr.errors import MngrError
from mngr.programs import kind
from mngr.workspace import plan
from mngr.workspace.plan import MIRROR, RSYNC, WORKTREE, Plan
from mngr.workspace.workspace import Workspace, _worktree
from tests.support import leftovers
from tests.support.trees import tree
from tests.support.user import User

TRANSFERS = [WORKTREE, MIRROR, RSYNC]


def fleet_of(user: User) -> mngr.Fleet:
    return mngr.Fleet(environ=user.env, cwd=str(user.repo))


def planned(fleet: mngr.Fleet, name: str, transfer: str = WORKTREE) -> Plan:
    return plan.decide(fleet.local.cwd, [name], transfer, None, "exclude")[0]


@pytest.mark.parametrize("transfer", TRANSFERS)
def test_what_is_at_the_target_is_refused_and_kept(user: User, transfer: str) -> None:
    fleet = fleet_of(user)
    mine = user.root / "mine"
    (mine / "full").mkdir(parents=True)
    (mine / "empty").mkdir()
    (mine / "notes.txt").write_text("precious\n")
    (mine / "full" / "draft.txt").write_text("precious too\n")
    (mine / "link").symlink_to("nowhere")
    before = tree(mine)
    for target, said in (
        ("notes.txt", "exists already"),
        ("notes.txt/below", "is not a directory"),
        ("link", "exists already"),
        ("full", "exists already"),
        ("empty", "exists already"),
    ):
        with pytest.raises(MngrError, match=said):
            fleet.create("foo", command="sleep 9999", target=str(mine / target), transfer=transfer)
        assert tree(mine) == before
    assert leftovers.found(user) == []


def test_the_error_names_the_file(user: User) -> None:
    (user.repo / "notes.txt").write_text("precious\n")
    words = ("create", "foo:notes.txt", "--no-connect", "--exclude-unclean", "--command", "sleep 9999")
    said = user.mngr(*words).failed().stderr
    assert user.mngr(*words, "--dry-run").failed().stderr == said
    assert said.startswith(f"error: `{user.repo}/notes.txt` exists already\nhint: name a directory")
    assert (user.repo / "notes.txt").read_text() == "precious\n"


@pytest.mark.parametrize("transfer", TRANSFERS)
def test_a_directory_that_was_made_is_gone_after_a_failure(user: User, transfer: str) -> None:
    fleet = fleet_of(user)
    target = str(user.root / "new")
    with pytest.raises(MngrError, match="exit code 3"):
        fleet.create("foo", command="sleep 9999", target=target, transfer=transfer, provision=("exit 3",))
    assert not (user.root / "new").exists()
    assert leftovers.found(user) == []


def test_a_path_is_reserved_for_one_agent(user: User) -> None:
    """Also while its directory is not there yet, and when it is gone."""
    fleet = fleet_of(user)
    fleet.local.host.prepare()
    shell = kind.resolve("command", fleet.local.settings)
    (user.root / "link").symlink_to(user.root)
    wanted = [
        CreateRequest(
            name, shell, ("sleep 9",), target=target, plan=planned(fleet, name), agent_id=f"agent-{number:032x}"
        )
        for number, (name, target) in enumerate((("one", "../here"), ("two", "../link/here"), ("three", "../there")))
    ]
    first, second, third = [found for one in wanted for found in reserve(fleet.local, [one])]
    assert isinstance(second, MngrError) and "is the work directory of agent `one`" in second.message
    assert not isinstance(first, MngrError) and not isinstance(third, MngrError)


@pytest.mark.parametrize("transfer", TRANSFERS)
def test_two_processes_never_fill_one_directory(user: User, transfer: str) -> None:
    """Those of two state directories, which know nothing of each other."""
    fleet = fleet_of(user)
    fleet.local.host.prepare()
    directory = user.root / "here"
    first, second = (Workspace(planned(fleet, name, transfer), str(directory)) for name in ("one", "two"))
    first.claim()
    with pytest.raises(MngrError, match="exists already"):
        second.make(fleet.local.host, {})
    second.unmake(fleet.local.host)
    assert directory.is_dir()
    first.unmake(fleet.local.host)
    assert not directory.exists()
    first.make(fleet.local.host, {})
    before = tree(directory)
    with pytest.raises(MngrError, match="exists already"):
        second.make(fleet.local.host, {})
    second.unmake(fleet.local.host)
    assert tree(directory) == before
    first.unmake(fleet.local.host)
    assert not directory.exists()
    assert leftovers.in_repository(user, user.repo) == []


def test_a_worktree_of_the_users_own_that_is_not_mounted_stays_registered(user: User) -> None:
    away = user.root / "away"
    user.git("worktree", "add", "-q", "-b", "mine", str(away))
    user.git("worktree", "lock", str(away))
    away.rename(user.root / "unplugged")
    fleet = fleet_of(user)
    with pytest.raises(MngrError, match="could not make the worktree"):
        fleet.create("foo", command="sleep 9999", target=str(away))
    assert not away.exists()
    (user.root / "unplugged").rename(away)
    assert user.git("status", "--short", "--branch", cwd=away) == "## mine"
    assert f"worktree {away}" in user.git("worktree", "list", "--porcelain")
    assert user.git("branch", "--list", "mngr/*") == ""


def test_worktrees_of_the_same_directory_name_leave_each_other_alone(user: User) -> None:
    fleet = fleet_of(user)
    fleet.local.host.prepare()
    theirs = user.root / "theirs" / "copy"
    user.git("worktree", "add", "-q", "-b", "theirs", str(theirs))
    places = [Workspace(planned(fleet, name), str(user.root / name / "copy")) for name in ("one", "two")]
    for place in places:
        place.make(fleet.local.host, {})
        assert user.git("status", "--porcelain", cwd=place.directory) == ""
    for place in places:
        place.unmake(fleet.local.host)
    assert user.git("status", "--short", "--branch", cwd=theirs) == "## theirs"
    assert [path.name for path in (user.repo / ".git" / "worktrees").iterdir()] == ["copy"]
    assert user.git("branch", "--list", "mngr/*") == ""
    assert not any((user.root / name / "copy").exists() for name in ("one", "two"))


def test_files_that_appear_at_the_last_moment_are_kept(user: User) -> None:
    """Put there by a program that knows nothing of our locks, after the directory was taken."""
    fleet = fleet_of(user)
    fleet.local.host.prepare()
    workspace = Workspace(planned(fleet, "foo"), str(user.root / "here"))
    workspace.claim()
    (user.root / "here" / "notes.txt").write_text("precious\n")
    with pytest.raises(MngrError, match="could not make the worktree"):
        _worktree(fleet.local.host, workspace, workspace.plan.start)
    workspace.unmake(fleet.local.host)
    assert (user.root / "here" / "notes.txt").read_text() == "precious\n"
    assert leftovers.in_repository(user, user.repo) == []
