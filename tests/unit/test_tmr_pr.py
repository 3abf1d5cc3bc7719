"""The words of a pull request, and a run as JUnit XML."""

from typing import Any
from xml.etree import ElementTree as ET

from mngr.tmr.run_view import view
from mngr.tmr.words import junit, pr
from mngr.tmr.words.headline import Suite
from tests.unit.test_tmr_queue import FLAG, aside, run, tried


def commit(slug: str, number: int, **more: Any) -> dict[str, Any]:
    facts = {"id": f"{number:040x}", "kind": "implementation", "title": f"Fix {slug} " + "x" * 150, "rank": number}
    facts |= {"because": "makes 1 test pass", "slugs": [slug], "agents": [f"agent-{slug}"], "needed_by": []}
    return {**facts, **more}


def test_a_pull_request_says_first_what_to_look_at() -> None:
    change = {"path": "t.py", "line": 3, "before": "5", "after": "7"}
    state = run(
        *tried("a", "fixed", flags=[FLAG]),
        *tried("b", "expectation changed", expectations=[change]),
        *tried("c", "stronger"),
        tasks="abc",
        commits=[
            commit("c", 1, kind="test", rank=0, place="uncontroversial"),
            commit("b", 2, kind="test", rank=0, place="expectation"),
            commit("a", 3, place="fix"),
        ],
        branch="tmr/r",
    )
    text = pr.text(view(state), suite=Suite(1, 3, 0))
    assert text.startswith(
        "# Tests: 1 fixed, 1 expectation changed, 1 stronger\n\nBranch `tmr/r` is ready: 3 commits, 1 → 3"
    )
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Look at these first",
        "## Fixes, most important first",
        "## Changed expectations, a commit each",
        "## Tests, tutorial and docs",
        "## Tests",
    ]
    assert "`t.py:3` expects `7` instead of `5`" in text and FLAG["text"] in text


def test_a_pull_request_of_a_thousand_tasks_fits_and_says_what_is_missing() -> None:
    names = [f"task{number}" for number in range(1000)]
    given = [one for name in names for one in tried(name, "fixed", reasons=["because " + "y" * 200])]
    commits = [commit(name, number) for number, name in enumerate(names, 1)]
    narrative = "Title\n\n" + "z" * 70_000
    text = pr.text(view(run(*given, tasks=names, commits=commits, branch="tmr/r", narrative=narrative)))
    assert 60_000 < len(text) <= 65_536
    assert "more rows are in the report of the run." in text and "1000 more rows" in text
    assert "| 1 | `00000000` |" in text, "the most important fixes are there"


def test_work_that_is_set_aside_is_no_passed_case() -> None:
    state = run(
        *tried("a", "fixed"), *tried("b", "fixed"), tasks="ab", commits=[commit("a", 1)], set_aside=[aside("b")]
    )
    suite = ET.fromstring(junit.xml(view(state)))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "0", "1")
