"""`mngr help`: all verbs, one verb, or a topic."""

import os
from typing import Any

from mngr.cli import catalog, overview, plugin_verbs
from mngr.cli.app import App
from mngr.cli.dispatch import command_parser
from mngr.cli.output.table import Column
from mngr.cli.output.terminal import paint
from mngr.cli.parser.parser import Args, Parser
from mngr.errors import MngrError, UsageError
from mngr.named_tuples import NamedTuple
from mngr.names import suggest

# Help must work when a settings file does not.
READS_SETTINGS = False

EXAMPLES = (
    ("mngr help create", "options and examples of `mngr create`"),
    ("mngr help addresses", "how to name agents, hosts and paths"),
    ("mngr help --topics", "all topics"),
)


class HelpName(NamedTuple):
    name: str
    summary: str


def results() -> list[Any]:
    return [list[HelpName]]


def add_arguments(parser: Parser) -> None:
    parser.words("about", "VERB|TOPIC", "what to explain (default: all verbs)")
    only = parser.add_mutually_exclusive_group()
    only.option("--commands", "print the names of all verbs, one per line")
    only.option("--topics", "print the names of all topics, one per line")


def run(args: Args, app: App) -> int:
    if args.commands:
        entries = (*catalog.VERBS, *plugin_verbs.for_help(app.environ, app.overrides))
        return _names([HelpName(e.name, e.summary) for e in entries], app)
    if args.topics:
        return _names([HelpName(*topic) for topic in catalog.TOPICS], app)
    if not args.about:
        app.stdout.write(overview.full(app.out.colour, plugin_verbs.for_help(app.environ, app.overrides)))
        return 0
    return _explain(args.about, app)


def topic_text(name: str) -> str:
    """The text of a topic that the catalog knows."""
    path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "topics", f"{name}.txt")
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise MngrError(f"the help text of `{name}` is missing from this installation", hint="reinstall mngr") from None


def _explain(about: list[str], app: App) -> int:
    word, *parts = about
    word = {"address": "addresses", "addr": "addresses"}.get(word, word)
    entry = plugin_verbs.find(word, app.environ, app.overrides)
    if entry is not None:
        parser = command_parser(entry)
        for part in parts:
            if part not in parser.subcommands:
                hint = suggest(part, tuple(parser.subcommands), "one")
                raise UsageError(f"`{parser.prog}` has no subcommand `{part}`", hint=hint)
            parser = parser.subcommands[part]
        app.print_help(parser)
        return 0
    topics = [name for name, _ in catalog.TOPICS]
    if word not in topics or parts:
        asked = " ".join(about)
        known = suggest(asked, [*topics, *catalog.words()], "one")
        more = "`mngr help --topics` and `mngr help --commands` list all"
        raise UsageError(f"`{asked}` is neither a verb nor a topic", hint=f"{known}; {more}" if known else more)
    first, _, rest = topic_text(word).partition("\n")
    app.stdout.write(f"{paint(first, 'bold') if app.out.colour else first}\n{rest}")
    return 0


def _names(rows: list[HelpName], app: App) -> int:
    if app.out.human:
        app.out.line("\n".join(row.name for row in rows))
    else:
        app.out.emit_rows(rows, [Column("NAME", "name"), Column("SUMMARY", "summary")])
    return 0
