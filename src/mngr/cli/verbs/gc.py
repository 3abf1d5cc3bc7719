"""`mngr gc`: remove leftovers."""

import time
from itertools import chain

from mngr.actions.gc import FAILED, KEPT, Leftover
from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.durations import parse_duration
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import FAILED as EXIT_FAILED
from mngr.errors import PARTIAL, UsageError
from mngr.fleet import host_verbs

DESCRIPTION = (
    "Remove leftovers of killed commands and of directories that were deleted by hand: work dirs and git worktree "
    "entries that belong to no agent, unfinished creations, removals and snapshots, temporary files, tmux sessions "
    "without a record, locks, and refs of agents that no longer exist; and what `mngr destroy` could not delete. The "
    "same on every known host that answers, and there also old copies of mngr and of repositories that no agent needs; "
    "also hosts that mngr created and no longer knows, and known hosts that are gone. Work that exists only in such a "
    "work dir is saved first (`mngr saved`). Agents, and what another `mngr` is creating now, are left alone."
)
EXAMPLES = (
    ("mngr gc --dry-run", "list what would be removed"),
    ("mngr gc", "remove it"),
    ("mngr gc --saved --older-than 30d", "also remove saved work older than 30 days"),
)


RESULTS = [{"leftovers": [Leftover]}]


def add_arguments(parser: Parser) -> None:
    parser.option("--saved", "also delete saved work; requires `--older-than`")
    parser.option("--older-than TIME", "only saved work that is older than this", type=parse_duration)
    parser.option("--provider NAME ...", "only hosts of this provider")
    parser.add_dry_run()


def run(args: Args, app: App) -> int:
    if args.saved != (args.older_than is not None):
        have, lack = ("--saved", "--older-than") if args.saved else ("--older-than", "--saved")
        raise UsageError(f"`{have}` requires `{lack}`", hint="`mngr gc --saved --older-than 30d`")
    before = time.time() - args.older_than if args.saved else None
    found, only = [], args.provider
    hosts = app.fleet.hosts
    of_sites = host_verbs.collect(hosts, dry_run=args.dry_run, saved_before=before, only=only)
    for item in chain(of_sites, host_verbs.leftovers(hosts, dry_run=args.dry_run, only=only)):
        found.append(item)
        if app.out.human:
            app.out.line(_sentence(item))
            app.out.flush()
    failed = sum(item.action == FAILED for item in found)
    gone = sum(item.action not in (KEPT, FAILED) for item in found)
    if not gone:
        app.out.line("Nothing was removed" if found else "Nothing to remove")
    elif args.dry_run and app.out.human:
        app.out.note(f"would remove {amount(gone, 'leftover')}; `mngr gc` removes them")
    if not app.out.human:
        app.out.emit_rows(found, (), envelope={"leftovers": found}, known=Leftover._fields)
    if not failed:
        return 0
    return PARTIAL if failed < len(found) else EXIT_FAILED


def run_after(app: App) -> None:
    """Remove leftovers after another verb, whose result is printed already."""
    for item in app.fleet.gc():
        (app.out.warn if item.action == FAILED else app.out.note)(_sentence(item))


def _sentence(item: Leftover) -> str:
    action = "could not remove" if item.action == FAILED else item.action
    at = "" if item.host == "local" else f" on {item.host}"
    text = f"{action} {item.what} {item.name}{at}" + (f": {item.note}" if item.note else "")
    return text + (f"; saved: `mngr saved restore {item.saved}`" if item.saved else "")
