"""Real containers: an agent in a new one, limits, a built image, a prepared snapshot, and containers that end."""

from collections.abc import Iterator

import pytest

from tests.support.containers import IMAGE, Containers
from tests.support.pods import add_settings
from tests.support.user import User, wait_for


@pytest.fixture
def engine(user: User) -> Iterator[Containers]:
    with Containers() as made:
        user.env.update(made.env(user.env))
        yield made


def state(user: User, name: str) -> str:
    listed = user.mngr("host", "list", "--format", "json").ok().json["hosts"]
    return str({host["name"]: host["state"] for host in listed}[name])


def test_an_agent_in_a_container_with_limits_from_a_prepared_snapshot(user: User, engine: Containers) -> None:
    add_settings(
        user, f'[providers.docker]\nimage = "{IMAGE}"\nmemory = "300m"\ncpus = 0.5\npids = 200\nnetwork = "none"\n'
    )
    user.mngr("host", "create", "base.docker").ok()
    ready = user.mngr("host", "prepare", "base.docker", "--command", "echo it > /made", "--snapshot", "made").ok()
    assert "ready: base.docker" in ready.stdout
    user.mngr(
        "create", "foo@.docker", "--snapshot", "made", "--host-env", "A=b c", "--no-connect", "--command", "cat"
    ).ok()
    seen = (
        user.mngr("exec", "foo", "cat /made; printenv A; echo new > new; git add new; git commit -qm new").ok().stdout
    )
    assert seen == "it\nb c\n"
    name = user.agent("foo")["host"]["name"]
    facts = engine.podman(
        "inspect", "-f", "{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}} {{.HostConfig.NetworkMode}}", name
    )
    assert facts.ok().stdout == f"{300 << 20} 200 none\n"
    assert "1 commit that no other branch has" in user.mngr("host", "destroy", name).failed(1).stderr
    user.mngr("pull", "foo").ok()
    assert user.mngr("host", "stop", name).ok().stdout == f"stopped {name} and its agents: foo\n"
    assert state(user, name) == "STOPPED"
    stopped = user.agent("foo")
    assert stopped["state"] == "UNKNOWN" and f"host `{name}` is stopped; STOPPED" in stopped["state_reason"]
    assert f"mngr host start {name}.docker" in user.mngr("exec", "foo", "true").failed(6).stderr
    user.mngr("host", "start", name).ok()
    user.mngr("start", "foo", "--no-connect").ok()
    user.mngr("host", "destroy", name, "base", "--force").ok()
    assert engine.podman("ps", "-aq").ok().stdout == ""


def test_a_container_ends_when_no_agent_runs_in_it_or_its_time_is_over(user: User, engine: Containers) -> None:
    add_settings(user, f'[providers.idle]\ntype = "podman"\nimage = "{IMAGE}"\nidle_stop_minutes = 0.05\n')
    add_settings(user, f'[providers.old]\ntype = "podman"\nimage = "{IMAGE}"\nmax_hours = 0.001\n')
    user.mngr("create", "foo@w.idle", "--new-host", "--no-connect", "--command", "sleep 9999").ok()
    user.mngr("host", "create", "o.old").ok()
    wait_for(lambda: _status(engine, "o") == "exited", "the container to end after its time")
    assert _status(engine, "w") == "running" and user.state("foo") == "RUNNING"
    user.mngr("stop", "foo").ok()
    wait_for(lambda: _status(engine, "w") == "exited", "the idle container to end")
    assert state(user, "w") == "STOPPED"


def test_a_container_with_an_ended_or_a_long_waiting_agent_is_idle(user: User, engine: Containers) -> None:
    settings = f'type = "podman"\nimage = "{IMAGE}"\nidle_stop_minutes = 0.05\nwaiting_minutes = 0.1\n'
    add_settings(user, f"[providers.idle]\n{settings}")
    user.mngr("create", "done@d.idle", "--new-host", "--no-connect", "--command", "echo kept > file").ok()
    wait_for(lambda: _status(engine, "d") == "exited", "the container with the ended agent to end")
    user.mngr("host", "start", "d.idle").ok()
    assert user.mngr("exec", "done", "cat file").ok().stdout == "kept\n"
    user.mngr("create", "asks@w.idle", "--new-host", "--no-connect", "--type", "scripted").ok()
    wait_for(lambda: _status(engine, "w") == "exited", "the container with the waiting agent to end")
    user.mngr("host", "start", "w.idle").ok()
    asks = user.agent("asks")
    assert (asks["state"], "limit idle_stop_minutes" in asks["state_reason"]) == ("STOPPED", True), asks


HOUR_IS_OVER = """
for one in /proc/[0-9]*; do
  [ "$(cat $one/comm)" = sleep ] && tr "\\0" " " < $one/cmdline | grep -q "^sleep 3600" && kill ${one#/proc/}
done
"""


def test_the_work_of_agents_is_saved_before_the_time_of_their_container_is_over(user: User, engine: Containers) -> None:
    add_settings(user, f'[providers.old]\ntype = "podman"\nimage = "{IMAGE}"\nmax_hours = 1\n')
    user.mngr("host", "create", "o.old").ok()
    user.mngr("create", "foo@o.old", "--no-connect", "--command", "sleep 9999").ok()
    user.mngr("exec", "foo", "echo kept > kept").ok()
    engine.podman("exec", "o", "sh", "-c", HOUR_IS_OVER)
    wait_for(lambda: _status(engine, "o") == "exited", "the container to end after its time")
    user.mngr("host", "start", "o.old").ok()
    foo = user.agent("foo")
    assert (foo["state"], "its host ran for 1 h" in foo["state_reason"]) == ("STOPPED", True), foo
    assert "limit_reached" in [event["type"] for event in user.events("foo")]
    assert "host limit" in user.mngr("saved", "list").ok().stdout


def _status(engine: Containers, name: str) -> str:
    return engine.podman("inspect", "-f", "{{.State.Status}}", name).ok().stdout.strip()


def test_an_image_is_built_for_a_container(user: User, engine: Containers) -> None:
    (user.repo / "Dockerfile").write_text(f"FROM {IMAGE}\nCOPY README.md /readme\n")
    words = ("--build-arg=--file=Dockerfile", "-b", ".", "--start-arg=--env=START=1", "--host-label", "team=one")
    add_settings(user, "[providers.podman]\n")
    user.mngr("host", "create", "built.podman", *words, timeout=200).ok()
    assert engine.podman("exec", "built", "sh", "-c", "cat /readme; echo $START").ok().stdout.endswith("\n1\n")
    label = engine.podman("inspect", "-f", '{{index .Config.Labels "team"}}', "built").ok().stdout
    assert label == "one\n"
    user.mngr("host", "destroy", "built.podman").ok()
