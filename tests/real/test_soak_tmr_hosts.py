"""Many agents over several machines, of which one is killed and one is cut off in the middle: `make soak`."""

import os
import pwd
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.real.test_tmr_hosts import end_processes, entries, tree
from tests.support.containers import IMAGE, Containers
from tests.support.pods import add_settings
from tests.support.sshd import SshClient, Sshd, descendants
from tests.support.tmr import Project, many_modules
from tests.support.user import User, wait_for

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3500)]

AGENTS = int(os.environ.get("SOAK_AGENTS") or 60)
HOSTS = int(os.environ.get("SOAK_HOSTS") or 6)
_OPTIONS = "-m pytest -q -p no:cacheprovider"
NUMBERED = [f"tests/test_m{number}.py" for number in range(AGENTS)]


@pytest.fixture
def project(user: User) -> Project:
    made = Project(user)
    many_modules(made, AGENTS)
    return made


@pytest.fixture
def boxes(project: Project) -> Iterator[Mapping[str, Sshd]]:
    user, client = project.user, SshClient(project.user.root / "ssh")
    made: dict[str, Sshd] = {}
    try:
        for number in range(1, HOSTS + 1):
            name = f"box{number}"
            made[name] = Sshd(User(), name=name)
            client.add(name, "127.0.0.1", port=made[name].port, login=pwd.getpwuid(os.getuid()).pw_name)
            client.trust("127.0.0.1", port=made[name].port)
        user.env.update(client.env(user.env))
        hosts = ", ".join(f'"{name}"' for name in made)
        add_settings(user, f'[providers.farm]\ntype = "ssh"\nhosts = [{hosts}]\n[tmr]\nlost_seconds = 20\n')
        yield made
    finally:
        for box in made.values():
            for pid in [box._process.pid, *descendants(box._process.pid)]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            box.close()
            box.far.close()


def cut(box: Sshd) -> None:
    """Nothing of a machine answers any more, and nothing says so; what runs there goes on."""
    for pid in [box._process.pid, *box.connections()]:
        os.kill(pid, signal.SIGSTOP)


def busy(project: Project) -> set[str]:
    """The hosts on which an attempt goes on."""
    ended = {(one["task"], one["number"]) for one in entries(project, "ended")}
    started = {(one["task"], one["number"]) for one in entries(project, "started")} - ended
    return {str(one["host"]) for one in entries(project, "attempt") if (one["task"], one["number"]) in started}


def check_as_local(project: Project, *words: str) -> None:
    """The branch is that of a run on this machine, and each commit that an agent reported is here."""
    assert set(project.verdicts().values()) == {"fixed"} and len(project.verdicts()) == AGENTS
    argv = project.words(*NUMBERED, "--no-canary", *words, name="local")
    argv[argv.index("--max-agents") + 1] = "8"
    project.user.mngr(*argv, timeout=2400).ok()
    assert tree(project, "r1") == tree(project, "local")
    reported = [
        str(change["commit"])
        for entry in project.ledger()
        if entry["type"] == "collected" and entry["data"].get("outcome")
        for change in entry["data"]["outcome"]["changes"]
    ]
    assert len(reported) >= AGENTS
    assert set(project.user.git("rev-list", "--no-walk", *reported).split()) == set(reported)


def disturbed(project: Project, argv: list[str], hit: set[str], disturb: Callable[[], object]) -> tuple[str, str]:
    """What a run prints to which something happens as soon as a third of its agents are made, and some on `hit`."""
    child = project.user.popen(*argv)
    try:
        wait_for(
            lambda: (
                child.poll() is not None or (len(entries(project, "started")) >= AGENTS // 3 and hit <= busy(project))
            ),
            "a third of the agents to be made",
            900,
        )
        assert child.poll() is None, "\n".join(map(bytes.decode, child.communicate()))
        disturb()
        out, err = child.communicate(timeout=2400)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == 0, (out, err)
    return str(out), str(err)


def test_a_run_over_many_hosts_ends_as_one_on_this_machine(project: Project, boxes: Mapping[str, Sshd]) -> None:
    per_host = str(-(-AGENTS // HOSTS))
    words = ("--provider", "farm", "--agents-per-host", per_host, "--checkpoint", "5s", "--no-canary", *NUMBERED)
    argv = project.words(*words)
    argv[argv.index("--max-agents") + 1] = str(AGENTS)

    def disturb() -> None:
        boxes["box1"].close()
        end_processes(boxes["box1"].far.home)
        cut(boxes["box2"])

    disturbed(project, argv, {"box1", "box2"}, disturb)
    check_as_local(project)


# Enough of pytest for any Python: what the snapshot adds to the image.
_PYTEST = ("pytest", "_pytest", "py.py", "pluggy", "iniconfig", "packaging", "pygments")


@pytest.fixture
def engine(project: Project) -> Iterator[Containers]:
    """Containers with the scripts of the agents and pytest, from one snapshot called `ready`."""
    user = project.user
    packages = Path(pytest.__file__).parents[1]
    with Containers() as made:
        user.env.update(made.env(user.env))
        add_settings(user, f'[providers.podman]\nimage = "{IMAGE}"\nnetwork = "none"\n[tmr]\nlost_seconds = 20\n')
        volumes = [f"--start-arg=--volume={packages}:/packages:ro", f"--start-arg=--volume={project.scripts}:/given:ro"]
        user.mngr("host", "create", "base.podman", *volumes).ok()
        copied = " ".join(f"/packages/{name}" for name in _PYTEST)
        command = f"mkdir /opt/packages && cp -r {copied} /opt/packages && cp -r /given /opt/scripts"
        user.mngr("host", "prepare", "base.podman", "--command", command, "--snapshot", "ready", timeout=300).ok()
        user.mngr("host", "destroy", "base.podman").ok()
        project.settings |= {"test_command": f"python3 {_OPTIONS}", "env.PYTHONPATH": ".:/opt/packages"}
        project.write(".mngr/settings.toml", project.toml())
        project.commit("python3 of the containers")
        yield made


def lose(engine: Containers) -> None:
    """One container is killed, one answers nothing any more."""
    engine.podman("kill", "r1-h1").ok()

    def paused() -> bool:
        engine.podman("pause", "r1-h2")  # where many processes begin and end, the kernel needs several tries
        return engine.podman("inspect", "-f", "{{.State.Status}}", "r1-h2").stdout.strip() == "paused"

    wait_for(paused, "a container to be frozen", 120)


def test_a_run_in_containers_of_one_snapshot_ends_as_one_on_this_machine(project: Project, engine: Containers) -> None:
    per_host = str(-(-AGENTS // HOSTS))
    words = ("--provider", "podman", "--snapshot", "ready", "--agents-per-host", per_host, "--checkpoint", "5s")
    argv = project.words(*words, "--no-canary", *NUMBERED)
    argv[argv.index("--max-agents") + 1] = str(AGENTS)
    argv[-1] = "/opt/scripts/{name}.script"
    hit = {"r1-h1", "r1-h2"}
    out, err = disturbed(project, argv, hit, lambda: lose(engine))
    assert {str(one["name"]) for one in entries(project, "host") if one["state"] == "making"} >= hit, (out, err)
    check_as_local(project, "-S", f"tmr.test_command={shlex.quote(sys.executable)} {_OPTIONS}")
