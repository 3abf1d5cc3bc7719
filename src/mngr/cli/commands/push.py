"""`mngr push`: send commits or files to an agent."""

from mngr.cli.app import App
from mngr.cli.commands.pull import report_copy
from mngr.cli.parser import Args, Parser
from mngr.cli.text import amount
from mngr.errors import UsageError
from mngr.names import parse_address

DESCRIPTION = (
    "Move an agent's branch forward to your current commit. With a path, copy a file or directory into its work dir; "
    "what that would replace is saved first."
)
EXAMPLES = (
    ("mngr push fix-login", "the commits of the current branch"),
    ("mngr push fix-login --from main", "of another branch"),
    ("mngr push fix-login:data/ samples/", "a directory"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="AGENT[:PATH]", help="the agent, and a path in its work dir for files")
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="a file or directory to copy")
    parser.add_argument(
        "--from", dest="revision", default="HEAD", metavar="BRANCH", help="the commit to move to (default: HEAD)"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would go, and change nothing")


def run(args: Args, app: App) -> int:
    address = parse_address(args.agent)
    agent = app.fleet.find(str(address._replace(path=None)))
    if args.source is not None or address.path is not None:
        if args.source is None:
            raise UsageError("what to copy is missing", hint="`mngr push AGENT:PATH SOURCE`")
        return report_copy(
            app, app.fleet.push_files(agent, args.source, address.path or ".", dry_run=args.dry_run), args.dry_run
        )
    commit, count = app.fleet.push(agent, args.revision, dry_run=args.dry_run)
    verb = "would push" if args.dry_run else "pushed"
    text = (
        f"{verb} {amount(count, 'commit')} to {agent.name}, now at {commit[:10]}"
        if count
        else f"{agent.name} has all of it already"
    )
    app.out.emit_object({"name": agent.name, "commit": commit, "commits": count, "dry_run": args.dry_run}, human=text)
    return 0
