"""One verb's command line: declared with argparse, read by our own rules, so that options and names mix freely and
every mistake names what was meant. Prints nothing."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from mngr.cli import overview
from mngr.cli.binding import GIVEN, bind
from mngr.cli.scan import Scan, Scanner
from mngr.errors import UsageError
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, NoReturn

    from mngr.config import Value


class BooleanPair(argparse.Action):
    """`--connect` and `--no-connect` as one option. `negative` names the other side when it is not `--no-...`."""

    def __init__(
        self,
        option_strings: Sequence[str],
        dest: str,
        negative: Sequence[str] = (),
        **more: Any,
    ) -> None:
        self.positive = tuple(option_strings)
        self.negative = tuple(negative) or tuple(f"--no-{o[2:]}" for o in option_strings if o.startswith("--"))
        super().__init__([*self.positive, *self.negative], dest, nargs=0, **more)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, option_string not in self.negative)


class _Formatter(argparse.HelpFormatter):
    """A fixed width: argparse makes one for every option it adds, and would ask the terminal each time."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)


class Parser(argparse.ArgumentParser):
    """The command line of one verb. Declare with `add_argument`, `add_rest` and `add_subcommand`."""

    def __init__(
        self,
        prog: str,
        *,
        summary: str = "",
        description: str = "",
        examples: Sequence[tuple[str, str]] = (),
        aliases: Sequence[str] = (),
    ) -> None:
        super().__init__(prog, description=description, add_help=False, allow_abbrev=False, formatter_class=_Formatter)
        self.summary = summary
        self.examples = tuple(examples)
        self.aliases = tuple(aliases)
        self.rest: tuple[str, str] | None = None
        self.subcommands: dict[str, Parser] = {}
        self.default_subcommand: str | None = None
        self.everywhere: set[str] = set()
        self._parent: Parser | None = None

    def add_rest(self, metavar: str = "ARGS", text: str = "") -> None:
        """Declare that everything after `--` goes untouched to `args.rest`. `text` is its help."""
        self.rest = (metavar, text)

    def add_subcommand(
        self,
        name: str,
        summary: str,
        *,
        description: str = "",
        examples: Sequence[tuple[str, str]] = (),
        default: bool = False,
    ) -> Parser:
        """Declare `mngr VERB NAME ...`; `args.subcommand` says which was typed. The verb's own options work on both
        sides of the name. `default` is the one meant when none is named."""
        child = Parser(f"{self.prog} {name}", summary=summary, description=description, examples=examples)
        child._parent = self
        self.subcommands[name] = child
        if default:
            self.default_subcommand = name
        return child

    def add_everywhere_options(self) -> None:
        """Add the options that every verb has. Called once, after the verb's own."""
        for names, metavar, text in overview.OPTIONS:
            options = names.split(", ")
            dest = options[-1].removeprefix("--")
            kind: dict[str, Any] = {"action": "store_true"}
            if dest == "format":
                kind = {"metavar": metavar, "default": "human"}
            elif dest == "setting":
                kind = {"metavar": metavar, "action": "append"}
            elif dest == "verbose":
                kind = {"action": "count", "default": 0}
            self.add_argument(*options, dest=dest, help=text, **kind)
            self.everywhere.add(dest)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"`{self.prog} --help` shows what it takes")

    def usage_line(self) -> str:
        from mngr.cli.helptext import usage_line

        return usage_line(self)

    def help_text(self, columns: int = 80, colour: bool = False) -> str:
        from mngr.cli.helptext import help_text

        return help_text(self, columns, colour)

    def format_help(self) -> str:
        return self.help_text()

    def own_actions(self) -> list[argparse.Action]:
        return list(self._actions)

    def chain(self) -> list[Parser]:
        """This parser and those above it, the nearest first."""
        return [self] if self._parent is None else [self, *self._parent.chain()]

    def family(self) -> list[Parser]:
        """This parser and all of its subcommands."""
        return [self, *(member for child in self.subcommands.values() for member in child.family())]

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Read a whole command line. `--help` and `--version` are only flags here."""
        return self.bind(self.scan(argv))

    def scan(self, argv: Sequence[str]) -> Scan:
        """Take the words apart. Stops at `--help` and `--version`; raises for an option that does not exist."""
        return Scanner(self, argv).scan()

    def bind(self, scan: Scan) -> argparse.Namespace:
        """Check and convert the values, and fill in the defaults."""
        return bind(scan)


def given(args: argparse.Namespace) -> frozenset[str]:
    """The names of the values that were really typed."""
    found: frozenset[str] = getattr(args, GIVEN, frozenset())
    return found


def apply_settings(parser: Parser, table: Mapping[str, Value], section: str) -> None:
    """Make settings the defaults of the options. A key or value that does not fit is an error naming its source."""
    if table:
        from mngr.cli.defaults import set_defaults

        set_defaults(parser, table, section)


def apply_template(parser: Parser, args: argparse.Namespace, table: Mapping[str, Value], section: str) -> None:
    """Overwrite in `args` what was not typed, with the same checks: settings < template < command line."""
    if table:
        from mngr.cli.defaults import overwrite

        overwrite(parser, args, table, section)
