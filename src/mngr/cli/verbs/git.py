"""`mngr git`: move an agent's commits as `git pull` and `git push` would."""

from mngr.cli.app import App
from mngr.cli.parser.parser import Args, Parser
from mngr.cli.verbs import merge, push
from mngr.errors import UsageError

DESCRIPTION = (
    "`mngr git pull` merges an agent's commits into the current branch, like `mngr merge`. `mngr git push` "
    "fast-forwards the agent's branch to your commits, like `mngr push`."
)
EXAMPLES = (
    ("mngr git pull fix-login", "merge its commits into the current branch"),
    ("mngr git push fix-login --source-branch main", "send the commits of main to the agent"),
)


RESULTS = [*merge.RESULTS, push.Pushed]


def add_arguments(parser: Parser) -> None:
    pull = parser.add_subcommand("pull", "Merge an agent's commits into the current branch")
    send = parser.add_subcommand("push", "Fast-forward an agent's branch to your commits")
    send.option("--source-branch BRANCH", "branch to push (default: the current branch)", default="HEAD")
    for part in (pull, send):
        part.add_agent()
        part.add_dry_run()
        part.option("--[no-]start", "accepted for scripts; this machine is always on", default=True)


def run(args: Args, app: App) -> None:
    if ":" in args.agent:
        raise UsageError(
            "`mngr git` moves commits and takes no path", hint="copy files: `mngr rsync AGENT:PATH DIRECTORY`"
        )
    if args.subcommand == "pull":
        args.squash, args.message = False, None
        merge.run(args, app)
    else:
        args.source, args.revision = None, args.source_branch
        push.run(args, app)
