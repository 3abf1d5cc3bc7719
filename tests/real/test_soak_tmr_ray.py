"""Many agents on a Ray cluster with too little room for them, of which a node is cut off in the middle: `make soak`."""

import os
from collections.abc import Iterator

import pytest

from mngr.tmr import plan
from tests.real.test_provider_ray import Person
from tests.real.test_tmr_hosts import entries, host_of, tree
from tests.support.pods import add_settings
from tests.support.ray_cluster import CANNOT_RUN, RayCluster
from tests.support.tmr import Project, claim_fix, commit_half, many_modules
from tests.support.user import User, wait_for

pytestmark = [pytest.mark.soak, pytest.mark.skipif(bool(CANNOT_RUN), reason=CANNOT_RUN), pytest.mark.timeout(3500)]

AGENTS = int(os.environ.get("SOAK_AGENTS") or 60)
PER_HOST = int(os.environ.get("SOAK_AGENTS_PER_HOST") or 4)
# On a node, the first agent of this task is never done after its commit: the node is cut off before that.
NEVER_DONE = f'wait\n{commit_half(0)}run! case "$HOME $MNGR_ATTEMPT" in */.mngr-ray/*" 1") sleep 3000;; esac\n'


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    with RayCluster(3, cpus=2) as running:
        yield running


def node_of(cluster: RayCluster, host: str) -> str:
    """The node that has the files of a host."""
    (place,) = [path for path in cluster.files() if (path / "key").read_text().endswith(f"/{host}")]
    return place.relative_to(cluster.place).parts[0]


def test_a_run_on_a_cluster_with_little_room_ends_as_one_on_this_machine(user: User, cluster: RayCluster) -> None:
    project, person = Project(user), Person(user, cluster)
    tests = many_modules(project, AGENTS)
    project.script("test_0", NEVER_DONE + claim_fix(0))
    person.settings("cpus = 1")
    add_settings(user, "[tmr]\nlost_seconds = 60\n")
    words = ("--provider", "ray", "--agents-per-host", str(PER_HOST), "--checkpoint", "5s", "--no-canary")
    argv = project.words("--max-agents", str(AGENTS), *words, *tests)
    del argv[(at := argv.index("--max-agents")) : at + 2]
    slug = plan.slugs(["tests/test_m0.py::test_0"])["tests/test_m0.py::test_0"]
    kept = f"refs/mngr/runs/r1/{slug}/1-checkpoint"
    child = person.popen(*argv)
    try:
        wait_for(lambda: child.poll() is not None or user.git("for-each-ref", kept), "the first half", 900)
        wait_for(lambda: child.poll() is not None or "QUEUED" in _states(person), "a host to be queued", 300)
        assert child.poll() is None, child.communicate()
        begun = len(entries(project, "started"))
        node = node_of(cluster, host_of(project, "test_0"))
        cluster.cut(node)
        out, err = child.communicate(timeout=2400)
    finally:
        child.kill()
        child.communicate()
    assert child.returncode == 0, (out, err)
    assert set(project.verdicts().values()) == {"fixed"} and len(project.verdicts()) == AGENTS
    assert begun < AGENTS, "some had to wait"
    ends = [(str(one["task"]), one["reason"]) for one in entries(project, "ended")]
    assert ("tests/test_m0.py::test_0", "host-lost") in ends
    assert sorted(task for task, reason in ends if reason == "outcome") == sorted({task for task, _ in ends})
    (found,) = [one for one in entries(project, "collected") if one["task"] == "tests/test_m0.py::test_0" and _tip(one)]
    assert _tip(found) == user.git("rev-parse", kept), "the commit of the lost agent is the one that was delivered"
    local = project.words("--no-canary", *tests, name="r2")
    user.mngr(*local, timeout=1800).ok()
    assert tree(project, "r1") == tree(project, "r2")
    cluster.mend(node)
    wait_for(lambda: cluster.ended(node), "Ray on the lost node to end", 120)
    cluster.start(node)
    person.mngr("gc").ok()
    assert person.hosts() == {} and cluster.processes() == [] and cluster.files() == []


def _states(person: Person) -> set[str]:
    return {str(host["state"]) for host in person.hosts().values()}


def _tip(entry: dict[str, object]) -> str:
    data = entry["data"]
    return str(data.get("tip") or "") if isinstance(data, dict) else ""
