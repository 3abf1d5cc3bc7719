"""What a person should look at in the commits of one agent that worked on tests: the flags that `tmr` looks for."""

from collections.abc import Sequence

from mngr.cli.app import App
from mngr.fleet.agent import Agent
from mngr.tmr.branch.objects import Objects
from mngr.tmr.judge import flags
from mngr.tmr.judge.flags import Flag
from mngr.tmr.judge.paths import PathKind, Paths
from mngr.workspace import copy_git

DELETED = "test-deleted"


def find(app: App, agent: Agent, tests: Sequence[str], commands: Sequence[str]) -> list[Flag]:
    """The flags of all that an agent committed, removed tests first. `tests` are the places of the tests, from the top
    of the repository; `commands` those by which they are run. Changes of the product are flagged too."""
    base = agent.record.workspace.base_commit
    if not (agent.record.workspace.repo and base):
        return []
    git = copy_git.of(agent.site.host, agent.record)
    objects = Objects(git)
    old, new = git.must("rev-parse", f"{base}^{{tree}}", "HEAD^{tree}").split("\n")
    pair = (old, new)
    changes = objects.changes([pair])[pair]
    settings = app.settings
    paths = Paths(
        tuple(settings.strings("tmr.paths.implementation")), tuple(settings.strings("tmr.paths.non_implementation"))
    )
    product = {
        change.path
        for change in changes
        if paths.kind(change.path) == PathKind.IMPLEMENTATION and not _is_below(change.path, tests)
    }
    found = flags.find(flags.files_of(objects, changes, product=product.__contains__), test="", commands=commands)
    found += [
        flags.Flag("product", path, f"`{path}` is part of the product, not of its tests") for path in sorted(product)
    ]
    return sorted(found, key=lambda flag: flag.kind != DELETED)


def shown(found: Sequence[Flag]) -> list[str]:
    """Lines for a person."""
    removed = [flag for flag in found if flag.kind == DELETED]
    others = [flag for flag in found if flag.kind != DELETED]
    lines = ["removed tests:", *map(_line, removed)] if removed else []
    return lines + (["look at these changes:", *map(_line, others)] if others else [])


def _line(flag: Flag) -> str:
    return f"  {flag.text}" if f"`{flag.path}`" in flag.text else f"  {flag.path}: {flag.text}"


def _is_below(path: str, places: Sequence[str]) -> bool:
    return any(path == place or place == "." or path.startswith(f"{place}/") for place in places)
