"""`mngr host` and new hosts of `mngr create`, with a provider that is five command lines."""

from collections.abc import Iterator

import pytest

from tests.support.pods import Pods, add_settings
from tests.support.user import User, wait_for


@pytest.fixture
def pods(user: User) -> Iterator[Pods]:
    made = Pods(user)
    yield made
    made.close()


def hosts(user: User) -> dict[str, dict[str, object]]:
    return {host["name"]: host for host in user.mngr("host", "list", "--format", "json").ok().json["hosts"]}


def test_an_agent_on_a_new_host_from_create_to_destroy(user: User, pods: Pods) -> None:
    user.mngr("create", "foo@.pods", "--no-connect", "--command", "cat").ok()
    (name,) = pods.names()
    assert name.startswith("foo-")
    assert (hosts(user)[name]["state"], hosts(user)[name]["agents"], hosts(user)[name]["ours"]) == ("RUNNING", 1, True)
    user.mngr("exec", "foo", "echo x > new.txt; echo $HOME; git config user.email").ok()
    refused = user.mngr("host", "destroy", name).failed(1)
    assert "has work that is found nowhere else" in refused.stderr and "1 uncommitted file" in refused.stderr
    user.mngr("exec", "foo", "rm new.txt").ok()
    assert "agents run on" in user.mngr("host", "destroy", name).failed(1).stderr
    assert pods.names() == [name]
    would = user.mngr("host", "destroy", name, "--force", "--dry-run").ok()
    assert would.stdout == f"would have destroyed {name}\n" and pods.names() == [name]
    user.mngr("host", "destroy", name, "--force").ok()
    assert pods.names() == [] and hosts(user) == {} and user.agents() == []


def test_a_host_whose_agent_cannot_be_made_is_removed_again(user: User, pods: Pods) -> None:
    failed = ["--command", "cat", "--no-connect", "--extra-provision-command", "false"]
    assert user.mngr("create", "foo@.pods", *failed).exit_code == 1
    assert pods.names() == [] and hosts(user) == {}
    user.mngr("host", "create", "mine.pods").ok()
    assert user.mngr("create", "foo@mine.pods", *failed).exit_code == 1
    assert pods.names() == ["mine"]


def test_new_host_names_the_host_and_options_that_nothing_can_do_are_refused(user: User, pods: Pods) -> None:
    user.mngr("create", "foo@w.pods", "--new-host", "--no-connect", "--command", "cat").ok()
    assert pods.names() == ["w"]
    again = user.mngr("create", "bar@w.pods", "--new-host", "--no-connect", "--command", "cat").failed(2)
    assert "there is a host `w.pods` already" in again.stderr
    for words in (["--start-arg=--gpus=all"], ["-b", "."], ["--host-env", "A=1"], ["--snapshot", "x"]):
        refused = user.mngr("create", "bar@.pods", "--no-connect", "--command", "cat", *words).failed(2)
        assert "provider `pods` does not support" in refused.stderr
        refused = user.mngr("create", "bar@w.pods", "--no-connect", "--command", "cat", *words).failed(2)
        assert "needs a new host" in refused.stderr
    assert "does not support `stop`" in user.mngr("host", "stop", "w").failed(2).stderr
    assert user.state("foo") == "RUNNING"


def test_gc_removes_hosts_that_nobody_knows_and_keeps_those_with_agents(user: User, pods: Pods) -> None:
    for name in ("empty", "used", "gone"):
        user.mngr("host", "create", f"{name}.pods").ok()
    user.mngr("create", "foo@used", "--no-connect", "--command", "cat").ok()
    user.mngr("host", "forget", "empty", "used").ok()
    pods.delete("gone")
    assert hosts(user)["gone"]["state"] == "GONE"
    would = user.mngr("gc", "--dry-run").ok().stdout
    assert "would remove host empty.pods" in would and "would remove host gone.pods: it is gone" in would
    assert pods.names() == ["empty", "used"]
    user.mngr("gc").ok()
    assert pods.names() == ["used"]
    assert list(hosts(user)) == ["used"] and user.state("foo") == "RUNNING"


