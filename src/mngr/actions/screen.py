"""What is on an agent's screen, or was there last."""

from __future__ import annotations

import os

from mngr.actions.agent import Agent
from mngr.agents.store import SCREEN
from mngr.errors import MngrError
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from mngr.actions.fleet import Fleet


def read(fleet: Fleet, agent: Agent, *, history: int = 0, colors: bool = False) -> str:
    """The text, without empty lines at its end."""
    if agent.pane is not None:
        text = fleet.tmux.capture(agent.pane, history=history, escapes=colors)
    else:
        try:
            path = os.path.join(fleet.store.state_dir(agent.id), SCREEN)
            text = fleet.host.read(path).decode(errors="replace")
        except FileNotFoundError:
            raise MngrError(
                f"`{agent.name}` is {agent.state} and has no screen",
                hint=f"`mngr event {agent.name}` says what happened",
            ) from None
    return text.rstrip("\n") + "\n"
