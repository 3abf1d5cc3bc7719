"""What a reader of a run is told first, and the queue of decisions: from values alone."""

from collections.abc import Sequence
from typing import Any

from mngr.mapreduce.ledger_fold import fold
from mngr.mapreduce.state import RunState
from mngr.report.tmr_queue import excerpt
from mngr.report.tmr_rows import order_of, task_row
from mngr.report.tmr_suite import ReportData, matrix, suite
from mngr.tmr.run_view import RunView, view
from mngr.tmr.words.headline import Suite, headline
from mngr.tmr.words.questions import grouped, questions
from tests.unit.test_tmr_report import attempt, entries

FLAG = {"kind": "skip", "path": "tests/t.py", "text": "`t` has a new `skip`"}
ALL = Suite(8, 19, 0)


def run(*more: Any, tasks: Sequence[str] = "abcdef", **integration: Any) -> RunState:
    begin: list[Any] = [(0, "run", {"run": "r", "base": "b" * 40})]
    begin += [(0, "task", {"task": f"t.py::{name}", "slug": name, "data": {}}) for name in tasks]
    done: list[Any] = []
    if integration:
        data = {"commits": [], "set_aside": [], "green": True, "branch": "", **integration}
        done = [(90, "phase", {"name": "integrate", "status": "began"})]
        done += [(91, "phase", {"name": "integrate", "status": "ended", "data": data})]
        done += [(92, "finished", {"exit_code": 3, "summary": {}})]
    return fold(entries(*begin, *more, *done))


def tried(name: str, word: str, **found: Any) -> list[Any]:
    return attempt(f"t.py::{name}", 1, 9, word, **found)


def commit(*slugs: str, id: str = "c" * 40) -> dict[str, Any]:
    return {"id": id, "slugs": list(slugs)}


def aside(slug: str, reason: str = "clashes") -> dict[str, Any]:
    return {"slugs": [slug], "reason": reason, "branch": f"mngr/set-aside/{slug}"}


def told(state: RunState, suite: Suite = ALL) -> str:
    return headline(view(state), "over", suite).text


def groups(state: RunState) -> dict[str, list[str]]:
    seen = view(state)
    return {name: [task.slug for task in tasks] for name, tasks in grouped(seen, questions(seen)).items()}


def test_what_is_on_the_branch_and_dangerous_is_asked_first_and_each_test_once() -> None:
    claim = {"status": "blocked", "blocked_reason": "Sunday or Monday?", "blocked_needs": "a word"}
    contradiction = {"kind": "contradiction", "summary": "two texts", "locations": [], "evidence": ""}
    state = run(
        *tried("a", "blocked", claim=claim, escalations=[contradiction]),
        *tried("b", "stronger"),
        *tried("c", "fixed", flags=[FLAG]),
        *tried("d", "unproven"),
        *tried("e", "fixed"),
        *tried("f", "unchanged", flaky=True),
        commits=[commit("c"), commit("e", id="e" * 40)],
        set_aside=[aside("b")],
        branch="tmr/r",
    )
    found = questions(view(state))
    assert [(one.kind, one.tasks[0].slug) for one in found] == [
        ("on the branch", "c"),
        ("unproven", "d"),
        ("blocked", "a"),
        ("set aside", "b"),
        ("flaky", "f"),
    ]
    assert found[0].text == FLAG["text"] and found[0].paths == ("tests/t.py",)
    assert dict(found[0].commands)["take it off the branch"] == "mngr tmr review r --drop c"
    assert dict(found[1].commands) == {"accept it onto the branch": "mngr tmr integrate r --accept d"}
    assert found[2].text == "Sunday or Monday?"
    assert found[2].remarks == ("Needs: a word", "contradiction: two texts"), "one card for one test"
    assert "mngr tmr retry r --task a --message TEXT" in dict(found[2].commands).values()
    assert "git show mngr/set-aside/b" in dict(found[3].commands).values()


def test_equal_questions_are_one_with_all_tests() -> None:
    claims = [
        {"status": "blocked", "blocked_reason": f"f adds {at}, {name} wants two"} for at, name in enumerate("abc")
    ]
    state = run(
        *[one for name, claim in zip("abc", claims, strict=True) for one in tried(name, "blocked", claim=claim)]
    )
    (found,) = questions(view(state))
    assert [task.slug for task in found.tasks] == ["a", "b", "c"]
    assert "--task a --task b --task c" in found.commands[0][1]


