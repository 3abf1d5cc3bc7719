"""`mngr list`: every agent and its state."""

from __future__ import annotations

import time
from collections.abc import Mapping

from mngr.actions import find
from mngr.actions.agent_fields import AgentFields
from mngr.agent import state
from mngr.agent.record import seconds_of
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.output.durations import age
from mngr.cli.output.output import Problem, state_style
from mngr.cli.output.table import Column
from mngr.cli.output.template import lookup
from mngr.cli.output.terminal import is_terminal
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import UsageError
from mngr.fleet.agent import Listing
from mngr.named_tuples import NamedTuple
from mngr.names import suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Row = dict[str, Any]

ONLY_LOOKS = True
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


RESULTS = [{"agents": [AgentFields], "errors": [Problem]}, Explanation]


_BY_NEED = {
    name: at
    for at, name in enumerate(("BLOCKED", "WAITING", "FAILED", "UNKNOWN", "STARTING", "RUNNING", "DONE", "STOPPED"))
}
_READABLE = 30  # letters of a reason that a person should see
_RENAMED = {"created_at": "create_time", "git.original_branch": "initial_branch"}  # what the original calls them
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_OTHER_SCREEN, _BACK = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
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
    how.option("--fields A,B", "show these fields, such as `name,state,host.name`", safe=True)
    how.option("--header FIELD=TITLE ...", "column title for `--fields`", safe=True)
    how.option("--sort FIELD [desc]", "sort by one or more fields: `state, create_time desc`", safe=True)
    how.option("--ids", "print ids only")
    how.option("--addrs", "print addresses only, such as `fix-login@local.local`")
    how.option("--watch, -w", "keep running and show every change")
    how.option("--explain AGENT", "show the evidence for the state of one agent")


def run(args: Args, app: App) -> None:
    if args.explain:
        _explain(app, args.explain)
        return
    names = app.names([*args.agents, "-"] if args.stdin else args.agents)
    args.project = [_current_project() if name == "." else name for name in args.project]
    if args.watch:
        _watch(args, app, names)
        return
    listing = app.fleet.list()
    _print(args, app, _select(args, app, listing, names), listing)


def _explain(app: App, name: str) -> None:
    agent = app.fleet.find(name)
    value = Explanation(agent.name, agent.state, agent.status.reason, agent.status.evidence)
    lines = find.explain(agent.view)
    if agent.record.spec.limits:
        lines.append(agent.explain_limits())
    app.out.emit_object(value, human="\n".join(lines))


def _current_project() -> str:
    """The project that `mngr create` would give an agent in the current directory."""
    from pathlib import Path

    here = Path.cwd()
    return next((place for place in (here, *here.parents) if (place / ".git").exists()), here).name


def _watch(args: Args, app: App, names: list[str]) -> None:
    """On a terminal redraw in place until Ctrl-C; elsewhere print the listing again whenever a state changes."""
    in_place = app.out.human and is_terminal(app.stdout)
    last: object = None
    if in_place:
        app.stdout.write(_OTHER_SCREEN)
    try:
        for listing in app.fleet.watch():
            rows = _select(args, app, listing, names)
            seen = [(row["id"], row["name"], row["state"], row["state_reason"], str(row["labels"])) for row in rows]
            if in_place:
                _redraw(args, app, rows, listing)
            elif seen != last:
                _print(args, app, rows, listing)
                app.out.flush()
            last = seen
    except KeyboardInterrupt:
        pass
    finally:
        if in_place:
            app.stdout.write(_BACK)
            app.stdout.flush()


def _redraw(args: Args, app: App, rows: list[Row], listing: Listing) -> None:
    """Write the whole screen in one go, so that it does not flicker: home, every line cleared to its end, the rest
    below cleared."""
    import io
    import shutil

    height = shutil.get_terminal_size().lines
    terminal, app.out.stdout = app.out.stdout, io.StringIO()
    try:
        _print(args, app, rows, listing)
        lines = app.out.stdout.getvalue().split("\n")
    finally:
        app.out.stdout = terminal
    if len(lines) > height:
        lines = [*lines[: height - 1], f"... and {len(lines) - height} more"]
    terminal.write(_HOME + f"{_CLEAR_LINE}\n".join(lines) + _CLEAR_LINE + _CLEAR_BELOW)
    terminal.flush()


def _select(args: Args, app: App, listing: Listing, names: list[str]) -> list[Row]:
    agents = listing.agents
    named = bool(args.agents or args.stdin)
    if named:
        by_id = {agent.id: agent for agent in agents}
        agents = [by_id[agent.id] for agent in app.fleet.find_many(names) if agent.id in by_id]
    now, keep = time.time(), targets.chosen(args)
    rows = [agent.as_json(now) for agent in agents]
    if not named or args.archived:
        rows = [row for row in rows if (row["archived_at"] is not None) == args.archived]
    rows = [row for row in rows if _wanted(args, row) and keep(row)]
    rows.sort(key=lambda row: _BY_NEED[row["state"]])
    # The last field first: each sort keeps the order of what it finds equal.
    for part in reversed(args.sort.split(",")) if args.sort else ():
        _sort(rows, part.strip())
    return rows if args.limit is None else rows[: args.limit]


