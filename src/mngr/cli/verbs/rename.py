"""`mngr rename`: give an agent another name."""

from mngr.cli.app import App
from mngr.cli.parser.parser import Args, Parser
from mngr.named_tuples import NamedTuple

DESCRIPTION = "Rename an agent. Its branch, its work dir and the variables of its running process keep the old name."
EXAMPLES = (("mngr rename fix-login login", "`fix-login` is now called `login`"),)


class Renamed(NamedTuple):
    id: str
    old: str
    name: str
    dry_run: bool


RESULTS = [Renamed]


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="OLD", help="name, id or address")
    parser.add_argument("new", metavar="NEW", help="the new name")
    parser.add_dry_run()


def run(args: Args, app: App) -> None:
    agent = app.fleet.find(args.agent)
    if args.dry_run:
        agent.check_rename(args.new)
    else:
        agent.rename(args.new)
    verb = "would rename" if args.dry_run else "renamed"
    result = Renamed(agent.id, agent.name, args.new, args.dry_run)
    app.out.emit_object(result, human=f"{verb} {agent.name} to {args.new}")
