"""`mngr label`: set, remove and show labels."""

from __future__ import annotations

from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.parser.option_values import parse_label
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import UsageError
from mngr.fleet.agent import Agent
from mngr.named_tuples import NamedTuple

DESCRIPTION = "Set labels with `KEY=VALUE`, remove them with `--remove KEY`. With neither, show them."
EXAMPLES = (
    ("mngr label fix-login team=backend urgent=yes", "set two labels"),
    ("mngr label fix-login --remove urgent", "remove one"),
    ("mngr label fix-login", "show them"),
)


class Labels(NamedTuple):
    labels: dict[str, str]
    dry_run: bool


RESULTS = targets.results(Labels)


def add_arguments(parser: Parser) -> None:
    parser.words("words", "AGENT... [KEY=VALUE...]", "agents (`-` reads them from stdin), then labels to set")
    targets.add_filters(parser)
    parser.option("--label, -l KEY=VALUE ...", "set this label")
    parser.option("--remove KEY ...", "remove this label")
    parser.add_dry_run()


def run(args: Args, app: App) -> int:
    args.agents = [word for word in args.words if "=" not in word]
    labels = dict(parse_label(word) for word in (*args.words, *args.label) if "=" in word or word in args.label)
    if "project" in args.remove:
        raise UsageError("an agent's project cannot be removed", hint="change it: `mngr label AGENT project=NAME`")

    def act(agent: Agent) -> targets.Done:
        if args.dry_run or not (labels or args.remove):
            found = {
                key: value for key, value in {**agent.record.spec.labels, **labels}.items() if key not in args.remove
            }
        else:
            record = agent.label(labels, args.remove).record
            found = {**record.spec.labels, **({"project": record.spec.project} if "project" in labels else {})}
        text = " ".join(f"{key}={value}" for key, value in found.items())
        return Labels(found, args.dry_run), f"{agent.name}: {text or 'no labels'}"

    return targets.finish(app, targets.resolve(args, app), act)
