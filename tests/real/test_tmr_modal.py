"""`mngr tmr --provider modal`: agents and test runs in sandboxes that start from one snapshot and may be taken away."""

import os
import sys
from collections.abc import Iterator

import pytest

from mngr_testing.modal_server import ModalServer
from tests.real.test_tmr_hosts import TWO_HALVES, checkpoint, entries, host_of, tree
from tests.support.modal import CANNOT_RUN
from tests.support.tmr import Project
from tests.support.user import User, wait_for

pytestmark = [pytest.mark.timeout(600), pytest.mark.skipif(bool(CANNOT_RUN), reason=CANNOT_RUN)]


HISTORY = 8 << 20


@pytest.fixture
def project(user: User) -> Project:
    """One with a long history."""
    (user.repo / "large").write_bytes(os.urandom(HISTORY))
    user.git("add", ".")
    user.git("commit", "-qm", "something large")
    user.git("rm", "-q", "large")
    user.git("commit", "-qm", "nothing large")
    return Project(user)


@pytest.fixture
def server(project: Project) -> Iterator[ModalServer]:
    """Its sandboxes see the Python that has pytest, and the scripts of the agents."""
    with ModalServer(show=[sys.base_prefix, sys.prefix, str(project.scripts)]) as running:
        project.user.env.update(running.env())
        yield running


def preempt(server: ModalServer, name: str) -> None:
    (id,) = [sandbox["id"] for sandbox in server.sandboxes() if sandbox["name"] == name and sandbox["running"]]
    server.preempt(id)


def test_a_run_of_which_a_sandbox_is_taken_away_ends_as_one_on_this_machine(
    project: Project, server: ModalServer
) -> None:
    project.script("test_sub", TWO_HALVES)
    words = ("--provider", "modal", "--agents-per-host", "1", "--checkpoint", "1s", "--no-canary")
    child = project.user.popen(*project.words(*words))
    try:
        wait_for(
            lambda: checkpoint(project, "sub") == "First half" or child.poll() is not None, "the first commit", 300
        )
        assert child.poll() is None, child.communicate()
        lost = host_of(project, "test_sub")
        preempt(server, lost)
        out, err = child.communicate(timeout=300)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == 0, (out, err)
    assert project.verdicts() == {"test_add": "unchanged", "test_sub": "fixed", "test_mul": "expectation changed"}
    assert host_of(project, "test_sub", 2) not in ("", lost)
    (kept,) = entries(project, "host_snapshot")
    first, *others = server.sandboxes()
    assert len(others) > 1 and {sandbox["image"] for sandbox in others} == {kept["snapshot"]}
    assert first["received"] > HISTORY, "the history goes to Modal once"
    assert max(sandbox["received"] for sandbox in others) < HISTORY
    assert [sandbox["name"] for sandbox in server.sandboxes() if sandbox["running"]] == []
    assert project.user.agents() == []
    project.script("test_sub", TWO_HALVES.replace("sleep 600", "true"))
    project.tmr("--no-canary", name="r2").ok()
    assert tree(project, "r1") == tree(project, "r2")
