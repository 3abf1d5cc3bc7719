"""What a person sees of each piece of work before they keep, drop or send it back."""

from io import BytesIO, TextIOWrapper
from types import SimpleNamespace
from typing import cast

import pytest

from mngr.cli.app import App
from mngr.cli.output.output import Output
from mngr.cli.tmr import review
from mngr.cli.tmr.review import ReviewItem, works
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import RunState, TaskState
from mngr.tmr.branch.integrated import Committed
from mngr.tmr.judge import verdict
from mngr.tmr.run_view import TaskView, view
from tests.support import tmr_runs
from tests.support.terminals import on_a_terminal
from tests.support.tmr import FIX_SUB
from tests.support.tmr import Project as Calc
from tests.support.tmr_runs import Made
from tests.support.user import User
from tests.support.work import FILES, Project

FLAG = {"kind": "fewer-assertions", "path": "tests/t.py", "text": "`test_odd` had 6 assertions and has 1"}
MADE = [
    Made("tests/t.py::test_plain", verdict.FIXED),
    Made("tests/t.py::test_odd", verdict.IMPROVED, flags=[FLAG]),
    Made("tests/t.py::test_lie", verdict.REFUTED),
]


def test_a_review_shows_work_without_obeying_it() -> None:
    project = Project(FILES)
    try:
        fix = project.commit({"src/app.py": "quit()  # \x1b[1A\x1b[2K hidden\n"})
        told = TextIOWrapper(BytesIO(), encoding="utf-8")
        app = cast(App, SimpleNamespace(out=Output("human", told, told, colour=True)))
        commit = Committed(fix, title="t", rank=1, because="b", slugs=("a",))
        work = ReviewItem((TaskView(TaskState("a", "a", {})),), (commit,), 1)
        review._show(app, cast(Run, SimpleNamespace(state=RunState())), project.git, work, "1 of 1")
        told.seek(0)
        shown = told.read()
        assert "\x1b[32m+quit()" in shown and "\x1b[1A" not in shown and "\x1b[2K" not in shown
        assert "index " not in shown and "+++" not in shown, "what only git needs"
    finally:
        project.close()


def test_dangerous_work_of_any_kind_comes_first_and_enter_does_not_keep_it(user: User) -> None:
    made = tmr_runs.begin_run(user, "night", MADE)
    first, second = works(view(Run(str(made)).state))
    assert (first.slugs[0].startswith("odd"), first.dangerous, second.dangerous) == (True, True, False)
    seen = on_a_terminal(user, "tmr", "review", typed="\n\n\n").ok().stdout
    assert seen.count("keep it?") == 3 and "2 of 2" not in seen, "no answer is no yes"
    assert "the branch stays as it is" in seen
    warned, changed = seen.index("LOOK AT THIS: `test_odd` had 6 assertions"), seen.index("+PLANTS = 3")
    assert warned < changed, "the warning is above the change"
    assert view(Run(str(made)).state).branch.accepted == ()


def test_what_was_looked_at_and_kept_is_not_asked_about_again(user: User) -> None:
    made = tmr_runs.begin_run(user, "night", MADE)
    assert "Look at 1 flagged commit before you merge" in user.mngr("tmr", "status").ok().stdout
    seen = on_a_terminal(user, "tmr", "review", typed="d\ny\np\ny\n\n").failed(3).stdout
    assert "| ## Why" in seen and seen.count("1 of 2: ") == 2
    (accepted,) = view(Run(str(made)).state).branch.accepted
    assert accepted.startswith("odd")
    assert "flagged" not in user.mngr("tmr", "status").ok().stdout
    assert "ON THE BRANCH (2)" in user.mngr("tmr", "status").ok().stdout


def test_nothing_is_done_before_a_person_says_so_to_the_summary(user: User) -> None:
    made = tmr_runs.begin_run(user, "night", MADE)
    before = (made / "ledger.jsonl").read_bytes()
    seen = on_a_terminal(user, "tmr", "review", typed="n\nb\nuse the list\nn\n").ok().stdout
    assert "drop 1, send back 1: build and measure the branch again? [y/N]" in seen and "nothing was changed" in seen
    assert (made / "ledger.jsonl").read_bytes() == before


@pytest.mark.timeout(300)
def test_work_that_is_sent_back_goes_to_its_agent_with_the_comment_and_the_branch_is_built_again(user: User) -> None:
    project = Calc(user)
    fix = "sed -i.old 's/ - b - 1/ - b/' calc.py && rm calc.py.old && git commit -qam 'Subtract what is asked' || true"
    project.script("test_sub", f"wait\nrun! {fix}\n" + FIX_SUB.partition("cost=0.01\n")[2])
    project.tmr("--no-canary", "-k", "sub").ok()
    seen = on_a_terminal(user, "tmr", "review", typed="b\nsay why\ny\n").stdout
    assert "keep 0" not in seen and "send back 1: build and measure the branch again?" in seen
    row = project.row("test_sub")
    assert (row["verdict"], row["attempts"]) == ("fixed", 1), "the agent that it had"
    events = user.mngr("event", row["agent"], "--format", "json").ok().json
    assert [event["text"] for event in events if event["type"] == "message_queued"][1:] == ["say why"]
    assert "Branch `tmr/r1` is ready: 1 commit" in seen


def test_work_that_is_not_on_the_branch_cannot_be_dropped(user: User) -> None:
    tmr_runs.begin_run(user, "night", MADE)
    refused = user.mngr("tmr", "review", "--drop", "test_lie").failed(2).stderr
    assert "no work of `lie" in refused and "on the branch is work of `odd" in refused
    assert "2 pieces of work to review, and no terminal to ask" in user.mngr("tmr", "review").failed(5).stderr
