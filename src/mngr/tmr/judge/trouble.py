"""Takes the measurements of an agent's work, and says why one could not be taken: what the work broke, and what is
wrong with this machine."""

from __future__ import annotations

from collections.abc import Sequence

from mngr.tmr.judge.evidence import Trouble
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.measure.baseline import BaselineTest
from mngr.tmr.measure.diagnosis import error_line, of_machine, of_machine_in_test
from mngr.tmr.measure.measurement import Measurement, MeasurementResult, log_tail


def taken(base: BaseCommit, before: BaselineTest, *wanted: Measurement) -> tuple[Sequence[MeasurementResult], Trouble]:
    """The results, and what went wrong. What is wrong with this machine is measured again when somebody asks again."""
    results, broken_by = base.measurer.take_all(wanted), ""
    for one, done in zip(wanted, results, strict=True):
        found = _of_one(base, done, before)
        if found.failure:
            base.measurer.forget(one)
            return results, found
        broken_by = broken_by or found.broken_by
    return results, Trouble(broken_by)


def _of_one(base: BaseCommit, done: MeasurementResult, before: BaselineTest) -> Trouble:
    """Why the tests could not be run, if so. A machine that fails says nothing about the work."""
    bad = [ran.text for step in done.steps.values() for ran in step.rows.ran.values() if not ran.good]
    logs = [log_tail(step) for step in done.steps.values() if step.exit_code not in (0, None) and not step.rows.ran]
    said = next(filter(None, [*map(of_machine, [done.problem, *logs]), *map(of_machine_in_test, bad)]), "")
    if said and not of_machine(before.text):
        return Trouble(failure=said)
    if done.lost:
        return Trouble(failure=done.problem)
    if done.unprepared:
        alone = Measurement("prepare", base.commit, [])
        at_base = base.measurer.take(alone)
        if at_base.problem:
            base.measurer.forget(alone)
            return Trouble(failure=at_base.problem)
        return Trouble(f"its work breaks the build: {done.problem.partition('): ')[2] or done.problem}")
    for name, each in done.steps.items():
        if each.rows.doubt:
            return Trouble(f"its test run cannot be believed: {each.rows.doubt}")
        if extra := sorted(set(each.changed) - base.dirtied):
            return Trouble(f"its tests change `{extra[0]}`, which is part of the code they test (step `{name}`)")
    step = done.steps.get("test")
    if step is not None and not step.rows.finished and not done.problem:
        what = "does not come to its end" if step.rows.ran else "cannot start"
        return Trouble(f"pytest {what} with its work: {error_line(log_tail(step))}")
    return Trouble()
