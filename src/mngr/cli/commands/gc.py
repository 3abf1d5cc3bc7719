"""`mngr gc`: remove what broken-off work left behind."""

from __future__ import annotations

import time

from mngr.actions.gc import FAILED, KEPT, WOULD, Leftover, collect
from mngr.cli.ages import parse_duration
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.cli.table import Column
from mngr.cli.text import amount
from mngr.errors import FAILED as EXIT_FAILED
from mngr.errors import PARTIAL, UsageError

DESCRIPTION = (
    "Remove leftovers of commands that were killed and of directories that were deleted by hand: work dirs and git's "
    "notes of worktrees that no agent has, creations that were broken off, tmux sessions without a record, locks, and "
    "refs of agents that are gone. What exists only in a work dir is saved first (`mngr saved`). Agents, and what "
    "another `mngr` is making right now, are left alone."
)
EXAMPLES = (
    ("mngr gc --dry-run", "what would go"),
    ("mngr gc", "remove it"),
    ("mngr gc --saved --older-than 30d", "and saved work that is older than a month"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--saved", action="store_true", help="also saved work, for good; needs `--older-than`")
    parser.add_argument("--older-than", type=parse_duration, metavar="TIME", help="the least age for `--saved`")
    parser.add_argument(
        "--provider", action="append", metavar="NAME", help="only hosts of this provider (can be repeated)"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")


def run(args: Args, app: App) -> int:
    if args.saved != (args.older_than is not None):
        have, lack = ("--saved", "--older-than") if args.saved else ("--older-than", "--saved")
        raise UsageError(f"`{have}` needs `{lack}`", hint="`mngr gc --saved --older-than 30d`")
    before = time.time() - args.older_than if args.saved else None
    found = []
    here = not args.provider or "local" in args.provider
    for item in collect(app.fleet, dry_run=args.dry_run, saved_before=before) if here else ():
        found.append(item)
        if app.out.human:
            app.out.line(_sentence(item))
            app.out.flush()
    failed = sum(item.action == FAILED for item in found)
    if app.out.human:
        _say_sum(app, found, args.dry_run)
    else:
        rows = [item._asdict() for item in found]
        app.out.emit_rows(rows, (Column("NAME", "name"),), envelope={"leftovers": rows}, known=Leftover._fields)
    if not failed:
        return 0
    return PARTIAL if failed < len(found) else EXIT_FAILED


def run_after(app: App) -> None:
    """Remove leftovers after another verb, whose result is printed already."""
    for item in collect(app.fleet):
        (app.out.warn if item.action == FAILED else app.out.note)(_sentence(item))


def _sentence(item: Leftover) -> str:
    action = "could not remove" if item.action == FAILED else item.action
    text = f"{action} {item.what} {item.name}" + (f": {item.note}" if item.note else "")
    return text + (f"; saved: `mngr saved restore {item.saved}`" if item.saved else "")


def _say_sum(app: App, found: list[Leftover], dry_run: bool) -> None:
    gone = sum(item.action not in (KEPT, FAILED) for item in found)
    if not gone:
        app.out.line("Nothing is left over" if not found else "Nothing was removed")
    elif dry_run:
        app.out.note(f"{amount(sum(item.action == WOULD for item in found), 'thing')} would be removed: `mngr gc` does")
