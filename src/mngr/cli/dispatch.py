"""From a verb to its module: build its parser, apply settings, run it. Prints only help."""

from __future__ import annotations

import os
import sys

from mngr import __version__
from mngr.cli.app import App
from mngr.cli.catalog import Verb
from mngr.cli.output.output import to_json
from mngr.cli.parser.parser import Args, Parser
from mngr.cli.parser.scan import Scan, bind, scan
from mngr.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run_command(entry: Verb, argv: list[str]) -> int:
    """Run the verb with its words. Errors after the first look at them are printed in the format that was asked for."""
    app = App(os.environ, sys.stdin, sys.stdout, sys.stderr)
    app.verb = entry.name
    app.plugin = entry.plugin
    try:
        return _run(entry, argv, app)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (the one handler reports all)
        from mngr.cli.output.failure import report

        return report(error, [entry.name, *argv], app)


def command_parser(entry: Verb) -> Parser:
    """The parser of a verb, complete with the options that every verb has."""
    return _parser(entry, _module(entry))


def _run(entry: Verb, argv: list[str], app: App) -> int:
    module = _module(entry)
    parser = _parser(entry, module)
    found = scan(parser, argv)
    if found.asked == "help":
        app.print_help(found.parser)
        return 0
    if found.asked == "version":
        app.stdout.write(f"mngr {__version__}\n")
        return 0
    if found.asked == "schema":
        return _print_schema(entry, app)
    args = _bind(module, parser, found, app)
    return int(module.run(args, app) or 0)


def _bind(module: Any, parser: Parser, found: Scan, app: App) -> Args:
    """The final values: settings give defaults, the command line wins. Defaults of an untrusted repository count only
    after the user's word, which is asked for unless the command line says something else for all of them. A verb that
    only looks goes on without them: a clone could make `list` useless."""
    app.parser = parser
    app.overrides = [
        *found.values("setting"),
        *(f"plugins.{name}.enabled=true" for name in found.values("enable_plugin")),
        *(f"plugins.{name}.enabled=false" for name in found.values("disable_plugin")),
    ]
    section = ("commands", app.verb)
    reads = getattr(module, "READS_SETTINGS", True)
    if reads and (table := app.settings.trusted_only.table(section)):
        from mngr.cli.parser.defaults import set_defaults

        set_defaults(parser, table, ".".join(section))
    args = bind(found)
    app.configure(args)
    if reads and (untrusted := app.settings.untrusted_keys(section)):
        from mngr.cli.parser.defaults import set_defaults, untyped

        if not untyped(parser, args, [key[2] for key in untrusted]):
            pass
        elif getattr(module, "ONLY_LOOKS", False):
            from mngr.cli import trust_prompt

            trust_prompt.tell_withheld(app, section)
        else:
            set_defaults(parser, app.settings.table(section), ".".join(section))
            args = bind(found)
    for note in found.notes:
        app.out.note(note)
    return args


def _parser(entry: Verb, module: Any) -> Parser:
    parser = Parser(
        f"mngr {entry.name}",
        summary=entry.summary,
        description=getattr(module, "DESCRIPTION", ""),
        examples=getattr(module, "EXAMPLES", ()),
        aliases=entry.aliases,
    )
    module.add_arguments(parser)
    parser.add_everywhere_options()
    return parser


def _print_schema(entry: Verb, app: App) -> int:
    from mngr.cli.output.schemas import schema

    found = schema(entry)
    if found is None:
        raise UsageError(f"`mngr {entry.name}` prints no JSON", hint="see `mngr help formats`")
    app.stdout.write(to_json(found, indent=True) + "\n")
    return 0


def _module(entry: Verb) -> Any:
    """The verb's module; by the builtin, since importing `importlib` costs a millisecond."""
    __import__(entry.module)
    return sys.modules[entry.module]
