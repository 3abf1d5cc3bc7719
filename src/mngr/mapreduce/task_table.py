"""The tasks of a run by id. Values: a changed table is a new one that shares with the old one all that is the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from mngr.mapreduce.state import TaskState

    T = TypeVar("T")

_SIZE = 32


class TaskPart:
    """A few tasks, and what was computed from them. With thousands of tasks, of which a few change at a time, only what
    those few are part of is computed again."""

    __slots__ = ("_known", "tasks")

    def __init__(self, tasks: Sequence[TaskState]) -> None:
        self.tasks = tuple(tasks)
        self._known: dict[Hashable, Any] = {}

    def computed(self, function: Callable[..., T], *more: Hashable) -> T:
        """What the pure function makes of these tasks; computed once for the same arguments."""
        key = (function, more)
        if key not in self._known:
            self._known[key] = function(self.tasks, *more)
        found: T = self._known[key]
        return found


class TaskTable(Mapping[str, "TaskState"]):
    """In the order in which tasks were added. `parts` are the same tasks in the same order."""

    __slots__ = ("_count", "_places", "parts")

    def __init__(self, tasks: Mapping[str, TaskState] | None = None) -> None:
        found = list((tasks or {}).values())
        self._places = {task.id: place for place, task in enumerate(found)}
        self._count = len(found)
        self.parts = tuple(TaskPart(found[at : at + _SIZE]) for at in range(0, len(found), _SIZE))

    def __getitem__(self, id: str) -> TaskState:
        place = self._places[id]
        if place >= self._count:
            raise KeyError(id)
        return self.parts[place // _SIZE].tasks[place % _SIZE]

    def __iter__(self) -> Iterator[str]:
        return (task.id for part in self.parts for task in part.tasks)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"TaskTable({dict(self)!r})"

    def having(self, changed: Mapping[str, TaskState]) -> TaskTable:
        """This table with these tasks in place of those before, and new ones at its end."""
        if not changed:
            return self
        made = TaskTable()
        # The places only grow, so tables share them; one that is not the latest has its own from then on.
        latest = len(self._places) == self._count
        made._places = self._places if latest else {id: place for place, id in enumerate(self)}
        parts: list[TaskPart] = list(self.parts)
        edited: dict[int, list[TaskState]] = {}
        for id, task in changed.items():
            part, within = divmod(made._places.setdefault(id, len(made._places)), _SIZE)
            tasks = edited.get(part)
            if tasks is None:
                tasks = edited[part] = list(parts[part].tasks) if part < len(parts) else []
            tasks[within : within + 1] = [task]
        for part, tasks in edited.items():
            parts[part : part + 1] = [TaskPart(tasks)]
        made.parts, made._count = tuple(parts), len(made._places)
        return made


def table(tasks: Mapping[str, TaskState]) -> TaskTable:
    return tasks if isinstance(tasks, TaskTable) else TaskTable(tasks)
