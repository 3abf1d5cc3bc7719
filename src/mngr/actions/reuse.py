"""Use an agent that exists instead of making it, if it is what was asked for. Starts it when it does not run."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple

from mngr.actions import lifecycle
from mngr.actions.site import Site
from mngr.agents.record import Record
from mngr.errors import MngrError
from mngr.tools import git


class Expected(NamedTuple):
    """What the agent has to be; None is not asked about. `source` is a directory."""

    kind: str | None = None
    command: str | None = None
    source: str | None = None
    transfer: str | None = None
    sandbox: str | None = None


def existing(site: Site, names: Collection[str]) -> dict[str, Record]:
    """The agents that have one of these names."""
    found = site.store.records()[0] if site.host.is_ours() else []
    return {record.name: record for record in found if record.name in names}


def use(site: Site, agent_id: str, expected: Expected) -> Record:
    """The agent, running. Twice is safe; one that is being made right now is waited for. Raises, and changes nothing,
    when it is not what was asked for."""
    check(site, agent_id, expected)
    record, _ = lifecycle.start(site, agent_id)
    return record


def check(site: Site, agent_id: str, expected: Expected) -> None:
    """Raise with what differs."""
    record = site.store.read(agent_id)
    if different := differences(site, record, expected):
        raise MngrError(
            f"`{record.name}` exists, but it is not what you ask for: {'; '.join(different)}",
            hint=f"choose another name, or `mngr destroy {record.name}` first",
        )


def differences(site: Site, record: Record, expected: Expected) -> list[str]:
    """In words, each."""
    found = []
    for what, wanted, has in (
        ("type", expected.kind, record.kind),
        ("command", expected.command, record.command),
        ("transfer", expected.transfer, record.transfer),
        ("sandbox", expected.sandbox, record.sandbox or "off"),
    ):
        if wanted is not None and wanted != has:
            shown = record.command_shown or has if what == "command" else has
            found.append(f"its {what} is `{shown}`, not `{wanted}`")
    if expected.source is not None:
        source = os.path.realpath(os.path.join(site.cwd, expected.source))
        if os.path.realpath(record.source) not in (source, _top(source)):
            found.append(f"its source is `{record.source}`, not `{source}`")
    return found


def _top(directory: str) -> str | None:
    try:
        repo = git.look(directory)
    except MngrError:
        return None
    return os.path.realpath(repo.top) if repo is not None else None
