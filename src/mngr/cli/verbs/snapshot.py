"""`mngr snapshot`: keep an agent as it is, and reset it to that later."""

from typing import Any

from mngr.actions import snapshots as actions
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.output import DryRun, Problem
from mngr.cli.output.table import Column
from mngr.cli.parser.option_values import TRUST_HOST
from mngr.cli.parser.parser import Args, Parser
from mngr.cli.trust_prompt import accepted
from mngr.cli.verbs.saved import SavedContent, content
from mngr.cli.verbs.transcript import parse_count
from mngr.errors import PARTIAL, NotFoundError, UsageError
from mngr.fleet import kept
from mngr.fleet.agent import Agent
from mngr.fleet.kept import KeptEntry, KeptListing
from mngr.named_tuples import NamedTuple
from mngr.names import check_name, suggest
from mngr.system import interrupts

DESCRIPTION = (
    "Keep an agent as it is now: commits, uncommitted and untracked files, small ignored files, its conversation and "
    "its settings. Without an agent's name, the agent that runs this command is meant, otherwise the only agent of "
    "this repository. Snapshots of agents on other hosts are kept there; `NAME@HOST` names one of a host."
)
EXAMPLES = (
    ("mngr snapshot create my-snapshot", "of the only agent of this repository; it keeps working"),
    ("mngr snapshot create fix-login before-rewrite", "of one agent"),
    ("mngr snapshot create --all --name before-merge", "of all agents"),
    ("mngr snapshot list", "all snapshots, newest first"),
    ("mngr snapshot restore my-snapshot", "reset its agent to it; replaced work is saved"),
    ("mngr snapshot restore my-snapshot --as second-try", "create a new, stopped agent from it"),
    ("mngr snapshot destroy my-snapshot", "delete it"),
)


class SnapshotOf(NamedTuple):
    id: str
    name: str
    agent: str
    agent_id: str | None
    created_at: str
    host: str


class WouldKeep(NamedTuple):
    id: str
    name: str
    agent: str
    dry_run: bool


class RestoredSnapshot(NamedTuple):
    """`saved`: the id of the work that was replaced. `made`: whether the agent had to be created."""

    snapshot: str
    agent_id: str
    name: str
    work_dir: str
    branch: str | None
    saved: str | None
    made: bool
    running: bool


class DestroyedSnapshots(NamedTuple):
    destroyed: list[str]
    dry_run: bool


_KNOWN = (*SnapshotOf._fields, *SavedContent._fields)


_ROW = (SnapshotOf, SavedContent)
RESULTS = [
    {"snapshots": [_ROW], "errors": [Problem]},
    *(_ROW, WouldKeep, *targets.results(_ROW, WouldKeep)),
    *((_ROW, DryRun), RestoredSnapshot, DestroyedSnapshots),
]


def add_arguments(parser: Parser) -> None:
    create = parser.add_subcommand("create", "Keep an agent as it is now")
    create.words("words", "AGENT... [NAME]", "agents (`-` reads them from stdin), then the snapshot's name")
    targets.add_filters(create)
    create.option("--name, -n NAME", "name of the snapshot (default: generated)")
    create.add_dry_run()
    some = parser.add_subcommand("list", "Show snapshots, newest first", default=True)
    some.words("agents", "AGENT", "only snapshots of these agents; `-` reads them from stdin")
    some.option("--limit N", "show at most N, the newest", type=parse_count)
    back = parser.add_subcommand("restore", "Reset an agent to a snapshot")
    back.add_argument("agent", nargs="?", metavar="AGENT", help="its agent, if several have a snapshot of that name")
    back.add_argument("snapshot", metavar="NAME", help="name or id from `snapshot list`")
    back.option("--as NEW", "create a new, stopped agent from it instead", dest="new_name")
    back.option(*TRUST_HOST)
    back.add_dry_run()
    forget = parser.add_subcommand("destroy", "Delete snapshots")
    forget.add_argument("names", nargs="*", metavar="NAME", help="names or ids; with the options below, agents")
    forget.option("--snapshot ID ...", "this snapshot")
    forget.option("--all-snapshots", "all snapshots of the agents")
    forget.option("--force, -f", "do not ask before deleting all of them")
    forget.add_dry_run()


