"""What a person should look at in a change, since a good fix may do it too: weaker tests, special cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from mngr.tmr.branch.objects import Objects, PathChange, TreeEntry
from mngr.tmr.judge import bent_code, echo, steering_files, weaker_tests
from mngr.tmr.judge.changed_file import File, Flag
from mngr.tmr.judge.paths import Paths
from mngr.tmr.judge.refusals import LINK
from mngr.tmr.outcome import IMPLEMENTATION

__all__ = ["HOLDING", "STEERING", "File", "Flag", "files_of", "find", "misclaimed"]
_TEXT_MAX = 500_000
_EVERYWHERE = Paths()
# Flags of files that decide how tests are judged, also those of others: measurements take them from the base.
STEERING = steering_files.JUDGING
# With these, a person must accept the work before it goes on the branch.
UNREAD = "unread"
HOLDING = STEERING | weaker_tests.KINDS | bent_code.KINDS | echo.HOLDING | {UNREAD}


def files_of(objects: Objects, changes: Sequence[PathChange], *, product: Callable[[str], bool]) -> list[File]:
    """Both sides of the changed files, as text; that of a link or of a very large file is empty."""
    sides = [entry.oid for change in changes for entry in (change.old, change.new) if entry and entry.mode != LINK]
    blobs = {oid: data for oid, data in objects.blobs(sides).items() if len(data) <= _TEXT_MAX}

    def text(entry: TreeEntry | None) -> str | None:
        return blobs.get(entry.oid, b"").decode(errors="replace") if entry else None

    def unread(entry: TreeEntry | None) -> bool:
        return entry is not None and entry.oid not in blobs

    return [File(one.path, text(one.old), text(one.new), product(one.path), unread(one.new)) for one in changes]


def find(
    changed: Sequence[File],
    *,
    test: str,
    commands: Sequence[str] = (),
    paths: Paths = _EVERYWHERE,
    test_file: str | None = None,
    where: Callable[[str], echo.Places] = lambda _: echo.Places(),
) -> list[Flag]:
    """All flags of a change that was made for one test (empty for a change of many). `commands` are those by which the
    tests are run and judged, `test_file` is the text of the test's file at the base, `where` says where the base has a
    text."""
    flags = list(echo.find(changed, test=test, test_file=test_file, where=where))
    words = steering_files.words_of(commands)
    for file in changed:
        if file.unread:
            told = f"`{file.path}` is a link or larger than {_TEXT_MAX // 1000} kB, and was not looked at"
            flags.append(Flag(UNREAD, file.path, told))
        if not file.implementation:
            flags += weaker_tests.find(file)
        flags += bent_code.find(file)
        flags += steering_files.find(file, paths.kind(file.path), paths, words)
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