def test_work_that_asks_the_same_is_not_accepted_without_looking_at_each() -> None:
    (found,) = questions(view(run(*tried("a", "unproven"), *tried("b", "unproven"))))
    assert [line for _, line in found.commands] == ["mngr tmr review r"]


def test_equal_questions_name_no_test_that_only_one_of_them_is_about() -> None:
    held = [
        line
        for name in ("test_x", "test_y")
        for line in tried(name, "held", reasons=[f"`t.py::{name}` passes with a spoiled product too"])
    ]
    asked = questions(view(run(*held, tasks=("test_x", "test_y"))))
    assert [(len(one.tasks), one.text) for one in asked] == [(2, "its test passes with a spoiled product too")]


def test_nearly_the_same_edit_is_one_question_that_says_what_each_says() -> None:
    flags = [[{"kind": "x", "path": "conftest.py", "text": f"waits {name}"}] for name in ("1 s", "2 s", "3 s")]
    held = [
        line
        for name, own in zip("abc", flags, strict=True)
        for line in tried(name, "held", flags=own, reasons=[own[0]["text"]])
    ]
    alike = [{"path": "conftest.py", "slugs": ["a", "b"]}]
    one, other = questions(view(run(*held, alike=alike, branch="tmr/r")))
    assert ([task.slug for task in one.tasks], one.text, one.remarks) == (["a", "b"], "waits 1 s", ("waits 2 s",))
    assert [task.slug for task in other.tasks] == ["c"], "another place is another question"
    elsewhere = [{"path": "t.py", "slugs": ["a", "b"]}]
    assert len(questions(view(run(*held, alike=elsewhere, branch="tmr/r")))) == 3, "not what is asked about"


def test_a_changed_expectation_is_shown_with_both_values() -> None:
    change = {"path": "tests/t.py", "line": 7, "before": "5", "after": "7"}
    state = run(*tried("a", "expectation changed", expectations=[change]), commits=[commit("a")], branch="tmr/r")
    (found,) = questions(view(state))
    assert (found.kind, found.text) == ("on the branch", "`tests/t.py:7` expects `7` instead of `5`")


def test_a_test_that_changed_with_its_fix_or_made_itself_steady_is_looked_at_first() -> None:
    steadied = {"flaky": True, "product_changed": False}
    state = run(
        *tried("a", "fixed together"),
        *tried("b", "fixed", **steadied),
        *tried("c", "fixed", flaky=True, product_changed=True),
        commits=[commit(slug, id=slug * 40) for slug in "abc"],
        branch="tmr/r",
    )
    asked = questions(view(state))
    assert sorted(task.slug for one in asked for task in one.tasks) == ["a", "b"]
    assert {commit for one in asked for commit in one.commits} == {"a" * 40, "b" * 40}
    assert "Look at 2 flagged commits before you merge." in told(state)


def test_what_a_person_accepted_is_not_asked_again() -> None:
    state = run(*tried("a", "held", flags=[FLAG]), commits=[commit("a")], accepted=["a"], branch="tmr/r")
    assert questions(view(state)) == [] and list(groups(state)) == ["queued", "on the branch"]
    assert "flagged" not in told(state)


def test_the_headline_says_whether_to_merge_and_what_to_look_at_first() -> None:
    tasks = [*tried("a", "fixed", flags=[FLAG]), *tried("b", "fixed"), *tried("c", "refuted"), *tried("d", "refused")]
    tasks += [*tried("e", "blocked"), *tried("f", "same")]
    both = [commit("a"), commit("b", id="e" * 40)]
    state = run(*tasks, commits=both, set_aside=[aside("f")], branch="tmr/r")
    assert told(state) == (
        "Branch `tmr/r` is ready: 2 commits, 8 → 19 tests pass, nothing got worse. Look at 1 flagged commit before you "
        "merge. 3 tasks did not make it (1 refuted, 1 refused, 1 blocked), 1 set aside."
    )
    commands = headline(view(state), "over", ALL).commands
    assert [line for _, line in commands] == ["mngr tmr review r", "git merge tmr/r"]
    red = headline(view(run(*tasks, commits=both, green=False, branch="tmr/r")), "over", ALL)
    assert red.title == "Do not merge `tmr/r` yet: its tests are red." and "git merge" not in str(red.commands)
    assert headline(view(state), "over", Suite(8, 9, 2)).title == "Do not merge `tmr/r` yet: 2 tests got worse."


