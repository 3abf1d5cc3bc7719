"""What could not be read or reached is named, and counts neither as absent nor as ended."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import mngr
from tests.support.pods import Pods
from tests.support.user import User, wait_for

PARTIAL = 3


@pytest.fixture
def pods(user: User) -> Iterator[Pods]:
    made = Pods(user)
    yield made
    made.close()


@contextmanager
def out_of_reach(user: User) -> Iterator[None]:
    """While the program that reaches the hosts fails."""
    program = user.root / "pod-tools" / "kubectl"
    text = program.read_text()
    program.write_text("#!/bin/sh\necho refused >&2; exit 1\n")
    yield
    program.write_text(text)


def corrupt(user: User, name: str) -> str:
    """Make the record of an agent unreadable. Returns its id."""
    agent_id = str(user.agent(name)["id"])
    (user.host_dir / "agents" / agent_id / "agent.json").write_text("{")
    return agent_id


@pytest.mark.parametrize(
    "words",
    [
        ("stop", "--all"),
        ("stop", "--include", 'state == "DONE"'),
        ("exec", "--all", "true"),
        ("message", "--all", "-m", "x"),
        ("label", "--all", "a=b"),
        ("limit", "--all", "--timeout", "1h"),
        ("snapshot", "create", "--all"),
        ("archive", "--all"),
        ("start", "--all"),
        ("cleanup", "--all", "--yes"),
        ("destroy", "--all", "--force"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_record_that_cannot_be_read_is_named_by_verbs_for_all(user: User, words: tuple[str, ...]) -> None:
    user.create("good", command="cat")
    user.create("bad", command="cat")
    agent_id = corrupt(user, "bad")
    done = user.mngr(*words).failed(PARTIAL)
    assert f"{agent_id}/agent.json" in done.stderr and "is not JSON" in done.stderr
    assert user.tmux("has-session", "-t", "=mngr-bad").exit_code == 0


def test_a_host_out_of_reach_is_named_by_verbs_for_all(user: User, pods: Pods) -> None:
    user.mngr("create", "far@w.pods", "--new-host", "--no-connect", "--command", "true").ok()
    user.create("near", command="true")
    user.wait_for_state("near", "DONE")
    with out_of_reach(user):
        done = user.mngr("stop", "--include", 'state == "DONE"').failed(PARTIAL)
    assert "`w`: provider `pods`" in done.stderr and "stopped near" in done.stdout
    user.mngr("stop", "--include", 'state == "DONE"').ok()


def test_reuse_makes_no_second_agent_while_a_record_cannot_be_read(user: User) -> None:
    user.create("foo")
    corrupt(user, "foo")
    refused = user.mngr("create", "foo", "--reuse", "--no-connect", "--command", "sleep 9999").failed()
    assert "is not JSON" in refused.stderr
    assert user.agents() == []


def test_a_host_with_an_unreadable_record_is_not_destroyed_for_being_empty(user: User, pods: Pods) -> None:
    user.mngr("create", "foo@w.pods", "--new-host", "--no-connect", "--command", "cat").ok()
    agent_id = user.agent("foo")["id"]
    (pods.place / "w" / "h" / ".mngr" / "agents" / str(agent_id) / "agent.json").write_text("{")
    user.mngr("host", "forget", "w").ok()
    kept = user.mngr("gc").ok().stdout
    assert "kept host w.pods" in kept and "is not JSON" in kept
    assert pods.names() == ["w"]
    user.mngr("host", "prepare", "w.pods").ok()
    assert "is not JSON" in user.mngr("host", "destroy", "w.pods", "--force").failed().stderr
    assert pods.names() == ["w"]


def test_a_provider_that_cannot_be_asked_is_named_by_gc(user: User, pods: Pods) -> None:
    with out_of_reach(user):
        named = user.mngr("gc").ok().stdout
    assert "cannot be asked" in named and "`kubectl get` failed" in named


def test_a_streamed_command_that_closed_its_output_ends_at_its_timeout(user: User, pods: Pods) -> None:
    user.mngr("create", "foo@w.pods", "--new-host", "--no-connect", "--command", "cat").ok()
    words = ("exec", "foo", "--stream", "--timeout", "2s", "exec >/dev/null 2>&1; sleep 60")
    assert "did not end within 2 s" in user.mngr(*words).failed(4).stderr


def test_an_address_with_a_provider_is_understood_by_all_verbs_that_move_work(user: User, pods: Pods) -> None:
    user.mngr("create", "foo@w.pods", "--new-host", "--no-connect", "--command", "cat").ok()
    user.mngr("exec", "foo@.pods", "echo x > x; git add x; git commit -qm x; echo y > y").ok()
    user.mngr("pull", "foo@.pods").ok()
    user.mngr("pull", "foo@w.pods:y", "../y").ok()
    assert (user.root / "y").read_text() == "y\n"
    user.mngr("git", "pull", "foo@.pods").ok()
    assert (user.repo / "x").read_text() == "x\n"
    user.mngr("rsync", "foo@.pods:y", "../again").ok()
    (user.repo / "z").write_text("z\n")
    user.mngr("push", "foo@.pods:z", "z").ok()
    user.git("add", "z")
    user.git("commit", "-qm", "z")
    user.mngr("exec", "foo", "rm y z").ok()
    user.mngr("git", "push", "foo@.pods").ok()
    user.mngr("push", "foo@w.pods").ok()
    assert user.mngr("exec", "foo", "cat z").ok().stdout == "z\n"


def test_a_clone_on_its_host_takes_arguments_for_a_type_of_the_settings(user: User, pods: Pods) -> None:
    settings = user.host_dir / "settings.toml"
    settings.write_text(settings.read_text() + '[agent_types.mine]\ncommand = "printf %s\\\\n"\n')
    user.mngr("create", "foo@w.pods", "--new-host", "mine", "--no-connect", "--", "first").ok()
    user.mngr("clone", "foo", "bar", "--no-connect", "--", "second").ok()
    assert user.agent("bar")["command"] == "printf %s\\n second"
    wait_for(lambda: "second" in user.mngr("capture", "bar").stdout, "what the clone printed")


def test_saved_work_and_snapshots_of_other_machines_are_in_the_python_api(user: User, pods: Pods) -> None:
    user.mngr("create", "foo@w.pods", "--new-host", "--no-connect", "--command", "cat").ok()
    fleet = mngr.Fleet(environ=user.env, cwd=str(user.repo))
    foo = fleet.find("foo")
    foo.exec("echo early > work")
    foo.snapshot("early")
    assert [(one.site.name, one.entry.id) for one in fleet.snapshots("foo").entries] == [("w", "foo/early")]
    foo.exec("echo late > work")
    foo.destroy(force=True)
    assert [(one.site.name, one.entry.id) for one in fleet.saved().entries] == [("w", "foo-1")]
    back = fleet.restore_saved("foo-1")
    assert back.site.name == "w"
    assert back.exec("cat work").stdout == b"late\n"
    fleet.restore_snapshot("foo/early")
    assert back.exec("cat work").stdout == b"early\n"
    here = fleet.restore_snapshot("foo/early", name="bar@local")
    assert fleet.find("bar").record == here.record
    fleet.close()
    with out_of_reach(user):
        silent = mngr.Fleet(environ=user.env, cwd=str(user.repo))
        assert ["`w`" in error.message for error in silent.saved().unreached] == [True]
        silent.close()
