"""Whether a changed test still cites its block of the tutorial, and runs it."""

import pytest

from mngr.tutorial.faithful import CitingTest, Faithful, judge
from mngr.tutorial.ran import RecordedRuns, RecordedTest

ADD, LIST, EDITED = "# one\ntool add x\ntool show x", "tool list", "# one\ntool add x --now\ntool show x"
TUTORIAL = frozenset((ADD, LIST))
ID = "tests/test_it.py::test_add"


def ran(*commands: str, outcome: str = "passed", id: str = ID) -> RecordedRuns:
    file, _, name = id.partition("::")
    return RecordedRuns(("run",), (RecordedTest(file, name, frozenset(), frozenset(commands), outcome),))


def judged(
    before: tuple[str, ...] = (ADD,),
    after: tuple[str, ...] = (ADD,),
    tutorial: frozenset[str] = TUTORIAL,
    then: RecordedRuns | None = None,
    now: RecordedRuns | None = None,
    id: str = ID,
) -> Faithful:
    return judge(CitingTest(ID, before, TUTORIAL, then), CitingTest(id, after, tutorial, now))


BOTH = ("tool add x", "tool show x")


def test_a_kept_citation_whose_commands_are_run_is_faithful() -> None:
    assert judged(then=ran(*BOTH), now=ran(*BOTH)) == Faithful()


def test_a_removed_citation_is_a_reason() -> None:
    found = judged(after=())
    assert found.reasons == ("the citation of `tool add x` was removed",)


def test_one_of_two_citations_removed_is_a_reason() -> None:
    assert judged(before=(ADD, LIST), after=(ADD,)).reasons == ("the citation of `tool list` was removed",)


def test_another_block_cited_instead_is_a_reason() -> None:
    found = judged(after=(LIST,))
    assert found.reasons == ("the citation of `tool add x` was changed to `tool list`, and its block is still there",)


def test_an_edited_citation_that_is_no_block_is_a_reason() -> None:
    (reason,) = judged(after=(EDITED,)).reasons
    assert reason.endswith("was changed to `tool add x --now`, which is not a block of the tutorial")


def test_a_citation_that_follows_its_edited_block_is_noted() -> None:
    found = judged(after=(EDITED,), tutorial=frozenset((EDITED, LIST)))
    assert not found.reasons
    assert found.notes == ("the citation follows the edited block: `tool add x` is now `tool add x --now`",)


def test_a_block_that_the_work_removed_from_the_tutorial_is_a_reason() -> None:
    found = judged(tutorial=frozenset((LIST,)))
    assert found.reasons == ("`tool add x` is cited and is not a block of the tutorial",)


def test_a_citation_that_was_of_no_block_at_base_is_not_held_against_the_work() -> None:
    assert judged(before=(EDITED,), after=(EDITED,)).reasons == ()


def test_an_added_citation_has_to_be_of_a_block() -> None:
    assert judged(after=(ADD, LIST)).notes == ("a citation of `tool list` was added",)
    found = judged(after=(ADD, EDITED))
    assert found == Faithful(("`tool add x --now` is cited and is not a block of the tutorial",))


def test_a_cited_command_that_is_not_run_any_more_is_a_reason() -> None:
    found = judged(then=ran(*BOTH), now=ran("tool add y", "tool show x"))
    assert found.reasons == ("the cited command `tool add x` is not run any more",)


def test_a_command_that_a_failing_test_ran_at_base_has_to_be_run_too() -> None:
    found = judged(then=ran(*BOTH, outcome="failed"), now=ran("tool show x"))
    assert found.reasons == ("the cited command `tool add x` is not run any more",)


def test_a_command_that_the_test_never_ran_is_noted() -> None:
    """Tests of what can go wrong cite a block and run something else."""
    found = judged(then=ran("tool add"), now=ran("tool add", "tool show x"))
    assert not found.reasons
    assert found.notes == ("the cited command `tool add x` is not run by this test",)


@pytest.mark.parametrize("outcome", ["failed", "skipped", "xfailed", ""])
def test_what_a_test_ran_that_did_not_pass_does_not_count(outcome: str) -> None:
    found = judged(then=ran(*BOTH), now=ran(*BOTH, outcome=outcome))
    assert found.reasons == tuple(f"the cited command `{command}` is not run any more" for command in BOTH)


def test_without_a_record_only_citations_are_judged() -> None:
    found = judged(now=ran(*BOTH, id="tests/test_it.py::test_other"))
    assert found == Faithful()


def test_a_renamed_test_is_held_against_its_old_name() -> None:
    new = "tests/test_new.py::test_added[a]"
    cases = ran("tool add x", id="tests/test_new.py::test_added").tests
    others = ran("tool show x", id="tests/test_new.py::test_added").tests
    found = judged(then=ran(*BOTH), now=RecordedRuns(("run",), (*cases, *others)), id=new)
    assert found == Faithful()
