"""`mngr observe`: what changes among all agents, a line of JSON each, until Ctrl-C."""

from __future__ import annotations

from mngr.actions.agent import Listing
from mngr.agents.events import new_event
from mngr.cli.app import App
from mngr.cli.output import to_json
from mngr.cli.parser import Args, Parser
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

DESCRIPTION = (
    "Print one JSON object per line: AGENT_DISCOVERED for every agent there is and each that is created, AGENT_CHANGED "
    "when its state, name, labels or project change, AGENT_DESTROYED when it is gone, and ERROR for what cannot be "
    "read. `agent` is the agent as in `mngr list --format json`. Ends with Ctrl-C."
)
EXAMPLES = (
    ("mngr observe", "all changes"),
    ("mngr observe --discovery-only", "only which agents come and go"),
)
_SOURCE = "mngr/agents"
_COMPARED = ("name", "state", "state_reason", "labels", "project", "archived_at")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--discovery-only", action="store_true", help="leave out AGENT_CHANGED")


def run(args: Args, app: App) -> int:
    known: dict[str, dict[str, Any]] = {}
    errors: set[str] = set()
    try:
        for listing in app.fleet.watch():
            for event in _changes(known, errors, listing):
                if event["type"] != "AGENT_CHANGED" or not args.discovery_only:
                    _print(app, event)
            app.out.flush()
    except KeyboardInterrupt:
        pass
    return 0


def _changes(known: dict[str, dict[str, Any]], errors: set[str], listing: Listing) -> list[dict[str, Any]]:
    """What differs from what was known, which is brought up to date. An agent that cannot be read is not gone."""
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


def _print(app: App, event: dict[str, Any]) -> None:
    """Lines of JSON whatever the format, unless it is a template."""
    if app.out.format == "template":
        app.out.emit_object(event, known=("event_id", "timestamp", "source", "type", "agent_id", "name", "state"))
    else:
        app.stdout.write(to_json(event) + "\n")
