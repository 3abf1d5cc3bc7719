"""Measured strength of tests: products that nothing was tuned on, with versions of tests labelled before."""

import shutil
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.support.pytests import PLAIN
from tests.support.user import User
from tests.support.versions import BEFORE, DATA, compared, measured, versions


def test_edits_tell_stronger_weaker_and_same_versions_apart(user: User) -> None:
    chosen = [version for version in versions("till") if version.test in ("test_add", "test_export")]
    found = measured(user, "till", chosen, mutants=0)
    wrong = [one for one in compared(chosen, found) if not one.right]
    assert not wrong
    assert all(one.no_edits == "" and one.no_mutants for one in found.values())


def test_tests_in_one_process_are_measured_by_mutants(user: User) -> None:
    names = ("test_parse", "test_share", "test_totals")
    chosen = [version for version in versions("till") if version.test in names]
    found = measured(user, "till", chosen)
    wrong = [one for one in compared(chosen, found) if not one.right]
    assert not wrong
    assert all(one.no_mutants == "" and one.no_edits for one in found.values())


KINDS = """\
from pathlib import Path
from mngr.e2e import expect
from till import money

def test_says_it(e2e, tmp_path):
    expect(e2e.run(f"till add 3 bus && till export {tmp_path}/book")).to_succeed().to_contain(f"wrote {tmp_path}/book")
    expect(tmp_path / "book").to_contain('"bus"')

def test_waits(e2e):
    expect(lambda: e2e.run("echo x >> log; wc -l < log").stdout.strip()).to_equal("3", timeout=60)

def test_only_runs(e2e):
    e2e.run("till list")

def test_only_forbids(e2e):
    expect(e2e.run("till list")).not_to_contain("Traceback")

def test_on_a_screen(e2e):
    assert e2e.spawn("till list").wait_exit(timeout=60) == 0

def test_in_process():
    assert money.show(5) == "0.05"

def test_red():
    assert money.show(5) == "5"
"""


def strength(user: User, project: Path, *words: str) -> dict[str, Any]:
    user.env["MNGR__TMR__TEST_COMMAND"] = f"{sys.executable} -m pytest -p no:cacheprovider"
    return user.mngr("e2e", "strength", *words, "--format", "json", cwd=project, env=PLAIN, timeout=250).ok().json


def test_every_kind_of_test_is_measured_and_the_project_stays_as_it_is(user: User) -> None:
    project = user.root / "shop"
    shutil.copytree(DATA / "till", project)
    (project / "conftest.txt").rename(project / "conftest.py")
    (project / "test_kinds.py").write_text(KINDS)
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    copies = user.root / "copies"  # a directory of its own: others may measure at the same time
    copies.mkdir()
    user.env["TMPDIR"] = str(copies)
    found = strength(user, project, "--mutants", "3")
    rows = {row["test"].partition("::")[2]: row for row in found["tests"]}
    assert {name for name, row in rows.items() if row["word"] == "cannot fail"} == {"test_only_runs"}
    assert rows["test_only_runs"]["why"] == "nothing made it fail; it passes with a spoiled product"
    assert rows["test_only_forbids"]["word"] == "measured"  # a spoiled product has a traceback
    assert rows["test_red"]["why"] == "without a change it failed"
    says, waits, screen, inside = (
        rows[name] for name in ("test_says_it", "test_waits", "test_on_a_screen", "test_in_process")
    )
    assert says["edits"][0] >= 5 and says["mutants"][1] == 3
    assert waits["edits"][0] >= 1 and waits["seconds"] < 60  # nobody waits a minute for each edit
    assert screen["no_edits"] == "a full-screen program cannot be replayed" and screen["mutants"][1] == 3
    assert inside["no_edits"] == "it does not use `e2e`" and inside["mutants"][0] >= 2
    assert ("`till list`", "exit code 0 → 1") in {(one["where"], one["change"]) for one in found["unnoticed"]}
    assert before == {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert not [path.name for path in copies.iterdir() if path.name.startswith("mngr-strength-")]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_labels_given_by_hand_are_measured(user: User) -> None:
    shown, seconds = [], []
    for product in ("till", "conv", "slots"):
        chosen = versions(product)
        found = measured(user, product, chosen)
        shown += compared(chosen, found)
        seconds += [found[version.id].seconds for version in chosen if version.label != BEFORE]
    wrong = [one for one in shown if not one.right]
    print(f"{len(shown) - len(wrong)} of {len(shown)} right; median {median(seconds):.1f} s per version")
    for one in wrong:
        print(one.version.test, one.version.label, one.version.change, one.found)
    assert len(shown) >= 30
    assert len(wrong) <= 0.05 * len(shown)
    honest = {"same", "stronger", "mixed"}
    assert not [one for one in wrong if one.version.label in honest and one.found.word == "weaker"]
