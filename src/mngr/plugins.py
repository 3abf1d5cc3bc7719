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
from typing import Any, Protocol

import pluggy

from mngr.errors import MngrError
from mngr.installed import GROUP, Plugin
from mngr.named_tuples import NamedTuple
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
    aliases: Sequence[str] = ()


class PluginKind(NamedTuple):
    """An agent type that a plugin adds."""

    name: str
    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = {}
    reports: bool = False


class PluginRecipe(NamedTuple):
    """A map-reduce that a plugin adds."""

    name: str
    target: str
    summary: str


Addition = PluginVerb | PluginKind | PluginRecipe
# What each hook adds, and what a person calls it.
_HOOKS = {"register_commands": PluginVerb, "register_kinds": PluginKind, "register_recipes": PluginRecipe}
_CALLED = {PluginVerb: "verb", PluginKind: "agent type", PluginRecipe: "recipe"}


class LoadedPlugin(NamedTuple):
    """An active plugin and what it adds; with a problem that stopped it, nothing."""

    plugin: Plugin
    added: tuple[Addition, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def verbs(self) -> list[PluginVerb]:
        return [item for item in self.added if isinstance(item, PluginVerb)]

    @property
    def kinds(self) -> list[PluginKind]:
        return [item for item in self.added if isinstance(item, PluginKind)]

    @property
    def recipes(self) -> list[PluginRecipe]:
        return [item for item in self.added if isinstance(item, PluginRecipe)]

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
        _loaded[key] = without_taken(map(_load, active), {})
    return _loaded[key]


def _load(plugin: Plugin) -> LoadedPlugin:
    """Each plugin has a manager of its own, so that a failure is known to be its own."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Hooks)
    added: list[Addition] = []

    def adding(kind: type[Addition]) -> Callable[..., None]:
        return lambda *facts, **more: added.append(_checked(kind(*facts, **more)))

    try:
        found = imported(plugin.target)
        found = found() if isinstance(found, type) else found
        manager.register(found, plugin.name)
        for hook, kind in _HOOKS.items():
            getattr(manager.hook, hook)(register=adding(kind))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (it is a stranger's code)
        said = error.message if isinstance(error, MngrError) else f"{type(error).__name__}: {error}"
        return LoadedPlugin(plugin, problems=(f"cannot be used: {said}",))
    unknown = [hook.name for hook in manager.get_hookcallers(found) or () if not hook.has_spec()]
    problems = (f"has a hook `{name}` that this version of mngr does not know" for name in unknown)
    return LoadedPlugin(plugin, tuple(added), tuple(problems))


def _checked(item: Addition) -> Addition:
    for name in (item.name, *getattr(item, "aliases", ())):
        if not isinstance(name, str) or not is_name(name):
            what = _CALLED[type(item)]
            raise MngrError(f"{name!r} cannot be the name of a {what}: use letters, digits, `-` and `_`")
    texts = {field: getattr(item, field, "-") for field in ("module", "summary", "command", "target")}
    for field, text in (*texts.items(), *(("argument", word) for word in getattr(item, "args", ()))):
        if not isinstance(text, str) or not text or not text.isprintable():
            raise MngrError(f"invalid {field} {text!r}")
    return item


def imported(target: str) -> object:
    """What `module:name` means."""
    module, _, path = target.partition(":")
    __import__(module)
    found: Any = sys.modules[module]
    for part in filter(None, path.split(".")):
        found = getattr(found, part)
    answer: object = found
    return answer


def without_taken(loaded: Iterable[LoadedPlugin], owners: Mapping[tuple[str, str], str]) -> list[LoadedPlugin]:
    """Leave out what has another owner under the same name, and say so. `owners` are those to begin with."""
    owners = dict(owners)
    left = []
    for one in loaded:
        added, problems = [], list(one.problems)
        for item in one.added:
            what = _CALLED[type(item)]
            words = [(what, word) for word in (item.name, *getattr(item, "aliases", ()))]
            if clash := next((word for word in words if word in owners), None):
                problems.append(f"cannot add the {what} `{clash[1]}`: {owners[clash]} has it")
            else:
                owners.update(dict.fromkeys(words, f"plugin `{one.plugin.name}`"))
                added.append(item)
        left.append(LoadedPlugin(one.plugin, tuple(added), tuple(problems)))
    return left