def run(args: Args, app: App) -> int | None:
    return {"create": _create, "list": _list, "restore": _restore, "destroy": _destroy}[args.subcommand](args, app)


def _create(args: Args, app: App) -> int:
    """Prints an object for one agent, and a list for agents from stdin, a filter or several names."""
    app.out.check_fields(_KNOWN)
    name = _take_name(args, app)

    def act(agent: Agent) -> tuple[dict[str, Any], str]:
        if args.dry_run:
            wanted = agent.check_snapshot(name)
            row = WouldKeep(f"{agent.name}/{wanted}", wanted, agent.name, True)._asdict()
        else:
            row = _row(KeptEntry(agent.site, agent.snapshot(name)))
        return row, f"{'would keep' if args.dry_run else 'kept'} {agent.name} as {row['name']}"

    if "-" in args.words or len(args.words) > 1 or args.all or args.include or args.exclude:
        args.agents = args.words
        return targets.finish(app, targets.resolve(args, app), act)
    agent = app.fleet.find(args.words[0] if args.words else app.fleet.local.run(actions.the_implied, "keep").id)
    row, text = act(agent)
    if not args.dry_run:
        text += f": {amount(row['commits'], 'commit')} of its own, {amount(row['files'], 'uncommitted file')}"
    app.out.emit_object(row, human=text)
    for file in row.get("left_out", ()):
        app.out.note(f"not kept: `{file['path']}` ({file['megabytes']:.0f} MB, ignored by git)")
    if not args.dry_run:
        app.out.note(f"`mngr snapshot restore {row['name']}` resets {agent.name} to it")
    return 0


def _take_name(args: Args, app: App) -> str | None:
    """The snapshot's name: `--name`, or the last word if it is not an agent; that word is removed from the words."""
    last = args.words[-1] if args.words else "-"
    is_name = last != "-" and last not in _agents(app)
    if args.name is not None:
        if is_name and len(args.words) > 1:
            raise UsageError(f"the snapshot's name is given twice: `{last}` and `--name {args.name}`")
        return check_name(args.name, "snapshot name")
    if not is_name:
        return None
    args.words = args.words[:-1]
    return check_name(last, "snapshot name")


def _agents(app: App) -> dict[str, Agent]:
    """All agents, each by its name and by its id."""
    return {key: agent for agent in targets.listed(app) for key in (agent.name, agent.id)}


def _survey(app: App, agents: list[str] | None) -> KeptListing:
    """All snapshots, or those of some agents, which need not exist any more."""
    listing = kept.everywhere(app.fleet, actions.survey)
    if agents is None:
        return listing
    known = _agents(app)
    ids = [known[name].id for name in agents if name in known]
    gone = [name for name in agents if name not in known]
    broken = {name: error for name, error in listing.broken.items() if name.partition("/")[0] in agents}
    names = {*(name.partition("/")[0] for name in broken), *(one.entry.name for one in listing.entries)}
    if missing := [name for name in gone if name not in names]:
        for error in listing.unreached:
            raise error  # they may be there
        hint = suggest(missing[0], [*known, *names], "name")
        raise NotFoundError(f"no agent named `{missing[0]}` has snapshots", hint=hint)
    theirs = [
        one for one in listing.entries if one.entry.name in gone or (one.entry.agent and one.entry.agent.id in ids)
    ]
    return listing._replace(entries=theirs, broken=broken)


def _list(args: Args, app: App) -> None:
    listing = _survey(app, app.names(args.agents) if args.agents else None)
    problems = [*listing.broken.values(), *listing.unreached]
    app.out.warn_of(problems)
    rows = [_row(one) for one in listing.entries[::-1][: args.limit]]
    columns = [
        Column("NAME", "name"),
        Column("AGENT", "agent"),
        *([] if app.fleet.alone else [Column("HOST", "host")]),
        Column("AGE", "age"),
        Column("COMMITS", "commits", right=True),
        Column("FILES", "files", right=True),
        Column("BRANCH", "branch"),
        Column("REPOSITORY", "repo", flexible=True),
    ]
    envelope = {"snapshots": rows, "errors": [error.as_json() for error in problems]}
    app.out.emit_rows(rows, columns, envelope=envelope, known=_KNOWN, empty="No snapshots")


