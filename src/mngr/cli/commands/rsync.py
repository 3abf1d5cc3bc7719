"""`mngr rsync`: copy files between here and an agent, with the agent on either side."""

from mngr.cli.app import App
from mngr.cli.commands.pull import report_copy
from mngr.cli.parser import Args, BooleanPair, Parser
from mngr.errors import UsageError
from mngr.names import Address, parse_address

DESCRIPTION = (
    "Copy files and directories like rsync: one side is an agent or a path in its work dir, the other a path here. A "
    "word that begins with `/`, `./`, `../` or `~` is a path; any other is an agent if there is one of that name. What "
    "would be replaced is saved first, and nothing is deleted."
)
EXAMPLES = (
    ("mngr rsync fix-login:report.html ./out/", "a file of an agent, to here"),
    ("mngr rsync ./samples fix-login:data", "a directory, to an agent"),
    ("mngr rsync fix-login ./copy --dry-run", "what a copy of its whole work dir would write"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="AGENT, AGENT:PATH, or a path here")
    parser.add_argument("destination", metavar="DESTINATION", help="the same, and the other of the two")
    parser.add_argument("--dry-run", action="store_true", help="show what would be copied, without copying it")
    parser.add_argument(
        "--start", action=BooleanPair, default=True, help="for scripts: start a host that is off; this one is on"
    )


def run(args: Args, app: App) -> int:
    names = {name for agent in app.fleet.list().agents for name in (agent.name, agent.id)}
    source, destination = _agent(args.source, names), _agent(args.destination, names)
    if (source is None) == (destination is None):
        what = "neither is an agent" if source is None else "both are agents"
        hint = "`mngr list` shows the agents" if source is None else "copy to a directory here first"
        raise UsageError(f"`{args.source}` and `{args.destination}`: {what}, and exactly one has to be", hint=hint)
    if source is not None:
        agent = app.fleet.find(str(source._replace(path=None)))
        copied = app.fleet.pull_files(agent, source.path or ".", args.destination, dry_run=args.dry_run)
    else:
        assert destination is not None
        agent = app.fleet.find(str(destination._replace(path=None)))
        copied = app.fleet.push_files(agent, args.source, destination.path or ".", dry_run=args.dry_run)
    return report_copy(app, copied, args.dry_run)


def _agent(word: str, names: set[str]) -> Address | None:
    """The address of an agent, or None for a path here."""
    if word.startswith(("/", "./", "../", "~")) or word in (".", ".."):
        return None
    if word.partition(":")[0].partition("@")[0] in names:
        return parse_address(word)
    if ":" in word or "@" in word:
        return parse_address(word)  # nobody of that name: the error of the look-up says so
    return None
