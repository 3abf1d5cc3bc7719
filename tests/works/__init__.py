"""Pieces of agents' work whose truth is known, one agent each, written before what has to judge them and by others."""

from collections.abc import Mapping
from typing import NamedTuple

# Where work may end. ON_BRANCH: nobody is asked anything about it. ASKED: a person is asked first, or is shown it as
# something to look at, whether it is on the branch or held. REFUTED: it is not on the branch, as wrong work.
ON_BRANCH, ASKED, REFUTED = "on the branch", "asked", "refuted"


class Edit(NamedTuple):
    """`old`, which is in the file once, is replaced by `new`. Without `old` the file is new, or replaced as a whole;
    without both it is removed."""

    path: str
    old: str
    new: str


class Work(NamedTuple):
    """One task and what its agent does. `files` are at the base, used by no other work: product below `src/shop/`,
    tests below `tests/`. `task` is the id of the test that the agent was given; by default `tests/test_NAME.py::test_NAME`.

    `family` groups works of one idea. `ends` are the places that are right. `story` says in one line what was done and
    why that is right or wrong. `base` and `tip` are the tests that fail in plain pytest, at the base and with the work,
    as ids. Two works that only together are wrong name each other as `partner`."""

    family: str
    story: str
    files: Mapping[str, str]
    edits: tuple[Edit, ...]
    ends: frozenset[str]
    base: tuple[str, ...] = ()
    tip: tuple[str, ...] = ()
    task: str = ""
    partner: str = ""
    summary: str = "Fix the failing test"
