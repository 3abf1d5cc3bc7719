"""The tasks of a run as a value: old tables stay as they were, and only parts that changed are computed again."""

from collections.abc import Sequence

from mngr.mapreduce.state import Attempt, TaskState
from mngr.mapreduce.task_table import TaskTable, table


def tasks(*numbers: int) -> dict[str, TaskState]:
    return {f"t{number}": TaskState(f"t{number}", f"t{number}", {}) for number in numbers}


def test_a_changed_table_is_a_new_one_in_the_same_order() -> None:
    first = TaskTable(tasks(*range(100)))
    begun = first["t40"]._replace(attempts=(Attempt(1, "a", 0.0),))
    second = first.having({"t40": begun, **tasks(100)})
    assert (len(first), len(second)) == (100, 101)
    assert first["t40"].attempts == () and second["t40"] == begun
    assert list(second) == [f"t{number}" for number in range(101)]
    assert "t100" in second and "t100" not in first and first.get("t100") is None
    assert second == dict(second) and second != first
    assert table(second) is second and table(dict(second)) == second


def test_two_tables_made_of_the_same_one_do_not_know_each_other() -> None:
    base = TaskTable(tasks(0))
    left, right = base.having(tasks(1)), base.having(tasks(2))
    assert (list(base), list(left), list(right)) == (["t0"], ["t0", "t1"], ["t0", "t2"])
    assert list(left.having(tasks(3))) == ["t0", "t1", "t3"]
    assert "t1" not in right and "t2" not in left


def test_only_the_part_of_a_task_that_changed_is_computed_again() -> None:
    seen: list[int] = []

    def counted(some: Sequence[TaskState], least: int) -> int:
        seen.append(len(some))
        return sum(len(task.attempts) >= least for task in some)

    def total(one: TaskTable) -> int:
        return sum(part.computed(counted, 1) for part in one.parts)

    first = TaskTable(tasks(*range(1000)))
    assert (total(first), sum(seen)) == (0, 1000)
    seen.clear()
    second = first.having({"t7": first["t7"]._replace(attempts=(Attempt(1, "a", 0.0),))})
    assert (total(second), total(first)) == (1, 0)
    assert 0 < sum(seen) < 100
