"""`mngr tmr --provider`: agents, baseline and verification on other machines, which may get lost."""

import os
import pwd
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pods import Pods, add_settings
from tests.support.sshd import SshClient, Sshd
from tests.support.tmr import Project, _claim
from tests.support.user import User, wait_for

pytestmark = pytest.mark.timeout(600)

# The first agent commits half of its work and is never done; the next one finds that half.
TWO_HALVES = """\
wait
run! test "$MNGR_ATTEMPT" != 1 || { sed -i 's/a - b - 1/a - b/' calc.py; git commit -qam 'First half'; sleep 600; }
run! test "$(git log -1 --format=%s)" = 'First half'
""" + _claim("implementation", "Subtract no more than asked", 4)


@pytest.fixture
def project(user: User) -> Project:
    return Project(user)


@pytest.fixture
def pods(project: Project) -> Iterator[Pods]:
    made = Pods(project.user)
    yield made
    made.close()


def tree(project: Project, run: str) -> str:
    return project.user.git("rev-parse", f"tmr/{run}^{{tree}}")


def entries(project: Project, kind: str) -> list[dict[str, object]]:
    path = Path(project.repo) / ".mngr" / "runs" / "r1" / "ledger.jsonl"
    return [entry for entry in project.ledger() if entry["type"] == kind] if path.exists() else []


def host_of(project: Project, task: str, number: int = 1) -> str:
    """Where the agent of this attempt was made; empty while it is not."""
    started = [entry for entry in entries(project, "started") if str(entry["task"]).endswith(task)]
    made = [one for one in entries(project, "attempt") if str(one["task"]).endswith(task) and one["number"] == number]
    return str(made[0]["host"]) if made and any(entry["number"] == number for entry in started) else ""


def checkpoint(project: Project, task: str) -> str:
    (slug,) = project.slugs(task)
    return project.user.git("for-each-ref", "--format=%(subject)", f"refs/mngr/runs/r1/{slug}/1-checkpoint")


def end_processes(home: Path, number: int = signal.SIGKILL, named: bytes = b"") -> None:
    """What runs with this HOME, and with this in its command line, ends as with the machine that has it."""
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            try:
                ours = f"HOME={home}".encode() in (place / "environ").read_bytes().split(b"\0")
                if ours and named in (place / "cmdline").read_bytes():
                    os.kill(int(place.name), number)
            except (OSError, ProcessLookupError):
                continue


def lose(pods: Pods, name: str) -> None:
    """In one moment for whoever asks: our program there must not answer while its files go."""
    home = pods.place / name / "h"
    end_processes(home, signal.SIGSTOP, b"start.py")
    pods.delete(name)
    end_processes(home)


def test_agents_and_measurements_run_on_hosts_that_are_made_and_destroyed(project: Project, pods: Pods) -> None:
    project.tmr("--provider", "pods", "--agents-per-host", "2", "--no-canary").ok()
    assert project.verdicts() == {"test_add": "unchanged", "test_sub": "fixed", "test_mul": "expectation changed"}
    assert {one["host"] for one in entries(project, "attempt")} == {"r1-h1", "r1-h2"}
    assert {one["host"] for one in entries(project, "measuring")} <= {"r1-h1", "r1-h2"}
    assert pods.names() == [] and project.user.agents() == []
    project.tmr("--no-canary", name="r2").ok()
    assert tree(project, "r1") == tree(project, "r2")


def test_a_run_continues_with_the_hosts_that_its_provider_gives(project: Project, pods: Pods) -> None:
    project.user.env["PODS_MOST"] = "1"
    project.tmr("-k", "add or sub", "--provider", "pods", "--agents-per-host", "1", "--no-canary").ok()
    assert project.verdicts() == {"test_add": "unchanged", "test_sub": "fixed"}
    refused = [one["because"] for one in entries(project, "host") if one["state"] == "destroyed" and "because" in one]
    assert refused and all("exceeded quota" in str(because) for because in refused)
    assert [one["reason"] for one in entries(project, "ended")] == ["outcome", "outcome"], "nobody paid for it"
    assert {one["host"] for one in entries(project, "attempt")} == {"r1-h1"} and pods.names() == []


def test_a_task_of_a_host_that_is_gone_continues_elsewhere_with_the_commits_that_were_fetched(
    project: Project, pods: Pods
) -> None:
    project.script("test_sub", TWO_HALVES)
    words = ("-k", "sub", "--provider", "pods", "--agents-per-host", "1", "--checkpoint", "1s", "--no-canary")
    child = project.user.popen(*project.words(*words))
    try:
        wait_for(lambda: checkpoint(project, "sub") == "First half", "the first commit to be fetched", 200)
        lost = host_of(project, "test_sub")
        lose(pods, lost)
        out, err = child.communicate(timeout=300)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == 0, (out, err)
    assert [one["reason"] for one in entries(project, "ended")] == ["host-lost", "outcome"]
    assert host_of(project, "test_sub", 2) not in ("", lost)
    assert project.verdicts() == {"test_sub": "fixed"}
    assert "    return a - b\n" in project.user.git("show", "tmr/r1:calc.py") + "\n"
    assert pods.names() == []


