"""Claude Code continues its conversation on another host and at home again."""

from collections.abc import Iterator

import pytest

from mngr.fleet.fleet import Fleet
from mngr_testing.model_server import ModelServer
from tests.support.program_world import ProgramWorld
from tests.support.programs import program, with_program
from tests.support.sshd import Sshd
from tests.support.user import User

pytestmark = pytest.mark.timeout(300)
program("claude")  # without it, none of this


@pytest.fixture
def world(user: User, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProgramWorld]:
    """With a host `box` that has the program too."""
    far = User()
    with_program(program("claude"), far.env, far.root / "bin")
    with ModelServer() as server, Sshd(far) as box:
        made = ProgramWorld("claude", user, server)
        user.env.update(box.client.env(user.env))
        made.fleet = Fleet(environ=user.env, cwd=str(user.repo))
        monkeypatch.setenv("PATH", user.env["PATH"])
        yield made
        made.fleet.close()
    far.close()


def test_claude_migrates_to_a_host_and_home(world: ProgramWorld) -> None:
    world.create("a", "%% say at home", env=world.server.env("claude"))
    world.rests("a")
    said = world.said("a")
    assert ("assistant", "at home") in said
    for host, text in (("box", "far away"), ("local", "home again")):
        world.user.mngr("migrate", "a", f"@{host}", timeout=120).ok()
        assert world.fleet.find("a").site.name == host
        assert world.said("a") == said
        world.rests("a")
        world.ask("a", f"%% say {text}")
        world.says("a", ("user", f"%% say {text}"), ("assistant", text))
        said = world.said("a")
    assert [text for role, text in said if role == "assistant"] == ["at home", "far away", "home again"]
