"""`mngr snapshot`: keep an agent as it is, and bring it back to that."""

from __future__ import annotations

import time

from mngr.actions import find
from mngr.actions import snapshots as actions
from mngr.actions.agent import Agent
from mngr.agents.record import seconds_of
from mngr.cli import targets
from mngr.cli.ages import age
from mngr.cli.app import App
from mngr.cli.commands.transcript import parse_count
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column
from mngr.cli.text import amount
from mngr.errors import MngrError, NotFoundError, UsageError
from mngr.names import check_name, suggest
from mngr.records import TYPE_CHECKING
from mngr.workspaces.kept import Entry
from mngr.workspaces.snapshots import check_place, free_name, name_of

if TYPE_CHECKING:
    from typing import Any


DESCRIPTION = (
    "Keep an agent as it is now: commits, uncommitted and untracked files, small ignored files, its conversation and "
    "its settings. Without an agent's name the agent we run in is meant, else the only one of this repository."
)
EXAMPLES = (
    ("mngr snapshot create my-snapshot", "of the only agent of this repository; it may work on meanwhile"),
    ("mngr snapshot create fix-login before-rewrite", "of one by name"),
    ("mngr snapshot create --all --name before-merge", "of every agent"),
    ("mngr snapshot list", "all snapshots, newest first"),
    ("mngr snapshot restore my-snapshot", "bring its agent back to it; what that replaces is saved"),
    ("mngr snapshot restore my-snapshot --as second-try", "a new, stopped agent from it"),
    ("mngr snapshot destroy my-snapshot", "forget it for good"),
)


def add_arguments(parser: Parser) -> None:
    create = parser.add_subcommand("create", "Keep an agent as it is now")
    create.add_argument(
        "words",
        nargs="*",
        metavar="AGENT... [NAME]",
        help="agents (`-` reads them from stdin); a last word that names none is the snapshot's NAME",
    )
    targets.add_filters(create)
    create.add_argument("--name", "-n", metavar="NAME", help="the snapshot's name (made up when left out)")
    create.add_argument("--dry-run", action="store_true", help="say what would be kept, and keep nothing")
    some = parser.add_subcommand("list", "Show snapshots, newest first", default=True)
    some.add_argument(
        "agents", nargs="*", metavar="AGENT", help="only those of these agents; `-` reads them from stdin"
    )
    some.add_argument("--limit", type=parse_count, metavar="N", help="at most N, the newest")
    back = parser.add_subcommand("restore", "Bring an agent back to a snapshot")
    back.add_argument("agent", nargs="?", metavar="AGENT", help="its agent, if several have one of that name")
    back.add_argument("snapshot", metavar="NAME", help="a name or an id of `snapshot list`")
    back.add_argument("--as", dest="new_name", metavar="NEW", help="make a new, stopped agent of it instead")
    back.add_argument("--dry-run", action="store_true", help="say what would come back, and change nothing")
    forget = parser.add_subcommand("destroy", "Forget snapshots for good")
    forget.add_argument("names", nargs="*", metavar="NAME", help="names or ids; with the options below, agents")
    forget.add_argument("--snapshot", action="append", metavar="ID", help="this one (can be repeated)")
    forget.add_argument("--all-snapshots", action="store_true", help="all of the agent")
    forget.add_argument("--force", "-f", action="store_true", help="do not ask before all are gone")
    forget.add_argument("--dry-run", action="store_true", help="say which would go, and change nothing")


def run(args: Args, app: App) -> int:
    return {"create": _create, "list": _list, "restore": _restore, "destroy": _destroy}[args.subcommand](args, app)


def _create(args: Args, app: App) -> int:
    """One agent's snapshot is a document; for agents from stdin, a filter or several names it is a list of them."""
    app.out.check_fields(_KNOWN)
    name = _take_name(args, app)
    many = "-" in args.words or len(args.words) > 1 or args.all or args.include or args.exclude
    if not many:
        word = args.words[0] if args.words else None
        return _create_one(
            args, app, find.one(app.fleet, word) if word else actions.the_implied(app.fleet, "keep"), name
        )
    args.agents = args.words
    agents = targets.resolve(args, app)

    def act(agent: Agent) -> dict[str, Any]:
        return _would_keep(app, agent, name) if args.dry_run else _row(actions.create(app.fleet, agent, name))

    verb = "would keep" if args.dry_run else "kept"
    return targets.finish(
        app,
        agents,
        act,
        lambda agent, row: row,
        lambda agent, row: f"{verb} {agent.name} as {row['name']}",
    )


