"""One verb's command line: options and names mix freely, and every mistake names what was meant. Prints nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from mngr.cli import overview
from mngr.cli.binding import GIVEN, bind
from mngr.cli.options import APPEND, COUNT, FLAG, STORE, Args, BooleanPair, Option, OptionTable
from mngr.cli.scan import Scan, Scanner
from mngr.errors import UsageError

if TYPE_CHECKING:
    from mngr.config import Value

__all__ = ["Args", "BooleanPair", "Option", "Parser", "apply_settings", "apply_template", "given"]


class Parser(OptionTable):
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
        super().__init__()
        self.prog = prog
        self.summary = summary
        self.description = description
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

    def add_agent(self) -> None:
        self.add_argument("agent", metavar="AGENT", help="name, id or address")

    def add_dry_run(self) -> None:
        self.option("--dry-run", "show what would happen, without changing anything")

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
            how = {"format": STORE, "setting": APPEND, "verbose": COUNT}.get(dest, FLAG)
            default = {"format": "human", "verbose": 0}.get(dest)
            self.add_argument(*options, dest=dest, action=how, metavar=metavar, default=default, help=text)
            self.everywhere.add(dest)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"`{self.prog} --help` shows what it takes")

    def usage_line(self) -> str:
        from mngr.cli.helptext import usage_line

        return usage_line(self)

    def help_text(self, columns: int = 80, colour: bool = False) -> str:
        from mngr.cli.helptext import help_text

        return help_text(self, columns, colour)

    def chain(self) -> list[Parser]:
        """This parser and those above it, the nearest first."""
        return [self] if self._parent is None else [self, *self._parent.chain()]

    def family(self) -> list[Parser]:
        """This parser and all of its subcommands."""
        return [self, *(member for child in self.subcommands.values() for member in child.family())]

    def parse(self, argv: Sequence[str]) -> Args:
        """Read a whole command line. `--help` and `--version` are only flags here."""
        return self.bind(self.scan(argv))

    def scan(self, argv: Sequence[str]) -> Scan:
        """Take the words apart. Stops at `--help` and `--version`; raises for an option that does not exist."""
        return Scanner(self, argv).scan()

    def bind(self, scan: Scan) -> Args:
        """Check and convert the values, and fill in the defaults."""
        return bind(scan)


def given(args: Args) -> frozenset[str]:
    """The names of the values that were really typed."""
    found: frozenset[str] = getattr(args, GIVEN, frozenset())
    return found


def apply_settings(parser: Parser, table: Mapping[str, Value], section: str) -> None:
    """Make settings the defaults of the options. A key or value that does not fit is an error naming its source."""
    if table:
        from mngr.cli.defaults import set_defaults

        set_defaults(parser, table, section)


def apply_template(parser: Parser, args: Args, table: Mapping[str, Value], section: str) -> None:
    """Overwrite in `args` what was not typed, with the same checks: settings < template < command line."""
    if table:
        from mngr.cli.defaults import overwrite

        overwrite(parser, args, table, section)
