"""What a file must not hold to get on the branch: secrets that are not in the base, and more bytes than allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mngr import secrets
from mngr.tmr.objects import Objects

MB = 1_000_000
_READ_AT_ONCE = 50 * MB


class ContentRules(NamedTuple):
    """`variables` are those that agents were given, whose values may be secret, by name."""

    largest_mb: float = 5
    variables: Mapping[str, str] = {}


def problems(objects: Objects, base: str, blobs: Iterable[str], rules: ContentRules) -> dict[str, str]:
    """What is wrong with each of the blobs, in words that follow its path and never tell the secret itself. What is
    anywhere in the base already is no secret: a made-up key of its tests, or an ordinary word."""
    sizes = objects.sizes(blobs)
    limit = rules.largest_mb * MB
    found = {
        blob: f"has {size / MB:.1f} MB, more than the {rules.largest_mb:g} MB of `tmr.largest_file_mb`"
        for blob, size in sizes.items()
        if size > limit
    }
    in_base: dict[str, bool] = {}
    for group in _groups({blob: size for blob, size in sizes.items() if blob not in found}):
        for blob, data in objects.blobs(group).items():
            for secret, kind in secrets.find(data.decode(errors="replace"), rules.variables).items():
                if secret not in in_base:
                    in_base[secret] = _holds(objects, base, secret)
                if not in_base[secret]:
                    found[blob] = f"holds {kind}"
    return found


def _groups(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """As many at a time as may be in memory together."""
    group: list[str] = []
    total = 0
    for blob in sorted(sizes):
        if group and total + sizes[blob] > _READ_AT_ONCE:
            yield group
            group, total = [], 0
        group.append(blob)
        total += sizes[blob]
    if group:
        yield group


def _holds(objects: Objects, base: str, text: str) -> bool:
    """Whether a file of the commit holds the text, which is not for the process list."""
    return objects.git.run("grep", "-q", "-F", "-f", "/dev/stdin", base, input=text.encode()).ok
