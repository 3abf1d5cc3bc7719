"""A host that falls silent in the first `create` on it: whether the agent was made is not known, so the host stays."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import silent_link
from tests.support.pods import Pods
from tests.support.user import User

UNREACHED = 6
PATIENCE = "[hosts]\nverb_seconds = 8\nanswer_seconds = 2\n"


@pytest.fixture
def pods(user: User) -> Iterator[Pods]:
    """Each reached through a connection that falls silent once there is a file `silent-HOST`."""
    made = Pods(user, more=PATIENCE)
    settings = user.host_dir / "settings.toml"
    link = f"{sys.executable} {Path(silent_link.__file__)} {user.root}/silent-{{host}} kubectl exec -i"
    settings.write_text(settings.read_text().replace('"kubectl exec -i ', f'"{link} ', 1))
    yield made
    made.close()


def known(user: User) -> list[str]:
    return sorted(path.stem for path in (user.host_dir / "hosts" / "pods").glob("*.json"))


def test_a_host_that_does_not_answer_any_more_is_kept_with_the_agent_that_it_made(user: User, pods: Pods) -> None:
    user.mngr("host", "create", "mine.pods").ok()
    user.mngr("host", "forget", "mine.pods").ok()
    fall_silent = f'touch "{user.root}/silent-$(basename "$(dirname "$HOME")")"'
    words = ("--no-connect", "--command", "cat", "--extra-provision-command", fall_silent)
    creating = [user.popen("create", name, *words) for name in ("foo@mine.pods", "bar@.pods")]
    for process in creating:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == UNREACHED, errors
        assert b"`mngr list`" in errors
    assert len(pods.names()) == 2 and known(user) == pods.names()
    for flag in user.root.glob("silent-*"):
        flag.unlink()
    made = {agent["name"]: agent["state"] for agent in user.agents()}
    assert set(made.values()) <= {"RUNNING"}  # a slow machine may not have made one before it was given up
    if "foo" in made:
        again = user.mngr("create", "foo@mine.pods", "--no-connect", "--command", "cat").failed()
        assert "exists already" in again.stderr
        assert user.state("foo") == "RUNNING"


def test_a_host_that_says_it_made_nothing_is_forgotten_again(user: User, pods: Pods) -> None:
    user.mngr("host", "create", "mine.pods").ok()
    user.mngr("host", "forget", "mine.pods").ok()
    words = ("--no-connect", "--command", "cat", "--extra-provision-command", "false")
    for name in ("foo@mine.pods", "bar@.pods"):
        user.mngr("create", name, *words).failed()
    assert (pods.names(), known(user)) == (["mine"], [])
