"""Use an agent that exists instead of making it, if it is what was asked for. Starts it when it does not run."""

from __future__ import annotations

import os
from collections.abc import Collection

from mngr.actions import find, lifecycle
from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.agents.record import Record
from mngr.errors import MngrError
from mngr.records import NamedTuple
from mngr.tools import git


class Expected(NamedTuple):
    """What the agent has to be; None is not asked about. `source` is a directory."""

    kind: str | None = None
    command: str | None = None
    source: str | None = None
    transfer: str | None = None


def existing(fleet: Fleet, names: Collection[str]) -> dict[str, Agent]:
    """The agents that have one of these names."""
    return {agent.name: agent for agent in find.listing(fleet).agents if agent.name in names}


def use(fleet: Fleet, agent: Agent, expected: Expected) -> Record:
    """The agent, running. Twice is safe; one that is being made right now is waited for. Raises, and changes nothing,
    when it is not what was asked for."""
    check(fleet, agent, expected)
    record, _ = lifecycle.start(fleet, agent.id)
    return record


def check(fleet: Fleet, agent: Agent, expected: Expected) -> None:
    """Raise with what differs."""
    if different := differences(fleet, agent.record, expected):
        raise MngrError(
            f"`{agent.name}` exists, but it is not what you ask for: {'; '.join(different)}",
            hint=f"choose another name, or `mngr destroy {agent.name}` first",
        )


def differences(fleet: Fleet, record: Record, expected: Expected) -> list[str]:
    """In words, each."""
    found = []
    for what, wanted, has in (
        ("type", expected.kind, record.kind),
        ("command", expected.command, record.command),
        ("transfer", expected.transfer, record.transfer),
    ):
        if wanted is not None and wanted != has:
            shown = record.command_shown or has if what == "command" else has
            found.append(f"its {what} is `{shown}`, not `{wanted}`")
    if expected.source is not None:
        source = os.path.realpath(os.path.join(fleet.cwd, expected.source))
        if os.path.realpath(record.source) not in (source, _top(fleet, source)):
            found.append(f"its source is `{record.source}`, not `{source}`")
    return found


def _top(fleet: Fleet, directory: str) -> str | None:
    try:
        repo = git.look(fleet.host, directory)
    except MngrError:
        return None
    return os.path.realpath(repo.top) if repo is not None else None
