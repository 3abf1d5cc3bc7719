"""The idle limit with the real programs: no hook may tell of a turn that was interrupted, and work is no idleness."""

import pytest

from mngr.system.waiting import wait_until
from mngr_testing.model_server import ModelServer
from tests.support.program_world import TURN_SECONDS, ProgramWorld
from tests.support.user import User, wait_for

pytestmark = pytest.mark.timeout(300)
IDLE_SECONDS = 4
PROGRAMS = ["claude", *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("codex", "opencode"))]


@pytest.mark.parametrize("kind", PROGRAMS)
def test_an_agent_is_stopped_when_idle_after_an_interrupted_turn_and_not_at_work(kind: str, user: User) -> None:
    with ModelServer() as server:
        world = ProgramWorld(kind, user, server)
        agent = world.create("a", "%% run touch began; python3 -c 'import time; time.sleep(300)'")
        began = wait_for(lambda: user.work_dir("a") / "began", "its work dir")
        wait_for(began.exists, "the command to begin", TURN_SECONDS)
        user.mngr("limit", "a", "--idle-timeout", f"{IDLE_SECONDS}s", "--idle-mode", "agent").ok()
        left = wait_until(lambda: world.fleet.find("a").state != "RUNNING", timeout=IDLE_SECONDS + 3)
        assert not left, f"it worked: {world.fleet.find('a').status}"

        def interrupted() -> bool:
            """OpenCode wants Escape twice, in a few seconds."""
            world.press("a", "Escape")
            return bool(wait_until(lambda: world.fleet.find("a").state != "RUNNING", timeout=1))

        wait_for(interrupted, "the end of the turn", TURN_SECONDS)
        stopped = world.until("a", lambda seen: seen.state == "STOPPED", "be stopped")
        assert stopped.status.reason.endswith(f"(limit {IDLE_SECONDS} s)"), stopped.status
        assert stopped.id == agent.id
