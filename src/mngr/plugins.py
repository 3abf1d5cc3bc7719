"""What a plugin can add to mngr, and loading those that are installed and active. Imported only when there are any.

A plugin is a module with hooks; each is given a function and calls it once for everything it adds:

    from mngr.plugins import hookimpl

    @hookimpl
    def register_commands(register):
        register("hello", "mngr_hello.hello", "Greet somebody")

A plugin that fails becomes a problem with its name in it, and takes nothing and nobody else with it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

import pluggy

from mngr.errors import MngrError
from mngr.installed import GROUP, Plugin
from mngr.names import is_name
from mngr.records import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from typing import Any

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


class RegisterKind(Protocol):
    """What `register_kinds` is given."""

    def __call__(
        self,
        name: str,
        command: str,
        *,
        args: Sequence[str] = (),
        env: Mapping[str, str] = {},
        reports: bool = False,
    ) -> None:
        """Add an agent type. `command` is a line for the shell; `reports` says that the program writes its states and
        received messages to the agent's events, as `scripted` does."""


class RegisterCommand(Protocol):
    """What `register_commands` is given."""

    def __call__(self, name: str, module: str, summary: str, *, aliases: Sequence[str] = ()) -> None:
        """Add a verb. `module`, imported when the verb is used, has `add_arguments(parser)`, `run(args, app)` and, for
        the help, `EXAMPLES` and `DESCRIPTION`: the same as the verbs of mngr itself."""


class RegisterRecipe(Protocol):
    """What `register_recipes` is given."""

    def __call__(self, name: str, target: str, summary: str) -> None:
        """Add a map-reduce. `target`, `module:name`, is imported when the recipe is used, and is called with the fleet
        and the run to make a `mngr.mapreduce.recipe.Recipe`."""


class Hooks:
    """The hooks that a plugin may have; each is optional."""

    @hookspec
    def register_kinds(self, register: RegisterKind) -> None:
        """Add agent types."""

    @hookspec
    def register_commands(self, register: RegisterCommand) -> None:
        """Add verbs."""

    @hookspec
    def register_recipes(self, register: RegisterRecipe) -> None:
        """Add map-reduces."""


class Command(NamedTuple):
    """A verb that a plugin adds."""

    name: str
    module: str
    summary: str
    aliases: tuple[str, ...]


class KindFacts(NamedTuple):
    """An agent type that a plugin adds."""

    name: str
    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    reports: bool


class RecipeFacts(NamedTuple):
    """A map-reduce that a plugin adds."""

    name: str
    target: str
    summary: str


class Loaded(NamedTuple):
    """An active plugin and what it adds; with a problem that stopped it, nothing."""

    plugin: Plugin
    commands: tuple[Command, ...] = ()
    kinds: tuple[KindFacts, ...] = ()
    recipes: tuple[RecipeFacts, ...] = ()
    problems: tuple[str, ...] = ()

    def warnings(self) -> list[str]:
        """What a person should know, each with the way out."""
        name = self.plugin.name
        return [
            f"plugin `{name}`: {text}\n  hint: `mngr plugin disable {name}` switches it off" for text in self.problems
        ]


_loaded: dict[tuple[Plugin, ...], list[Loaded]] = {}


def load(active: Sequence[Plugin]) -> list[Loaded]:
    """Import the plugins and ask each what it adds. The second time gives the same answer without asking."""
    key = tuple(active)
    if key not in _loaded:
        manager = pluggy.PluginManager(GROUP)
        manager.add_hookspecs(Hooks)
        _loaded[key] = _without_doubles([_load(manager, plugin) for plugin in active])
    return _loaded[key]


