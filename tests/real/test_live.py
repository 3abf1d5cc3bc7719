"""`make live` with the real Claude Code, whose model is the scripted one: spending ends at the limit."""

import json
from collections.abc import Iterator

import pytest

from mngr.actions.prices import Prices
from mngr.actions.site import Site
from mngr.programs.driver import ModelUsage
from mngr_testing.model_server import ModelServer
from tests.support.program_world import ProgramWorld
from tests.support.programs import REPOSITORY
from tests.support.user import User

pytestmark = pytest.mark.timeout(300)
AGENTS = 3
LIMIT = 1.0
# A dear answer every six seconds in one turn without an end: what an agent spends then, no event tells. It is looked at
# every two seconds, which a busy machine may do late.
SPENDS = "%% think 6\n%% usage input=2000 output=8000\n%% run git status\n" * 30


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer([("(?m)^Test: ", SPENDS)]) as server:
        yield server


def test_spending_ends_at_the_limit_of_make_live_by_the_servers_own_count(user: User, server: ModelServer) -> None:
    ProgramWorld("claude", user, server)
    place = user.root / "live"
    live = str(REPOSITORY / "scripts" / "live")
    ran = user.run([live], env={"DIR": str(place), "USD": str(LIMIT)}, timeout=280)
    assert ran.exit_code == 3 and f"of ${LIMIT:.2f} are spent" in ran.stderr, ran

    prices = Prices(Site(environ=user.env, cwd=str(user.repo)).settings)
    answers = [entry for entry in server.log if entry.usage.output]
    costs = [prices.cost(ModelUsage("", one.model, one.usage.input, one.usage.output)) or 0 for one in answers]
    assert max(costs) > 0.05, "answers that cost nothing prove nothing"
    # The answer that reaches the limit, one that is under way at each agent, and one that a late look lets begin.
    assert LIMIT <= sum(costs) <= LIMIT + 2 * AGENTS * max(costs), costs

    lines = (place / "sprout/.mngr/runs/live/ledger.jsonl").read_text().splitlines()
    noted = {one["task"]: one["cost_usd"] for one in map(json.loads, lines) if one["type"] == "usage"}
    used = user.mngr("usage", "--format", "json", env={"MNGR_HOST_DIR": str(place / "host")}).ok().json
    assert len(noted) == AGENTS
    assert sum(noted.values()) == pytest.approx(used["total"]["cost_usd"])
    # What Claude Code was told to drop when it was stopped is on the server's list only.
    assert sum(costs) - AGENTS * max(costs) <= used["total"]["cost_usd"] + 1e-6 <= sum(costs) + 2e-6
