"""`mngr merge`: bring an agent's work into the current branch."""

from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.output.output import DryRun
from mngr.cli.parser.parser import Args, Parser
from mngr.transfer.merge import Merged

DESCRIPTION = (
    "Merge an agent's commits into the current branch. Conflicts are detected first: if there is one, nothing changes."
)
EXAMPLES = (
    ("mngr merge fix-login", "its commits, with a merge commit if needed"),
    ("mngr merge fix-login --squash -m 'Fix the login'", "as one commit"),
)


RESULTS = [(Merged, DryRun)]


def add_arguments(parser: Parser) -> None:
    parser.add_agent()
    parser.option("--squash", "merge as one commit")
    parser.option("--message, -m TEXT", "message of the commit")
    parser.add_dry_run()


def run(args: Args, app: App) -> None:
    agent = app.fleet.find(args.agent)
    merged = agent.merge(squash=args.squash, message=args.message, dry_run=args.dry_run)
    verb = "would merge" if args.dry_run else "merged"
    text = f"{verb} {amount(merged.commits, 'commit')} of {merged.name} into {merged.into}"
    app.out.emit_object(
        {**merged._asdict(), "dry_run": args.dry_run},
        human=text if merged.commits else f"{merged.into} already has all commits of {merged.name}",
    )
    if merged.uncommitted:
        files = amount(merged.uncommitted, "uncommitted file")
        app.out.note(f"not merged: {files} of {merged.name}; see `mngr diff {merged.name}`")