def test_a_host_that_is_gone_is_an_error_that_says_so(user: User, pods: Pods) -> None:
    user.mngr("create", "foo@w.pods", "--new-host", "--no-connect", "--command", "cat").ok()
    pods.delete("w")
    missing = user.mngr("exec", "fo", "true").failed(6).stderr
    assert "no agent named `fo` was found, and not every host answered: " in missing and "`foo`" in missing
    failed = user.mngr("exec", "foo", "true").failed(6)
    assert "provider `pods` has no host `w`" in failed.stderr and "mngr host forget w.pods" in failed.stderr
    listed = user.mngr("list", "--format", "json").ok().json
    assert [agent["state"] for agent in listed["agents"]] == ["UNKNOWN"]
    user.mngr("host", "forget", "w").ok()
    assert "no host `w` is known" in user.mngr("host", "forget", "w").failed(1).stderr


def test_a_host_that_boots_is_waited_for(user: User, pods: Pods) -> None:
    words = ("create", "foo@.pods", "--no-connect", "--command", "cat")
    user.mngr(*words, env={"PODS_BOOT": "4"}).ok()
    assert user.state("foo") == "RUNNING" and len(pods.names()) == 1
    add_settings(user, "ready_seconds = 1\n")
    failed = user.mngr("create", "bar@.pods", *words[2:], env={"PODS_BOOT": "9999"}).failed(6)
    assert "connection refused" in failed.stderr and len(pods.names()) == 1


def test_what_a_host_lacks_is_installed_where_that_is_allowed(user: User) -> None:
    """A host whose PATH has no tmux, and an `apt-get` that brings one."""
    far = user.root / "far"
    tools = far / "bin"
    tools.mkdir(parents=True)
    for name in ("sh", "python3", "git", "env", "id", "getent", "cut", "mkdir", "ln", "cat", "uname"):
        found = user.run(["sh", "-c", f"command -v {name}"]).ok().stdout.strip()
        (tools / name).symlink_to(found)
    tmux = user.run(["sh", "-c", "command -v tmux"]).ok().stdout.strip()
    script = f'#!/bin/sh\necho "$@" >> {far}/log\n[ "$1" = update ] || ln -s {tmux} {tools}/tmux\n'
    for name in ("apt-get", "apk", "dnf", "pacman"):
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    line = f"env -i HOME={far} PATH={tools} TMUX_TMPDIR={user.tmux_dir} sh -c"
    add_settings(user, f'[providers.near]\nopen = "{line}"\ninstall = false\n')
    missing = user.mngr("host", "prepare", "x.near").failed(6)
    assert "`x` has no `tmux` on its PATH" in missing.stderr and "install it there" in missing.stderr
    user.mngr("config", "set", "--scope", "user", "providers.near.install", "true").ok()
    user.mngr("host", "prepare", "x.near").ok()
    assert "python3 tmux git rsync" in (far / "log").read_text()


def test_a_host_goes_with_its_last_agent_and_what_was_saved_there_comes_here(user: User, pods: Pods) -> None:
    user.mngr("create", "foo@.pods", "--no-connect", "--command", "cat").ok()
    (name,) = pods.names()
    user.mngr("exec", "foo", "echo 1 > one").ok()
    user.mngr("snapshot", "create", "foo", "early").ok()
    user.mngr("exec", "foo", "git add one; git commit -qm one; echo 2 > two").ok()
    (row,) = user.mngr("snapshot", "list", "--format", "json").ok().json["snapshots"]
    assert (row["id"], row["host"]) == ("foo/early", name)
    done = user.mngr("destroy", "foo", "--force").ok()
    assert f"destroyed host {name}" in done.stderr and pods.names() == [] and hosts(user) == {}
    (saved,) = user.mngr("saved", "list", "--format", "json").ok().json["saved"]
    assert (saved["id"], saved["host"], saved["commits"], saved["uncommitted"]) == ("foo-1", "local", 1, ["two"])
    (row,) = user.mngr("snapshot", "list", "--format", "json").ok().json["snapshots"]
    assert row["host"] == "local"
    assert "one" in user.mngr("saved", "show", "foo-1").ok().stdout
    user.mngr("saved", "restore", "foo-1").ok()
    assert (user.work_dir("foo") / "two").read_text() == "2\n"
    user.mngr("snapshot", "restore", "early", "--as", "bar").ok()
    assert (user.work_dir("bar") / "one").read_text() == "1\n"