def _load(manager: pluggy.PluginManager, plugin: Plugin) -> Loaded:
    commands: list[Command] = []
    kinds: list[KindFacts] = []
    recipes: list[RecipeFacts] = []

    def add_command(name: str, module: str, summary: str, *, aliases: Sequence[str] = ()) -> None:
        for word in (name, *aliases):
            _check(word, "verb")
        commands.append(Command(name, _text(module, "module"), _text(summary, "summary"), tuple(aliases)))

    def add_kind(
        name: str, command: str, *, args: Sequence[str] = (), env: Mapping[str, str] = {}, reports: bool = False
    ) -> None:
        _check(name, "agent type")
        words = tuple(_text(word, "argument") for word in args)
        kinds.append(KindFacts(name, _text(command, "command"), words, dict(env), bool(reports)))

    def add_recipe(name: str, target: str, summary: str) -> None:
        _check(name, "recipe")
        recipes.append(RecipeFacts(name, _text(target, "target"), _text(summary, "summary")))

    try:
        found = _imported(plugin.target)
        manager.register(found, plugin.name)
        unknown = _unknown_hooks(manager, found)
        _call(manager, "register_commands", found, add_command)
        _call(manager, "register_kinds", found, add_kind)
        _call(manager, "register_recipes", found, add_recipe)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (it is a stranger's code)
        said = error.message if isinstance(error, MngrError) else f"{type(error).__name__}: {error}"
        return Loaded(plugin, problems=(f"cannot be used: {said}",))
    return Loaded(plugin, tuple(commands), tuple(kinds), tuple(recipes), tuple(unknown))


def _imported(target: str) -> object:
    found = imported(target)
    return found() if isinstance(found, type) else found


def imported(target: str) -> object:
    """What `module:name` means."""
    module, _, path = target.partition(":")
    __import__(module)
    found: Any = sys.modules[module]
    for part in filter(None, path.split(".")):
        found = getattr(found, part)
    answer: object = found
    return answer


def _call(manager: pluggy.PluginManager, hook: str, plugin: object, register: Callable[..., None]) -> None:
    """Call the hook of this plugin alone, so that a failure is known to be its own."""
    others = [other for other in manager.get_plugins() if other is not plugin]
    manager.subset_hook_caller(hook, others)(register=register)


def _unknown_hooks(manager: pluggy.PluginManager, plugin: object) -> list[str]:
    """Hooks of a newer or older mngr: told, and passed over."""
    hooks = manager.get_hookcallers(plugin) or []
    return [
        f"has a hook `{hook.name}` that this version of mngr does not know" for hook in hooks if not hook.has_spec()
    ]


def _without_doubles(loaded: list[Loaded]) -> list[Loaded]:
    """Leave out what an earlier plugin has added under the same name, and say so."""
    owners: dict[tuple[str, str], str] = {}
    kept = []
    for one in loaded:
        name = one.plugin.name
        problems = list(one.problems)
        commands, kinds, recipes = [], [], []
        for command in one.commands:
            words = [("verb", word) for word in (command.name, *command.aliases)]
            if clash := next((word for word in words if word in owners), None):
                problems.append(f"cannot add the verb `{clash[1]}`: plugin `{owners[clash]}` has it")
            else:
                owners.update(dict.fromkeys(words, name))
                commands.append(command)
        for kind in one.kinds:
            if ("kind", kind.name) in owners:
                problems.append(f"cannot add the agent type `{kind.name}`: plugin `{owners['kind', kind.name]}` has it")
            else:
                owners["kind", kind.name] = name
                kinds.append(kind)
        for recipe in one.recipes:
            if ("recipe", recipe.name) in owners:
                owner = owners["recipe", recipe.name]
                problems.append(f"cannot add the recipe `{recipe.name}`: plugin `{owner}` has it")
            else:
                owners["recipe", recipe.name] = name
                recipes.append(recipe)
        kept.append(Loaded(one.plugin, tuple(commands), tuple(kinds), tuple(recipes), tuple(problems)))
    return kept


def _check(name: object, what: str) -> None:
    if not isinstance(name, str) or not is_name(name):
        raise MngrError(f"{name!r} cannot be the name of a {what}: use letters, digits, `-` and `_`")


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise MngrError(f"{value!r} is no {what}")
    return value
