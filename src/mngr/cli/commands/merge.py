"""`mngr merge`: an agent's work into the current branch."""

from mngr.cli.app import App
from mngr.cli.parser import Args, Parser
from mngr.cli.text import amount

DESCRIPTION = (
    "Merge an agent's commits into the branch checked out here. A conflict is found before anything is touched."
)
EXAMPLES = (
    ("mngr merge fix-login", "its commits, with a merge commit where needed"),
    ("mngr merge fix-login --squash -m 'Fix the login'", "as one commit"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="name, id or address")
    parser.add_argument("--squash", action="store_true", help="as one commit")
    parser.add_argument("--message", "-m", metavar="TEXT", help="the commit's message")
    parser.add_argument("--dry-run", action="store_true", help="say what would be merged, and change nothing")


def run(args: Args, app: App) -> int:
    agent = app.fleet.find(args.agent)
    merged = app.fleet.merge(agent, squash=args.squash, message=args.message, dry_run=args.dry_run)
    verb = "would merge" if args.dry_run else "merged"
    text = f"{verb} {amount(merged.commits, 'commit')} of {merged.name} into {merged.into}"
    app.out.emit_object(
        {**merged._asdict(), "dry_run": args.dry_run},
        human=text if merged.commits else f"{merged.into} has all of {merged.name} already",
    )
    if merged.uncommitted:
        app.out.note(f"{amount(merged.uncommitted, 'uncommitted file')} stayed there; look: `mngr diff {merged.name}`")
    return 0
