"""Many agents in sandboxes that all start from one snapshot, two of which are taken away in the middle: `make soak`."""

import time

import pytest

from mngr_testing.modal_server import ModalServer
from tests.real.test_soak_tmr_hosts import AGENTS, project  # noqa: F401 (a fixture)
from tests.real.test_tmr_hosts import entries, tree
from tests.real.test_tmr_modal import preempt, server  # noqa: F401 (a fixture)
from tests.support.modal import CANNOT_RUN
from tests.support.tmr import Project
from tests.support.user import wait_for

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3500), pytest.mark.skipif(bool(CANNOT_RUN), reason=CANNOT_RUN)]


def busy(project: Project) -> list[str]:  # noqa: F811
    """The hosts on which an attempt goes on, oldest first."""
    ended = {(one["task"], one["number"]) for one in entries(project, "ended")}
    started = {(one["task"], one["number"]) for one in entries(project, "started")} - ended
    found = [str(one["host"]) for one in entries(project, "attempt") if (one["task"], one["number"]) in started]
    return list(dict.fromkeys(found))


def test_a_run_from_one_snapshot_ends_as_one_on_this_machine(project: Project, server: ModalServer) -> None:  # noqa: F811
    numbered = [f"tests/test_m{number}.py" for number in range(AGENTS)]
    words = ("--provider", "modal", "--agents-per-host", "2", "--checkpoint", "5s", "--no-canary", *numbered)
    argv = project.words(*words)
    argv[argv.index("--max-agents") + 1] = str(AGENTS)
    began = time.monotonic()
    child = project.user.popen(*argv)
    try:
        wait_for(
            lambda: child.poll() is not None or (len(entries(project, "started")) >= AGENTS // 3 and busy(project)[1:]),
            "a third of the agents to be made",
            900,
        )
        assert child.poll() is None, child.communicate()
        lost = busy(project)[-2:]
        for name in lost:
            preempt(server, name)
        out, err = child.communicate(timeout=2400)
    finally:
        child.kill()
        child.communicate()
    print(f"\n{AGENTS} agents, {time.monotonic() - began:.0f} s, lost: {', '.join(lost)}")
    assert child.returncode == 0, (out, err)
    assert len(project.verdicts()) == AGENTS and set(project.verdicts().values()) == {"fixed"}
    assert {one["reason"] for one in entries(project, "ended")} == {"host-lost", "outcome"}
    (kept,) = entries(project, "host_snapshot")
    first, *others = server.sandboxes()
    assert len(others) > AGENTS // 4 and {sandbox["image"] for sandbox in others} == {kept["snapshot"]}
    most = max(sandbox["received"] for sandbox in others)
    print(f"{len(others) + 1} sandboxes, {first['received']} bytes to the first, at most {most} to each of the others")
    assert [sandbox["name"] for sandbox in server.sandboxes() if sandbox["running"]] == []
    project.tmr("--no-canary", *numbered, name="r2", timeout=2400).ok()
    assert tree(project, "r1") == tree(project, "r2")