def _create_one(args: Args, app: App, agent: Agent, name: str | None) -> int:
    if args.dry_run:
        value = _would_keep(app, agent, name)
        app.out.emit_object(value, human=f"would keep {agent.name} as {value['name']}")
        return 0
    entry = actions.create(app.fleet, agent, name)
    app.out.emit_object(_row(entry), human=f"kept {agent.name} as {name_of(entry)}: {_content(entry)}")
    _tell_left_out(app, entry)
    app.out.note(f"`mngr snapshot restore {name_of(entry)}` brings {agent.name} back to it")
    return 0


def _would_keep(app: App, agent: Agent, name: str | None) -> dict[str, Any]:
    check_place(agent.record)
    wanted = name or free_name(app.fleet.host, agent.record.name)
    return {"id": f"{agent.name}/{wanted}", "name": wanted, "agent": agent.name, "dry_run": True}


def _take_name(args: Args, app: App) -> str | None:
    """The snapshot's name: `--name`, or the last word if it names no agent, which is then no longer among the words.
    A first word of two is always an agent."""
    last = args.words[-1] if args.words else "-"
    is_name = last != "-" and last not in _names(app)
    if args.name is not None:
        if is_name and len(args.words) > 1:
            raise UsageError(f"the snapshot's name is given twice: `{last}` and `--name {args.name}`")
        return check_name(args.name, "snapshot name")
    if not is_name:
        return None
    args.words = args.words[:-1]
    return check_name(last, "snapshot name")


def _names(app: App) -> set[str]:
    return {key for agent in find.listing(app.fleet).agents for key in (agent.name, agent.id)}


def _list(args: Args, app: App) -> int:
    names = [word for name in args.agents for word in (app.read_stdin().split() if name == "-" else [name])]
    broken = _broken(app, names if args.agents else None)
    for error in broken.values() if app.out.human else ():
        app.out.warn(error.message + f"\n  hint: {error.hint}")
    entries = _all_of(app, names) if args.agents else actions.survey(app.fleet)[0]
    entries = sorted(entries, key=lambda entry: entry.saved_at, reverse=True)
    rows = [_row(entry) for entry in entries[: args.limit]]
    errors = [{"error": error.message, "hint": error.hint} for error in broken.values()]
    columns = [
        Column("NAME", "name"),
        Column("AGENT", "agent"),
        Column("AGE", "age"),
        Column("COMMITS", "commits", right=True),
        Column("FILES", "files", right=True),
        Column("BRANCH", "branch"),
        Column("REPOSITORY", "repo", flexible=True),
    ]
    app.out.emit_rows(rows, columns, envelope={"snapshots": rows, "errors": errors}, known=_KNOWN, empty="No snapshots")
    return 0


_KNOWN = (
    *("id", "name", "agent", "agent_id", "created_at", "age", "commits", "files", "uncommitted", "ignored"),
    *("left_out", "repo", "ref", "commit", "branch"),
)


def _row(entry: Entry) -> dict[str, Any]:
    """One snapshot: `commits` are those that only its agent had, `files` how many uncommitted and ignored ones it
    holds, `left_out` what was too large, `commit` all of it as one commit under `ref` in `repo`."""
    return {
        "id": entry.id,
        "name": name_of(entry),
        "agent": entry.name,
        "agent_id": entry.agent.id if entry.agent else None,
        "created_at": entry.saved_at,
        "age": age(time.time() - seconds_of(entry.saved_at)),
        "commits": entry.commits,
        "files": len(entry.changed) + len(entry.ignored),
        "uncommitted": list(entry.changed),
        "ignored": list(entry.ignored),
        "left_out": [{"path": path, "megabytes": megabytes} for path, megabytes in entry.left_out],
        "repo": entry.repo,
        "ref": entry.ref,
        "commit": entry.commit,
        "branch": entry.branch,
    }


def _content(entry: Entry) -> str:
    if entry.plain_files:
        return amount(len(entry.changed), "file")
    files = amount(len(entry.changed) + len(entry.ignored), "uncommitted file")
    return f"{amount(entry.commits, 'commit')} of its own, {files}"


def _tell_left_out(app: App, entry: Entry) -> None:
    for path, megabytes in entry.left_out:
        app.out.note(f"`{path}` ({megabytes:.0f} MB, ignored by git) was not kept")


