"""`mngr git`: move an agent's commits as `git pull` and `git push` would."""

from mngr.cli.app import App
from mngr.cli.commands import merge, push
from mngr.cli.parser import Args, BooleanPair, Parser
from mngr.errors import UsageError
from mngr.names import parse_address

DESCRIPTION = (
    "`mngr git pull` merges an agent's commits into the current branch, as `mngr merge` does; `mngr git push` moves "
    "its branch forward to your commits, as `mngr push` does."
)
EXAMPLES = (
    ("mngr git pull fix-login", "its commits, into the current branch"),
    ("mngr git push fix-login --source-branch main", "the commits of main, to the agent"),
)


def add_arguments(parser: Parser) -> None:
    pull = parser.add_subcommand("pull", "Merge an agent's commits into the current branch")
    send = parser.add_subcommand("push", "Move an agent's branch forward to your commits")
    send.add_argument(
        "--source-branch", default="HEAD", metavar="BRANCH", help="the branch to push (default: the current one)"
    )
    for part in (pull, send):
        part.add_argument("agent", metavar="AGENT", help="name, id or address")
        part.add_argument("--dry-run", action="store_true", help="show what would be moved, without moving it")
        part.add_argument(
            "--start", action=BooleanPair, default=True, help="for scripts: start a host that is off; this one is on"
        )


def run(args: Args, app: App) -> int:
    if parse_address(args.agent).path is not None:
        raise UsageError("commits have no path", hint="files do: `mngr rsync AGENT:PATH DIRECTORY`")
    if args.subcommand == "pull":
        args.squash, args.message = False, None
        return merge.run(args, app)
    args.source, args.revision = None, args.source_branch
    return push.run(args, app)
