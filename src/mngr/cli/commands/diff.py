"""`mngr diff`: what an agent changed."""

from mngr.cli.app import App
from mngr.cli.parser import Args, Parser

DESCRIPTION = "Show everything an agent changed since it began: its commits, uncommitted and untracked files."
EXAMPLES = (
    ("mngr diff fix-login", "the whole change, as a patch"),
    ("mngr diff fix-login --stat", "files and how much"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="name, id or address")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--stat", action="store_true", help="files and how much changed in each")
    how.add_argument("--name-only", action="store_true", help="file names only")


def run(args: Args, app: App) -> int:
    agent = app.fleet.find(args.agent)
    options = [option for option, given in (("--stat", args.stat), ("--name-only", args.name_only)) if given]
    if app.out.colour:
        options.append("--color=always")
    data = app.fleet.diff(agent, *options)
    if app.out.human:
        app.out.raw(data)
    else:
        app.out.emit_object(
            {"name": agent.name, "base_commit": agent.record.base_commit, "diff": data.decode(errors="replace")}
        )
    return 0
