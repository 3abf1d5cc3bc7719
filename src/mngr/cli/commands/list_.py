"""`mngr list`: every agent and its state."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from mngr.actions import find
from mngr.actions.agent import Agent, Listing
from mngr.agents import state
from mngr.agents.record import seconds_of
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.durations import age
from mngr.cli.output import Problem, state_style
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column
from mngr.errors import UsageError
from mngr.names import suggest

DESCRIPTION = "Show all agents, those that need you first. Agents and hosts that cannot be read are reported."
EXAMPLES = (
    ("mngr list", "all agents"),
    ("mngr list --watch", "keep the list up to date"),
    ("mngr list --blocked --waiting", "agents that wait for you"),
    ("mngr list --include 'labels.team == \"backend\" && idle_seconds > 600'", "a filter; see `mngr help filters`"),
    ("mngr list --format '{name}\\t{state}'", "for a script"),
    ("mngr list --ids --done | mngr destroy -", "ids for other verbs"),
    ("mngr list --archived", "archived agents"),
    ("mngr list --explain fix-login", "why it has this state"),
)


class Explanation(NamedTuple):
    name: str
    state: str
    reason: str
    evidence: str


def results() -> list[Any]:
    from mngr.actions.agent_fields import AgentFields

    return [{"agents": [AgentFields], "errors": [Problem]}, Explanation]


_BY_NEED = {
    name: at
    for at, name in enumerate(("BLOCKED", "WAITING", "FAILED", "UNKNOWN", "STARTING", "RUNNING", "DONE", "STOPPED"))
}
_READABLE = 30  # letters of a reason that a person should see
_STATE_FLAGS = ("running", "waiting", "blocked", "done", "failed", "stopped")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agents", nargs="*", metavar="AGENT", help="only these agents; `-` reads them from stdin")
    which = parser.add_argument_group("selection")
    for name in _STATE_FLAGS:
        which.add_argument(f"--{name}", action="store_true", help=f"agents that are {name.upper()}")
    which.option("--archived", "archived agents (hidden by default)")
    which.option("--active", "agents that are neither FAILED nor archived")
    which.option("--local", "agents on this machine")
    which.option("--remote", "agents on other machines")
    which.option("--provider NAME ...", "agents on hosts of this provider")
    which.option("--project NAME ...", "agents of this project; `.` is the current one")
    which.option("--label KEY[=VALUE] ...", "agents with this label (can be repeated: all must match)")
    which.option("--host-label KEY[=VALUE] ...", "agents on hosts with this label (can be repeated: all must match)")
    targets.add_expressions(which, "agents")
    which.option("--stdin", "only the agents named on stdin, one per line")
    which.option("--limit N", "show at most N agents", type=int)
    how = parser.add_argument_group("output")
    how.option("--fields A,B", "show these fields, such as `name,state,host.name`")
    how.option("--header FIELD=TITLE ...", "column title for `--fields`")
    how.option("--sort FIELD [desc]", "sort by one or more fields: `state, create_time desc`")
    how.option("--ids", "print ids only")
    how.option("--addrs", "print addresses only, such as `fix-login@local.local`")
    how.option("--watch, -w", "keep running and show every change")
    how.option("--explain AGENT", "show the evidence for the state of one agent")


def run(args: Args, app: App) -> int:
    if args.explain:
        return _explain(app, args.explain)
    if args.watch:
        _drop_interval(args, app)
    names = _names(args, app)
    if args.watch:
        from mngr.cli.live_list import watch

        return watch(
            app,
            lambda listing: _select(args, app, listing, names),
            lambda rows, listing: _print(args, app, rows, listing),
        )
    listing = app.fleet.list()
    _print(args, app, _select(args, app, listing, names), listing)
    return 0


def _explain(app: App, name: str) -> int:
    agent = app.fleet.find(name)
    value = Explanation(agent.name, agent.state, agent.status.reason, agent.status.evidence)
    lines = find.explain(agent.view)
    if agent.record.limits:
        from mngr.actions import limits

        lines.append(agent.site.run(limits.explain, agent.id))
    app.out.emit_object(value, human="\n".join(lines))
    return 0


def _drop_interval(args: Args, app: App) -> None:
    """`--watch 5`: drop the number of seconds, since every change is shown when it happens."""
    seconds = [word for word in args.agents if word.isdecimal()]
    if seconds and not {agent.name for agent in app.fleet.list().agents}.intersection(seconds):
        args.agents = [word for word in args.agents if word not in seconds]
        app.out.note("`--watch` takes no interval: every change is shown when it happens")


def _names(args: Args, app: App) -> list[str] | None:
    names = app.names([*args.agents, "-"] if args.stdin else args.agents)
    return names if args.agents or args.stdin else None


def _select(args: Args, app: App, listing: Listing, names: list[str] | None) -> list[dict[str, Any]]:
    agents = listing.agents
    if names is not None:
        by_id = {agent.id: agent for agent in agents}
        agents = [by_id[agent.id] for agent in app.fleet.find_many(names) if agent.id in by_id]
    now = time.time()
    keep = targets.chosen(args)
    args.project = [_current_project() if name == "." else name for name in args.project]
    if names is None or args.archived:
        agents = [agent for agent in agents if (agent.record.archived_at is not None) == args.archived]
    rows = [agent.as_json(now) for agent in agents if _wanted(args, agent) and keep(agent)]
    rows = [row for row in rows if _on_wanted_host(args, row["host"])]
    rows.sort(key=lambda row: _BY_NEED[row["state"]])
    if args.sort:
        _sort(rows, args.sort)
    return rows if args.limit is None else rows[: args.limit]


def _wanted(args: Args, agent: Agent) -> bool:
    states = {name.upper() for name in _STATE_FLAGS if getattr(args, name)}
    if args.active:
        states |= {*state.STATES} - {state.FAILED}
    record = agent.record
    return (
        (not states or agent.state in states)
        and (not args.project or record.project in args.project)
        and (not args.local or agent.site.is_near)
        and (not args.provider or agent.site.provider in args.provider)
        and all(_has_label({**record.labels, "project": record.project}, text) for text in args.label)
    )


def _on_wanted_host(args: Args, host: dict[str, Any]) -> bool:
    return not (args.remote and host["provider"] == "local") and all(
        _has_label(host["tags"], text) for text in args.host_label
    )


def _has_label(labels: dict[str, str], text: str) -> bool:
    key, equals, value = text.partition("=")
    return key in labels and (not equals or labels[key] == value)


def _current_project() -> str:
    """The project that `mngr create` would give an agent in the current directory."""
    here = os.getcwd()
    top = here
    while not os.path.exists(os.path.join(top, ".git")):
        parent = os.path.dirname(top)
        if parent == top:
            return os.path.basename(here)
        top = parent
    return os.path.basename(top)


def _sort(rows: list[dict[str, Any]], text: str) -> None:
    """Sort by the first field, then by the next: `state, name desc`. `-name` is short for `name desc`."""
    for part in reversed(text.split(",")):
        field, _, order = part.strip().partition(" ")
        order = "desc" if field.startswith("-") else order.strip().lower()
        field = _RENAMED.get(field.removeprefix("-"), field.removeprefix("-"))
        if order not in ("", "asc", "desc"):
            raise UsageError(f"invalid sort order `{order}`", hint='`--sort "create_time desc"`')
        if rows:
            _check_field(rows[0], field)
        rows.sort(key=_sortable_by(field), reverse=order == "desc")


def _sortable_by(field: str) -> Callable[[dict[str, Any]], tuple[int, Any]]:
    return lambda row: _sortable(_field(row, field))


def _sortable(value: Any) -> tuple[int, Any]:
    """Numbers by size, then text by letters, then what is not known."""
    if value is None:
        return (2, "")
    return (0, value) if isinstance(value, int | float) else (1, str(value))


def _field(row: dict[str, Any], path: str) -> Any:
    value: Any = row
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _check_field(row: dict[str, Any], path: str) -> None:
    first, _, rest = path.partition(".")
    if first not in row or (rest and first == "host" and rest not in row["host"]):
        names = (*row, *(f"host.{name}" for name in row["host"]))
        titled = {"branch": "initial_branch", "why": "state_reason", "for": "state_since"}.get(path.lower())
        hint = f"the field of that column is `{titled}`" if titled else suggest(path, names, "field")
        raise UsageError(f"agents have no field `{path}`", hint=hint)


def _print(args: Args, app: App, rows: list[dict[str, Any]], listing: Listing) -> None:
    app.out.warn_of(listing.errors)
    if args.ids:
        app.out.raw("".join(f"{row['id']}\n" for row in rows).encode())
        return
    if args.addrs:
        lines = (f"{row['name']}@{row['host']['name']}.{row['host']['provider']}\n" for row in rows)
        app.out.raw("".join(lines).encode())
        return
    errors = [error.as_json() for error in listing.errors]
    columns = _columns(args, rows, app.out.columns if app.out.human else None)
    shown = [_with_ages(row) for row in rows] if app.out.human and not args.fields else rows
    app.out.emit_rows(
        shown, columns, envelope={"agents": rows, "errors": errors}, known=_known(app), empty="No agents found"
    )


def _known(app: App) -> list[str]:
    """The fields that a template may name."""
    if app.out.format != "template":
        return []
    from mngr.actions.agent_fields import AgentFields
    from mngr.cli.schemas import fields

    return fields(AgentFields)


# Names that scripts for the original use, and ours.
_RENAMED = {"created_at": "create_time", "git.original_branch": "initial_branch"}


def _columns(args: Args, rows: list[dict[str, Any]], terminal: int | None) -> list[Column]:
    if args.fields:
        fields = [field.strip() for field in args.fields.split(",") if field.strip()]
        titles = dict(_header(text) for text in args.header)
        if rows:
            for field in fields:
                _check_field(rows[0], _RENAMED.get(field, field))
        return [Column(titles.get(field, field.upper()), _RENAMED.get(field, field)) for field in fields]
    columns = [
        Column("NAME", "name", flexible=terminal is not None),
        Column("STATE", "state", style=state_style),
        Column("FOR", "for"),
        Column("TYPE", "type"),
        Column("PROJECT", "project"),
        Column("BRANCH", "initial_branch"),
        Column("WHY", "state_reason", flexible=True),
    ]
    if any(row.get("host", {}).get("provider", "local") != "local" for row in rows):
        columns.insert(1, Column("HOST", "host.name"))
    return columns if terminal is None else _fitting(columns, rows, terminal)


def _header(text: str) -> tuple[str, str]:
    field, equals, title = text.partition("=")
    if not equals or not field:
        raise UsageError(f"invalid header {text!r}", hint="for example `--header labels.env=ENV`")
    return field, title


def _fitting(columns: list[Column], rows: list[dict[str, Any]], terminal: int) -> list[Column]:
    """Leave out the least useful columns until a line fits."""
    reasons = min(_READABLE, max((len(row["state_reason"]) for row in rows), default=0))
    for field in ("initial_branch", "type", "project"):
        longest = [
            max(len(column.title), *(len(str(row.get(column.field) or "")) for row in rows), 0)
            for column in columns[:-1]
        ]
        if not rows or sum(longest) + 2 * len(longest) + reasons <= terminal:
            break
        columns = [column for column in columns if column.field != field]
    return columns


def _with_ages(row: dict[str, Any]) -> dict[str, Any]:
    since = row["state_since"]
    return {**row, "for": age(time.time() - seconds_of(since)) if since else ""}
