"""Use an agent that exists instead of making it, if it is what was asked for. Starts it when it does not run."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from mngr.actions import lifecycle
from mngr.actions.site import Site
from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.system import git


def existing(site: Site, names: Collection[str]) -> dict[str, Record]:
    """The agents that have one of these names. Raises when a record that cannot be read may have one of the others."""
    records, corrupt = site.store.records() if site.host.is_ours() else ([], [])
    found = {record.name: record for record in records if record.name in names}
    for error in corrupt if len(found) < len(set(names)) else ():
        raise error
    return found


def use(site: Site, agent_id: str, expected: Mapping[str, str]) -> Record:
    """The agent, running. Twice is safe; one that is being made right now is waited for. Raises, and changes nothing,
    when it is not what was asked for."""
    check(site, agent_id, expected)
    record, _ = lifecycle.start(site, agent_id)
    return record


def check(site: Site, agent_id: str, expected: Mapping[str, str]) -> None:
    """Raise with what differs. `expected` has the `type`, `command`, `transfer`, `sandbox` and `source` (a directory)
    that the agent must have; what is not in it is not asked about."""
    record = site.store.read(agent_id)
    sandbox = record.spec.sandbox or "off"
    has = {
        "type": record.spec.kind,
        "command": record.spec.command,
        "transfer": record.workspace.transfer,
        "sandbox": sandbox,
    }
    shown = {**has, "command": record.spec.command_shown or record.spec.command}
    different = [
        f"its {what} is `{shown[what]}`, not `{wanted}`"
        for what, wanted in expected.items()
        if what in has and wanted != has[what]
    ]
    if "source" in expected:
        source = os.path.realpath(os.path.join(site.cwd, expected["source"]))
        if os.path.realpath(record.workspace.source) not in (source, _top(source)):
            different.append(f"its source is `{record.workspace.source}`, not `{source}`")
    if different:
        raise MngrError(
            f"`{record.name}` exists, but it is not what you ask for: {'; '.join(different)}",
            hint=f"choose another name, or `mngr destroy {record.name}` first",
        )


def _top(directory: str) -> str | None:
    try:
        repo = git.locate(directory)
    except MngrError:
        return None
    return os.path.realpath(repo.top) if repo is not None else None
