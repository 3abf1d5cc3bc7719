"""Archived agents are out of sight and lose nothing."""

from tests.real.test_schemas import fits
from tests.support.trees import tree
from tests.support.user import User


def shown(user: User, *words: str) -> list[str]:
    return sorted(agent["name"] for agent in user.mngr("list", *words, "--format", "json").ok().json["agents"])


def test_an_archived_agent_is_stopped_hidden_and_keeps_everything(user: User) -> None:
    work_dir = user.create("foo")["work_dir"]
    user.create("bar")
    user.mngr("exec", "foo", "echo half > half.txt").ok()
    before = tree(work_dir)
    assert user.mngr("archive", "foo").ok().stdout == "archived foo\n"
    assert shown(user) == ["bar"]
    assert shown(user, "--archived") == ["foo"]
    (agent,) = user.mngr("list", "foo", "--format", "json").ok().json["agents"]
    assert agent["state"] == "STOPPED" and agent["archived_at"]
    assert user.agent("bar")["archived_at"] is None
    assert tree(work_dir) == before
    assert user.git("branch", "--list", "mngr/foo")
    assert [event["type"] for event in user.events("foo")][-2:] == ["stopped", "archived"]


def test_archiving_twice_changes_nothing(user: User) -> None:
    user.create("foo")
    user.mngr("archive", "foo").ok()
    (first,) = user.mngr("list", "--archived", "--format", "json").ok().json["agents"]
    assert "already archived" in user.mngr("archive", "foo").ok().stdout
    (second,) = user.mngr("list", "--archived", "--format", "json").ok().json["agents"]
    assert first["archived_at"] == second["archived_at"]


def test_undo_shows_it_again_and_start_too(user: User) -> None:
    user.create("foo")
    user.mngr("archive", "foo").ok()
    assert user.mngr("archive", "foo", "--undo").ok().stdout == "unarchived foo\n"
    assert user.state("foo") == "STOPPED"
    assert "is not archived" in user.mngr("archive", "foo", "--undo").ok().stdout
    user.mngr("stop", "foo", "--archive").ok()
    assert shown(user) == []
    user.mngr("start", "foo").ok()
    assert user.agent("foo")["state"] == "RUNNING"
    assert user.agent("foo")["archived_at"] is None


def test_stop_can_archive(user: User) -> None:
    user.create("foo")
    ran = user.mngr("stop", "foo", "--archive", "--format", "json").ok()
    assert ran.json[0]["stopped"] and ran.json[0]["archived"]
    assert shown(user) == [] and shown(user, "--archived") == ["foo"]


def test_filters_leave_archived_agents_alone(user: User) -> None:
    user.create("foo")
    user.create("bar")
    user.mngr("archive", "foo").ok()
    user.mngr("start", "--all").ok()
    assert shown(user, "--archived") == ["foo"]
    user.mngr("destroy", "--all").ok()
    assert shown(user, "--archived") == ["foo"]
    user.mngr("archive", "--undo", "--all").ok()
    assert shown(user) == ["foo"]


def test_a_dry_run_archives_nothing(user: User) -> None:
    user.create("foo")
    assert user.mngr("archive", "foo", "--dry-run").ok().stdout == "would archive foo\n"
    assert "archived" not in user.mngr("stop", "foo", "--archive", "--dry-run").ok().stdout
    assert user.state("foo") == "RUNNING"
    user.mngr("archive", "foo").ok()
    assert user.mngr("archive", "foo", "--undo", "--dry-run").ok().stdout == "would unarchive foo\n"
    assert shown(user) == []


def test_an_archived_agent_keeps_its_name_and_can_be_destroyed(user: User) -> None:
    user.create("foo")
    user.mngr("archive", "foo").ok()
    assert "exists already" in user.mngr("create", "foo", "--no-connect", "--command", "cat").failed().stderr
    ids = user.mngr("list", "--archived", "--ids").ok().stdout
    user.mngr("destroy", "-", input=ids).ok()
    assert shown(user, "--archived") == []


def test_its_json_fits_its_schema(user: User) -> None:
    user.create("foo")
    fits(user, "archive", "foo", "--dry-run")
    fits(user, "archive", "foo")
    fits(user, "list", "--archived")
    fits(user, "archive", "foo", "--undo")
    fits(user, "stop", "foo", "--archive")


def test_archive_stops_and_marks_in_one_step(user: User) -> None:
    """A start that comes at that moment comes before it, and its process is ended, or after it, and it is shown."""
    user.create("foo")
    for _ in range(5):
        children = [user.popen(verb, "foo") for verb in ("archive", "start", "start")]
        for child in children:
            child.communicate(timeout=60)
        (agent,) = user.mngr("list", "foo", "--format", "json").ok().json["agents"]
        assert (agent["archived_at"] is None) == (agent["state"] == "RUNNING"), agent
        user.mngr("start", "foo").ok()
