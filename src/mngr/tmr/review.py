"""What a person looks at in a review: each piece of work that can be kept or dropped, dangerous ones first. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mngr.mapreduce.state import SETTLED, RunState, TaskState
from mngr.tmr.places import expectations, integration_of, is_dangerous, places
from mngr.tmr.summary import flagged, tasks_of, verdict_of, why
from mngr.tmr.verdict import EXPECTATION_CHANGED, HELD, UNPROVEN


class ReviewItem(NamedTuple):
    """The work of one task, or of several that made the same fix. `commits` are those of the branch that hold it; none
    for work that waits for a person to accept it. `rank` is that of its fix, 0 for work beside the implementation."""

    tasks: tuple[TaskState, ...]
    commits: tuple[Mapping[str, Any], ...] = ()
    rank: int = 0

    @property
    def slugs(self) -> tuple[str, ...]:
        return tuple(task.slug for task in self.tasks)

    @property
    def on_branch(self) -> bool:
        return bool(self.commits)

    @property
    def dangerous(self) -> bool:
        return not self.on_branch or any(is_dangerous(task) for task in self.tasks)

    @property
    def title(self) -> str:
        own = [commit for commit in self.commits if set(commit["slugs"]) <= set(self.slugs)]
        first = next((commit for commit in own if commit["rank"]), own[0] if own else None)
        return str(first["title"]) if first else self.tasks[0].id

    @property
    def warnings(self) -> list[str]:
        """What to look at before anything else."""
        found = []
        for task in self.tasks:
            for one in expectations(task):
                place = f"{one.get('path')}:{one.get('line')}"
                found.append(f"{place}: expected value changed from {one.get('before')} to {one.get('after')}")
            found += flagged(task)
            word = verdict_of(task)
            if not self.on_branch or (word == EXPECTATION_CHANGED and not expectations(task)):
                found.append(f"{word}: {why(task)}")
        return list(dict.fromkeys(found))

    @property
    def needed_by(self) -> int:
        """How many commits of other work would go with it."""
        own = {str(commit["id"]) for commit in self.commits}
        return len({id for commit in self.commits if commit["rank"] for id in commit["needed_by"]} - own)


def works(state: RunState) -> list[ReviewItem]:
    """Everything on the branch, and what waits to be accepted: dangerous work first, then by rank, then the rest."""
    by_slug = {task.slug: task for task in tasks_of(state)}
    commits = integration_of(state).get("commits", ())
    made: list[ReviewItem] = []
    taken: set[str] = set()
    for commit in sorted(commits, key=lambda commit: (not commit["rank"], commit["rank"])):
        slugs = [slug for slug in commit["slugs"] if slug in by_slug and slug not in taken]
        groups = [slugs] if commit["rank"] else [[slug] for slug in slugs]
        for group in filter(None, groups):
            taken |= set(group)
            own = tuple(one for one in commits if set(group) & set(one["slugs"]))
            made.append(ReviewItem(tuple(by_slug[slug] for slug in group), own, int(commit["rank"])))
    where = places(state)
    waiting = [task for task in by_slug.values() if task.status == SETTLED and task.slug not in where]
    made += [ReviewItem((task,)) for task in waiting if verdict_of(task) in (HELD, UNPROVEN)]
    return sorted(made, key=lambda work: (not work.dangerous, not work.on_branch, not work.rank, work.rank))
