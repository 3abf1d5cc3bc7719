"""What makes a map-reduce of the engine: how a task's agent is made, what is taken from it, whether it is true."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from mngr.errors import UsageError
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import Attempt, TaskState
from mngr.names import suggest
from mngr.plugins import PluginRecipe
from mngr.settings.layers import Settings


class Task(NamedTuple):
    """A piece of work: `id` is unique in its run, `slug` too (see `names.slug`), `data` is the recipe's own and
    goes through JSON."""

    id: str
    slug: str
    data: Mapping[str, Any] = {}


class AgentLaunch(NamedTuple):
    """The agent to make; the words are those of `Fleet.create`. `message` is sent once it is ready. Name, labels and
    the variables `MNGR_RUN`, `MNGR_TASK` and `MNGR_ATTEMPT` are added by the engine. Launches of the same source,
    transfer and branch are made together."""

    type: str
    args: tuple[str, ...] = ()
    message: str | None = None
    env: Mapping[str, str] = {}
    source: str = "."
    transfer: str | None = None
    branch: str | None = None
    unclean: str | None = "exclude"
    record: bool = False
    labels: Mapping[str, str] = {}
    uploads: tuple[tuple[str, str], ...] = ()
    provision: tuple[str, ...] = ()
    extra_paths: Mapping[str, str] = {}
    project: str | None = None
    permissions: str = ""
    allowed_commands: tuple[str, ...] = ()
    sandbox: str = ""


class Recipe(ABC):
    """All methods may be called from several threads, for different tasks, and again after a kill: with the same task
    and attempt they must give the same. A `MngrError` from one is that attempt's failure and is written down."""

    @abstractmethod
    def launch(self, task: TaskState, attempt: Attempt) -> AgentLaunch:
        """The agent for this attempt."""

    @abstractmethod
    def collect(self, task: TaskState, attempt: Attempt, agent: Agent) -> Mapping[str, Any]:
        """Bring here what the agent made, however the attempt ended; the agent may still run and is stopped afterwards.
        What is returned goes through JSON into the ledger; bigger things go to files of the run. After a `MngrError` it
        is tried again later, for as long as the agent exists."""

    @abstractmethod
    def check(self, task: TaskState, attempt: Attempt, collected: Mapping[str, Any]) -> Mapping[str, Any]:
        """Measure whether it is true: the verdict. A key `failure` with a text says that checking itself failed, in a
        way that others may share: it is tried again later, and many of the same open the circuit breaker. So do many
        with the same text under the key `blocked`: why the agent says that it cannot do its task."""

    def continuation(self, task: TaskState, attempt: Attempt) -> str:
        """What an agent is told that was interrupted: by a limit that is over, a crash, or a stop of the run."""
        return (
            "You were interrupted. Continue your task where you stopped; if you are not sure where that was, look at "
            "`git status` and `git log` first."
        )

    def checkpoint(self, task: TaskState, attempt: Attempt, agent: Agent) -> None:
        """Bring here what an agent on another machine has made so far, now and then while it works: its host may get
        lost. By default nothing is brought. Never at the same time as `collect` of the same agent."""
        return

    def unreadable(self, task: TaskState, attempt: Attempt, agent: Agent) -> str:
        """What is wrong with what an agent that rests calls done: an outcome file that cannot be read, work that does
        not hold. The agent is told so, at most `max_returns` times. The engine does nothing else meanwhile."""
        return ""

    def correction(self, problem: str) -> str:
        """The words in which an agent is told what `unreadable` found."""
        return f"The outcome file cannot be read: {problem}. Write it again, to the path in $MNGR_OUTCOME_FILE."


def of_plugins(settings: Settings) -> dict[str, PluginRecipe]:
    """The recipes that active plugins add, by name."""
    from mngr import installed, plugins

    loaded = plugins.load(installed.active(settings))
    return {recipe.name: recipe for one in loaded for recipe in one.recipes}


def make(name: str, fleet: Fleet, run: Run) -> Recipe:
    """The recipe that a plugin adds under this name, for this run. Raises UsageError with the nearest name."""
    from mngr import plugins

    known = of_plugins(fleet.local.settings)
    if name not in known:
        hint = suggest(name, tuple(known), "recipe") or "`mngr plugin list` shows what plugins add"
        raise UsageError(f"no plugin adds a recipe called `{name}`", hint=hint)
    maker = cast("Callable[[Fleet, Run], Recipe]", plugins.imported(known[name].target))
    return maker(fleet, run)
