"""`mngr saved`: work that mngr saved before it could be lost."""

import time
from collections.abc import Mapping
from typing import Any

from mngr.actions import restore
from mngr.agent.record import seconds_of
from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.durations import age
from mngr.cli.output.output import Problem, as_mapping
from mngr.cli.output.table import Column
from mngr.cli.parser.option_values import TRUST_HOST
from mngr.cli.parser.parser import Args, Parser
from mngr.cli.trust_prompt import accepted
from mngr.cli.verbs.transcript import local_time
from mngr.fleet import kept
from mngr.fleet.kept import KeptEntry
from mngr.named_tuples import NamedTuple
from mngr.workspace.work.entry import SavedEntry

DESCRIPTION = (
    "Work that mngr saved before it could be lost: commits, uncommitted and untracked files, repositories inside, "
    "conversations and recordings of destroyed agents, and files that a copy replaced. Saved work of agents on other "
    "hosts is kept there, and comes here before mngr destroys such a host; `ID@HOST` names an entry of one host."
)
EXAMPLES = (
    ("mngr saved list", "all saved work"),
    ("mngr saved show fix-login-1", "what an entry holds"),
    ("mngr saved restore fix-login-1", "restore it as a stopped agent"),
    ("mngr saved restore fix-login-1 --to ../recovered", "restore only the files, to a directory"),
    ("mngr saved restore fix-login-1 --name second-try@local", "under another name, on this machine"),
)


class LeftOutFile(NamedTuple):
    """A file that was too large to be saved."""

    path: str
    megabytes: float


class SavedContent(NamedTuple):
    """`commits`: how many only the agent had. `files`: how many uncommitted and ignored files. `commit` holds all of
    it, under `ref` in `repo`."""

    age: str
    commits: int
    files: int
    uncommitted: tuple[str, ...]
    ignored: tuple[str, ...]
    left_out: list[LeftOutFile]
    repo: str
    ref: str
    commit: str
    branch: str | None


class SavedOf(NamedTuple):
    id: str
    name: str
    reason: str
    saved_at: str
    host: str


class RestoredFiles(NamedTuple):
    id: str
    work_dir: str


class RestoredAgent(NamedTuple):
    id: str
    agent_id: str
    name: str
    work_dir: str
    branch: str | None


_ROW = (SavedOf, SavedContent)
RESULTS = [{"saved": [_ROW], "errors": [Problem]}, _ROW, RestoredFiles, RestoredAgent]


def add_arguments(parser: Parser) -> None:
    parser.add_subcommand("list", "Show all saved work, newest first", default=True)
    show = parser.add_subcommand("show", "Show the content of saved work")
    show.add_argument("id", metavar="ID", help="id from `saved list`, or an agent's name for its newest entry")
    show.option("--patch, -p", "show the whole change, not only file names")
    back = parser.add_subcommand("restore", "Restore saved work")
    back.add_argument("id", metavar="ID", help="id from `saved list`, or an agent's name for its newest entry")
    back.option("--name, -n NAME", "name of the restored agent, or `[NAME]@HOST` (default: its old name and host)")
    back.option("--to DIR", "restore the files to this directory instead of an agent")
    back.option("--branch BRANCH", "branch to restore to (default: its old branch, if free)")
    back.option(*TRUST_HOST)
    back.add_dry_run()


def run(args: Args, app: App) -> None:
    app.fleet.local.host.is_ours()  # raises when the directory is another program's
    if args.subcommand == "list":
        _list(app)
        return
    found = kept.find(app.fleet, args.id, restore.find)
    (_show if args.subcommand == "show" else _restore)(args, app, found)


