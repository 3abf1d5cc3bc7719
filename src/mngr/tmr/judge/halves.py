"""What the base's own tests show on the new product, and the new tests on the old one, as far as they differ from what
is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mngr.tmr.judge.at_tip import AGAIN, effect_step, effected, own_outcome, steady
from mngr.tmr.judge.evidence import AtTip, Halves, Marks, Trouble
from mngr.tmr.judge.trouble import taken
from mngr.tmr.judge.work import Work
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.measure.baseline import DID_NOT_PASS, PASS, BaselineTest
from mngr.tmr.measure.measurement import Measurement, MeasurementResult, Pytest
from mngr.tmr.measure.rows import GOOD, PASSED, files_of, worst


def halves(
    base: BaseCommit, work: Work, before: BaselineTest, tip: AtTip, marks: Marks
) -> tuple[Halves, Marks, Trouble]:
    """`marks` are those of the base and of the agent's commit."""
    touched = sorted({*tip.cases, *tip.new, *tip.changed})
    own = base.own(work.task)
    # Every test that the work touches, as it is at the base: whatever its new version says, it held there.
    others = [test for test in work.touched(base) if test not in own and base.before(test).verdict == PASS]
    if before.verdict == PASS:
        others += own
    wanted: dict[str, Measurement] = {}
    if work.tests_changed and work.old_tests != base.commit:
        tests = list(dict.fromkeys([*own, *others]))
        steps = [Pytest("test", tests=tests, paths=files_of(tests)), *effect_step(base, work, before)]
        steps += steady(*own) if before.verdict in DID_NOT_PASS else []
        wanted["t0p1"] = Measurement(f"old-tests-{work.slug}", work.old_tests, steps)
    if work.old_product not in (work.both, base.commit):
        wanted["t1p0"] = Measurement(
            f"old-product-{work.slug}", work.old_product, [Pytest("test", tests=touched, paths=files_of(touched))]
        )
    results, trouble = taken(base, before, *wanted.values())
    if trouble.failure:
        return Halves(), marks, Trouble(failure=trouble.failure)
    done = dict(zip(wanted, results, strict=True))
    at_base = before.runs[-1] if before.runs else before.verdict
    found = Halves()
    t0p1 = at_base if work.old_tests == base.commit else marks.t1p1
    t1p0 = at_base if work.old_product == base.commit else marks.t1p1
    if "t0p1" in done:
        t0p1 = own_outcome(base, done["t0p1"], own)
        as_before = _as_before(base, work, before, done["t0p1"], others)
        found = Halves(effect=effected(base, done["t0p1"], own, t0p1, before), as_before=as_before)
    alone = True if work.split.implementation and work.split.rest and not work.tests_changed else None
    if "t1p0" in done:
        outcomes = {test: done["t1p0"].rows.outcome(test) for test in touched}
        t1p0 = worst([outcomes[test] for test in tip.cases])
        fail = tuple(test for test in touched if outcomes[test] not in GOOD | {"skipped"})
        found = found._replace(found=fail)
        alone = not fail if not done["t1p0"].problem else None
    return found._replace(stands_alone=alone), marks._replace(t0p1=t0p1, t1p0=t1p0), Trouble()


def _as_before(
    base: BaseCommit, work: Work, before: BaselineTest, done: MeasurementResult, tests: Sequence[str]
) -> Mapping[str, str]:
    """Those of the tests, which passed at the base, that fail with the new product, every time; with what they do."""
    rows = done.rows
    red = {test: rows.outcome(test) for test in tests if rows.outcome(test) not in base.before(test).runs}
    if not red or done.problem:
        return {}
    steps = [Pytest(f"test-{at + 1}", tests=list(red), paths=files_of(red)) for at in range(AGAIN)]
    wanted = Measurement(f"as-before-{work.slug}", work.old_tests, steps, repeat=1)
    [again], _ = taken(base, before, wanted)
    seen = [step.rows for name, step in again.steps.items() if name.startswith("test-")]
    return {test: one for test, one in red.items() if not any(each.outcome(test) == PASSED for each in seen)}
