"""`mngr pull`: bring an agent's commits or files into the current repository or directory."""

import os

from mngr.actions.file_copy import Copied
from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.output import DryRun
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import UsageError
from mngr.fleet.agent import Agent
from mngr.named_tuples import NamedTuple
from mngr.transfer.commits import Pulled

DESCRIPTION = (
    "Bring an agent's commits into this repository as the agent's branch, which is created or fast-forwarded, never "
    "merged. With a path, `--files` or `--artifacts`, copy files instead; files that the copy replaces are saved first."
)
EXAMPLES = (
    ("mngr pull fix-login", "its commits, as branch mngr/fix-login"),
    ("mngr pull fix-login --dry-run", "list the commits and what they change"),
    ("mngr pull fix-login --into current", "fast-forward the current branch to them"),
    ("mngr pull fix-login:report.html out/", "one file"),
    ("mngr pull fix-login --artifacts", "the files in its $MNGR_ARTIFACTS_DIR"),
)


class CopyResult(NamedTuple):
    """`saved`: the id under which the replaced files are saved."""

    name: str
    source: str
    target: str
    files: tuple[str, ...]
    saved: str | None
    dry_run: bool


RESULTS = [(Pulled, DryRun), CopyResult]


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="AGENT[:PATH]", help="the agent; for files, with a path in its work dir")
    parser.add_argument("dest", nargs="?", metavar="DEST", help="where to copy files (default: current directory)")
    into = "update the agent's branch (default), the current branch, or none"
    parser.option("--into", into, choices=("branch", "current", "none"), default="branch")
    which = parser.add_mutually_exclusive_group()
    which.option("--files", "copy all files of the work dir instead of commits")
    which.option("--artifacts", "copy the files of the agent's artifacts directory")
    parser.add_dry_run()


def run(args: Args, app: App) -> None:
    agent, path = app.fleet.find_path(args.agent)
    if args.artifacts:
        report_copy(app, agent.pull_artifacts(args.dest, dry_run=args.dry_run), args.dry_run)
    elif path is not None or args.files or agent.record.workspace.repo is None or _is_place(args.dest):
        report_copy(app, agent.pull_files(path or ".", args.dest, dry_run=args.dry_run), args.dry_run)
    elif args.dest is not None:
        raise UsageError(
            "DEST is for files, and commits are pulled to a branch",
            hint=f"`mngr pull {agent.name} --files {args.dest}`",
        )
    else:
        _pull_commits(args, app, agent)


def _is_place(dest: str | None) -> bool:
    """Whether a destination can only be a directory for files."""
    return dest is not None and (dest.startswith((".", "/", "~")) or os.path.isdir(dest))


def report_copy(app: App, copied: Copied, dry_run: bool) -> None:
    saved = copied.saved
    if dry_run:
        text = "\n".join(f"would copy {path}" for path in copied.files) or "nothing would change"
    elif copied.files:
        text = f"copied {amount(len(copied.files), 'file')} to {copied.target}"
    else:
        text = "nothing to copy: all files are the same"
    result = CopyResult(copied.name, copied.source, copied.target, copied.files, saved.id if saved else None, dry_run)
    app.out.emit_object(result, human=text)
    for path in copied.repositories:
        app.out.note(f"not copied: `{path}`, since there is a repository at the target")
    if saved:
        files = amount(len(saved.changed), "replaced file")
        app.out.note(f"saved {files}: `mngr saved restore {saved.id} --to DIR` restores them")


def _pull_commits(args: Args, app: App, agent: Agent) -> None:
    pulled = agent.pull(into=args.into, dry_run=args.dry_run)
    app.out.emit_object({**pulled._asdict(), "dry_run": args.dry_run}, human=_sentence(pulled, args))
    if args.dry_run and app.out.human and pulled.commits:
        app.out.foreign(agent.summary())
    if pulled.already_here and args.into == "branch" and pulled.commits:
        app.out.note(f"`mngr merge {agent.name}` merges it into the current branch")
    if pulled.uncommitted:
        files = amount(pulled.uncommitted, "uncommitted file")
        app.out.note(f"not pulled: {files}; `mngr pull {agent.name} --files DIR` copies them")


def _sentence(pulled: Pulled, args: Args) -> str:
    what = amount(pulled.commits, "commit")
    if not pulled.commits:
        return f"{pulled.name} has no commits of its own"
    if args.dry_run:
        return f"would pull {what} of {pulled.name}"
    if args.into == "none":
        return f"fetched {what} of {pulled.name} to refs/mngr/pulled/{pulled.name}"
    if args.into == "current":
        return f"fast-forwarded {pulled.branch} to {pulled.commit[:10]}, with {what} of {pulled.name}"
    if pulled.already_here:
        return f"nothing to pull: {pulled.name} works on branch {pulled.branch} of this repository ({what})"
    return f"{what} of {pulled.name} on branch {pulled.branch}" + ("" if pulled.new else ", nothing new")