def test_nothing_to_merge_says_why() -> None:
    blocked = [one for name in "abc" for one in tried(name, "blocked")]
    assert told(run(*blocked, tasks="abc", branch="")) == "Nothing to merge: all 3 tasks are blocked."
    assert told(run(*tried("a", "unchanged"), tasks="a", branch="")) == "Nothing to merge: no change was needed."
    mixed = run(*tried("a", "refuted"), *tried("b", "unchanged"), tasks="ab", branch="")
    assert told(mixed) == "Nothing to merge: 1 refuted, 1 unchanged."
    assert "mngr tmr resume r" in str(headline(view(run(tasks="a")), "broken off", ALL).commands)
    assert headline(view(run(*tried("a", "held"), tasks="ab")), "running", ALL).text == (
        "Running: 1 of 2 tasks settled. 1 question waits for you."
    )


def test_work_that_is_set_aside_is_neither_green_nor_counted_as_good() -> None:
    state = run(*tried("a", "fixed", after="passed"), set_aside=[aside("a")], branch="tmr/r")
    known = ReportData(view(state))
    row = task_row(known, known.run.tasks[0])
    assert (row["verdict"], row["kind"], row["place"]) == ("fixed", "set-aside", "set aside")
    assert row["why"] == "fixed, but clashes" and row["after"] == "passed"
    assert groups(state)["needs you"] == ["a"] and "on the branch" not in groups(state)


def test_a_verdict_that_nobody_knows_is_shown_last() -> None:
    rows = [{"kind": "odd-word"}, {"kind": "fixed"}]
    assert order_of(rows)[-1] == "odd-word" and "fixed" in order_of(rows)
    state = run(*tried("a", "odd word"), commits=[commit("a")], branch="tmr/r")
    assert groups(state)["on the branch"] == ["a"]


PATCH = """\
diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
 one
-two
+2
 three
diff --git a/tests/t.py b/tests/t.py
--- a/tests/t.py
+++ b/tests/t.py
@@ -1 +1 @@
-x
+y
@@ -40,2 +40,2 @@ def f():
 context
-    assert f() == 5
+    assert f() == 7
"""


def test_an_excerpt_shows_the_lines_in_question() -> None:
    assert excerpt(PATCH) == {"path": "a.py", "text": " one\n-two\n+2\n three", "left": 4}
    wanted = excerpt(PATCH, ["tests/t.py"], 41)
    assert wanted is not None and wanted["path"] == "tests/t.py"
    assert wanted["text"].split("\n")[-1] == "+    assert f() == 7"
    head, *lines = "@@ -1 +1,40 @@", *(f"+line {number}" for number in range(1, 41))
    long = excerpt("\n".join(["diff --git a/b b/b", head, *lines]), ["b"], 30)
    assert (
        long is not None and "+line 30" in long["text"] and len(long["text"].split("\n")) == 14 and long["left"] == 26
    )
    assert excerpt("") is None and excerpt("diff --git a/x b/x\nBinary files differ\n") is None


def test_every_test_is_in_the_matrix_with_how_it_moved() -> None:
    measured = {name: {"verdict": word} for name, word in {"f::a": "pass", "f::b": "fail", "f::c": "pass"}.items()}
    found = matrix(
        ReportData(
            RunView(RunState()), measured=measured, at_tip={"f::a": "skipped", "f::b": "passed", "f::n": "passed"}
        )
    )
    assert found["files"] == [
        {
            "name": "f",
            "tests": [
                ["a", "pass", "skip", "worse", ""],
                ["b", "fail", "pass", "better", ""],
                ["c", "pass", "missing", "worse", ""],
                ["n", "", "pass", "new", ""],
            ],
        }
    ]
    assert found["counts"] == {"worse": 2, "better": 1, "new": 1}
    state = run(excused=["f::a"], branch="tmr/r")
    unstable = ReportData(view(state), measured=measured, at_tip={"f::a": "failed", "f::b": "failed", "f::c": "passed"})
    assert matrix(unstable)["counts"] == {"unstable": 1, "still not passing": 1, "passes": 1}
    assert suite(unstable) == Suite(2, 1, 0), "the gate saw it pass again"
    loosened = run(not_passing=["f::b", "f::c"], branch="tmr/r")
    tip = {"f::a": "passed", "f::b": "passed", "f::c": "passed", "f::n": "passed"}
    counted = suite(ReportData(view(loosened), measured=measured, at_tip=tip))
    assert counted == Suite(2, 1, 0, changed=3, loosened=1)
    assert counted.text == ", 2 → 1 tests pass and 3 new or changed, 1 test that passed before only as changed"
    assert matrix(ReportData(RunView(RunState()), measured=measured))["counts"] == {"not measured": 3}
