"""`mngr rsync`: copy files between this machine and an agent, in either direction."""

from mngr.cli.app import App
from mngr.cli.parser.parser import Args, Parser
from mngr.cli.verbs.pull import CopyResult, report_copy
from mngr.errors import UsageError
from mngr.names import Address, parse_address

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
    names = {name for agent in app.fleet.list().agents for name in (agent.name, agent.id)}
    source, destination = _agent(args.source, names), _agent(args.destination, names)
    if (source is None) == (destination is None):
        what = "neither is an agent" if source is None else "both are agents"
        hint = "`mngr list` shows the agents" if source is None else "copy to a local directory first"
        raise UsageError(f"cannot copy `{args.source}` to `{args.destination}`: {what}", hint=hint)
    address = source or destination
    assert address is not None
    agent, path = app.fleet.find(str(address._replace(path=None))), address.path or "."
    if address is source:
        copied = agent.pull_files(path, args.destination, dry_run=args.dry_run)
    else:
        copied = agent.push_files(args.source, path, dry_run=args.dry_run)
    report_copy(app, copied, args.dry_run)


def _agent(word: str, names: set[str]) -> Address | None:
    """The address of an agent, or None for a local path."""
    if word.startswith(("/", "./", "../", "~")) or word in (".", ".."):
        return None
    is_agent = word in names or ":" in word or "@" in word  # if there is no such agent, the look-up raises
    return parse_address(word) if is_agent else None
