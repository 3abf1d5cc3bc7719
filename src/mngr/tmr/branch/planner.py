"""The linear branch: one commit for each kind beside the implementation, what is flagged in commits of its own, then
each changed expectation, then each fix, most important first; and which of them can be reverted alone.

The same work gives the same commits, ids included: nothing here knows what time it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from mngr.tmr.branch.applier import Applier, State
from mngr.tmr.branch.conflict import UnitLine
from mngr.tmr.branch.objects import CommitFacts, Ident, NewCommit, Objects, TreeEntry, ours
from mngr.tmr.branch.unit import EXPECTATION, UNCONTROVERSIAL, Ranked, Unit, VerifiedWork, makers_of
from mngr.tmr.judge.paths import PathKind, Paths

_SUBJECT = 72
Files = Mapping[str, TreeEntry | None]
_TITLES = {
    PathKind.TEST: "tests",
    PathKind.TUTORIAL: "tutorial",
    PathKind.DOCS: "docs",
    PathKind.OTHER: "project files",
}
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


class Planned(NamedTuple):
    """A commit of the branch before it is made. `rank` is 0 for anything but a fix; `needs` are fixes."""

    kind: PathKind
    makers: tuple[VerifiedWork, ...]
    paths: tuple[str, ...]
    new: NewCommit
    unit: Unit | None = None
    rank: int = 0
    because: str = ""
    needs: tuple[Unit, ...] = ()
    place: str = UNCONTROVERSIAL


class Planner:
    """Turns a line of applied units into commits."""

    def __init__(self, run: str, applier: Applier, paths: Paths, facts: Mapping[str, CommitFacts]) -> None:
        self._run = run
        self._applier = applier
        self._paths = paths
        self._facts = facts

    def plan(self, line: UnitLine, ranks: Mapping[str, Ranked], needs: Mapping[str, Sequence[Unit]]) -> list[Planned]:
        """The commits on top of the base, each with the number of its parent in this list."""
        planned: list[Planned] = []
        state = self._applier.start
        leading = list(takewhile(lambda unit: unit.place == UNCONTROVERSIAL and not unit.flagged, line.units))
        if leading:
            state = line.states[len(leading) - 1][-1]
            planned += self._squashed(leading, state.files)
        for unit, states in zip(line.units[len(leading) :], line.states[len(leading) :], strict=True):
            if unit.fix is None:
                planned.append(self._alone(unit, _step(state, states[-1])))
            else:
                own = tuple(needs.get(unit.id, ()))
                planned.append(self._fix(unit, ranks[unit.id], own, _step(state, states[0])))
                planned += [self._tied(unit, _step(states[0], states[-1]))] if unit.rest else []
            state = states[-1]
        return self._chained(planned)

    def _squashed(self, units: Sequence[Unit], files: Files) -> list[Planned]:
        planned = []
        for kind, name in _TITLES.items():
            own = {path: entry for path, entry in files.items() if self._paths.kind(path) == kind}
            makers = makers_of(piece for unit in units for piece in unit.pieces if own.keys() & set(piece.part.paths))
            if own:
                count = (
                    f"{len(makers)} agents" if len(makers) > 1 else f"agent {makers[0].agent}" if makers else "agents"
                )
                title = f"{name}: the work of {count}"
                body = "\n".join(f"- {plain(maker.task)}: {_first(maker.summary) or 'changed'}" for maker in makers)
                planned.append(self._planned(kind, makers, own, title, body, ()))
        return planned

    def _alone(self, unit: Unit, files: Files) -> Planned:
        """Work beside the implementation that a person should look at: a commit of its own, to be reverted alone."""
        kind = min((self._paths.kind(path) for path in unit.paths), key=list(PathKind).index)
        title = f"{_TITLES[kind]}: {_first(unit.makers[0].summary) or plain(unit.makers[0].task)}"
        body = [_rest(unit.makers[0].summary)]
        if unit.place == EXPECTATION:
            lines = dict.fromkeys(plain(line) for maker in unit.makers for line in maker.evidence)
            what = "What the test expects is changed" if lines else "Only the test is changed"
            body += [f"{what}; the product is not.", "\n".join(f"- {line}" for line in lines)]
        text = "\n\n".join(filter(None, body))
        made = self._planned(kind, unit.makers, files, title, text, [("Mngr-Place", unit.place)])
        return made._replace(paths=tuple(sorted(unit.paths)), place=unit.place)

    def _fix(self, unit: Unit, ranked: Ranked, needs: tuple[Unit, ...], files: Files) -> Planned:
        assert unit.fix is not None
        makers = unit.fix.makers
        told = next((maker.summary for maker in makers if maker.summary.strip()), "")
        title = _first(told) or f"fix {plain(makers[0].task)}"
        body = "\n\n".join(part for part in (_rest(told), f"Rank {ranked.rank}: {ranked.because}.") if part)
        more = [
            ("Mngr-Rank", str(ranked.rank)),
            *(("Mngr-Needs", needed.pieces[0].makers[0].agent) for needed in needs),
        ]
        made = self._planned(PathKind.IMPLEMENTATION, makers, files, title, body, more)
        return made._replace(
            unit=unit,
            rank=ranked.rank,
            because=ranked.because,
            needs=needs,
            paths=unit.fix.part.paths,
            place=unit.place,
        )

    def _tied(self, unit: Unit, files: Files) -> Planned:
        """What needs the fix comes right after it and names it, so that both can leave together."""
        assert unit.fix is not None
        makers = makers_of(unit.rest)
        paths = sorted({path for piece in unit.rest for path in piece.part.paths})
        kind = min((self._paths.kind(path) for path in paths), key=list(PathKind).index)
        title = f"{_TITLES[kind]} for: {_first(unit.fix.makers[0].summary) or plain(unit.fix.makers[0].task)}"
        body = "Does not stand without the fix in the commit before it."
        made = self._planned(kind, makers, files, title, body, [("Mngr-Needs", unit.fix.makers[0].agent)])
        return made._replace(unit=unit, needs=(unit,), paths=tuple(paths), place=unit.place)

    def _planned(
        self,
        kind: PathKind,
        makers: tuple[VerifiedWork, ...],
        files: Files,
        title: str,
        body: str,
        more: Iterable[tuple[str, str]],
    ) -> Planned:
        trailers = [
            ("Mngr-Run", self._run),
            *(("Mngr-Agent", maker.agent) for maker in makers),
            *(("Mngr-Test", task) for task in dict.fromkeys(maker.task for maker in makers)),
            *(("Mngr-Accepted-Refuted", maker.overruled) for maker in makers if maker.overruled),
            *(("Mngr-Flag", flag) for flag in sorted({flag for maker in makers for flag in maker.flags})),
            *more,
        ]
        text = message(title, body, trailers)
        new = NewCommit(0, files, text, self._author(makers), self._author(()))
        return Planned(kind, makers, tuple(sorted(files)), new)

    def _author(self, makers: Sequence[VerifiedWork]) -> Ident:
        """The agent's own, when it is one alone; else ours, as late as the latest of theirs."""
        authors = [self._facts[maker.tip].author for maker in makers]
        if len({(author.name, author.email) for author in authors if author}) == 1 and None not in authors:
            return max((author for author in authors if author), key=lambda author: (author.at, author.zone))
        latest = max([self._applier.base.committed_at, *(author.at for author in authors if author)])
        return ours(latest)

    def _chained(self, planned: Sequence[Planned]) -> list[Planned]:
        """Parents, and committers whose dates never go back."""
        at = self._applier.base.committed_at
        chained = []
        for number, one in enumerate(planned):
            at = max(at, one.new.author.at)
            parent: str | int = number - 1 if number else self._applier.base.id
            new = one.new._replace(parent=parent, committer=ours(at))
            chained.append(one._replace(new=new))
        return chained


