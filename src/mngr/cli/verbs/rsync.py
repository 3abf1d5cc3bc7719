"""`mngr rsync`: copy files between this machine and an agent, in either direction."""

from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.parser.parser import Args, Parser
from mngr.cli.verbs.pull import CopyResult, report_copy
from mngr.errors import UsageError

DESCRIPTION = (
    "Copy files and directories like rsync: one side is an agent or a path in its work dir, the other a local path. A "
    "word that begins with `/`, `./`, `../` or `~` is a path; any other word is an agent if one has that name. Files "
    "that the copy replaces are saved first, and no file is deleted."
)
EXAMPLES = (
    ("mngr rsync fix-login:report.html ./out/", "a file, from an agent"),
    ("mngr rsync ./samples fix-login:data", "a directory, to an agent"),
    ("mngr rsync fix-login ./copy --dry-run", "list what a copy of its whole work dir would write"),
)


RESULTS = [CopyResult]


def add_arguments(parser: Parser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="AGENT, AGENT:PATH or a local path")
    parser.add_argument("destination", metavar="DESTINATION", help="likewise; one of the two is an agent")
    parser.add_dry_run()
    parser.option("--[no-]start", "accepted for scripts; this machine is always on", default=True)


def run(args: Args, app: App) -> None:
    names = {name for agent in targets.listed(app) for name in (agent.name, agent.id)}
    pulled, pushed = _is_agent(args.source, names), _is_agent(args.destination, names)
    if pulled == pushed:
        what = "both are agents" if pulled else "neither is an agent"
        hint = "copy to a local directory first" if pulled else "`mngr list` shows the agents"
        raise UsageError(f"cannot copy `{args.source}` to `{args.destination}`: {what}", hint=hint)
    agent, path = app.fleet.find_path(args.source if pulled else args.destination)
    if pulled:
        copied = agent.pull_files(path or ".", args.destination, dry_run=args.dry_run)
    else:
        copied = agent.push_files(args.source, path or ".", dry_run=args.dry_run)
    report_copy(app, copied, args.dry_run)


def _is_agent(word: str, names: set[str]) -> bool:
    """Whether it names an agent and not a local path. If there is no such agent, the look-up raises."""
    if word.startswith(("/", "./", "../", "~")) or word in (".", ".."):
        return False
    return word in names or ":" in word or "@" in word
