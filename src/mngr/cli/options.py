"""What a verb takes: its options and positional arguments, declared once for reading, settings and help. No parsing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

# How an option stores what it was given: as it is, True, in a list, or `--x` and `--no-x` as one.
STORE, FLAG, APPEND, COUNT, PAIR = "store", "store_true", "append", "count", "pair"
BooleanPair = PAIR


class Args:
    """The values of one command line, by name."""

    rest: list[str]
    subcommand: str

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


class Option:
    """One option, or one positional argument when it has no dash. `nargs` is 0 for flags, None for one value. One whose
    help is None is not shown."""

    __slots__ = ("choices", "default", "dest", "help", "hidden", "how", "metavar", "names", "nargs", "negative", "type")

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
    ) -> None:
        positional = not names[0].startswith("-")
        long = next((name for name in names if name.startswith("--")), names[0])
        self.names: tuple[str, ...] = () if positional else names
        self.dest = dest or long.lstrip("-").replace("-", "_")
        self.how = action
        self.nargs = 0 if action in (FLAG, COUNT, PAIR) else nargs
        self.metavar = metavar
        self.help = help or ""
        self.hidden = help is None
        self.type = type
        self.choices = choices
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
        """Its value when it was not typed; lists are made anew each time."""
        return list(self.default or ()) if self.repeatable or self.nargs in ("*", "+") else self.default


class Group:
    """Options under one title in the help; exclusive ones cannot be typed together."""

    def __init__(self, parser: Declares, title: str = "", *, exclusive: bool = False) -> None:
        self.title = title
        self.exclusive = exclusive
        self.options: list[Option] = []
        self._parser = parser

    def add_argument(self, *names: str, **facts: Any) -> Option:
        option = self._parser.declare(Option(*names, **facts))
        self.options.append(option)
        return option


class Declares:
    """The part of a parser that collects declarations."""

    def __init__(self) -> None:
        self.options: list[Option] = []
        self.by_name: dict[str, Option] = {}
        self.groups: list[Group] = []

    def add_argument(self, *names: str, **facts: Any) -> Option:
        return self.declare(Option(*names, **facts))

    def add_argument_group(self, title: str) -> Group:
        self.groups.append(Group(self, title))
        return self.groups[-1]

    def add_mutually_exclusive_group(self) -> Group:
        self.groups.append(Group(self, exclusive=True))
        return self.groups[-1]

    def declare(self, option: Option) -> Option:
        for name in option.spellings:
            if name in self.by_name:
                raise ValueError(f"option {name} is declared twice")
            self.by_name[name] = option
        self.options.append(option)
        return option