def _restore(args: Args, app: App) -> int:
    """The agent's `name`, `agent_id`, `work_dir` and `branch`, the `saved` work that was replaced, whether the agent
    had to be `made` again, and whether it is `running`."""
    entry = _one(app, args.snapshot, [args.agent] if args.agent is not None else None)
    if args.dry_run:
        value = {**_row(entry), "dry_run": True}
        app.out.emit_object(value, human=f"would bring {args.new_name or entry.name} back to {entry.id}")
        return 0
    targets.outlive_terminal()
    done = actions.restore_to(app.fleet, entry, name=args.new_name)
    record = done.record
    value = {
        "snapshot": entry.id,
        "agent_id": record.id,
        "name": record.name,
        "work_dir": record.work_dir,
        "branch": record.branch,
        "saved": done.saved.id if done.saved else None,
        "made": done.made,
        "running": done.running,
    }
    if done.made:
        human = f"made {record.name} again from {entry.id}, stopped\nfiles: {record.work_dir}"
    else:
        human = f"{record.name} is back at {entry.id}" + (" and runs again" if done.running else "")
    app.out.emit_object(value, human=human)
    if done.note:
        app.out.note(done.note)
    if done.saved:
        app.out.note(f"what was there before is saved: `mngr saved show {done.saved.id}`")
    if not done.running:
        app.out.note(f"`mngr start {record.name}` runs it")
    return 0


def _destroy(args: Args, app: App) -> int:
    """`destroyed`: the ids that went."""
    if args.snapshot and args.all_snapshots:
        raise UsageError("`--snapshot` and `--all-snapshots` cannot be used together")
    if args.all_snapshots:
        agents = args.names or [actions.the_implied(app.fleet, "forget snapshots of").name]
        chosen = _all_of(app, agents)
        for error in _broken(app, agents).values():
            app.out.warn(error.message + f"\n  hint: {error.hint}")
        ask = chosen and not (args.force or args.dry_run or app.headless)
        if ask and not app.confirm(f"Forget {amount(len(chosen), 'snapshot')} for good?"):
            return 1
    elif args.snapshot:
        chosen = [_one(app, word, args.names) for word in args.snapshot]
    elif args.names:
        chosen = [_one(app, word) for word in args.names]
    else:
        raise UsageError("no snapshot was named", hint="`mngr snapshot list` shows them; `--all-snapshots` means all")
    chosen = list({entry.id: entry for entry in chosen}.values())
    if not args.dry_run:
        actions.remove(app.fleet, chosen)
    verb = "would destroy" if args.dry_run else "destroyed"
    app.out.emit_object(
        {"destroyed": [entry.id for entry in chosen], "dry_run": args.dry_run},
        human="\n".join(f"{verb} {entry.id}" for entry in chosen) or "No snapshots",
    )
    return 0


def _broken(app: App, agents: list[str] | None) -> dict[str, MngrError]:
    """The errors of snapshots that cannot be read, all or those of some agents, by their ids."""
    found = actions.survey(app.fleet)[1]
    return {name: error for name, error in found.items() if agents is None or name.partition("/")[0] in agents}


def _all_of(app: App, names: list[str]) -> list[Entry]:
    """Those of some agents, by name; also of agents that are gone."""
    entries, _ = actions.survey(app.fleet)
    agents = {key: agent for agent in find.listing(app.fleet).agents for key in (agent.name, agent.id)}
    found: list[Entry] = []
    for name in names:
        agent = agents.get(name)
        mine = [entry for entry in entries if (actions.belongs(entry, agent) if agent else entry.name == name)]
        if not mine and agent is None and not _broken(app, [name]):
            known = [*(agent.name for agent in agents.values()), *(entry.name for entry in entries)]
            raise NotFoundError(f"no agent named `{name}` has snapshots", hint=suggest(name, known, "name"))
        found += mine
    return found


def _one(app: App, word: str, agents: list[str] | None = None) -> Entry:
    """A snapshot by name or id; with agents, only theirs."""
    if not agents:
        return actions.one(app.fleet, word)
    entries = _all_of(app, agents)
    found = [entry for entry in entries if word in (entry.id, name_of(entry))]
    if not found:
        actions.refuse_unreadable(word, _broken(app, agents))
        raise NotFoundError(
            f"{', '.join(f'`{name}`' for name in agents)} has no snapshot called `{word}`",
            hint=suggest(word, [name_of(entry) for entry in entries], "one") or "`mngr snapshot list` shows all",
        )
    return found[-1]
