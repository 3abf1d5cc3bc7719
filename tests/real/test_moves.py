"""An agent goes from machine to machine and stays what it is: commits, files, conversation, settings."""

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.test_saved import make_base, make_work
from tests.support.containers import IMAGE, Containers
from tests.support.pods import add_settings
from tests.support.sshd import Sshd
from tests.support.trees import Tree, tree
from tests.support.user import User


@pytest.fixture
def hosts(user: User) -> Iterator[dict[str, Sshd]]:
    """Two other machines, `box` and `den`."""
    people = [User(), User()]
    with Sshd(people[0], name="box") as box, Sshd(people[1], name="den") as den:
        box.client.add("den", "127.0.0.1", port=den.port, login=pwd.getpwuid(os.getuid()).pw_name)
        box.client.trust("127.0.0.1", port=den.port)
        user.env.update(box.client.env(user.env))
        yield {"box": box, "den": den}
    for person in people:
        person.close()


def everything(user: User, name: str) -> tuple[Tree, str, str, str, list[tuple[str, str]]]:
    """What must be the same wherever the agent is."""
    work_dir = user.agent(name)["work_dir"]
    log = user.git("log", "--format=%H %an %s", cwd=work_dir)
    status = user.git("status", "--porcelain", "-z", cwd=work_dir)
    refs = user.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags", cwd=work_dir)
    said = user.mngr("transcript", name, "--format", "json").ok().json
    return tree(work_dir), log, status, refs, [(line["role"], line.get("text", "")) for line in said]


def make(user: User, at: str = "") -> dict[str, Any]:
    make_base(user, user.repo)
    (user.repo / ".gitignore").write_text("*.log\n")
    user.git("add", ".")
    user.git("commit", "-qm", "base")
    user.git("tag", "v1")
    options = ("--label", "team=x", "--env", "TOKEN=abc", "--idle-timeout", "9h", "--transfer", "git-mirror")
    user.mngr("create", f"foo{at}", "--no-connect", "--type", "scripted", *options, "-m", "hello").ok()
    foo = user.wait_for_state("foo", "WAITING")
    work_dir = Path(foo["work_dir"])
    (work_dir / "done.txt").write_text("done\n")
    user.git("add", "done.txt", cwd=work_dir)
    user.git("commit", "-q", "-m", "done", cwd=work_dir)
    make_work(work_dir)
    (work_dir / "git~1").unlink()  # another system takes it for `.git`, so git refuses it from a host
    (work_dir / "ignored.log").write_text("ignored\n")
    return foo


def test_migrate_from_here_to_a_host_to_another_and_home(user: User, hosts: dict[str, Sshd]) -> None:
    foo = make(user)
    before = everything(user, "foo")
    assert b"ignored.log" in before[0] and ("user", "hello") in before[4]
    last = "local"
    for host in ("box", "den", "local"):
        done = user.mngr("migrate", "foo", f"@{host}", "--format", "json").ok().json
        assert (done["agent_id"], done["source_host"], done["host_name"]) == (foo["id"], last, host)
        there = user.wait_for_state("foo", "WAITING")
        assert (there["host"]["name"], there["id"]) == (host, foo["id"])
        assert there["labels"] == foo["labels"] and there["initial_branch"] == foo["initial_branch"]
        assert everything(user, "foo") == before
        assert user.mngr("exec", "foo", "echo $TOKEN").ok().stdout == "abc\n"
        last = host
    home = user.agent("foo")
    assert home["repo"] == foo["repo"] and home["limits"] == foo["limits"]
    user.mngr("message", "foo", "-m", "hello again").ok()
    assert user.wait_for_state("foo", "WAITING")
    assert user.git("for-each-ref", "refs/mngr") == ""
    for box in hosts.values():
        assert not os.listdir(box.far.host_dir / "agents") and not os.listdir(box.far.host_dir / "clones")
    assert not [name for name in os.listdir(user.host_dir) if name.startswith("between")]


