"""What a verb takes: its options and positional arguments, declared once for reading, settings and help. No parsing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

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
        repeated = " (can be repeated)" if help and action == APPEND and "repeated" not in help else ""
        self.help = (help or "") + repeated
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


class OptionTable(Group):
    """The part of a parser that collects declarations: all of them, and the groups that some are in."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[Group] = []

    def add_argument_group(self, title: str) -> Group:
        self.groups.append(Group(title, parent=self))
        return self.groups[-1]

    def add_mutually_exclusive_group(self) -> Group:
        self.groups.append(Group(exclusive=True, parent=self))
        return self.groups[-1]
