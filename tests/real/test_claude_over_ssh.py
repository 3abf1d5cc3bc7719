"""Real Claude Code agents on another host, with the scripted model: from create to the commit that comes home."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from mngr_testing.model_server import ModelServer
from tests.support.programs import program, with_program
from tests.support.sshd import Sshd
from tests.support.user import User, wait_for

pytestmark = pytest.mark.timeout(300)
program("claude")  # without it, none of this
TURN_SECONDS = 120.0
COMMIT = "%% run echo {0} > {0}.txt && git add {0}.txt && git commit -qm {0}\n%% say made {0}"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as made:
        yield made


@pytest.fixture
def box(user: User) -> Iterator[Sshd]:
    """A host that has Claude Code, which this machine has not."""
    far = User()
    with_program(program("claude"), far.env, far.root / "bin")
    with Sshd(far) as made:
        user.env.update(made.client.env(user.env))
        yield made
    far.close()


def create(user: User, server: ModelServer, name: str) -> None:
    """The address of the model is given by value, its key by name."""
    env = server.env("claude")
    words = [word for key, value in env.items() if "KEY" not in key for word in ("--env", f"{key}={value}")]
    words += [word for key in env if "KEY" in key for word in ("--pass-env", key)]
    user.mngr(
        *("create", f"{name}@box", "claude", "--permissions", "bypass", "--no-connect", *words),
        *("-m", COMMIT.format(name), "--", *server.args("claude")),
        env=env,
        timeout=180,
    ).ok()


def rests(user: User, name: str) -> None:
    user.wait_for_state(name, "WAITING", timeout=TURN_SECONDS)


def check(user: User, name: str) -> None:
    rests(user, name)
    said = user.mngr("transcript", name, "--role", "assistant").ok().stdout
    assert f"made {name}" in said
    user.mngr("message", name, "-m", "%% say once more", timeout=TURN_SECONDS).ok()
    wait_for(lambda: "once more" in user.mngr("transcript", name, "--role", "assistant").ok().stdout, "the answer")
    rests(user, name)
    user.mngr("pull", name).ok()
    assert user.git("log", "-1", "--format=%s", f"mngr/{name}") == name


def test_claude_code_works_on_another_host(user: User, box: Sshd, server: ModelServer) -> None:
    create(user, server, "a")
    check(user, "a")
    found = user.mngr("usage", "a", "--format", "json").ok().json
    assert found["total"]["answers"] >= 2, json.dumps(found)
    user.mngr("destroy", "a", "--force", timeout=120).ok()


@pytest.mark.soak
def test_five_of_claude_code_on_another_host(user: User, box: Sshd, server: ModelServer) -> None:
    names = [f"a{number}" for number in range(5)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: create(user, server, name), names))
    for name in names:
        check(user, name)
    assert len({agent["id"] for agent in user.agents()}) == 5
