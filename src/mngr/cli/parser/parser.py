"""One verb's command line: its options, arguments and parts, declared once for reading, settings and help."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mngr.cli import catalog
from mngr.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

# How an option stores what it was given: as it is, True, in a list, or `--x` and `--no-x` as one.
STORE, FLAG, APPEND, COUNT, PAIR = "store", "store_true", "append", "count", "pair"
GIVEN = "_given"


class Args:
    """The values of one command line, by name."""

    rest: list[str]
    subcommand: str

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


class Option:
    """One option, or one positional argument when it has no dash. `nargs` is 0 for flags, None for one value. One whose
    help is None is not shown.

    `safe` says which values a repository may set that its user has not trusted: none, all (True), or these. No such
    value runs a program, names a file, passes on a variable, spends money, answers a question for the user, chooses one
    of the user's templates or how the code is copied, loosens a limit, hides an agent, or lets the verb never end."""

    __slots__ = (
        *("choices", "default", "dest", "help", "hidden", "how", "metavar", "names", "nargs", "negative", "safe"),
        "type",
    )

    def __init__(
        self,
        *names: str,
        action: str = STORE,
        dest: str = "",
        nargs: str | int | None = None,
        metavar: str | None = None,
        help: str | None = "",
        default: Any = None,
        type: Callable[[str], Any] | None = None,
        choices: Sequence[str] | None = None,
        negative: Sequence[str] = (),
        safe: bool | Sequence[object] = False,
    ) -> None:
        positional = not names[0].startswith("-")
        long = next((name for name in names if name.startswith("--")), names[0])
        self.names: tuple[str, ...] = () if positional else names
        self.dest = dest or long.lstrip("-").replace("-", "_")
        self.how = action
        self.nargs = 0 if action in (FLAG, COUNT, PAIR) else nargs
        self.metavar = metavar
        repeated = " (can be repeated)" if help and action == APPEND and "repeated" not in help else ""
        self.help = (help or "") + repeated
        self.hidden = help is None
        self.type = type
        self.choices = choices
        self.safe = safe
        self.default: Any = False if action == FLAG and default is None else default
        self.negative: tuple[str, ...] = ()
        if action == PAIR:
            self.negative = tuple(negative) or tuple(f"--no-{name[2:]}" for name in names if name.startswith("--"))

    @property
    def repeatable(self) -> bool:
        return self.how == APPEND

    @property
    def spellings(self) -> tuple[str, ...]:
        """Everything a person may type for it."""
        return (*self.names, *self.negative)

    @property
    def shown_name(self) -> str:
        """What its value is called in help and errors."""
        return self.metavar or self.dest.replace("_", "-").upper()

    def starting_value(self) -> Any:
        """Its value when it was not typed; a new list each time."""
        return list(self.default or ()) if self.repeatable or self.nargs in ("*", "+") else self.default


class Group:
    """Options under one title in the help; exclusive ones cannot be typed together. All are also its `parent`'s."""

    def __init__(self, title: str = "", *, exclusive: bool = False, parent: Group | None = None) -> None:
        self.title = title
        self.exclusive = exclusive
        self.parent = parent
        self.options: list[Option] = []
        self.by_name: dict[str, Option] = {}

    def add_argument(self, *names: str, **facts: Any) -> Option:
        """Declare an argument, or an option, as `argparse` does."""
        return self._declare(Option(*names, **facts))

    def words(self, dest: str, metavar: str, help: str) -> Option:
        """Declare an argument that takes any number of words."""
        return self._declare(Option(dest, nargs="*", metavar=metavar, help=help))

    def option(self, form: str, help: str | None, **facts: Any) -> Option:
        """Declare an option in the form that the help shows: `--all, -a`, `--name, -n NAME`, `--env KEY=VALUE ...` (can
        be repeated), `--[no-]connect`, `--with / --without`."""
        form, _, negative = form.partition(" / ")
        *names, last = form.replace("--[no-]", "--").split(", ")
        last, _, metavar = last.partition(" ")
        if negative or "--[no-]" in form:
            facts.update(action=PAIR, negative=negative.split(", ") if negative else ())
        elif metavar.endswith("..."):
            facts.update(action=APPEND, metavar=metavar.removesuffix("...").rstrip() or None)
        elif metavar or "choices" in facts:
            facts.update(metavar=metavar or None)
        else:
            facts.update(action=FLAG)
        return self._declare(Option(*names, last, help=help, **facts))

    def _declare(self, option: Option) -> Option:
        for name in option.spellings:
            if name in self.by_name:
                raise ValueError(f"option {name} is declared twice")
            self.by_name[name] = option
        self.options.append(option)
        if self.parent is not None:
            self.parent._declare(option)
        return option


class Parser(Group):
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
        self.groups: list[Group] = []
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

    def add_argument_group(self, title: str) -> Group:
        self.groups.append(Group(title, parent=self))
        return self.groups[-1]

    def add_mutually_exclusive_group(self) -> Group:
        self.groups.append(Group(exclusive=True, parent=self))
        return self.groups[-1]

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
        for names, metavar, text in catalog.OPTIONS:
            options = names.split(", ")
            dest = options[-1].removeprefix("--")
            how = {"format": STORE, "setting": APPEND, "verbose": COUNT}.get(dest, FLAG)
            default = {"format": "human", "verbose": 0}.get(dest)
            safe = {"format": ("human", "json", "jsonl"), "verbose": True}.get(dest, False)
            self.add_argument(*options, dest=dest, action=how, metavar=metavar, default=default, help=text, safe=safe)
            self.everywhere.add(dest)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"`{self.prog} --help` shows what it takes")

    def help_text(self, columns: int = 80, colour: bool = False) -> str:
        from mngr.cli.parser.helptext import help_text

        return help_text(self, columns, colour)

    def chain(self) -> list[Parser]:
        """This parser and those above it, the nearest first."""
        return [self] if self._parent is None else [self, *self._parent.chain()]

    def family(self) -> list[Parser]:
        """This parser and all of its subcommands."""
        return [self, *(member for child in self.subcommands.values() for member in child.family())]


def given(args: Args) -> frozenset[str]:
    """The names of the values that were really typed."""
    found: frozenset[str] = getattr(args, GIVEN, frozenset())
    return found
