"""What is on an agent's screen, or was there last."""

from __future__ import annotations

import os

from mngr.actions import find
from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent.store import SCREEN
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.system.tmux import Pane

# A pane dies with its command, unless something in the background keeps its terminal open.
_SECONDS_TO_DIE = 5.0
_SECONDS_TO_RECORD = 10.0
_MOST_RECORDED = 1 << 31


class AgentTerminal(NamedTuple):
    """How to attach to an agent's terminal on its own site, and the variables that say which agent that is."""

    attach: tuple[str, ...]
    identity: dict[str, str]


_IDENTITY = ("MNGR_AGENT_ID", "MNGR_AGENT_NAME", "MNGR_AGENT_STATE_DIR", "MNGR_AGENT_WORK_DIR", "MNGR_HOST_DIR")


def terminal(site: Site, agent_id: str) -> AgentTerminal:
    """The command that attaches. It names where the tmux server is: a login shell may not know."""
    from mngr.agent import launch

    record = site.store.read(agent_id)
    own = launch.identity(record, site.store.state_dir(agent_id), site.host.dir)
    return AgentTerminal(
        tuple(site.tmux.attach_argv(record.life.session)),
        {name: value for name, value in own.items() if name in _IDENTITY},
    )


def read(site: Site, agent_id: str, *, history: int = 0, colors: bool = False) -> str:
    """The text, without empty lines at its end."""
    agent = find.agent(site, agent_id)
    pane = _pane(site, agent)
    if pane is not None:
        text = site.tmux.capture(pane, history=history, escapes=colors)
    else:
        agent.require_known()  # or the screen of an earlier run would pass for this one's
        try:
            path = os.path.join(site.store.state_dir(agent.id), SCREEN)
            text = site.host.read(path).decode(errors="replace")
        except FileNotFoundError:
            raise MngrError(
                f"`{agent.name}` is {agent.state} and has no screen",
                hint=f"`mngr event {agent.name}` says what happened",
            ) from None
    return text.rstrip("\n") + "\n"


def _pane(site: Site, agent: AgentView) -> Pane | None:
    """Its pane. That of a command which ended a moment ago is waited for: until it is dead, tmux may not have read
    all that was written."""

    if agent.pane is None or agent.pane.dead or agent.status.alive:
        return agent.pane
    from mngr.system.waiting import wait_until

    def settled() -> AgentView | None:
        now = find.agent(site, agent.id)
        return now if now.status.alive or now.pane is None or now.pane.dead else None

    return (wait_until(settled, timeout=_SECONDS_TO_DIE) or agent).pane


def cast(site: Site, agent_id: str) -> bytes:
    """Its recording so far, as an asciicast; of an agent that has ended, to its end."""
    from mngr.agent import recording
    from mngr.system.waiting import wait_until

    agent = find.agent(site, agent_id)

    def written() -> bytes:
        try:
            data = site.host.read(os.path.join(site.store.state_dir(agent.id), recording.FILE), _MOST_RECORDED)
        except FileNotFoundError:
            data = b""
        return data[: data.rfind(b"\n") + 1]

    # At the first moment of an agent its recorder is not there yet, and at the last one it is not done.
    waits = agent.record.spec.recorded and agent.pane is not None
    data = wait_until(written, timeout=_SECONDS_TO_RECORD if waits else 0.0)
    if data and not agent.status.alive:
        recording.finish(site.host, agent.id)
        data = written()
    if data:
        return data
    if agent.record.spec.recorded:
        raise MngrError(
            f"the recording of `{agent.name}` is empty: its recorder did not run",
            hint="`mngr doctor` checks this machine",
        )
    raise MngrError(
        f"`{agent.name}` was not recorded",
        hint="recording begins with the agent: `mngr create NAME --record`, or `record = true` in `[commands.create]`",
    )
