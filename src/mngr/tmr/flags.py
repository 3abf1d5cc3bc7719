"""What a person should look at in a change, since a good fix may do it too: weaker tests, special cases. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mngr.tmr import build_flags, judging_flags, weaker_tests
from mngr.tmr.changed_file import File, Flag
from mngr.tmr.outcome import IMPLEMENTATION

__all__ = ["HOLDING", "STEERING", "File", "Flag", "find", "misclaimed"]
# Flags of files that decide how tests are judged, also those of others: measurements take them from the base.
STEERING = judging_flags.KINDS
# With these, a person must accept the work before it goes on the branch.
HOLDING = STEERING | build_flags.KINDS
_UNDER_TEST = ("PYTEST_CURRENT_TEST", "PYTEST_VERSION", "MNGR_TMR_ROWS", "pytest")


def find(changed: Sequence[File], *, test: str, commands: Sequence[str] = ()) -> list[Flag]:
    """All flags of a change that was made for one test (empty for a change of many), in the order of its files.
    `commands` are those by which the tests are run and judged."""
    flags: list[Flag] = []
    words = judging_flags.words_of(commands)
    for file in changed:
        if file.implementation:
            flags += _special_cases(file, test)
        else:
            flags += weaker_tests.find(file)
        judging = list(judging_flags.find(file, words))
        flags += judging
        if not any(flag.kind == "test-command" for flag in judging):
            flags += build_flags.find(file)
    return flags


def misclaimed(claims: Sequence[Mapping[str, str]], implementation: Sequence[str]) -> Iterator[Flag]:
    """Where the kinds of change that an agent claims are not those that it made: `implementation` are the paths of such
    kind that it changed."""
    says_so = any(claim["kind"] == IMPLEMENTATION for claim in claims)
    if implementation and not says_so:
        yield Flag(
            "claim", implementation[0], f"`{implementation[0]}` is changed, and no change of such kind is claimed"
        )
    if says_so and not implementation:
        yield Flag("claim", "", "a change of the implementation is claimed, and there is none")


def _special_cases(file: File, test: str) -> Iterator[Flag]:
    """Product code that knows about its test."""
    name = test.rpartition("::")[2].partition("[")[0]
    stem = test.partition("::")[0].rpartition("/")[2].removesuffix(".py")
    for number, line in file.added():
        for word in filter(None, (name, stem, *_UNDER_TEST)):
            if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", line):
                yield Flag("names-the-test", file.path, f"line {number} of the product mentions `{word}`")
                break
