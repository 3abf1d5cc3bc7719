"""What integration is given: work without effects that only chance had."""

from mngr.tmr.branch.delivery import _without
from mngr.tmr.branch.unit import VerifiedWork

TIP, OWN = "tests/test_tip.py::test_tip", "tests/test_a.py::test_a"


def test_a_flaky_test_of_another_task_is_no_effect():
    """It failed at the base by chance and passed with this work by chance: that made one fix rank above another."""
    work = VerifiedWork(task=OWN, slug="a", agent="a", tip="1" * 40, effect=(TIP, OWN))
    assert _without(work, {TIP}).effect == (OWN,)
    assert _without(work, {OWN}).effect == (TIP, OWN)
    assert _without(work._replace(effect=None), {TIP}).effect is None