def test_a_killed_run_is_resumed_on_the_same_hosts(project: Project, pods: Pods) -> None:
    project.script("test_sub", "wait\nthink 6\n" + (project.scripts / "test_sub.script").read_text()[5:])
    child = project.user.popen(*project.words("--provider", "pods", "--agents-per-host", "2", "--no-canary"))
    try:
        wait_for(lambda: host_of(project, "test_sub"), "the agent to be made", 200)
    finally:
        child.kill()
        child.communicate()
    hosts = pods.names()
    project.resume().ok()
    assert {str(one["name"]) for one in entries(project, "host")} >= set(hosts)
    made = [(one["task"], one["number"]) for one in entries(project, "attempt")]
    assert len(made) == 3, "no task is paid for twice"
    assert project.verdicts() == {"test_add": "unchanged", "test_sub": "fixed", "test_mul": "expectation changed"}
    assert pods.names() == [] and project.user.agents() == []


def test_gc_leaves_working_agents_of_a_killed_run_and_saves_and_ends_its_hosts_then(
    project: Project, pods: Pods
) -> None:
    project.script("test_sub", TWO_HALVES)
    words = ("-k", "sub", "--provider", "pods", "--agents-per-host", "1", "--checkpoint", "1h", "--no-canary")
    child = project.user.popen(*project.words(*words))
    user = project.user
    try:
        wait_for(lambda: host_of(project, "test_sub"), "the agent to be made", 200)
        (agent,) = (str(one["name"]) for one in user.agents() if one["type"] == "scripted")
        wait_for(lambda: "First half" in user.mngr("exec", agent, "git log -1").stdout, "its commit", 100)
    finally:
        child.kill()
        child.communicate()
    made = pods.names()
    kept = user.mngr("gc").ok().stdout
    assert f"`{agent}` still works there" in kept and host_of(project, "test_sub") in pods.names()
    user.mngr("stop", agent).ok()
    assert "made for run r1, by a process that has ended" in user.mngr("gc").ok().stdout
    assert made and pods.names() == [] and user.agents() == []
    (entry,) = (one for one in user.mngr("saved", "--format", "json").ok().json["saved"] if one["name"] == agent)
    user.mngr("saved", "restore", str(entry["id"]), "--name", "again").ok()
    assert "First half" in user.mngr("exec", "again", "git log -1").ok().stdout


@pytest.fixture
def boxes(project: Project) -> Iterator[dict[str, Sshd]]:
    """Two machines that ssh reaches as `a` and `b`, the pool `farm`."""
    user, client = project.user, SshClient(project.user.root / "ssh")
    homes = {"a": User(), "b": User()}
    made: dict[str, Sshd] = {}
    try:
        for name, far in homes.items():
            made[name] = Sshd(far, name=name)
            client.add(name, "127.0.0.1", port=made[name].port, login=pwd.getpwuid(os.getuid()).pw_name)
            client.trust("127.0.0.1", port=made[name].port)
        user.env.update(client.env(user.env))
        add_settings(user, '[providers.farm]\ntype = "ssh"\nhosts = ["a", "b"]\n[tmr]\nlost_seconds = 3\n')
        yield made
    finally:
        for box in made.values():
            box.close()
        for far in homes.values():
            far.close()


def test_a_pool_of_which_no_host_answers_is_told_at_once(project: Project, boxes: dict[str, Sshd]) -> None:
    for box in boxes.values():
        box.close()
    said = project.tmr("--provider", "farm", "--no-canary", timeout=100).failed(6).stderr
    assert "host `a` does not answer" in said and "host `b` does not answer" in said
    assert "error: no host of `farm` answers: `a` refuses connections" in said and "mngr tmr resume r1" in said


def test_a_pool_of_ssh_hosts_of_which_one_goes_down(project: Project, boxes: dict[str, Sshd]) -> None:
    project.script("test_sub", TWO_HALVES)
    words = ("-k", "sub", "--provider", "farm", "--agents-per-host", "2", "--checkpoint", "1s", "--no-canary")
    child = project.user.popen(*project.words(*words))
    try:
        wait_for(lambda: checkpoint(project, "sub") == "First half", "the first commit to be fetched", 200)
        lost = host_of(project, "test_sub")
        boxes[lost].close()
        end_processes(boxes[lost].far.home)
        out, err = child.communicate(timeout=300)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == 0, (out, err)
    assert [one["reason"] for one in entries(project, "ended")] == ["host-lost", "outcome"]
    assert host_of(project, "test_sub", 2) == ({"a", "b"} - {lost}).pop()
    assert project.verdicts() == {"test_sub": "fixed"}
