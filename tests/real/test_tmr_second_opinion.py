"""`[tmr] second_opinion`: a variant of the test, by an agent that does not see the fix."""

import json

import pytest

from tests.support.tmr import OUTCOME, Project
from tests.support.user import User

PRODUCT = """\
def spell(number):
    return {1: "one"}.get(number, "")


def double(number):
    return number
"""
TESTS = """\
import calc


def test_spell():
    assert calc.spell(2) == "two"


def test_double():
    assert calc.double(4) == 8
"""
VARIANT = """\
wait
write tests/test_variant_{name}.py <<END
import calc


def test_{name}_otherwise():
    assert {claim}
END
commit A variant
"""


def fix(before: str, after: str) -> str:
    claim = json.dumps([{"kind": "implementation", "commit": "{head}", "summary": "Fix", "importance": 3}])
    edit = f"wait\nreplace calc.py <<END\n{before}\n====\n{after}\nEND\ncommit Fix\n"
    return edit + OUTCOME.format(status="done", changes=claim, summary="Fix")


@pytest.mark.timeout(300)
def test_a_fix_made_for_one_test_is_refuted_and_an_honest_one_confirmed(user: User) -> None:
    project = Project(user, product=PRODUCT, tests=TESTS)
    project.settings["second_opinion"] = "1"
    project.write(".mngr/settings.toml", project.toml().replace("second_opinion = 1", "second_opinion = true"))
    project.commit("settings")
    project.script("test_spell", fix('{1: "one"}', '{1: "one", 2: "two", 3: "three"}'))
    project.script("test_double", fix("    return number\n", "    return 8\n"))
    slugs = dict(zip(("spell", "double"), project.slugs("spell", "double"), strict=True))
    done = OUTCOME.format(status="done", changes="[]", summary="a variant")
    for name, claim in (("spell", 'calc.spell(3) == "three"'), ("double", "calc.double(21) == 42")):
        project.script(f"second opinion on {slugs[name]}", VARIANT.format(name=name, claim=claim) + done)
    project.tmr("--no-canary").failed(3)
    assert project.verdicts() == {"test_spell": "fixed", "test_double": "refuted"}
    assert "test_double_otherwise" in project.row("test_double")["why"]
    verdicts = [one["data"] for one in project.ledger() if one["type"] == "verdict" and "data" in one]
    notes = [note for one in verdicts for note in one.get("notes", ())]
    assert any(note.startswith("confirmed by a second opinion") for note in notes), notes
    again = len(project.ledger())
    project.resume()
    assert [one for one in project.ledger()[again:] if one["type"] in ("attempt", "measuring")] == []
