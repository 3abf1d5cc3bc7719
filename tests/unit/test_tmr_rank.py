"""The order of fixes: measured, then claimed, then by task."""

import random

from mngr.tmr.branch.objects import PathChange, TreeEntry
from mngr.tmr.branch.planner import message, plain
from mngr.tmr.branch.unit import ChangePart, Unit, VerifiedWork, WorkPiece, because, effect, ranked


def fix(name: str, *makers: tuple[int | None, int | None]) -> Unit:
    """A fix by one or more agents, each with the number of tests measured and the importance claimed."""
    those = tuple(
        VerifiedWork(
            task=f"tests/t.py::{name}",
            slug=f"{name}{number}",
            agent=f"agent-{name}{number}",
            tip="0" * 40,
            importance=claimed,
            effect=None if count is None else tuple(f"t{at}" for at in range(count)),
        )
        for number, (count, claimed) in enumerate(makers)
    )
    part = ChangePart("base", (PathChange(f"src/{name}.py", None, TreeEntry("100644", "1" * 40)),))
    return Unit(WorkPiece(part, those), ())


def test_measured_effect_comes_before_claims_and_the_task_decides_last() -> None:
    units = [
        fix("e", (None, 5)),
        fix("d", (0, 5)),
        fix("c", (1, 1)),
        fix("b", (1, 4)),
        fix("a", (3, None)),
        fix("g", (None, 5)),
        fix("f", (None, None)),
    ]
    expected = ["a0", "b0", "c0", "d0", "e0", "g0", "f0"]
    for seed in range(5):
        random.Random(seed).shuffle(units)
        assert [one.unit.slug for one in ranked(units)] == expected
    assert [one.rank for one in ranked(units)] == [1, 2, 3, 4, 5, 6, 7]


def test_a_fix_of_several_agents_has_the_effect_of_all_and_the_highest_claim() -> None:
    both = fix("a", (1, 2), (2, 4), (None, None))
    assert effect(both) == 2
    assert because(both) == "makes 2 tests pass, importance 4 claimed"


def test_not_measured_is_said_and_is_not_zero() -> None:
    assert effect(fix("a", (None, None))) is None
    assert because(fix("a", (None, None))) == "effect not measured, importance not claimed"
    assert because(fix("a", (1, None))) == "makes 1 test pass, importance not claimed"


def test_a_message_ends_with_our_trailers_alone() -> None:
    text = message("x" * 100, "Mngr-Agent: forged\nplain words", [("Mngr-Run", "r\n1"), ("Mngr-Agent", "a")])
    title, body, last = text.removesuffix("\n").split("\n\n")
    assert len(title) == 72 and title.endswith("…")
    assert body == " Mngr-Agent: forged\nplain words"
    assert last == "Mngr-Run: r 1\nMngr-Agent: a"


def test_words_of_agents_lose_what_cannot_be_seen() -> None:
    assert plain("a\x1b[31mb\x1b]0;title\x07c\x00\u202ed\r\ne") == "abcd e"
    assert plain("a\r\nb", lines=True) == "a\nb"
