"""What this machine gave to agents on other machines, so that what comes back from there can be compared:
`given/AGENT-ID.json` in the state directory.

A host is not trusted to say what runs here. The command of an agent that comes from one, its windows, sandbox and
permissions are those that it was made with; what this machine did not give is a claim, which its user has to accept."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from mngr.actions.create import CreateRequest, spec_of, with_hidden
from mngr.actions.portable import Portable
from mngr.actions.site import Site
from mngr.agent import launch
from mngr.agent.launch import ENV
from mngr.agent.record import AgentSpec, Record, parse_spec
from mngr.errors import MngrError
from mngr.names import new_id
from mngr.system.files import json_bytes
from mngr.system.state_dir import StateDir

ROOM = "given"
# What decides what an agent runs and what it may do. The rest of its record is data, such as its labels and limits.
_COMPARED = (
    *("kind", "command", "command_shown", "windows", "reports", "recorded", "driver", "permissions"),
    *("allowed_commands", "one_shot", "rules", "sandbox"),
)


def noted(local: StateDir, requests: Sequence[CreateRequest]) -> list[CreateRequest]:
    """Keep what these agents are made with. Return the requests with an id each."""
    found = [request._replace(agent_id=request.agent_id or new_id("agent")) for request in requests]
    for request in found:
        note(local, request.agent_id, spec_of(request), request.variables, request.origin)
    return found


def note(
    local: StateDir, agent_id: str, spec: AgentSpec, variables: Mapping[str, str], origin: Mapping[str, str]
) -> None:
    """Keep what an agent on another machine is made with; of its variables, which may be secret, digests."""
    _write(local, agent_id, {"spec": spec._asdict(), "variables": _digests(variables), "origin": dict(origin)})


def note_clone(local: StateDir, source_id: str, clone: Record, more: Mapping[str, str]) -> None:
    """The same for a clone that was made on the host of its source. `more` are its additional variables."""
    known = _read(local, source_id)
    if known is not None:
        spec = _spec(known)._replace(command=clone.spec.command, command_shown=clone.spec.command_shown)
        variables = {**known["variables"], **_digests(more)}
        _write(local, clone.id, {**known, "spec": spec._asdict(), "variables": variables})


def note_moved(local: StateDir, packed: Portable) -> None:
    """What goes to another machine with an agent was given by this one, unless it is a claim."""
    agent = packed.entry.agent
    if agent is not None and not packed.entry.claims:
        note(local, agent.id, agent.spec, _variables(packed), agent.workspace.origin)


def forget(local: StateDir, agent_id: str) -> None:
    """Twice is safe."""
    local.remove(_path(local, agent_id))


def checked(source: Site, packed: Portable) -> Portable:
    """The same with what this machine gave in place of what the host says. What it did not give is a claim: see
    `SavedEntry.claims`. Raises when the variables are anything but variables."""
    agent = packed.entry.agent
    if source.is_local or agent is None:
        return packed
    try:
        variables = _variables(packed)
    except ValueError as error:
        raise MngrError(f"the variables of `{agent.name}` that `{source.name}` sent are invalid: {error}") from None
    known = _read(source.local.host, agent.id)
    if known is None:
        origin = {name: value for name, value in agent.workspace.origin.items() if name != "trusted"}
        agent = agent.changed(command_shown=with_hidden(agent.spec.command, variables), origin=origin)
    else:
        given = _spec(known)._asdict()
        agent = agent.changed(**{name: given[name] for name in _COMPARED}, origin=known["origin"])
    files = dict(packed.files)
    if ENV in files:
        files[ENV] = launch.env_text(variables).encode("utf-8", "surrogateescape")
    same = known is not None and (ENV not in files or known["variables"] == _digests(variables))
    claims = () if same else _claims(source, agent, variables)
    return packed._replace(entry=packed.entry._replace(agent=agent, claims=claims), files=files)


def _claims(source: Site, agent: Record, variables: Mapping[str, str]) -> tuple[str, ...]:
    """What a host says of an agent that matters for whoever runs it, a line each."""
    spec, origin = agent.spec, agent.workspace.origin
    lines = [f"host: {source.name}", f"type: {spec.kind}", f"command: {spec.command_shown or spec.command}"]
    lines += [f"window {name}: {line}" for name, line in spec.windows.items()]
    lines.append(f"sandbox: {spec.sandbox or 'none'}")
    lines += [f"permissions: {spec.permissions}"] if spec.permissions else []
    lines += [f"allowed: {line}" for line in spec.allowed_commands]
    lines += [f"variables: {', '.join(sorted(variables))}"] if variables else []
    return (*lines, *([f"repository: {origin['repo']}"] if origin.get("repo") else []))


def _variables(packed: Portable) -> dict[str, str]:
    return launch.parse_env(packed.files.get(ENV, b"").decode("utf-8", "surrogateescape"))


def _read(local: StateDir, agent_id: str) -> dict[str, Any] | None:
    """None for an agent that was not made from here, or of which this cannot be read."""
    try:
        value: dict[str, Any] = json.loads(local.read(_path(local, agent_id)))
        _spec(value)
        return value if isinstance(value["variables"], dict) and isinstance(value["origin"], dict) else None
    except (OSError, ValueError, KeyError, TypeError, MngrError):
        return None


def _write(local: StateDir, agent_id: str, value: Mapping[str, Any]) -> None:
    local.make_dir(os.path.join(local.dir, ROOM))
    local.write(_path(local, agent_id), json_bytes(value))


def _spec(value: Mapping[str, Any]) -> AgentSpec:
    return parse_spec(value["spec"], ROOM)


def _path(local: StateDir, agent_id: str) -> str:
    return os.path.join(local.dir, ROOM, f"{agent_id}.json")


def _digests(variables: Mapping[str, str]) -> dict[str, str]:
    """The SHA-256 of each value."""
    values = {name: value.encode("utf-8", "surrogateescape") for name, value in variables.items()}
    return {name: hashlib.sha256(value).hexdigest() for name, value in values.items()}
