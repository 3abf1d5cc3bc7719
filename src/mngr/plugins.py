"""What a plugin can add to mngr, and loading those that are installed and active. Imported only when there are any.

A plugin is a module with hooks; each is given a function and calls it once for everything it adds:

    from mngr.plugins import hookimpl

    @hookimpl
    def register_commands(register):
        register("hello", "mngr_hello.hello", "Greet somebody")

A plugin that fails becomes a problem with its name in it; everything else works.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pluggy

from mngr.errors import MngrError
from mngr.installed import GROUP, Plugin
from mngr.names import is_name

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


class PluginVerb(NamedTuple):
    """A verb that a plugin adds."""

    name: str
    module: str
    summary: str
    aliases: tuple[str, ...]


class PluginKind(NamedTuple):
    """An agent type that a plugin adds."""

    name: str
    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    reports: bool


class PluginRecipe(NamedTuple):
    """A map-reduce that a plugin adds."""

    name: str
    target: str
    summary: str


class LoadedPlugin(NamedTuple):
    """An active plugin and what it adds; with a problem that stopped it, nothing."""

    plugin: Plugin
    commands: tuple[PluginVerb, ...] = ()
    kinds: tuple[PluginKind, ...] = ()
    recipes: tuple[PluginRecipe, ...] = ()
    problems: tuple[str, ...] = ()

    def warnings(self) -> list[str]:
        """What a person should know, each with the way out."""
        name = self.plugin.name
        return [
            f"plugin `{name}`: {text}\n  hint: `mngr plugin disable {name}` switches it off" for text in self.problems
        ]


_loaded: dict[tuple[Plugin, ...], list[LoadedPlugin]] = {}


def load(active: Sequence[Plugin]) -> list[LoadedPlugin]:
    """Import the plugins and ask each what it adds. The second time gives the same answer without asking."""
    key = tuple(active)
    if key not in _loaded:
        manager = pluggy.PluginManager(GROUP)
        manager.add_hookspecs(Hooks)
        _loaded[key] = without_taken([_load(manager, plugin) for plugin in active], {})
    return _loaded[key]


def _load(manager: pluggy.PluginManager, plugin: Plugin) -> LoadedPlugin:
    commands: list[PluginVerb] = []
    kinds: list[PluginKind] = []
    recipes: list[PluginRecipe] = []

    def add_command(name: str, module: str, summary: str, *, aliases: Sequence[str] = ()) -> None:
        for word in (name, *aliases):
            _check(word, "verb")
        commands.append(PluginVerb(name, _text(module, "module"), _text(summary, "summary"), tuple(aliases)))

    def add_kind(
        name: str, command: str, *, args: Sequence[str] = (), env: Mapping[str, str] = {}, reports: bool = False
    ) -> None:
        _check(name, "agent type")
        words = tuple(_text(word, "argument") for word in args)
        kinds.append(PluginKind(name, _text(command, "command"), words, dict(env), bool(reports)))

    def add_recipe(name: str, target: str, summary: str) -> None:
        _check(name, "recipe")
        recipes.append(PluginRecipe(name, _text(target, "target"), _text(summary, "summary")))

    try:
        found = imported(plugin.target)
        found = found() if isinstance(found, type) else found
        manager.register(found, plugin.name)
        unknown = _unknown_hooks(manager, found)
        _call(manager, "register_commands", found, add_command)
        _call(manager, "register_kinds", found, add_kind)
        _call(manager, "register_recipes", found, add_recipe)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (it is a stranger's code)
        said = error.message if isinstance(error, MngrError) else f"{type(error).__name__}: {error}"
        return LoadedPlugin(plugin, problems=(f"cannot be used: {said}",))
    return LoadedPlugin(plugin, tuple(commands), tuple(kinds), tuple(recipes), tuple(unknown))


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


def without_taken(loaded: Iterable[LoadedPlugin], owners: Mapping[tuple[str, str], str]) -> list[LoadedPlugin]:
    """Leave out what has another owner under the same name, and say so. `owners` are those to begin with."""
    owners = dict(owners)
    kept = []
    for one in loaded:
        problems = list(one.problems)
        added: dict[str, tuple[Any, ...]] = {}
        for field, what in (("commands", "verb"), ("kinds", "agent type"), ("recipes", "recipe")):
            for item in getattr(one, field):
                words = [(what, word) for word in (item.name, *getattr(item, "aliases", ()))]
                if clash := next((word for word in words if word in owners), None):
                    problems.append(f"cannot add the {what} `{clash[1]}`: {owners[clash]} has it")
                else:
                    owners.update(dict.fromkeys(words, f"plugin `{one.plugin.name}`"))
                    added[field] = (*added.get(field, ()), item)
        kept.append(LoadedPlugin(one.plugin, **added, problems=tuple(problems)))
    return kept


def _check(name: object, what: str) -> None:
    if not isinstance(name, str) or not is_name(name):
        raise MngrError(f"{name!r} cannot be the name of a {what}: use letters, digits, `-` and `_`")


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise MngrError(f"invalid {what} {value!r}")
    return value