def _wanted(args: Args, row: Row) -> bool:
    states = {name.upper() for name in _STATE_FLAGS if getattr(args, name)}
    if args.active:
        states |= {*state.STATES} - {state.FAILED}
    host = row["host"]
    return (
        (not states or row["state"] in states)
        and (not args.project or row["project"] in args.project)
        and not (args.local and host["provider"] != "local")
        and not (args.remote and host["provider"] == "local")
        and (not args.provider or host["provider"] in args.provider)
        and all(_has_label(row["labels"], text) for text in args.label)
        and all(_has_label(host["tags"], text) for text in args.host_label)
    )


def _has_label(labels: dict[str, str], text: str) -> bool:
    key, equals, value = text.partition("=")
    return key in labels and (not equals or labels[key] == value)


def _sort(rows: list[Row], text: str) -> None:
    """`name`, `name asc`, `name desc`, or `-name`, which is short for that. Numbers by size, then text by letters, then
    what is not known."""
    field, _, order = text.partition(" ")
    order = "desc" if field.startswith("-") else order.strip().lower()
    if order not in ("", "asc", "desc"):
        raise UsageError(f"invalid sort order `{order}`", hint='`--sort "create_time desc"`')
    field = _checked(rows, field.removeprefix("-"))

    def key(row: Row) -> tuple[int, Any]:
        value = lookup(row, field)
        return (2, "") if value is None else (0, value) if isinstance(value, int | float) else (1, str(value))

    rows.sort(key=key, reverse=order == "desc")


def _checked(rows: list[Row], field: str) -> str:
    """Our name of a field. Raises when agents do not have it."""
    field = _RENAMED.get(field, field)
    first, _, rest = field.partition(".")
    if rows and (first not in rows[0] or (rest and first == "host" and rest not in rows[0]["host"])):
        names = (*rows[0], *(f"host.{name}" for name in rows[0]["host"]))
        titled = {"branch": "initial_branch", "why": "state_reason", "for": "state_since"}.get(field.lower())
        hint = f"the field of that column is `{titled}`" if titled else suggest(field, names, "field")
        raise UsageError(f"agents have no field `{field}`", hint=hint)
    return field


def _print(args: Args, app: App, rows: list[Row], listing: Listing) -> None:
    app.out.warn_of(listing.errors)
    if args.ids or args.addrs:
        texts = (row["id"] if args.ids else "{name}@{host[name]}.{host[provider]}".format(**row) for row in rows)
        app.out.foreign("".join(f"{text}\n" for text in texts).encode())
        return
    known = []
    if app.out.format == "template":
        from mngr.cli.output.schemas import fields

        known = fields(AgentFields)
    columns = _columns(args, rows, app.out.columns if app.out.human else None)
    envelope = {"agents": rows, "errors": [error.as_json() for error in listing.errors]}
    app.out.emit_rows(rows, columns, envelope=envelope, known=known, empty="No agents found")


def _columns(args: Args, rows: list[Row], terminal: int | None) -> list[Column]:
    if args.fields:
        titles = {}
        for text in args.header:
            field, equals, titles[field] = text.partition("=")
            if not equals or not field:
                raise UsageError(f"invalid header {text!r}", hint="for example `--header labels.env=ENV`")
        fields = [field.strip() for field in args.fields.split(",") if field.strip()]
        return [Column(titles.get(field, field.upper()), _checked(rows, field)) for field in fields]

    def lasting(row: Mapping[str, Any]) -> str:
        return age(time.time() - seconds_of(row["state_since"])) if row["state_since"] else ""

    columns = [
        Column("NAME", "name", flexible=terminal is not None),
        Column("STATE", "state", style=state_style),
        Column("FOR", "state_since", show=lasting),
        Column("TYPE", "type"),
        Column("PROJECT", "project"),
        Column("BRANCH", "initial_branch"),
        Column("WHY", "state_reason", flexible=True),
    ]
    if any(row["host"]["provider"] != "local" for row in rows):
        columns.insert(1, Column("HOST", "host.name"))
    return columns if terminal is None else _fitting(columns, rows, terminal)


def _fitting(columns: list[Column], rows: list[Row], terminal: int) -> list[Column]:
    """Leave out the least useful columns until a line fits."""
    reasons = min(_READABLE, max((len(row["state_reason"]) for row in rows), default=0))
    for field in ("initial_branch", "type", "project"):
        cells = [[c.title, *(c.show(r) if c.show else str(lookup(r, c.field) or "") for r in rows)] for c in columns]
        longest = [max(map(len, cell)) for cell in cells[:-1]]
        if not rows or sum(longest) + 2 * len(longest) + reasons <= terminal:
            break
        columns = [column for column in columns if column.field != field]
    return columns
