"""Which versions of tests are compared, and what a spoiled product is."""

from mngr.tmr.judge.work_strength import joined, paired
from mngr.tmr.measure.canary import without_bodies
from mngr.tmr.measure.strength import Strength

BASE = ["a.py::test_a", "a.py::test_b[1]", "a.py::test_b[2]"]


def test_tests_are_compared_with_what_they_were_cases_that_differ_as_one() -> None:
    assert paired(["a.py::test_a", "a.py::test_new"], BASE) == [(["a.py::test_a"],) * 2, ([], ["a.py::test_new"])]
    same = ["a.py::test_b[1]", "a.py::test_b[2]"]
    assert paired(same, BASE) == [([same[0]], [same[0]]), ([same[1]], [same[1]])]
    assert paired(["a.py::test_b[1]", "a.py::test_b[3]"], BASE) == [(same, ["a.py::test_b[1]", "a.py::test_b[3]"])]


def test_functions_and_constants_are_spoiled() -> None:
    assert "raise RuntimeError" in (without_bodies("A = 1\n\n\ndef b():\n    return A\n") or "")
    assert "return object()" in (without_bodies("def b():\n    return 1\n", "return object()") or "")
    assert without_bodies("import os  # one\n") == "import os  # one\n"
    assert without_bodies("") == ""  # as in many an `__init__.py`, without which nothing could be imported
    assert without_bodies("def (") is None


def test_tests_that_could_not_be_compared_are_not_counted_beside_those_that_could() -> None:
    weaker, unknown = Strength("weaker", (10, 13), (9, 13)), Strength("not measured", (0, 0), (10, 13))
    found = joined([unknown, weaker])
    assert (found.word, found.before, found.after) == ("weaker", (10, 13), (9, 13))
    assert joined([unknown]).after == (10, 13)


def test_constants_of_a_spoiled_product_have_other_values() -> None:
    spoiled = without_bodies("A = 7\nB: str = 'b'\nC = {'x': [True]}\nD = A + 1\n__all__ = ['A']\n")
    assert spoiled is not None
    found: dict[str, object] = {}
    exec(spoiled, found)
    assert found["A"] == 9980 and found["B"] == "b mngr canary" and found["C"] == {"x mngr canary": [False]}
    assert found["__all__"] == ["A"]
