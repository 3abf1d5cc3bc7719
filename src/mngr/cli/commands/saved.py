"""`mngr saved`: work kept by the safety net."""

from __future__ import annotations

import time

from mngr.actions import restore
from mngr.agents.record import seconds_of
from mngr.cli.ages import age
from mngr.cli.app import App
from mngr.cli.commands.transcript import local_time
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column
from mngr.cli.text import amount
from mngr.process import checked
from mngr.records import TYPE_CHECKING
from mngr.tools.git import Git
from mngr.workspaces import saved
from mngr.workspaces.saved import Entry

if TYPE_CHECKING:
    from typing import Any


DESCRIPTION = "Commits, uncommitted and untracked files of agents that were destroyed, and files that a copy replaced."
EXAMPLES = (
    ("mngr saved list", "what is kept"),
    ("mngr saved show fix-login-1", "what is in it"),
    ("mngr saved restore fix-login-1", "a stopped agent with all of it, as it was"),
    ("mngr saved restore fix-login-1 --to ../recovered", "only the files, in a directory"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_subcommand("list", "Show what is kept, newest first", default=True)
    show = parser.add_subcommand("show", "Show what saved work holds")
    show.add_argument("id", metavar="ID", help="an id of `saved list`, or an agent's name for its newest")
    show.add_argument("--patch", "-p", action="store_true", help="the whole change, not only file names")
    back = parser.add_subcommand("restore", "Bring saved work back")
    back.add_argument("id", metavar="ID", help="an id of `saved list`, or an agent's name for its newest")
    back.add_argument("--name", "-n", metavar="NAME", help="a name for the restored agent (default: its old one)")
    back.add_argument("--to", metavar="DIR", help="put the files there instead of making an agent")
    back.add_argument("--branch", metavar="BRANCH", help="the branch to restore to (default: its old one, if free)")
    back.add_argument("--dry-run", action="store_true", help="say what would come back, and change nothing")


def run(args: Args, app: App) -> int:
    app.fleet.host.is_ours()  # raises when the directory is another program's
    if args.subcommand == "list":
        return _list(app)
    entry = saved.find(app.fleet.host, args.id)
    return _show(args, app, entry) if args.subcommand == "show" else _restore(args, app, entry)


def _list(app: App) -> int:
    entries, broken = saved.survey(app.fleet.host)
    for error in broken.values() if app.out.human else ():
        app.out.warn(error.message + f"\n  hint: {error.hint}")
    rows = [_row(entry) for entry in reversed(entries)]
    columns = [
        Column("ID", "id"),
        Column("AGE", "age"),
        Column("COMMITS", "commits", right=True),
        Column("FILES", "files", right=True),
        Column("WHY", "reason"),
        Column("REPOSITORY", "repo", flexible=True),
    ]
    errors = [{"error": error.message, "hint": error.hint} for error in broken.values()]
    app.out.emit_rows(rows, columns, envelope={"saved": rows, "errors": errors}, empty="No saved work")
    return 0


def _row(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "name": entry.name,
        "reason": entry.reason,
        "saved_at": entry.saved_at,
        "age": age(time.time() - seconds_of(entry.saved_at)),
        "commits": entry.commits,
        "files": len(entry.changed) + len(entry.ignored),
        "uncommitted": list(entry.changed),
        "ignored": list(entry.ignored),
        "left_out": [{"path": path, "megabytes": megabytes} for path, megabytes in entry.left_out],
        "repo": entry.repo,
        "ref": entry.ref,
        "commit": entry.commit,
        "branch": entry.agent.branch if entry.agent else None,
    }


def _show(args: Args, app: App, entry: Entry) -> int:
    if not app.out.human:
        app.out.emit_object(_row(entry))
        return 0
    git = Git(app.fleet.host, entry.repo)
    app.out.line(f"{entry.id}: work of `{entry.name}`, saved on {entry.reason}, {' '.join(local_time(entry.saved_at))}")
    app.out.line(f"in {entry.repo}, as {entry.ref}")
    colour = ["--color=always"] if app.out.colour else []
    if entry.commits:
        app.out.line(f"\n{amount(entry.commits, 'commit')}:")
        app.out.raw(checked(git.run("log", "--oneline", *colour, f"-{entry.commits}", entry.parent)).stdout)
    if entry.commit != entry.parent:
        app.out.line(f"\n{amount(len(entry.changed) + len(entry.ignored), 'uncommitted file')}:")
        how = ["--patch"] if args.patch else ["--stat"]
        app.out.raw(checked(git.run("diff", *how, *colour, entry.parent, entry.commit)).stdout)
    for path, megabytes in entry.left_out:
        app.out.line(f"not saved: {path} ({megabytes:.0f} MB, ignored by git)")
    return 0


def _restore(args: Args, app: App, entry: Entry) -> int:
    if args.dry_run:
        what = f"{amount(entry.commits, 'commit')} and {amount(len(entry.changed), 'file')}"
        app.out.emit_object(_row(entry), human=f"would restore {what} of {entry.name}")
    elif args.to is not None:
        path = restore.as_files(app.fleet, entry, args.to, branch=args.branch)
        app.out.emit_object({"id": entry.id, "work_dir": path}, human=f"restored {entry.id} to {path}")
    else:
        record = app.fleet.restore_saved(entry.id, name=args.name, branch=args.branch).record
        value = {
            "id": entry.id,
            "agent_id": record.id,
            "name": record.name,
            "work_dir": record.work_dir,
            "branch": record.branch,
        }
        branch = f", branch {record.branch}" if record.branch else ""
        app.out.emit_object(
            value, human=f"restored {entry.id} as stopped agent {record.name}{branch}\nfiles: {record.work_dir}"
        )
        look = f"`mngr diff {record.name}` shows its work" if record.git else f"`mngr exec {record.name} ls` looks"
        app.out.note(f"`mngr start {record.name}` runs it again, {look}")
    return 0
