"""When several agents make the same edit in other words: what counts as the same, and what does not."""

import time

import pytest

from mngr.tmr.branch.same_edit import written_alike

BASE = "import os\n\n\ndef clock():\n    return os.times()\n\n\ndef other():\n    return 1\n"


def alike(one: str, other: str, *, renamed: bool = False, path: str = "conftest.py", base: str = BASE) -> bool:
    first, second = written_alike(path, base.encode(), [one.encode(), other.encode()], renamed=renamed)
    assert first == one.encode(), "the first stays as it is"
    assert second in (one.encode(), other.encode())
    return second == first


def with_body(text: str) -> str:
    return BASE.replace("    return os.times()\n", text)


@pytest.mark.parametrize(
    "other",
    [
        "    return os.times()[0]  # seconds\n",
        "    # only the seconds\n    return os.times()[0]\n",
        "    return os.times()[ 0 ]\n",
        "\n    return (os.times()[0])\n",
    ],
)
def test_comments_blank_lines_and_layout_make_no_other_edit(other: str) -> None:
    assert alike(with_body("    return os.times()[0]\n"), with_body(other))


@pytest.mark.parametrize(
    "other",
    [
        "    return os.times()[1]\n",
        "    return os.times()\n    return 0\n",
        "    if os:\n        return os.times()[0]\n",
    ],
)
def test_what_says_something_else_is_another_edit(other: str) -> None:
    assert not alike(with_body("    return os.times()[0]\n"), with_body(other), renamed=True)


def test_names_that_the_edit_introduces_count_only_where_that_is_measured() -> None:
    one = with_body('    """The seconds."""\n    now = os.times()\n    return now[0]\n')
    other = with_body('    """Seconds, alone."""\n    moment = os.times()\n    return moment[0]\n')
    assert not alike(one, other) and alike(one, other, renamed=True)
    attribute = with_body("    now = os.uname()\n    return now[0]\n")
    assert not alike(one, attribute, renamed=True), "a name that it does not introduce says what it does"


def test_an_edit_of_its_own_beside_the_same_one_stays() -> None:
    one = with_body("    return os.times()[0]\n")
    other = with_body("    return os.times()[0]  # seconds\n").replace("return 1", "return 2")
    _, made = written_alike("conftest.py", BASE.encode(), [one.encode(), other.encode()], renamed=False)
    assert made.decode() == one.replace("return 1", "return 2")


def test_the_same_new_file_is_one_and_indentation_means_something_elsewhere() -> None:
    assert alike("x = 1\n", "# why\nx = 1\n", base="")
    spaced = ("a:\n  b: 1\n", "a:\n  b:  1\n\n")
    assert alike(*spaced, path="c.yaml", base="", renamed=True) and not alike(*spaced, path="c.yaml", base="")
    assert not alike("a:\n  b: 1\n", "a:\nb: 1\n", path="c.yaml", base="", renamed=True)
    assert not alike("# One\n", "# Two\n", path="README.md", base="", renamed=True)


def test_what_looks_like_a_comment_and_is_text_counts() -> None:
    base = 'TEXT = """\nx = 0\n"""\n'
    one, other = (base.replace("x = 0", line) for line in ("x = 1  # one", "x = 1  # two"))
    assert not alike(one, other, base=base) and not alike(one, other, base=base, renamed=True)


def test_the_same_lines_in_another_place_are_another_edit() -> None:
    long = "".join(f"x{number} = {number}\n" for number in range(20))
    one, other = long.replace("x2 = 2\n", "x2 = 2\ny = 1\n"), long.replace("x15 = 15\n", "x15 = 15\ny = 1\n")
    assert not alike(one, other, base=long)


def test_a_hundred_agents_in_one_long_file_cost_little() -> None:
    base = "".join(f"def f{number}(a):\n    return a + {number}\n\n\n" for number in range(750))
    versions = [base.replace("return a + 70\n", f"return a - 70  # {number}\n").encode() for number in range(100)]
    began = time.process_time()
    assert set(written_alike("calc.py", base.encode(), versions, renamed=True)) == {versions[0]}
    assert time.process_time() - began < 10, "0.2 s on an idle machine, 58 s without a look at both ends first"
