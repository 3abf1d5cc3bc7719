"""Whether a commit of the branch can be reverted alone; when not, which later ones need it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from mngr.records import NamedTuple
from mngr.tmr.objects import Facts, Ident, NewCommit, Objects
from mngr.tmr.paths import folders


class Step(NamedTuple):
    """A commit of a linear branch and the paths it is about."""

    id: str
    paths: tuple[str, ...]


class Revert(NamedTuple):
    """`clean`: git reverts it alone at the tip. `paths` are where it cannot, `needed_by` the later commits there."""

    clean: bool
    paths: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()


def reverts(objects: Objects, base: Facts, steps: Sequence[Step], asked: Sequence[str]) -> dict[str, Revert]:
    """What reverting each of the asked commits at the tip would do. A commit whose paths no later one touches needs no
    git at all; the others are merged together in one process, as `git revert` would."""
    at = {step.id: number for number, step in enumerate(steps)}
    found = {id: Revert(True) for id in asked}
    touching = _touching(steps)
    later = {id: [steps[number] for number in _met(steps[at[id]].paths, touching) if number > at[id]] for id in asked}
    doubtful = [id for id in asked if later[id]]
    if not doubtful:
        return found
    facts = {**objects.facts(step.id for step in steps), base.id: base}
    parents = {step.id: steps[number - 1].id if number else base.id for number, step in enumerate(steps)}
    who = Ident("mngr", "mngr@localhost", base.committed_at)
    undone = [NewCommit(id, {}, "mngr: undone\n", who, who, facts[parents[id]].tree) for id in doubtful]
    merged = objects.merges([(steps[-1].id, commit) for commit in objects.write(undone)])
    for id, merge in zip(doubtful, merged, strict=True):
        if merge.conflicts:
            there = _met(merge.conflicts, touching)
            met = [step.id for step in later[id] if at[step.id] in there]
            found[id] = Revert(False, merge.conflicts, tuple(met or (step.id for step in later[id])))
    return found


def _touching(steps: Sequence[Step]) -> dict[str, set[int]]:
    """Which commits touch a path; for a directory (with a slash at its end), something in it."""
    found: dict[str, set[int]] = defaultdict(set)
    for number, step in enumerate(steps):
        for path in step.paths:
            found[path].add(number)
            for folder in folders(path):
                found[f"{folder}/"].add(number)
    return found


def _met(paths: Sequence[str], touching: Mapping[str, set[int]]) -> list[int]:
    """The commits that touch one of the paths, or have a file where it has a directory, or the other way round."""
    keys = {key for path in paths for key in (path, f"{path}/", *folders(path))}
    return sorted({number for key in keys for number in touching.get(key, ())})
