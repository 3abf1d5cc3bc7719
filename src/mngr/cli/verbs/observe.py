"""`mngr observe`: print changes of all agents as lines of JSON, until Ctrl-C."""

from typing import Any, NotRequired, TypedDict

from mngr.actions.agent_fields import AgentFields
from mngr.agent.events import new_event
from mngr.cli.app import App
from mngr.cli.output.output import to_json
from mngr.cli.parser.parser import Args, Parser
from mngr.fleet.agent import Listing

DESCRIPTION = (
    "Print one JSON object per line until Ctrl-C: AGENT_DISCOVERED for every existing and every new agent, "
    "AGENT_CHANGED when its state, name, labels or project change, AGENT_DESTROYED when it is gone, and ERROR for what "
    "cannot be read. `agent` has the fields of `mngr list --format json`."
)
EXAMPLES = (("mngr observe", "all changes"), ("mngr observe --discovery-only", "only new and destroyed agents"))
_SOURCE = "mngr/agents"
_KNOWN = ("event_id", "timestamp", "source", "type", "agent_id", "name", "state")
_COMPARED = ("name", "state", "state_reason", "labels", "project", "archived_at")


class Observed(TypedDict):
    """An ERROR has `error`, all other types have the last four."""

    event_id: str
    timestamp: str
    source: str
    type: str
    error: NotRequired[str]
    agent_id: NotRequired[str]
    name: NotRequired[str]
    state: NotRequired[str]
    agent: NotRequired[AgentFields]


RESULTS = [Observed]


def add_arguments(parser: Parser) -> None:
    parser.option("--discovery-only", "leave out AGENT_CHANGED")


def run(args: Args, app: App) -> None:
    known: dict[str, dict[str, Any]] = {}
    errors: set[str] = set()
    try:
        for listing in app.fleet.watch():
            for event in _changes(known, errors, listing):
                if event["type"] != "AGENT_CHANGED" or not args.discovery_only:
                    if app.out.format == "template":
                        app.out.emit_object(event, known=_KNOWN)
                    else:
                        app.stdout.write(to_json(event) + "\n")
            app.out.flush()
    except KeyboardInterrupt:
        pass


def _changes(known: dict[str, dict[str, Any]], errors: set[str], listing: Listing) -> list[dict[str, Any]]:
    """The events since the last listing; updates `known` and `errors`. An unreadable agent is not reported as gone."""
    events = []
    seen = {agent.id: agent.as_json() for agent in listing.agents}
    for agent_id, facts in seen.items():
        before = known.get(agent_id)
        if before is None:
            events.append(_event("AGENT_DISCOVERED", facts))
        elif any(before[name] != facts[name] for name in _COMPARED):
            events.append(_event("AGENT_CHANGED", facts))
    problems = {error.message for error in listing.errors}
    events += [new_event(_SOURCE, "ERROR", error=message) for message in sorted(problems - errors)]
    if not problems:
        events += [_event("AGENT_DESTROYED", known[agent_id]) for agent_id in known.keys() - seen.keys()]
        known.clear()
    known.update(seen)
    errors.clear()
    errors.update(problems)
    return events


def _event(type: str, facts: dict[str, Any]) -> dict[str, Any]:
    return new_event(_SOURCE, type, agent_id=facts["id"], name=facts["name"], state=facts["state"], agent=facts)