def _list(app: App) -> None:
    found = kept.everywhere(app.fleet, restore.survey)
    problems = [*found.broken.values(), *found.unreached]
    app.out.warn_of(problems)
    rows = [_row(one) for one in reversed(found.entries)]
    columns = [
        Column("ID", "id"),
        *([] if app.fleet.alone else [Column("HOST", "host")]),
        Column("AGE", "age"),
        Column("COMMITS", "commits", right=True),
        Column("FILES", "files", right=True),
        Column("WHY", "reason"),
        Column("REPOSITORY", "repo", flexible=True),
    ]
    errors = [error.as_json() for error in problems]
    app.out.emit_rows(rows, columns, envelope={"saved": rows, "errors": errors}, empty="No saved work")


def _row(found: KeptEntry) -> dict[str, Any]:
    entry = found.entry
    branch = entry.agent.workspace.branch if entry.agent else None
    own = SavedOf(entry.id, entry.name, entry.reason, entry.saved_at, found.site.name)
    return {**own._asdict(), **content(entry, branch, found.site.clock_skew)}


def content(entry: SavedEntry, branch: str | None, clock_skew: float) -> Mapping[str, Any]:
    """What saved work and snapshots have in common."""
    return as_mapping(
        SavedContent(
            age=age(time.time() + clock_skew - seconds_of(entry.saved_at)),
            commits=entry.commits,
            files=len(entry.changed) + len(entry.ignored),
            uncommitted=entry.changed,
            ignored=entry.ignored,
            left_out=[LeftOutFile(path, megabytes) for path, megabytes in entry.left_out],
            repo=entry.repo,
            ref=entry.ref,
            commit=entry.commit,
            branch=branch,
        )
    )


def _show(args: Args, app: App, found: KeptEntry) -> None:
    entry = found.entry
    if not app.out.human:
        app.out.emit_object(_row(found))
        return
    log, diff = found.site.run(restore.show, entry, patch=args.patch, colour=app.out.colour)
    app.out.line(f"{entry.id}: work of `{entry.name}`, reason: {entry.reason}, {' '.join(local_time(entry.saved_at))}")
    at = "" if found.site.is_local else f"on {found.site.name} "
    app.out.line(f"{at}in {entry.repo}, as {entry.ref}")
    if entry.commits:
        app.out.line(f"\n{amount(entry.commits, 'commit')}:")
        app.out.foreign(log)
    if entry.commit != entry.parent:
        app.out.line(f"\n{amount(len(entry.changed) + len(entry.ignored), 'uncommitted file')}:")
        app.out.foreign(diff)
    for path, _ in entry.archives:
        app.out.line(f"repository inside: {path}")
    if entry.left_behind:
        app.out.line(f"{amount(entry.left_behind, 'commit')} that no branch had: git log {entry.commit[:10]}^2")
    for path, megabytes in entry.left_out:
        app.out.line(f"not saved: {path} ({megabytes:.0f} MB, ignored by git)")


def _restore(args: Args, app: App, found: KeptEntry) -> None:
    entry = found.entry
    if args.dry_run:
        kept.target(app.fleet, found, args.name)
        what = f"{amount(entry.commits, 'commit')} and {amount(len(entry.changed), 'file')}"
        app.out.emit_object(_row(found), human=f"would restore {what} of {entry.name}")
    elif args.to is not None:
        with kept.brought(found, app.fleet.local) as here:
            path = restore.as_files(app.fleet.local, here, args.to, branch=args.branch)
        app.out.emit_object(RestoredFiles(entry.id, path), human=f"restored {entry.id} to {path}")
    else:
        accept = accepted(app, trusted=args.trust_host)
        record = kept.restore_saved(app.fleet, found, args.name, args.branch, accept).record
        branch = f", branch {record.workspace.branch}" if record.workspace.branch else ""
        app.out.emit_object(
            RestoredAgent(entry.id, record.id, record.name, record.workspace.work_dir, record.workspace.branch),
            human=f"restored {entry.id} as stopped agent {record.name}{branch}\nfiles: {record.workspace.work_dir}",
        )
        look = f"`mngr diff {record.name}`" if record.git else f"`mngr exec {record.name} ls`"
        app.out.note(f"`mngr start {record.name}` starts it, {look} shows its work")
