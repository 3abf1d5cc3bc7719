"""From what was collected of an agent to its verdict: all evidence is gathered here, once, and the decision follows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mngr.tmr.blocks import Blocks
from mngr.tmr.branch.objects import Objects, PathChange
from mngr.tmr.judge import doctests, echo, expectations, flags, weaker_tests, work_strength
from mngr.tmr.judge.at_tip import again_at_base, at_its_commit
from mngr.tmr.judge.beyond import beyond, knows_keys
from mngr.tmr.judge.decide import Claim, claim_of, decide, wrong_with
from mngr.tmr.judge.evidence import Change, Evidence, Marks, Trouble
from mngr.tmr.judge.halves import halves
from mngr.tmr.judge.lost_tests import in_other_form
from mngr.tmr.judge.paths import PathKind
from mngr.tmr.judge.refusals import refusals
from mngr.tmr.judge.steering_files import with_read
from mngr.tmr.judge.users import users
from mngr.tmr.judge.verdict import BLOCKED, INTEGRATED, Verdict
from mngr.tmr.judge.work import Work, work_of
from mngr.tmr.measure.base import BaseCommit, BaseText
from mngr.tmr.measure.baseline import FAIL, UNKNOWN
from mngr.tmr.measure.generality import GENERAL
from mngr.tmr.measure.rows import NO_BODY, PASSED
from mngr.tutorial.faithful import Faithful
from mngr.tutorial.faithful import judge as judge_citations
from mngr.tutorial.ran import RecordedRuns, read_every

_SOURCES_MAX = 2_000_000  # bytes of test code in which the users of a helper are looked for


def verify(base: BaseCommit, *, task: str, slug: str, harvested: Mapping[str, Any]) -> Verdict:
    """The verdict on what was collected of a task."""
    claim = claim_of(harvested["outcome"], harvested["outcome_problem"])
    found = gather(base, task, slug, harvested, claim)
    decision = decide(found, claim)
    if harvested["tip"] is not None and harvested["uncommitted"] and decision.word not in INTEGRATED:
        missing = base.git.run("log", "-1", "--format=%b", harvested["uncommitted"]).text.strip()
        kept = f"what it did not commit is kept as `{harvested['uncommitted'][:12]}`"
        kept += f", {missing}: see `mngr saved list`" if missing else ""
        decision = decision._replace(reasons=(*decision.reasons, kept))
    blocked = harvested["outcome"]["blocked_reason"] if decision.word == BLOCKED else ""
    return Verdict(decision, found, blocked)


def gather(base: BaseCommit, task: str, slug: str, harvested: Mapping[str, Any], claim: Claim) -> Evidence:
    """Everything that can be known of the work, as far as it is needed: what is refused is not run, and of what does
    not hold at its own commit no more is measured."""
    tip, done, was = harvested["tip"], claim.status == "done", base.before(task)
    if tip is None:
        lost = "; ".join(harvested["problems"]) or "its commits could not be collected"
        return Evidence(task, was, trouble=Trouble(problem=lost))
    objects = Objects(base.git)
    changes = objects.changed(base.commit, tip)
    [refused] = refusals(objects, base.commit, [changes], base.paths, base.content)
    change = Change(
        files=tuple(one.path for one in changes), refusals=refused, notes=tuple(_notes(base, harvested["outcome"], tip))
    )
    if was.verdict == UNKNOWN and done and not refused:
        was = base.measured_now(task, slug)
    if not changes and done and was.verdict == FAIL:
        was = again_at_base(base, task, slug, was)
    if not changes or refused:
        return Evidence(task, was, change=change)
    base = base._replace(paths=with_read(base.git, tip, changes, base.paths))
    files = flags.files_of(objects, changes, product=partial(_is_product, base))
    found = [*_flags(base, files, task), *_misclaimed(base, harvested["outcome"], changes)]
    found += _late(objects, _commits(base, tip), harvested.get("outcome_at"))
    change = change._replace(flags=tuple(found), expectations=tuple(expectations.changed(files)))
    work = partial(work_of, base, objects, task, slug, tip, changes, users=_users(base, objects, files))
    whole = _judged_from_base(base, work, Evidence(task, was, change=change))
    strength, more = whole.noticed.strength, list(knows_keys(files, whole.beyond))
    if strength is not None and strength.says_little:
        tests = [file for file in files if not file.implementation]
        more += [flag for file in tests for flag in weaker_tests.unmeasured(file)]
    return whole._replace(change=whole.change._replace(flags=(*whole.change.flags, *more)))


def _judged_from_base(base: BaseCommit, work: partial[Work], bare: Evidence) -> Evidence:
    """Measured with the base's own version of whatever decides how tests are judged. What does not hold that way is
    measured as it is too: a person may accept it. Then what its tests notice, whether they can fail, and whether they
    keep to the tutorial."""
    judging = {flag.path for flag in bare.change.flags if flag.kind in flags.STEERING}
    made = work(judging)
    found = _measured(base, made, bare)
    if judging and not found.trouble.failure and _is_wrong(found):
        whole = work(())
        again = _measured(base, whole, bare)
        if not _is_wrong(again):
            change = again.change._replace(needed=tuple(sorted(judging)))
            made, found = whole, again._replace(change=change)
    if found.trouble or _is_wrong(found):
        return found
    faithful = _faithful(base, made, found)
    seen = beyond(base, made, found.tip, found.marks)
    noticed = work_strength.noticed(base, made, found.tip, found.marks, found.halves.found)
    kept, unsure = in_other_form(base, made, found.tip, found.marks) if found.tip.lost else ((), ())
    shorter = made.tests_changed and work_strength.shorter(base, made)
    return found._replace(
        noticed=noticed._replace(kept=kept, unsure=unsure, unfaithful=faithful.reasons),
        beyond=seen,
        change=found.change._replace(
            shorter=shorter,
            # What was measured to be general knows no literal of its test, whatever it looks like.
            flags=tuple(flag for flag in found.change.flags if flag.kind != echo.ECHO or seen.general != GENERAL),
            notes=(*found.change.notes, *faithful.notes, *seen.named),
        ),
    )


def _measured(base: BaseCommit, work: Work, bare: Evidence) -> Evidence:
    """The four measurements. When its own commit does not hold, the halves are not taken."""
    was = bare.was
    tip, after, effect, trouble = at_its_commit(base, work, was)
    recorded = os.path.join(tip.log, "e2e")
    found = bare._replace(
        change=bare.change._replace(
            tests_changed=work.tests_changed, product_changed=work.split.implementation is not None
        ),
        marks=Marks(t0p0=was.runs[0] if was.runs else was.verdict, t1p1=after),
        tip=tip._replace(e2e=recorded if tip.log and os.path.isdir(recorded) else ""),
        halves=bare.halves._replace(effect=effect),
        trouble=trouble,
    )
    if trouble or after != PASSED:
        return found
    both, marks, failed = halves(base, work, was, tip, found.marks)
    return found._replace(halves=both._replace(effect=both.effect or effect), marks=marks, trouble=failed)


def _is_wrong(found: Evidence) -> bool:
    """Whether it does not hold, whatever its tests notice; tests that are gone may be there in another form."""
    left = found.noticed._replace(unsure=found.tip.lost)
    return bool(found.trouble or wrong_with(found._replace(noticed=left)))


def _users(base: BaseCommit, objects: Objects, changed: Sequence[flags.File]) -> list[str]:
    """The tests of the base that run a helper or fixture that is changed."""
    tests = [file for file in changed if not file.implementation and file.path.endswith(".py") and file.before]
    if not tests:
        return []
    there = {path: entry.oid for path, entry in objects.files(base.commit).items() if path.endswith(".py")}
    code = {path: oid for path, oid in there.items() if base.paths.kind(path) == PathKind.TEST}
    sizes = objects.sizes(code.values())
    if sum(sizes.values()) > _SOURCES_MAX:
        near = {one.path.rpartition("/")[0] for one in tests}
        code = {path: oid for path, oid in code.items() if path.rpartition("/")[0] in near}
    blobs = objects.blobs(code.values())
    return users(tests, {path: blobs[oid].decode(errors="replace") for path, oid in code.items()}, base.tests)


def _faithful(base: BaseCommit, work: Work, seen: Evidence) -> Faithful:
    """Whether its test still cites its blocks, and ran their commands in the measurement."""
    own = seen.tip.cases[0].partition("[")[0] if seen.tip.cases else work.task
    before, after = Blocks(base.git, base.commit), Blocks(base.git, work.both)
    recorded = [ran for each in base.recorded if (ran := read_every(each, base.place)).tests]
    at_base = RecordedRuns((), tuple(test for ran in recorded for test in ran.tests)) if recorded else None
    now = read_every(os.path.join(seen.tip.log, "e2e"), base.place)
    return judge_citations(before.test(work.task, base.tutorial, at_base), after.test(own, base.tutorial, now))


def _flags(base: BaseCommit, changed: Sequence[flags.File], task: str) -> list[flags.Flag]:
    given = base.measurer.environment
    there = BaseText(base.git, base.commit, base.paths, task.partition("::")[0])
    commands = (given.prepare, given.test_command, base.gate_command)
    where, source = there.where, there.test_source()
    if source and (test := base.found(task)) and test.body == NO_BODY and "::" in task:
        task, source = f"a doctest of {task}::_doctest", doctests.as_function(source, task)
    return flags.find(changed, test=task, commands=commands, paths=base.paths, test_file=source, where=where)


def _misclaimed(
    base: BaseCommit, claim: Mapping[str, Any] | None, changes: Sequence[PathChange]
) -> Iterator[flags.Flag]:
    """Without a claim there is nothing to hold against its work."""
    if claim is None:
        return
    paths = [change.path for change in changes if _is_product(base, change.path)]
    yield from flags.misclaimed(claim["changes"], paths)


def _is_product(base: BaseCommit, path: str) -> bool:
    return base.paths.kind(path) == PathKind.IMPLEMENTATION


def _notes(base: BaseCommit, claim: Mapping[str, Any] | None, tip: str) -> list[str]:
    """What is odd about the claim, and says nothing about the work: a misspelt value, the id of an amended commit."""
    if claim is None:
        return []
    claimed = [change["commit"] for change in claim["changes"] if change["commit"]]
    commits = _commits(base, tip) if claimed else []
    strange = [one for one in claimed if not any(commit.startswith(one) for commit in commits)]
    return [*claim.get("notes", ()), *(f"claimed commit `{one[:12]}` is not among its commits" for one in strange)]


def _commits(base: BaseCommit, tip: str) -> list[str]:
    return base.git.must("rev-list", tip, f"^{base.commit}", doing="git could not list its commits").split()


def _late(objects: Objects, commits: Sequence[str], outcome_at: float | None) -> Iterator[flags.Flag]:
    """Commits after the outcome file: they are measured and used like the others, but its claim does not know them."""
    if outcome_at is None:
        return
    facts = objects.facts(commits)
    late = [commit for commit in commits if commit in facts and facts[commit].committed_at > int(outcome_at)]
    if late:
        text = f"{len(late)} of {len(commits)} commits are later than its outcome file, the last {late[0][:12]}"
        yield flags.Flag("late", "", text)
