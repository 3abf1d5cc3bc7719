"""`mngr push`: send commits or files to an agent."""

from mngr.cli.app import App
from mngr.cli.output.amounts import amount
from mngr.cli.parser.parser import Args, Parser
from mngr.cli.verbs.pull import CopyResult, report_copy
from mngr.errors import UsageError
from mngr.named_tuples import NamedTuple

DESCRIPTION = (
    "Fast-forward an agent's branch to your current commit. With a path, copy a file or directory into the agent's "
    "work dir instead; files that the copy replaces are saved first."
)
EXAMPLES = (
    ("mngr push fix-login", "the commits of the current branch"),
    ("mngr push fix-login --from main", "the commits of another branch"),
    ("mngr push fix-login:data/ samples/", "a directory"),
)


class Pushed(NamedTuple):
    name: str
    commit: str
    commits: int
    dry_run: bool


RESULTS = [Pushed, CopyResult]


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="AGENT[:PATH]", help="the agent; for files, with a path in its work dir")
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="file or directory to copy")
    parser.option("--from BRANCH", "branch or commit to push (default: HEAD)", dest="revision", default="HEAD")
    parser.add_dry_run()


def run(args: Args, app: App) -> None:
    agent, path = app.fleet.find_path(args.agent)
    if args.source is not None or path is not None:
        if args.source is None:
            raise UsageError("SOURCE is missing", hint="`mngr push AGENT:PATH SOURCE`")
        report_copy(app, agent.push_files(args.source, path or ".", dry_run=args.dry_run), args.dry_run)
        return
    commit, count = agent.push(args.revision, dry_run=args.dry_run)
    verb = "would push" if args.dry_run else "pushed"
    text = f"{verb} {amount(count, 'commit')} to {agent.name}, now at {commit[:10]}"
    app.out.emit_object(
        Pushed(agent.name, commit, count, args.dry_run),
        human=text if count else f"{agent.name} already has all commits",
    )
