"""What must not get on a branch that people check out, whatever its tests do: odd paths, links that lead out,
submodules, read-only paths, secrets that are not in the base, and more bytes than allowed."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mngr import secrets
from mngr.tmr.branch.objects import Objects, PathChange
from mngr.tmr.judge.paths import Paths

LINK, SUBMODULE = "120000", "160000"
MB = 1_000_000
_READ_AT_ONCE = 50 * MB


class ContentRules(NamedTuple):
    """`variables` are those that agents were given, whose values may be secret, by name."""

    largest_mb: float = 5
    variables: Mapping[str, str] = {}


def refusals(
    objects: Objects, base: str, works: Iterable[Sequence[PathChange]], paths: Paths, rules: ContentRules
) -> list[tuple[str, ...]]:
    """For each change, why it is refused; empty for one that may get on the branch. All files are read together."""
    works = list(works)
    news = [change.new for changes in works for change in changes if change.new]
    targets = objects.blobs(new.oid for new in news if new.mode == LINK)
    problems = _problems(objects, base, (new.oid for new in news if new.mode != SUBMODULE), rules)
    return [reasons(changes, targets, paths, problems) for changes in works]


def reasons(
    changes: Sequence[PathChange], targets: Mapping[str, bytes], paths: Paths, problems: Mapping[str, str]
) -> tuple[str, ...]:
    """`targets` are those of symbolic links, by blob, `problems` what is wrong with the content of others. Pure."""
    found = []
    for change in changes:
        if not _plain(change.path):
            found.append(f"`{change.path}` is a path that git must not check out")
        if change.new and change.new.mode == LINK:
            target = targets.get(change.new.oid, b"/").decode(errors="surrogateescape")
            if _leaves(change.path, target):
                found.append(f"`{change.path}` is a symbolic link out of the repository, to `{target[:200]}`")
        elif change.new and change.new.mode == SUBMODULE:
            found.append(f"`{change.path}` is another repository (a submodule), whose content is not part of this one")
        elif change.new and change.new.oid in problems:
            found.append(f"`{change.path}` {problems[change.new.oid]}")
    found += [f"`{path}` is read-only" for path in paths.touched_read_only(change.path for change in changes)]
    return tuple(found)


def _plain(path: str) -> bool:
    names = path.split("/")
    return not any(name in ("", ".", "..") or name.casefold() in (".git", "git~1") for name in names)


def _leaves(path: str, target: str) -> bool:
    """Whether a link points out of the repository, or into git's own directory."""
    names = target.split("/")
    climbs_late = (
        ".." in names[next((at for at, name in enumerate(names) if name not in ("..", ".", "")), len(names)) :]
    )
    if target.startswith("/") or "\0" in target or climbs_late:  # `link/..` is wherever that link leads
        return True
    reached = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return reached.split("/")[0] in ("..", "") or ".git" in reached.casefold().split("/")


def _problems(objects: Objects, base: str, blobs: Iterable[str], rules: ContentRules) -> dict[str, str]:
    """What is wrong with each of the blobs, in words that follow its path and never tell the secret itself. What is
    anywhere in the base already is no secret: a made-up key of its tests, or an ordinary word."""
    sizes = objects.sizes(blobs)
    limit = rules.largest_mb * MB
    found = {
        blob: f"has {size / MB:.1f} MB, more than the {rules.largest_mb:g} MB of `tmr.largest_file_mb`"
        for blob, size in sizes.items()
        if size > limit
    }
    small = sorted(blob for blob in sizes if blob not in found)
    totals = itertools.accumulate(sizes[blob] for blob in small)
    in_base: dict[str, bool] = {}
    # As many at a time as may be in memory together.
    for _, group in itertools.groupby(zip(small, totals, strict=True), key=lambda pair: pair[1] // _READ_AT_ONCE):
        for blob, data in objects.blobs(blob for blob, _ in group).items():
            for secret, kind in secrets.find(data.decode(errors="replace"), rules.variables).items():
                if secret not in in_base:  # by standard input: a secret is not for the process list
                    grep = ("grep", "-q", "-F", "-f", "/dev/stdin", base)
                    in_base[secret] = objects.git.run(*grep, input=secret.encode()).ok
                if not in_base[secret]:
                    found[blob] = f"holds {kind}"
    return found
