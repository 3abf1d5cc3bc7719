"""Many agents over several machines, of which one is killed and one is cut off in the middle: `make soak`."""

import os
import pwd
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.real.test_tmr_hosts import end_processes, entries
from tests.support.pods import add_settings
from tests.support.sshd import SshClient, Sshd, descendants
from tests.support.tmr import Project, _claim
from tests.support.user import User, wait_for

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3500)]

AGENTS = int(os.environ.get("SOAK_AGENTS") or 60)
HOSTS = int(os.environ.get("SOAK_HOSTS") or 6)


@pytest.fixture
def project(user: User) -> Project:
    made = Project(user)
    for number in range(AGENTS):
        made.write(f"m{number}.py", f"def value():\n    return {number} + 1\n")
        test = f"import m{number}\n\n\ndef test_{number}():\n    assert m{number}.value() == {number}\n"
        made.write(f"tests/test_m{number}.py", test)
        change = f"wait\nrun! sed -i 's/return {number} + 1/return {number}/' m{number}.py\n"
        commit = "run! git diff --quiet || git commit -qam 'Half of it'\nthink 5\n"
        made.script(f"test_{number}", change + commit + _claim("implementation", f"Return {number}", 3))
    made.commit("many modules")
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


def test_a_run_over_many_hosts_ends_as_one_on_this_machine(project: Project, boxes: Mapping[str, Sshd]) -> None:
    numbered = [f"tests/test_m{number}.py" for number in range(AGENTS)]
    per_host = str(-(-AGENTS // HOSTS))
    words = ("--provider", "farm", "--agents-per-host", per_host, "--checkpoint", "5s", "--no-canary", *numbered)
    argv = project.words(*words)
    argv[argv.index("--max-agents") + 1] = str(AGENTS)
    child = project.user.popen(*argv)
    try:
        wait_for(
            lambda: child.poll() is not None or len(entries(project, "started")) >= AGENTS // 3,
            "a third of the agents to be made",
            900,
        )
        assert child.poll() is None, child.communicate()
        boxes["box1"].close()
        end_processes(boxes["box1"].far.home)
        cut(boxes["box2"])
        out, err = child.communicate(timeout=2400)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == 0, (out, err)
    assert set(project.verdicts().values()) == {"fixed"} and len(project.verdicts()) == AGENTS
    project.user.git("switch", "-q", "tmr/r1")
    for number in range(AGENTS):
        assert (Path(project.repo) / f"m{number}.py").read_text() == f"def value():\n    return {number}\n"
    suite = f"PYTHONPATH=. {shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider {' '.join(numbered)}"
    assert f"{AGENTS} passed" in project.user.run(["sh", "-c", suite]).stdout
