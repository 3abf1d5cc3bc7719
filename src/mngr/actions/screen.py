"""What is on an agent's screen, or was there last."""

from __future__ import annotations

import os

from mngr.actions.agent import Agent
from mngr.agents.store import SCREEN
from mngr.errors import MngrError
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from mngr.actions.fleet import Fleet
    from mngr.tools.tmux import Screen


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


def cells(fleet: Fleet, agent: Agent) -> Screen:
    """The screen of an agent that has one now, for drawing it."""
    if agent.pane is None:
        raise MngrError(
            f"`{agent.name}` is {agent.state} and has no screen to draw",
            hint=f"`mngr capture {agent.name}` prints what it showed last",
        )
    return fleet.tmux.screen(agent.pane)


def cast(fleet: Fleet, agent: Agent) -> bytes:
    """Its recording so far, as an asciicast."""
    from mngr.agents import recording
    from mngr.waiting import wait_until

    def written() -> bytes:
        try:
            data = fleet.host.read(os.path.join(fleet.store.state_dir(agent.id), recording.FILE))
        except FileNotFoundError:
            data = b""
        return data[: data.rfind(b"\n") + 1]

    # At the first moment of an agent its recorder is not there yet.
    data = wait_until(written, timeout=2.0 if agent.record.recorded and agent.status.alive else 0.0)
    if data:
        return data
    if agent.record.recorded:
        raise MngrError(
            f"the recording of `{agent.name}` is empty: its recorder did not run",
            hint="`mngr doctor` checks this machine",
        )
    raise MngrError(
        f"`{agent.name}` was not recorded",
        hint="recording begins with the agent: `mngr create NAME --record`, or `record = true` in `[commands.create]`",
    )