def test_a_clone_goes_to_a_host_and_a_clone_of_that_to_another_and_home(user: User, hosts: dict[str, Sshd]) -> None:
    make_base(user, user.repo)
    user.create("foo")
    work_dir = Path(user.agent("foo")["work_dir"])
    make_work(work_dir)
    (work_dir / "git~1").unlink()  # another system takes it for `.git`, so git refuses it from a host
    user.git("add", "run.sh", cwd=work_dir)
    user.git("commit", "-qm", "done", cwd=work_dir)
    before = tree(work_dir)
    for source, target in (("foo", "a@box"), ("a", "b@den"), ("b", "c@local")):
        options = ("--no-connect", "--label", f"from={source}")
        assert f"cloned {source} to {target}" in user.mngr("clone", source, target, *options).ok().stdout
        made = user.agent(target[0])
        assert (made["host"]["name"], made["labels"]["from"], made["state"]) == (target[2:], source, "RUNNING")
        assert tree(made["work_dir"]) == before
        for what in (("log", "--format=%H"), ("status", "--porcelain", "-z")):
            assert user.git(*what, cwd=made["work_dir"]) == user.git(*what, cwd=work_dir)
        assert user.git("branch", "--show-current", cwd=made["work_dir"]) == f"mngr/{target[0]}"
    assert len({user.agent(name)["id"] for name in ("foo", "a", "b", "c")}) == 4
    assert user.mngr("clone", "b", "@box", "--no-connect", "--format", "json").ok().json["name"] == "b-2"
    assert "an agent named `a` exists already" in user.mngr("clone", "b", "a@box", "--no-connect").failed(1).stderr
    user.mngr("pull", "a").ok()
    offered = user.mngr("__complete", "message", "").ok().stdout
    assert {"a", "b", "c", "foo"} <= {line.split("\t")[0] for line in offered.splitlines()}


def test_plain_files_go_to_a_host_and_back(user: User, hosts: dict[str, Sshd]) -> None:
    plain = user.root / "plain"
    plain.mkdir()
    (plain / "one").write_text("1\n")
    user.mngr("create", "foo", "--no-connect", "--command", "cat", "--from", str(plain), cwd=plain).ok()
    (Path(user.agent("foo")["work_dir"]) / "two").write_text("2\n")
    for host in ("box", "local"):
        user.mngr("migrate", "foo", f"@{host}").ok()
        found = tree(user.agent("foo")["work_dir"])
        assert {name: content for name, (_, content) in found.items()} == {b"one": b"1\n", b"two": b"2\n"}
    assert user.agent("foo")["state"] == "RUNNING"


def test_an_agent_that_cannot_go_stays_and_runs(user: User, hosts: dict[str, Sshd]) -> None:
    user.create("foo")
    hosts["box"].close()
    assert "`box` refuses connections" in user.mngr("migrate", "foo", "@box").failed(6).stderr
    user.mngr("create", "foo@den", "--no-connect", "--command", "cat").ok()
    assert "an agent named `foo` exists already" in user.mngr("migrate", "foo@local", "@den").failed(1).stderr
    assert user.mngr("list", "--format", "json").ok().json["agents"][0]["state"] == "RUNNING"
    user.mngr("destroy", "foo@den").ok()
    place = hosts["den"].far
    (place.root / "no-git").mkdir()
    (place.root / "no-git" / "git-receive-pack").write_text("#!/bin/sh\nexit 1\n")
    (place.root / "no-git" / "git-receive-pack").chmod(0o755)
    hosts["den"].set_bashrc(f"PATH={place.root}/no-git:$PATH")
    assert "could not be sent to `den`" in user.mngr("migrate", "foo", "@den").failed(1).stderr
    assert user.state("foo") == "RUNNING" and os.listdir(place.host_dir / "agents") == []
    assert not [name for _, _, names in os.walk(place.host_dir / "snapshots") for name in names if name == "entry.json"]
    assert user.git("for-each-ref", "refs/mngr") == ""


def test_an_agent_that_does_not_run_on_the_other_host_is_as_it_was(user: User, hosts: dict[str, Sshd]) -> None:
    user.create("foo", command=f"test -e there || test $HOME = {user.home} && exec sleep 9999")
    user.mngr("exec", "foo", "echo 1 > one").ok()
    assert "`foo` does not run on `box`: " in user.mngr("migrate", "foo", "@box").failed(1).stderr
    place = hosts["box"].far.host_dir
    assert (os.listdir(place / "agents"), os.listdir(place / "clones")) == ([], [])
    found = user.agent("foo")
    assert (found["host"]["name"], found["state"]) == ("local", "RUNNING")
    user.mngr("exec", "foo", "cat one > there").ok()
    user.mngr("migrate", "foo", "@box").ok()
    found = user.agent("foo")
    assert (found["host"]["name"], found["state"]) == ("box", "RUNNING")
    assert user.mngr("exec", "foo", "cat there").ok().stdout == "1\n"


