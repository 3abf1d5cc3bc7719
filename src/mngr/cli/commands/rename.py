"""`mngr rename`: another name for an agent."""

from mngr.actions import lifecycle
from mngr.cli.app import App
from mngr.cli.parser import Args, Parser

DESCRIPTION = (
    "Give an agent another name. Its branch, its work dir and the variables of its running process keep the old one."
)
EXAMPLES = (("mngr rename fix-login login", "from now on it is `login`"),)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="OLD", help="name, id or address")
    parser.add_argument("new", metavar="NEW", help="the new name")
    parser.add_argument("--dry-run", action="store_true", help="check only, and change nothing")


def run(args: Args, app: App) -> int:
    agent = app.fleet.find(args.agent)
    if args.dry_run:
        lifecycle.check_rename(app.fleet, agent.id, args.new)
    else:
        app.fleet.rename(agent, args.new)
    verb = "would rename" if args.dry_run else "renamed"
    app.out.emit_object(
        {"id": agent.id, "old": agent.name, "name": args.new, "dry_run": args.dry_run},
        human=f"{verb} {agent.name} to {args.new}",
    )
    return 0
