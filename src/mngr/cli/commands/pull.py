"""`mngr pull`: bring an agent's commits or files here."""

import os

from mngr.actions import commits, copying
from mngr.actions.agent import Agent
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.cli.text import amount
from mngr.errors import UsageError
from mngr.names import parse_address

DESCRIPTION = (
    "Bring an agent's commits here as its branch: made, or moved forward, never merged in silence. With a path, "
    "`--files` or `--artifacts`, copy files instead; what they would replace is saved first."
)
EXAMPLES = (
    ("mngr pull fix-login", "its commits, as branch mngr/fix-login"),
    ("mngr pull fix-login --dry-run", "which commits, and what they change"),
    ("mngr pull fix-login --into current", "move the current branch forward to them"),
    ("mngr pull fix-login:report.html out/", "one file"),
    ("mngr pull fix-login --artifacts", "what it put into $MNGR_ARTIFACTS_DIR"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="AGENT[:PATH]", help="the agent, and a path in its work dir for files")
    parser.add_argument("dest", nargs="?", metavar="DEST", help="where files go (default: here)")
    parser.add_argument(
        "--into", choices=("branch", "current", "none"), default="branch", help="where commits go (default: branch)"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--files", action="store_true", help="all files of the work dir, not commits")
    which.add_argument("--artifacts", action="store_true", help="files of the agent's artifacts directory")
    parser.add_argument("--dry-run", action="store_true", help="say what would come, and change nothing")


def run(args: Args, app: App) -> int:
    address = parse_address(args.agent)
    agent = app.fleet.find(str(address._replace(path=None)))
    if args.artifacts:
        return report_copy(app, app.fleet.pull_artifacts(agent, args.dest, dry_run=args.dry_run), args.dry_run)
    if address.path is not None or args.files or agent.record.repo is None or _is_place(args.dest):
        copied = app.fleet.pull_files(agent, address.path or ".", args.dest, dry_run=args.dry_run)
        return report_copy(app, copied, args.dry_run)
    if args.dest is not None:
        raise UsageError(
            "a destination is for files; commits arrive as a branch",
            hint=f"`mngr pull {agent.name} --files {args.dest}`",
        )
    return _pull_commits(args, app, agent)


def _is_place(dest: str | None) -> bool:
    """Whether a destination can only mean a directory for files, and not a branch for commits."""
    return dest is not None and (dest.startswith((".", "/", "~")) or os.path.isdir(dest))


def report_copy(app: App, copied: copying.Copied, dry_run: bool) -> int:
    value = {
        **copied._asdict(),
        "files": list(copied.files),
        "saved": copied.saved.id if copied.saved else None,
        "dry_run": dry_run,
    }
    if dry_run:
        text = "\n".join(f"would copy {path}" for path in copied.files) or "nothing would change"
    else:
        text = (
            f"copied {amount(len(copied.files), 'file')} to {copied.target}"
            if copied.files
            else "nothing to copy: all is the same"
        )
    app.out.emit_object(value, human=text)
    if copied.saved:
        app.out.note(
            f"{amount(len(copied.saved.changed), 'replaced file')} saved: "
            f"`mngr saved restore {copied.saved.id} --to DIR` brings them back"
        )
    return 0


def _pull_commits(args: Args, app: App, agent: Agent) -> int:
    pulled = app.fleet.pull(agent, into=args.into, dry_run=args.dry_run)
    app.out.emit_object({**pulled._asdict(), "dry_run": args.dry_run}, human=_sentence(pulled, args))
    if args.dry_run and app.out.human and pulled.commits:
        app.out.raw(commits.summary(app.fleet, agent))
    if pulled.already_here and args.into == "branch" and pulled.commits:
        app.out.note(f"`mngr merge {agent.name}` brings it into the current branch")
    if pulled.uncommitted:
        files = amount(pulled.uncommitted, "uncommitted file")
        app.out.note(f"{files} stayed there: `mngr pull {agent.name} --files DIR` copies them")
    return 0


def _sentence(pulled: commits.Pulled, args: Args) -> str:
    what = amount(pulled.commits, "commit")
    if not pulled.commits:
        return f"{pulled.name} has no commits of its own"
    if args.dry_run:
        return f"would pull {what} of {pulled.name}"
    if args.into == "none":
        return f"{what} of {pulled.name} at refs/mngr/pulled/{pulled.name}"
    if args.into == "current":
        return f"moved {pulled.branch} forward to {pulled.commit[:10]}, with {what} of {pulled.name}"
    if pulled.already_here:
        return f"{what} of {pulled.name} already here: it works on branch {pulled.branch} of this repository"
    return f"{what} of {pulled.name} on branch {pulled.branch}" + ("" if pulled.new else ", all here already")