def test_gc_and_doctor_look_at_all_hosts(user: User, hosts: dict[str, Sshd]) -> None:
    user.mngr("create", "foo@box", "--no-connect", "--command", "cat").ok()
    user.mngr("create", "bar@den", "--no-connect", "--command", "cat").ok()
    user.mngr("exec", "foo", "git commit -q --allow-empty -m x").ok()
    user.mngr("pull", "foo", "--into", "none").ok()
    there = hosts["box"].far.host_dir
    (current,) = os.listdir(there / "lib")
    for name, agent in (("0ld", None), ("u5ed", user.agent("foo")["id"])):
        (there / "lib" / name).mkdir()
        os.utime(there / "lib" / name, (0, 0))
        if agent:
            (there / "agents" / agent / "limits.sh").write_text(f"python3 {there}/lib/{name}/x\n")
    (there / "repos" / "0ldkey").mkdir()
    os.utime(there / "repos" / "0ldkey", (0, 0))
    (user.host_dir / "hosts" / "helper.log").write_text("a file of a helper program\n")
    hosts["den"].close()
    found = user.mngr("gc", "--dry-run", "--format", "json").ok().json["leftovers"]
    assert {(item["what"], item["name"], item["host"]) for item in found if item["action"] == "would remove"} == {
        ("program", "0ld", "box"),
        ("cache", "0ldkey", "box"),
    }
    assert "den" in [item["name"].partition(".")[0] for item in found if item["action"] == "kept"]
    assert "removed program 0ld on box" in user.mngr("gc").ok().stdout
    assert sorted(os.listdir(there / "lib")) == sorted([current, "u5ed"]) and len(os.listdir(there / "repos")) == 1
    assert user.git("for-each-ref", "--format=%(refname)", "refs/mngr") == "refs/mngr/pulled/foo"
    checks = {check["name"]: check for check in user.mngr("doctor", "--format", "json").json["checks"]}
    assert "tmux" in checks["host box"]["found"] and checks["host box"]["found"].startswith("python 3.")
    assert checks["host den"]["status"] == "warn" and "den" in checks["host den"]["found"]


def test_from_a_host_to_a_container_and_home(user: User, hosts: dict[str, Sshd]) -> None:
    with Containers() as containers:
        user.env.update(containers.env(user.env))
        add_settings(user, f'[providers.podman]\nimage = "{IMAGE}"\n')
        make(user)
        look = "git log --format=%H; git status --porcelain; cat ignored.log done.txt deep/er/crlf.txt; echo $TOKEN"
        before = user.mngr("exec", "foo", look).ok().stdout
        said = everything(user, "foo")[4]
        user.mngr("clone", "foo", "a@box", "--no-connect").ok()
        user.mngr("clone", "a", "b@.podman", "--no-connect", timeout=180).ok()
        assert user.mngr("exec", "b", look).ok().stdout == before
        done = user.mngr("migrate", "b", "@local", timeout=180).ok()
        assert "destroyed host b-" in done.stderr
        assert user.mngr("exec", "b", look).ok().stdout == before
        assert everything(user, "b")[4] == said and user.agent("b")["host"]["name"] == "local"


def test_nothing_is_left_behind(user: User, hosts: dict[str, Sshd]) -> None:
    (user.repo / ".gitignore").write_text("*.big\n")
    user.git("add", ".")
    user.git("commit", "-qm", "base")
    user.mngr("create", "foo", "--no-connect", "--type", "scripted", "--record", "--transfer", "git-mirror").ok()
    user.wait_for_state("foo", "WAITING")
    user.mngr("message", "foo", "-m", "say PRECIOUS", "--wait-reply").ok()
    work_dir = user.work_dir("foo")
    user.git("init", "-q", str(work_dir / "n"))
    user.git("commit", "-q", "--allow-empty", "-m", "inside", cwd=work_dir / "n")
    user.git("add", "n", cwd=work_dir)
    user.git("commit", "-qm", "embed", cwd=work_dir)
    with (work_dir / "model.big").open("wb") as file:
        file.truncate(15_000_000)
    for words in (("--dry-run",), ()):
        assert "`model.big` (15 MB" in user.mngr("migrate", "foo", "@box", *words).failed().stderr
    assert user.state("foo") == "WAITING"
    user.mngr("migrate", "foo", "@box", "-S", "saved.ignored_max_mb=20").ok()
    foo = user.agent("foo")
    assert foo["host"]["name"] == "box" and (Path(foo["work_dir"]) / "model.big").stat().st_size == 15_000_000
    assert user.git("log", "--format=%s", cwd=f"{foo['work_dir']}/n") == "inside"
    user.mngr("capture", "foo", "--cast", str(user.root / "cast")).ok()
    assert "PRECIOUS" in (user.root / "cast").read_text()
