"""Signatures of failures: the same for the same failure, and for no other."""

import pytest

from mngr.signature import signature
from mngr.tmr.measure.rows import failure


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("took 1.25 s for 3 agents", "took 0.5 s for 12 agents"),
        ("no file /tmp/e2e-a1b2/repo/x", "no file /var/folders/zz/e2e-9/repo/x"),
        ("object at 0x7f00aa", "object at 0x1234ff"),
        ("commit 3f2a9bc1d", "commit 00aa11bb22"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-e89b-12d3-a456-42661417ffff"),
        ("at 2026-11-16T05:00:00.1Z", "at 2025-01-01 06:00:00"),
        ("cannot open 'tmpab12/x'", "cannot open 'tmp-9/x'"),
    ],
)
def test_the_same_failure_has_one_signature(one, other):
    assert signature(one) == signature(other)


def test_other_failures_have_other_signatures():
    made = [signature(text) for text in ("expected 'create'", "expected 'list'", "feedback deadbeef", "")]
    assert len(set(made)) == len(made)
    assert len(signature("x" * 10_000)) < 400


def test_tasks_that_fail_alike_have_one_signature_whatever_they_are_called():
    one, other = "agent `fix-1` ended: no such file 'a/b'", "agent `other` ended: no such file 'c'"
    assert signature(one, any_name=True) == signature(other, any_name=True) != signature(one)


def test_the_signature_of_a_failed_test_is_that_of_its_error():
    text = "ValueError: 7 agents at 2026-11-16T05:00:00Z in /tmp/x/y took 1.5 s"
    assert failure(f"header\nE   assert x\nE   {text}\n") == failure(f"{text}\nlast words\n") == signature(text)
    assert failure("first\nlast words\n\n") == "last words"
