"""`expect` says yes or no, in words that show what was seen, and waits only for what can change."""

import re
from pathlib import Path

import pytest

from mngr.e2e import Ran, expect
from mngr.e2e.bounded_text import CUT, Kept
from mngr.e2e.expectation import difference


def ran(exit_code: int = 0, stdout: str = "", stderr: str = "") -> Ran:
    return Ran("tool x", stdout, stderr, stdout + stderr, exit_code, 0.1)


class FakeScreen:
    """Shows the next text each time it is read."""

    title = "top"
    number = 4

    def __init__(self, *texts: str) -> None:
        self._texts = list(texts)

    @property
    def text(self) -> str:
        return self._texts.pop(0) if len(self._texts) > 1 else self._texts[0]

    def press(self, *keys: str) -> None: ...


def test_calls_chain():
    expect(ran(stdout="a b")).to_succeed().to_have_exit_code(0).to_contain("a").not_to_contain("c")
    expect("one\ntwo\n").to_match("^two$").not_to_match("^wo").to_contain("one").to_equal("one\ntwo\n")
    expect("").to_be_empty()
    expect(ran(3)).to_fail().to_have_exit_code(3)
    expect([1]).to_equal([1])
    expect('{"a": [1, 2], "b": null}').to_be_json().to_match_json({"a": [1, ...]})


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (
            lambda: expect(ran(2, stderr="no\n")).to_succeed(),
            "expected `tool x` to succeed, but it ended with exit code 2",
        ),
        (lambda: expect(ran(2, stderr="no\n")).to_succeed(), "stderr:\n  no"),
        (lambda: expect(ran(0)).to_fail(), "exit code 0, without a word"),
        (lambda: expect("abc").to_contain("x"), "expected the text to contain 'x', but it is:\n  abc"),
        (lambda: expect("").to_contain("x"), "but it is empty"),
        (lambda: expect("a\nb\n").to_equal("a\nc\n"), "-c\n  +b"),
        (lambda: expect("a\nb").to_equal("a\nb\n"), "-'b\\n'\n  +'b'"),
        (lambda: expect("a\r\n").to_equal("a\n"), "-'a\\n'\n  +'a\\r\\n'"),
        (lambda: expect("a").to_equal("b"), "it is 'a'"),
        (lambda: expect(3).to_equal(4), "expected the int to equal 4, but it is 3"),
        (lambda: expect("abc").not_to_match("b"), "not to match `b`"),
        (lambda: expect("{").to_be_json(), "Expecting property name"),
        (lambda: expect('{"a": {"b": 1}}').to_match_json({"a": {"b": 2}}), "`a.b` is 1 and not 2"),
        (lambda: expect(Path("/nowhere/x")).to_exist(), "not even `/nowhere` is there"),
        (lambda: expect(Path("/nowhere/x")).to_contain("a"), "it does not exist"),
        (lambda: expect(Path("/")).not_to_exist(), "it is there"),
        (lambda: expect(FakeScreen("a")).to_show("b"), "expected the screen of `top` to show 'b', but it is:\n  a"),
    ],
)
def test_a_failure_says_what_was_expected_and_seen(check, words):
    with pytest.raises(AssertionError) as caught:
        check()
    assert words in str(caught.value)


def test_what_can_change_is_looked_at_again(tmp_path):
    expect(FakeScreen("", "", "ready")).to_show(re.compile("rea.y"), timeout=60)
    expect(FakeScreen("busy", "busy", "done")).not_to_show("busy", timeout=60)
    file = tmp_path / "file"
    calls = []

    def later() -> str:
        calls.append(1)
        file.write_text("x" * len(calls))
        return file.read_text()

    expect(later).to_equal("xxx", timeout=60)
    assert len(calls) == 3
    expect(file).to_exist(timeout=60).to_have_content("xxx").to_have_content(re.compile("x+"))
    with pytest.raises(AssertionError, match=r"within 0.1 s"):
        expect(file).to_have_content("yyy", timeout=0.1)


def test_waiting_for_what_cannot_change_is_an_error_of_the_test():
    for value in ("text", ran()):
        with pytest.raises(TypeError, match=r"cannot change.*expect\(lambda"):
            expect(value).to_contain("x", timeout=1)


def test_the_wrong_kind_of_value_is_an_error_of_the_test():
    with pytest.raises(TypeError, match="needs a result"):
        expect("text").to_succeed()
    with pytest.raises(TypeError, match="needs a path"):
        expect("text").to_exist()
    with pytest.raises(TypeError, match="needs a text"):
        expect(3).to_contain("x")


def test_nothing_is_said_absent_from_text_with_a_part_left_out():
    kept = Kept(10, 10)
    kept.add("0123456789" * 100)
    assert kept.text() == f"0123456789\n{CUT}980 characters are left out here]\n0123456789"
    expect(kept.text()).to_contain("789")
    with pytest.raises(AssertionError, match="cannot be known"):
        expect(kept.text()).not_to_contain("x")


@pytest.mark.parametrize("size", [1, 7, 100])
def test_text_is_kept_whole_up_to_its_limit(size):
    kept = Kept(50, 50)
    text = "abcdefghij" * 10
    for at in range(0, 100, size):
        kept.add(text[at : at + size])
    assert (kept.text(), kept.size, kept.left_out) == (text, 100, 0)
    kept.add("!")
    assert kept.left_out == 1


def test_much_text_is_shown_in_part():
    with pytest.raises(AssertionError) as caught:
        expect("line\n" * 100_000).to_contain("x")
    assert len(str(caught.value)) < 6000
    assert "left out" in str(caught.value)


@pytest.mark.parametrize(
    ("expected", "found", "words"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, ""),
        ({"a": 1}, {"b": 2}, "`a` is missing"),
        ([1, 2], [1, 2, 3], "the value has 3 items and not 2"),
        ([1, ...], [1, 2, 3], ""),
        ([1, 2, ...], [1], "the value has 1 items and not 2 or more"),
        ({"a": ...}, {"a": None}, ""),
        ({"a": [{"n": re.compile("^x")}]}, {"a": [{"n": "xy"}]}, ""),
        ({"a": [{"n": re.compile("^x")}]}, {"a": [{"n": "y"}]}, "`a[0].n` is 'y' and does not match `^x`"),
        (True, 1, "the value is 1 and not True"),
        ({}, [], "the value is [], not an object"),
        ([], {}, "the value is {}, not a list"),
    ],
)
def test_json_is_compared_by_what_is_named(expected, found, words):
    assert difference(expected, found) == words
