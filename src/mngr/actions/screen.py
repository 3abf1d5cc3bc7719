"""What is on an agent's screen, or was there last."""

from __future__ import annotations

import os

from mngr.actions import find
from mngr.actions.agent import Agent
from mngr.agents.store import SCREEN
from mngr.errors import MngrError
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from mngr.actions.fleet import Fleet
    from mngr.tools.tmux import Pane, Screen

# A pane dies with its command, unless something in the background keeps its terminal open.
_SECONDS_TO_DIE = 5.0
_SECONDS_TO_RECORD = 10.0


def read(fleet: Fleet, agent: Agent, *, history: int = 0, colors: bool = False) -> str:
    """The text, without empty lines at its end."""
    pane = _pane(fleet, agent)
    if pane is not None:
        text = fleet.tmux.capture(pane, history=history, escapes=colors)
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
    pane = _pane(fleet, agent)
    if pane is None:
        raise MngrError(
            f"`{agent.name}` is {agent.state} and has no screen to draw",
            hint=f"`mngr capture {agent.name}` prints what it showed last",
        )
    return fleet.tmux.screen(pane)


def _pane(fleet: Fleet, agent: Agent) -> Pane | None:
    """Its pane. That of a command which ended a moment ago is waited for: until it is dead, tmux may not have read
    all that was written."""

    if agent.pane is None or agent.pane.dead or agent.status.alive:
        return agent.pane
    from mngr.waiting import wait_until

    def settled() -> Agent | None:
        now = find.agent(fleet, agent.id)
        return now if now.status.alive or now.pane is None or now.pane.dead else None

    return (wait_until(settled, timeout=_SECONDS_TO_DIE) or agent).pane


def cast(fleet: Fleet, agent: Agent) -> bytes:
    """Its recording so far, as an asciicast; of an agent that has ended, to its end."""
    from mngr.agents import recording
    from mngr.waiting import wait_until

    def written() -> bytes:
        try:
            data = fleet.host.read(os.path.join(fleet.store.state_dir(agent.id), recording.FILE))
        except FileNotFoundError:
            data = b""
        return data[: data.rfind(b"\n") + 1]

    # At the first moment of an agent its recorder is not there yet, and at the last one it is not done.
    waits = agent.record.recorded and agent.pane is not None
    data = wait_until(written, timeout=_SECONDS_TO_RECORD if waits else 0.0)
    if data and not agent.status.alive:
        recording.finish(fleet.host, agent.id)
        data = written()
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
