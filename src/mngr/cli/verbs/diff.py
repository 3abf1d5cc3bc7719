"""`mngr diff`: what an agent changed."""

from mngr.cli.app import App
from mngr.cli.parser.parser import Args, Parser
from mngr.named_tuples import NamedTuple

ONLY_LOOKS = True
DESCRIPTION = "Show everything an agent changed since it was created: commits, uncommitted changes and untracked files."
EXAMPLES = (
    ("mngr diff fix-login", "the whole change, as a patch"),
    ("mngr diff fix-login --stat", "changed lines per file"),
)


class Diff(NamedTuple):
    name: str
    base_commit: str | None
    diff: str


RESULTS = [Diff]


def add_arguments(parser: Parser) -> None:
    parser.add_agent()
    how = parser.add_mutually_exclusive_group()
    how.option("--stat", "number of changed lines per file")
    how.option("--name-only", "file names only")


def run(args: Args, app: App) -> None:
    agent = app.fleet.find(args.agent)
    options = [option for option, given in (("--stat", args.stat), ("--name-only", args.name_only)) if given]
    if app.out.colour:
        options.append("--color=always")
    if not app.out.human:  # a patch that can be applied, whatever the user's settings make of one on a terminal
        options += ["--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"]
    data = agent.diff(*options)
    if app.out.human:
        app.out.foreign(data)
    else:
        app.out.emit_object(Diff(agent.name, agent.record.workspace.base_commit, data.decode(errors="replace")))
