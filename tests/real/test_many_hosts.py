"""200 agents on 20 hosts in namespaces: one list of all, hosts that are cut off, and their return."""

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from mngr.actions.site import Site
from mngr.providers import registry
from tests.support.net_hosts import NetHosts
from tests.support.user import MNGR, User

COUNT, EACH = 20, 10
CUT = ("h1", "h7", "h20")
# What `hosts.answer_seconds` is by default, and time for a busy machine.
LIST_SECONDS = 15.0
SLACK_SECONDS = 20.0


@pytest.fixture
def hosts(user: User) -> Iterator[NetHosts]:
    with NetHosts(COUNT) as made:
        user.env.update(made.client.env(user.env))
        yield made


def create_agents(user: User, name: str) -> None:
    words = ("create", f"{name}a@{name}", "--count", str(EACH), "--no-connect", "--command", "sleep 99999")
    user.run([MNGR, *words], timeout=600).ok()


@pytest.mark.soak
def test_200_agents_on_20_hosts_of_which_3_are_cut_off_for_a_while(user: User, hosts: NetHosts) -> None:
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: create_agents(user, name), hosts.hosts))
    ratios = [listed_seconds(user) / floor_seconds(user, hosts) for _ in range(5)]
    print(f"\nlist of {COUNT * EACH} agents, times the parallel ssh of the same moment: {sorted(ratios)}")
    for name in CUT:
        hosts.cut(name)
    began = time.monotonic()
    found = user.run([MNGR, "list", "--format", "json"], timeout=120).ok().json
    assert time.monotonic() - began < LIST_SECONDS + SLACK_SECONDS
    unknown = [agent for agent in found["agents"] if agent["state"] == "UNKNOWN"]
    assert sorted({agent["host"]["name"] for agent in unknown}) == sorted(CUT)
    assert (len(found["agents"]), len(unknown)) == (COUNT * EACH, len(CUT) * EACH)
    assert all("did not answer; RUNNING" in agent["state_reason"] for agent in unknown)
    assert all(agent["state_reason"].endswith(" ago") for agent in unknown)
    assert sorted(error["error"].split("`")[1] for error in found["errors"]) == sorted(CUT)
    for name in CUT:
        hosts.mend(name)
    found = user.run([MNGR, "list", "--format", "json"], timeout=120).ok().json
    assert {agent["state"] for agent in found["agents"]} == {"RUNNING"}
    assert (len(found["agents"]), found["errors"]) == (COUNT * EACH, [])


def listed_seconds(user: User) -> float:
    began = time.monotonic()
    assert len(user.run([MNGR, "list", "--format", "json"]).ok().json["agents"]) == COUNT * EACH
    return time.monotonic() - began


def floor_seconds(user: User, hosts: NetHosts) -> float:
    """One Python on each host, all at once, on the connections that mngr keeps open."""
    provider = registry.find("ssh", Site(environ=user.env, cwd=str(user.repo)))
    began = time.monotonic()
    line = "python3 -IS -c pass"
    started = [subprocess.Popen([*provider.opening(name).argv, line], env=user.env) for name in hosts.hosts]
    assert [one.wait(60) for one in started] == [0] * COUNT
    return time.monotonic() - began
