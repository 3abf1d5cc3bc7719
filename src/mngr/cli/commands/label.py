"""`mngr label`: set or remove labels."""

from mngr.actions.agent import Agent
from mngr.agents.record import Record
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.inputs import parse_label
from mngr.cli.parser import Args, Parser
from mngr.errors import UsageError

DESCRIPTION = "Set labels with `KEY=VALUE`, remove them with `--remove KEY`, show them with neither."
EXAMPLES = (
    ("mngr label fix-login team=backend urgent=yes", "set two"),
    ("mngr label fix-login --remove urgent", "remove one"),
    ("mngr label fix-login", "show them"),
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="AGENT... [KEY=VALUE...]",
        help="agents (`-` reads them from stdin), then labels to set",
    )
    targets.add_filters(parser)
    parser.add_argument("--label", "-l", action="append", metavar="KEY=VALUE", help="set this label (can be repeated)")
    parser.add_argument("--remove", action="append", metavar="KEY", help="remove this label (can be repeated)")
    parser.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")


def run(args: Args, app: App) -> int:
    args.agents = [word for word in args.words if "=" not in word]
    labels = dict(parse_label(word) for word in (*args.words, *args.label) if "=" in word or word in args.label)
    if "project" in args.remove:
        raise UsageError("every agent has a project", hint="`mngr label AGENT project=NAME` changes it")
    agents = targets.resolve(args, app)

    def act(agent: Agent) -> Record:
        if args.dry_run or not (labels or args.remove):
            kept = {key: value for key, value in {**agent.record.labels, **labels}.items() if key not in args.remove}
            return agent.record._replace(labels=kept)
        return app.fleet.label(agent, labels, args.remove).record

    def shown(record: Record) -> dict[str, str]:
        return {**record.labels, **({"project": record.project} if "project" in labels and not args.dry_run else {})}

    def say(agent: Agent, record: Record) -> str:
        return f"{agent.name}: " + (" ".join(f"{key}={value}" for key, value in shown(record).items()) or "no labels")

    return targets.finish(
        app,
        agents,
        act,
        lambda agent, record: {"labels": shown(record), "dry_run": args.dry_run},
        say,
    )