def _row(found: KeptEntry) -> dict[str, Any]:
    entry = found.entry
    agent_id = entry.agent.id if entry.agent else None
    own = SnapshotOf(entry.id, entry.label, entry.name, agent_id, entry.saved_at, found.site.name)
    return {**own._asdict(), **content(entry, entry.branch, found.site.clock_skew)}


def _restore(args: Args, app: App) -> None:
    found = _one(app, args.snapshot, [args.agent] if args.agent is not None else None)
    entry = found.entry
    if args.dry_run:
        kept.target(app.fleet, found, args.new_name)
        value = {**_row(found), "dry_run": True}
        app.out.emit_object(value, human=f"would reset {args.new_name or entry.name} to {entry.id}")
        return
    interrupts.outlive_terminal()
    done = kept.restore_snapshot(app.fleet, found, args.new_name, accepted(app, trusted=args.trust_host))
    record, saved = done.record, done.saved.id if done.saved else None
    agent = (record.id, record.name, record.workspace.work_dir, record.workspace.branch)
    if done.made:
        human = f"created {record.name} from {entry.id}, stopped\nfiles: {record.workspace.work_dir}"
    else:
        human = f"reset {record.name} to {entry.id}" + (" and started it again" if done.running else "")
    app.out.emit_object(RestoredSnapshot(entry.id, *agent, saved, done.made, done.running), human=human)
    if done.note:
        app.out.note(done.note)
    if saved:
        app.out.note(f"the replaced work is saved: `mngr saved show {saved}`")
    if not done.running:
        app.out.note(f"`mngr start {record.name}` starts it")


def _destroy(args: Args, app: App) -> int:
    if args.snapshot and args.all_snapshots:
        raise UsageError("`--snapshot` and `--all-snapshots` cannot be used together")
    if args.all_snapshots:
        listing = _survey(app, args.names or [actions.the_implied(app.fleet.local, "delete snapshots of").name])
        chosen = listing.entries
        for error in (*listing.broken.values(), *listing.unreached):
            app.out.warn(error.explained())
            app.incomplete = True
        ask = chosen and not (args.force or args.dry_run or app.headless)
        if ask and not app.confirm(f"Delete {amount(len(chosen), 'snapshot')}?"):
            return 1
    elif args.snapshot:
        chosen = [_one(app, word, args.names) for word in args.snapshot]
    elif args.names:
        chosen = [_one(app, word) for word in args.names]
    else:
        raise UsageError("no snapshot was named", hint="`mngr snapshot list` shows all snapshots")
    chosen = list({(one.site.name, one.entry.id): one for one in chosen}.values())
    for site in () if args.dry_run else dict.fromkeys(one.site for one in chosen):
        site.run(actions.remove, [one.entry for one in chosen if one.site is site])
    verb = "would destroy" if args.dry_run else "destroyed"
    app.out.emit_object(
        DestroyedSnapshots([one.entry.id for one in chosen], args.dry_run),
        human="\n".join(f"{verb} {one.entry.id}" for one in chosen) or "No snapshots",
    )
    return PARTIAL if app.incomplete else 0


def _one(app: App, word: str, agents: list[str] | None = None) -> KeptEntry:
    """A snapshot by name or id; with agents, only theirs."""
    if not agents:
        return kept.find(app.fleet, word, actions.one)
    listing = _survey(app, agents)
    found = [one for one in listing.entries if word in (one.entry.id, one.entry.label)]
    if not found:
        actions.refuse_unreadable(word, listing.broken)
        for error in listing.unreached:
            raise error  # it may be there
        names = [one.entry.label for one in listing.entries]
        raise NotFoundError(
            f"{', '.join(f'`{name}`' for name in agents)} has no snapshot named `{word}`",
            hint=suggest(word, names, "one") or "`mngr snapshot list` shows all",
        )
    return found[-1]
