"""What a person decides against or beyond the measurements: refuted work that is right, and a variant for one fix."""

import json

import pytest

from tests.real.test_tmr_second_opinion import PRODUCT, TESTS, VARIANT, fix
from tests.support.terminals import on_a_terminal
from tests.support.tmr import OUTCOME, Project
from tests.support.user import User

pytestmark = pytest.mark.timeout(400)

CHANGES = json.dumps([{"kind": "implementation", "commit": "{head}", "summary": "Negate", "importance": 3}])
# Right for its own test, and another one is gone.
BREAKING = (
    "wait\nreplace calc.py <<END\n    return a - b - 1\n====\n    return a - b\nEND\n"
    "replace tests/test_calc.py <<END\ndef test_add():\n    assert calc.add(1, 2) == 3\n\n\n====\nEND\n"
    "commit Subtract\n" + OUTCOME.format(status="done", changes=CHANGES, summary="Subtract, and add nothing")
)


def test_refuted_work_is_accepted_for_a_reason_and_marked_everywhere(user: User) -> None:
    project = Project(user)
    project.script("test_sub", BREAKING)
    project.tmr("--no-canary").failed(3)
    assert project.row("test_sub")["verdict"] == "refuted" and project.row("test_sub")["place"] == ""
    refused = user.mngr("tmr", "review", "--accept-refuted", "test_sub").failed(2).stderr
    assert "for a reason only" in refused
    wrong = user.mngr("tmr", "review", "--accept-refuted", "test_add", "--reason", "x").failed(2).stderr
    assert "is unchanged, not refuted work" in wrong

    seen = on_a_terminal(user, "tmr", "review", "--refuted", typed="y\ny\n\ny\nnobody adds\ny\n").stdout
    assert "LOOK AT THIS: refuted: `tests/test_calc.py::test_add` is deleted" in seen
    assert "why is it right?" in seen, "no reason is no answer"
    row, found = project.row("test_sub"), project.status()["integration"]
    assert (row["verdict"], row["place"]) == ("refuted", "on the branch")
    assert row["why"].startswith("accepted by a person: nobody adds; ")
    assert found["overruled"] == {row["slug"]: "nobody adds"} and found["green"]
    message = user.git("log", "--format=%B", f"{found['base']}..{found['tip']}")
    assert "Mngr-Accepted-Refuted: nobody adds" in message and "Mngr-Flag: refuted" in message
    status = user.mngr("tmr", "status").stdout
    assert "1 test got worse as a person accepted" in status and "1 refuted and accepted by a person" in status
    pages = next((project.user.repo / ".mngr" / "runs" / "r1").glob("pr.md")).read_text()
    assert "refuted, and accepted by a person: nobody adds" in pages

    user.mngr("tmr", "review", "--drop", "test_sub", timeout=200).failed(3)
    assert project.row("test_sub")["place"] == "" and project.status()["integration"]["overruled"] == {}
    user.mngr("tmr", "review", "--accept-refuted", "test_sub", "--reason", "it is", timeout=200).failed(3)
    assert project.row("test_sub")["place"] == "on the branch"


def test_a_review_asks_for_a_variant_of_the_test_of_one_fix(user: User) -> None:
    project = Project(user, product=PRODUCT, tests=TESTS)
    project.script("test_spell", fix('{1: "one"}', '{1: "one", 2: "two", 3: "three"}'))
    project.script("test_double", fix("    return number\n", "    return number * 2\n"))
    done = OUTCOME.format(status="done", changes="[]", summary="a variant")
    for name, claim in (("double", "calc.double(21) == 42"), ("spell", 'calc.spell(2) == "two"')):
        [slug] = project.slugs(name)
        project.script(f"second opinion on {slug}", VARIANT.format(name=name, claim=claim) + done)
    project.tmr("--no-canary").ok()
    seen = on_a_terminal(user, "tmr", "review", typed="s\nv\ny\n").stdout
    assert "[v] ask another agent for a variant" in seen and "ask for a variant 1" in seen
    asked = [
        entry["data"]["about"] for entry in project.ledger() if entry["type"] == "task" and "about" in entry["data"]
    ]
    [slug] = asked  # nobody is asked about the other fix
    notes = [note for one in project.ledger() if one["type"] == "verdict" for note in one["data"].get("notes", ())]
    assert any(note.startswith("confirmed by a second opinion") for note in notes), notes
    assert "has one already" in user.mngr("tmr", "review", "--second-opinion", slug).failed(2).stderr
