"""Measured strength of tests: products that nothing was tuned on, with versions of tests labelled before."""

from statistics import median

import pytest

from tests.support.user import User
from tests.support.versions import BEFORE, compared, measured, versions


def test_edits_tell_stronger_weaker_and_same_versions_apart(user: User) -> None:
    chosen = [version for version in versions("till") if version.test in ("test_add", "test_export")]
    found = measured(user, "till", chosen, MNGR_STRENGTH_MUTANTS="0")
    wrong = [one for one in compared(chosen, found) if one.found.word != one.version.label]
    assert not wrong
    assert all(one.no_edits == "" and one.no_mutants for one in found.values())


def test_tests_in_one_process_are_measured_by_mutants(user: User) -> None:
    names = ("test_parse", "test_share", "test_totals")
    chosen = [version for version in versions("till") if version.test in names]
    found = measured(user, "till", chosen)
    wrong = [one for one in compared(chosen, found) if one.found.word != one.version.label]
    assert not wrong
    assert all(one.no_mutants == "" and one.no_edits for one in found.values())


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_labels_given_by_hand_are_measured(user: User) -> None:
    shown, seconds = [], []
    for product in ("till", "conv"):
        chosen = versions(product)
        found = measured(user, product, chosen)
        shown += compared(chosen, found)
        seconds += [found[version.id].seconds for version in chosen if version.label != BEFORE]
    wrong = [one for one in shown if one.found.word != one.version.label]
    print(f"{len(shown) - len(wrong)} of {len(shown)} right; median {median(seconds):.1f} s per version")
    for one in wrong:
        print(one.version.test, one.version.label, one.version.change, one.found)
    assert len(shown) >= 30
    assert len(wrong) <= 0.05 * len(shown)
    honest = {"same", "stronger", "mixed"}
    assert not [one for one in wrong if one.version.label in honest and one.found.word == "weaker"]