def message(title: str, body: str, trailers: Iterable[tuple[str, str]]) -> str:
    """A commit message whose trailers are ours: an agent's words cannot be taken for one."""
    words = plain(body, lines=True).strip("\n")
    safe = "\n".join(
        f" {line}" if re.match(r"[A-Za-z][A-Za-z0-9-]*\s*:|\(cherry", line) else line for line in words.split("\n")
    )
    lines = [f"{key}: {plain(value)}" for key, value in trailers]
    return "\n\n".join(part for part in (_cut(plain(title)), safe, "\n".join(lines)) if part) + "\n"


def plain(text: str, *, lines: bool = False) -> str:
    """Text from an agent without escapes, control and direction characters; on one line unless `lines`."""
    seen = _UNSEEN.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    return seen if lines else " ".join(seen.split())


def _first(summary: str) -> str:
    lines = [line.strip("#* \t") for line in plain(summary, lines=True).split("\n")]
    return _cut(next((line for line in lines if line), ""))


def _rest(summary: str) -> str:
    lines = plain(summary, lines=True).strip().split("\n")
    whole = len(lines[0].strip("#* \t")) <= _SUBJECT
    return "\n".join(lines[1:] if whole else lines).strip("\n")


def _cut(line: str) -> str:
    return line if len(line) <= _SUBJECT else line[: _SUBJECT - 1].rstrip() + "…"


def _step(before: State, after: State) -> Files:
    """What to put on the tree of `before` to have `after`."""
    old = before.files
    return {path: entry for path, entry in after.files.items() if path not in old or old[path] != entry}


class Revert(NamedTuple):
    """`clean`: git reverts it alone at the tip. `paths` are where it cannot, `needed_by` the later commits there."""

    clean: bool
    paths: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()


def reverts(
    objects: Objects, base: CommitFacts, steps: Mapping[str, Sequence[str]], asked: Sequence[str]
) -> dict[str, Revert]:
    """What reverting each of the asked commits at the tip would do, as `git revert` does it. `steps` are the commits of
    a linear branch, each with the paths that it is about."""
    if not asked:
        return {}
    ids = list(steps)
    facts, parents = {**objects.facts(ids), base.id: base}, dict(zip(ids, [base.id, *ids], strict=False))
    who = ours(base.committed_at)
    undone = [NewCommit(id, {}, "mngr: undone\n", who, who, facts[parents[id]].tree) for id in asked]
    merged = objects.merges([(ids[-1], commit) for commit in objects.write(undone)])
    found = {}
    for id, merge in zip(asked, merged, strict=True):
        later = ids[ids.index(id) + 1 :] if merge.conflicts else []
        there = [other for other in later if set(merge.conflicts).intersection(steps[other])]
        found[id] = Revert(not merge.conflicts, merge.conflicts, tuple(there or later))
    return found
