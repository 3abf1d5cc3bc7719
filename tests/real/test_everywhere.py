"""What a user types from create to destroy is the same wherever the agent runs: one list, changed by one word.

`MNGR_TEST_PLACE=@box` runs the list for one place; without it, for all of them."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from mngr.fleet.fleet import Fleet
from mngr_testing.modal_server import ModalServer
from tests.real.test_connect import Terminal
from tests.support import ray_cluster
from tests.support.containers import IMAGE, Containers
from tests.support.modal import CANNOT_RUN
from tests.support.net_hosts import NetHosts
from tests.support.pods import Pods, add_settings
from tests.support.sshd import Sshd
from tests.support.user import User, wait_for

PLACES = ["@local", "@.pods", "@box", "@.podman", "@.modal", pytest.param("@.ray", marks=pytest.mark.soak)]
if os.environ.get("MNGR_TEST_PLACE"):
    PLACES = [os.environ["MNGR_TEST_PLACE"]]


def give_place(place: str, user: User, stack: ExitStack) -> None:
    """Make the place exist for this user."""
    if place == "@.pods":
        stack.callback(Pods(user).close)
    elif place == "@.podman":
        user.env.update(stack.enter_context(Containers()).env(user.env))
        add_settings(user, f'[providers.podman]\nimage = "{IMAGE}"\n')
    elif place == "@.modal":
        if CANNOT_RUN:
            pytest.skip(CANNOT_RUN)
        user.env.update(stack.enter_context(ModalServer()).env())
    elif place == "@.ray":
        if ray_cluster.CANNOT_RUN:
            pytest.skip(ray_cluster.CANNOT_RUN)
        ray_cluster.give(user, stack)
    elif place == "@box":
        far = User()
        stack.callback(far.close)
        user.env.update(stack.enter_context(Sshd(far)).client.env(user.env))


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, user: User) -> Iterator[str]:
    with ExitStack() as stack:
        give_place(request.param, user, stack)
        yield request.param


@pytest.fixture
def box(user: User) -> Iterator[Sshd]:
    far = User()
    with Sshd(far) as made:
        user.env.update(made.client.env(user.env))
        yield made
    far.close()


def test_a_session_from_create_to_destroy(user: User, place: str) -> None:
    user.mngr("create", f"foo{place}", "--no-connect", "--label", "a=b", "--command", "cat", timeout=180).ok()
    agent = user.agent("foo")
    assert (agent["state"], agent["labels"]["a"], agent["project"]) == ("RUNNING", "b", "repo")
    assert (agent["host"]["provider"] == "local") == (place == "@local")
    user.mngr("message", "foo", "-m", "hello there").ok()
    wait_for(lambda: user.mngr("capture", "foo").ok().stdout.count("hello there") > 1, "the echo")
    assert "hello there" in user.mngr("transcript", "foo").ok().stdout
    made = user.mngr(
        "exec", "foo", "echo two > two; git add two; git commit -qm two; git log --oneline; echo 3 > three"
    )
    assert made.ok().stdout.count("\n") == 2
    assert user.mngr("exec", "foo", "exit 7", "--format", "json").failed(1).json["results"][0]["exit_code"] == 7
    assert "1\n" in user.mngr("exec", "foo", "--stream", "echo 1; echo 2 >&2").ok().stdout
    changed = user.mngr("diff", "foo").ok().stdout
    assert "+two" in changed and "+3" in changed
    user.mngr("pull", "foo").ok()
    assert user.git("log", "-1", "--format=%s %an", "mngr/foo") == "two Test User"
    user.mngr("merge", "foo").ok()
    assert (user.repo / "two").read_text() == "two\n"
    (user.repo / "mine").write_text("mine\n")
    user.git("add", ".")
    user.git("commit", "-qm", "mine")
    user.mngr("push", "foo").ok()
    assert user.mngr("exec", "foo", "cat mine").ok().stdout == "mine\n"
    user.mngr("pull", "foo:three", "got").ok()
    assert (user.repo / "got").read_text() == "3\n"
    user.mngr("push", "foo:sent", "got").ok()
    assert user.mngr("exec", "foo", "cat sent").ok().stdout == "3\n"
    user.mngr("label", "foo", "team=x").ok()
    user.mngr("rename", "foo", "bar").ok()
    user.mngr("stop", "bar").ok()
    user.mngr("wait", "bar", "STOPPED", "--timeout", "60").ok()
    assert user.mngr("start", "bar").ok().stdout == "started bar\n"
    types = [event["type"] for event in user.events("bar")]
    assert types.count("started") == 2 and "message_delivered" in types
    assert user.mngr("usage", "bar", "--format", "json").ok().json["total"]["answers"] == 0
    assert "work that is found nowhere else: 2 uncommitted files" in user.mngr("destroy", "bar").failed(1).stderr
    user.mngr("destroy", "bar", "--force", timeout=120).ok()
    assert user.agents() == []


def test_a_scripted_agent_talks_and_its_limits_hold(user: User, place: str) -> None:
    user.mngr("create", f"foo{place}", "scripted", "--no-connect", "-m", "say hello\nwait", timeout=180).ok()
    user.wait_for_state("foo", "WAITING")
    assert "hello" in user.mngr("transcript", "foo", "--role", "assistant").ok().stdout
    user.mngr("message", "foo", "-m", "say again\nclaim done").ok()
    user.mngr("limit", "foo", "--timeout", "1s").ok()
    stopped = user.wait_for_state("foo", "STOPPED")
    assert "1 s" in stopped["state_reason"]
    user.mngr("destroy", "foo", "--force", timeout=120).ok()


def test_connect_types_resizes_and_detaches(user: User, place: str) -> None:
    words = ("create", f"foo{place}", "--no-connect", "--command", "while read x; do stty size; echo got $x; done")
    user.mngr(*words, timeout=180).ok()
    terminal = Terminal(user, "mngr connect foo; echo left with $?")
    wait_for(lambda: user.agent("foo")["attached"], "the terminal to be attached")
    terminal.type("first")
    terminal.shows("got first")
    terminal.resize(90, 20)
    wait_for(lambda: _typed_size(terminal) == "19 90", "the size of the window")
    terminal.type("last")
    terminal.shows("got last")  # tmux takes keys that come at once with others for pasted text
    terminal.press("C-b", "d")
    terminal.shows("left with 0")
    assert user.state("foo") == "RUNNING"


def _typed_size(terminal: Terminal) -> str:
    terminal.type("size")
    lines = [line for line in terminal.screen().splitlines() if line.replace(" ", "").isdigit()]
    return lines[-1].strip() if lines else ""


def test_nothing_of_this_machine_reaches_the_host_unasked(user: User, box: Sshd) -> None:
    canary = "canary-of-this-machine"
    (user.home / "notes").write_text(canary)
    (user.home / ".netrc").write_text(canary)
    add_settings(user, f'[agent_types.other.env]\nTOKEN = "{canary}"\n')
    user.git("config", "user.signingkey", canary)
    user.git("config", "remote.origin.url", f"https://x:{canary}@example.com/repo.git")
    env = {"CANARY": canary, "ANTHROPIC_API_KEY": canary, "GIT_ASKPASS": canary}
    words = ("create", "foo@box", "--no-connect", "--env", "GIVEN=given-on-purpose", "--command", "env; sleep 999")
    user.mngr(*words, env=env).ok()
    user.mngr("exec", "foo", "env", env=env).ok()
    user.mngr("pull", "foo", env=env).ok()
    assert box.far.run(["grep", "-rl", canary, str(box.far.root)]).exit_code == 1
    seen = [os.fsencode(canary) in data for data in environments(box.far)]
    assert seen and not any(seen)
    assert "given-on-purpose" in user.mngr("capture", "foo").ok().stdout


def environments(far: User) -> list[bytes]:
    found = []
    for pid in far.processes():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                found.append(file.read())
        except OSError:
            continue
    return found


def test_verbs_cost_few_round_trips(user: User, box: Sshd) -> None:
    """Requests on the held stream. `find` is one; a created agent needs the cache, the push and the start."""
    fleet = Fleet(environ=user.env, cwd=str(user.repo))
    site = fleet.hosts.site("box")
    counted: dict[str, int] = {}

    def count(name: str, act: object) -> None:
        before = site.requests  # type: ignore[attr-defined]
        act()  # type: ignore[operator]
        counted[name] = site.requests - before  # type: ignore[attr-defined]

    count("create", lambda: fleet.create("foo@box", command="cat"))
    count("list", fleet.list)
    count("message", lambda: fleet.find("foo").message("hi"))
    count("exec", lambda: fleet.find("foo").exec("true"))
    count("stop", lambda: fleet.find("foo").stop())
    fleet.close()
    assert counted["list"] == 1
    assert counted["create"] <= 4, counted
    assert max(counted[name] for name in ("message", "exec", "stop")) <= 2, counted


def test_a_host_whose_provider_is_gone_from_the_settings_is_an_error_of_its_own(user: User) -> None:
    pods = Pods(user)
    user.mngr("create", "foo@.pods", "--no-connect", "--command", "cat").ok()
    user.mngr("create", "here", "--no-connect", "--command", "cat").ok()
    assert len(user.agents()) == 2
    settings = (user.host_dir / "settings.toml").read_text()
    (user.host_dir / "settings.toml").write_text("")
    ran = user.mngr("list", "--format", "json").ok().json
    assert {agent["name"]: agent["state"] for agent in ran["agents"]} == {"here": "RUNNING", "foo": "UNKNOWN"}
    assert "no provider is called `pods`" in json.dumps(ran["errors"])
    user.mngr("destroy", "here").ok()
    (user.host_dir / "settings.toml").write_text(settings)
    assert user.state("foo") == "RUNNING"
    pods.close()


def test_a_host_that_is_cut_off_makes_its_agents_unknown_until_it_is_back(user: User) -> None:
    with NetHosts(2) as hosts:
        user.env.update(hosts.client.env(user.env))
        add_settings(user, "[hosts]\nanswer_seconds = 4\n[providers.ssh]\nconnect_seconds = 2\n")
        for name in ("h1", "h2"):
            user.mngr("create", f"on-{name}@{name}", "--no-connect", "--command", "cat", timeout=120).ok()
        assert {agent["name"]: agent["state"] for agent in user.agents()} == {"on-h1": "RUNNING", "on-h2": "RUNNING"}
        hosts.cut("h1")
        ran = user.mngr("list", "--format", "json", timeout=60).ok().json
        states = {agent["name"]: (agent["state"], agent["state_reason"]) for agent in ran["agents"]}
        assert states["on-h2"] == ("RUNNING", "")
        assert states["on-h1"][0] == "UNKNOWN" and "RUNNING" in states["on-h1"][1] and "ago" in states["on-h1"][1]
        assert "h1" in json.dumps(ran["errors"])
        refused = user.mngr("destroy", "on-h1", timeout=60)
        assert refused.exit_code == 6
        hosts.mend("h1")
        wait_for(lambda: user.agent("on-h1")["state"] == "RUNNING", "the link to be back")
