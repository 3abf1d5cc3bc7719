"""Work that is not on the branch, kept on branches of its own: one commit on the base each, ready to be picked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from mngr.errors import MngrError
from mngr.system.process import CommandFailed
from mngr.tmr.branch.applier import Applier, State
from mngr.tmr.branch.objects import EMAIL, NewCommit, ours
from mngr.tmr.branch.planner import message
from mngr.tmr.branch.unit import SetAside, VerifiedWork, WorkPiece, makers_of

PREFIX = "mngr/set-aside"


class LeftOut(NamedTuple):
    """Pieces left out together."""

    pieces: tuple[WorkPiece, ...]
    reason: str
    paths: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()

    @property
    def makers(self) -> tuple[VerifiedWork, ...]:
        return makers_of(self.pieces)


def refused(work: VerifiedWork, reasons: Sequence[str]) -> SetAside:
    """Work that no branch is made for: nobody should check it out by accident."""
    return SetAside((work.slug,), (work.agent,), (work.task,), "all", reasons[0], evidence=tuple(reasons))


def keep(applier: Applier, run: str, left: Sequence[LeftOut]) -> tuple[SetAside, ...]:
    """Make the branches, and remove those of an earlier integration of this run. A branch on which somebody went on
    working is left as it is, and another name taken."""
    who = ours(applier.base.committed_at)
    news = []
    for one in left:
        state = applier.start
        for piece in one.pieces:
            answer = applier.apply(state, piece.part)
            state = answer if isinstance(answer, State) else state
        trailers = [("Mngr-Run", run), *(("Mngr-Agent", maker.agent) for maker in one.makers)]
        trailers += [("Mngr-Test", maker.task) for maker in one.makers]
        words = message(f"set aside: {one.makers[0].slug}", one.reason, trailers)
        news.append(NewCommit(applier.base.id, state.files, words, who, who))
    commits = applier.objects.write(news)
    names = _point(applier, run, [one.makers[0].slug for one in left], commits)
    return tuple(_told(one, name, commit) for one, name, commit in zip(left, names, commits, strict=True))


def _told(one: LeftOut, name: str, commit: str) -> SetAside:
    return SetAside(
        slugs=tuple(maker.slug for maker in one.makers),
        agents=tuple(maker.agent for maker in one.makers),
        tasks=tuple(maker.task for maker in one.makers),
        what=", ".join(sorted({path for piece in one.pieces for path in piece.part.paths})[:5]),
        reason=one.reason,
        branch=name,
        commit=commit,
        paths=one.paths,
        against=one.against,
        evidence=one.evidence,
    )


def _point(applier: Applier, run: str, slugs: Sequence[str], commits: Sequence[str]) -> list[str]:
    git = applier.objects.git
    folder = f"refs/heads/{PREFIX}/{_safe(run)}/"
    form = "--format=%(refname) %(objectname) %(committeremail) %(worktreepath)"
    stale: dict[str, str] = {}
    taken: set[str] = set()
    for line in git.must("for-each-ref", form, folder).splitlines():
        ref, commit, email, place = line.split(" ", 3)
        if email == f"<{EMAIL}>" and not place:
            stale[ref] = commit
        else:
            taken.add(ref)
    names: list[str] = []
    lines: list[str] = []
    for slug, commit in zip(slugs, commits, strict=True):
        first = folder + _safe(slug)
        ref = next(ref for number in count(1) if (ref := f"{first}-{number}" if number > 1 else first) not in taken)
        taken.add(ref)
        stale.pop(ref, None)
        names.append(ref.removeprefix("refs/heads/"))
        lines.append(f"update {ref} {commit}\n")
    lines = [*(f"delete {ref} {commit}\n" for ref, commit in stale.items()), *lines]
    if lines:
        try:
            git.must("update-ref", "--stdin", input="".join(lines).encode())
        except CommandFailed as error:
            raise MngrError(
                f"the branches under `{PREFIX}/` cannot be made",
                hint="a branch called `mngr` is in the way of them: `git branch -m mngr other-name`",
                details=error.details,
            ) from error
    return names


def _safe(name: str) -> str:
    """A name as a part of a ref; slugs of ours are safe already."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:120] or "work"