def test_a_host_that_the_user_made_stays_and_what_is_on_it_comes_here_by_force(user: User, pods: Pods) -> None:
    user.mngr("host", "create", "mine.pods").ok()
    for agent in ("foo", "bar"):
        user.mngr("create", f"{agent}@mine.pods", "--no-connect", "--command", "cat").ok()
        user.mngr("exec", agent, f"echo {agent} > {agent}.txt").ok()
    user.mngr("destroy", "foo", "--force").ok()
    (saved,) = user.mngr("saved", "list", "--format", "json").ok().json["saved"]
    assert (saved["id"], saved["host"]) == ("foo-1", "mine")
    assert "foo.txt" in user.mngr("saved", "show", "foo-1@mine").ok().stdout
    user.mngr("saved", "restore", "foo-1", "--to", "files").ok()
    assert (user.repo / "files" / "foo.txt").read_text() == "foo\n"
    user.mngr("saved", "restore", "foo-1", "--name", "home@local").ok()
    assert (user.work_dir("home") / "foo.txt").read_text() == "foo\n"
    done = user.mngr("host", "destroy", "mine", "--force").ok()
    assert pods.names() == [] and done.stderr.count("on this machine now") == 2
    found = {row["id"]: row for row in user.mngr("saved", "list", "--format", "json").ok().json["saved"]}
    assert sorted(found) == ["bar-1", "foo-1"] and found["bar-1"]["reason"] == "host destroy"
    user.mngr("saved", "restore", "bar").ok()
    assert (user.work_dir("bar") / "bar.txt").read_text() == "bar\n"


def test_gc_ends_a_host_whose_create_was_killed_and_saves_what_is_there(user: User, pods: Pods) -> None:
    killed = user.popen("create", "foo@.pods", "--no-connect", "--command", "cat", env={"PODS_SLOW": "60"})
    made = wait_for(lambda: list(pods.place.glob("*/pod.json")), "a pod is there")
    killed.kill()
    killed.communicate()
    name = made[0].parent.name
    shown = hosts(user)[name]
    assert (shown["made_for"], shown["agents"]) == ("agent foo", 0) and "`mngr gc` ends the host" in str(
        shown["reason"]
    )
    would = f"would remove host {name}.pods: made for agent foo, by a process that has ended"
    assert would in user.mngr("gc", "--dry-run").ok().stdout
    assert pods.names() == [name]
    user.mngr("gc").ok()
    assert pods.names() == [] and hosts(user) == {}


def test_a_host_of_somebody_else_in_the_same_listing_is_never_destroyed(user: User) -> None:
    pods = Pods(user, "vms", marked=False)
    try:
        user.run(
            ["kubectl", "run", "precious", "--image=x", "--labels=theirs", "--command", "--", "sh", "-c", "sleep 9999"]
        ).ok()
        user.mngr("create", "foo@w.vms", "--new-host", "--no-connect", "--command", "cat").ok()
        user.mngr("host", "create", "mine.vms").ok()
        for words in (["gc"], ["destroy", "--all", "--force"], ["gc"]):
            user.mngr(*words).ok()
            assert "precious" in pods.names()
        refused = user.mngr("host", "destroy", "precious.vms", "--force").failed(1)
        assert "mngr did not create `precious`" in refused.stderr
        user.mngr("host", "destroy", "mine", "w", "--force").ok()
        user.mngr("gc").ok()
        assert pods.names() == ["precious"]
    finally:
        pods.close()
