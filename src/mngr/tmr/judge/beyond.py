"""What the four measurements do not see: whether a test passes here alone, whether a product was fixed for this input
alone, what it touches now, which of its changed lines no test runs, and whether its test takes much longer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mngr.tmr.judge.changed_file import File, Flag
from mngr.tmr.judge.echo import ECHO
from mngr.tmr.judge.evidence import AtTip, Beyond, Marks
from mngr.tmr.judge.paths import PathKind
from mngr.tmr.judge.work import Work
from mngr.tmr.measure import generality, reach, surroundings, touches
from mngr.tmr.measure.base import BaseCommit
from mngr.tmr.measure.generality import GENERAL, KEYED, NOT_MEASURED, ONLY_THIS, Generality
from mngr.tmr.measure.measurement import Measurement, MeasurementResult, PluginStep, Pytest, Shell, StrengthStep
from mngr.tmr.measure.rows import PASSED, files_of
from mngr.tmr.measure.touches import PRODUCT, Touch

_TESTS_MAX, _ANSWERS_MIN = 8, 3
_TEXT = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_LITERAL = re.compile(r"\w{3,}")
_NUMBER = re.compile(r"(?<![\w.])\d{3,}(?![\w.])|(?<![\w.])\d+\.\d+(?![\w.])")
# By these a product knows who runs it, does what nobody can read, or leaves its own process.
_DANGEROUS = frozenset({"stack", "objects", "code", "library", "run", "connect"})
_Steps = list[Shell | Pytest | StrengthStep | PluginStep]


def beyond(base: BaseCommit, work: Work, tip: AtTip, marks: Marks) -> Beyond:
    """What is seen with its own tests. Where the product is as it was, only the surroundings can matter."""
    own = [test for test in tip.cases if test not in tip.lost][:_TESTS_MAX]
    if not own:
        return Beyond()
    product = base.strength_step(work.both, None).product
    changed = work.split.implementation is not None
    paths = work.split.implementation.paths if work.split.implementation is not None else ()
    lines = reach.changed_lines(base.git, base.commit, work.both, paths)
    steps: _Steps = [Pytest("test", tests=own, paths=files_of(own))]
    if changed:
        steps += [touches.step(own, product), generality.step(base, own), reach.step(lines, own)]
    now = base.measurer.take(Measurement(f"beyond-{work.slug}", work.both, [*steps, surroundings.step(own)]))
    if now.lost or now.problem:
        return Beyond()
    depends = _depends(base, work, own, now)
    if not changed:
        return Beyond(depends=depends)
    old: _Steps = [generality.step(base, own), touches.step(own, base.strength_step(base.commit, None).product)]
    then = base.measurer.take(Measurement(f"before-it-{work.slug}", work.old_product, old))
    touched = touches.new(touches.read(then.directory), touches.read(now.directory))
    ran = reach.read(now.directory, lines)
    seconds = {test: base.measured[test].seconds for test in own if test in base.measured}
    found = _general(own, then, now) if marks.t0p0 != PASSED or marks.t1p0 != PASSED else Generality("", "")
    return Beyond(
        depends=depends,
        general=found.word,
        only=_only(found),
        keys=found.keys if found.word == KEYED else (),
        touched=tuple(one.words for one in touched if _is_dangerous(base, one)),
        shown=tuple(one.words for one in touched if one.by == PRODUCT and not _is_dangerous(base, one)),
        unreached=ran.words if ran is not None and ran.unreached_count else "",
        slower=tuple(one.words for one in reach.slower(seconds, now.rows)),
    )


def _depends(base: BaseCommit, work: Work, own: Sequence[str], now: MeasurementResult) -> tuple[str, ...]:
    """What its tests depend on, in words, that they did not at the base."""
    there = surroundings.read(now.directory)
    different = surroundings.differing(now.rows, there) if there is not None else []
    known = [test for test in own if test in base.tests]
    if different and known:
        steps: _Steps = [Pytest("test", tests=known, paths=files_of(known)), surroundings.step(known)]
        done = base.measurer.take(Measurement(f"elsewhere-{work.slug}", base.commit, steps))
        different = surroundings.new(different, done.rows.ran, surroundings.read(done.directory))
    return tuple(f"`{one.test}` is {one.outcome} elsewhere: it depends on {one.words}" for one in different)


def _general(own: Sequence[str], then: MeasurementResult, now: MeasurementResult) -> Generality:
    """The best that its cases show: a fix for one of them is one."""
    old, new = generality.read(then.directory), generality.read(now.directory)
    found = [_said(generality.compare(test, old.get(test), new.get(test))) for test in own]
    order = (GENERAL, KEYED, ONLY_THIS)
    return min(found, key=lambda one: order.index(one.word) if one.word in order else len(order))


def _said(found: Generality) -> Generality:
    """Other inputs say something only if the products answer to them: where most of them end in an error with both, or
    get one answer all alike, the inputs may well be wrong, and nothing follows."""
    answers = [re.split(r"(?:`|\d more): ", one)[-1] for one in found.examples]
    told = [answer for answer in answers if not answer.startswith("raises ")]
    none = len(told) < _ANSWERS_MIN or len(set(told)) == 1
    return found._replace(word=NOT_MEASURED) if found.word == ONLY_THIS and none else found


def knows_keys(files: Sequence[File], found: Beyond) -> Iterator[Flag]:
    """New texts and numbers of the product without which the fix was never seen to work: it knows them."""
    for file in files if found.keys else ():
        lines = "\n".join(line for _, line in file.added()) if file.implementation else ""
        words = set(_LITERAL.findall(" ".join(_TEXT.findall(lines)))) | set(_NUMBER.findall(lines))
        if known := sorted(words.intersection(found.keys)):
            yield Flag(ECHO, file.path, f"`{file.path}` knows `{known[0]}`; {found.only}")


def _only(found: Generality) -> str:
    if found.word not in (ONLY_THIS, KEYED):
        return ""
    told = f"with {found.tried} other inputs its test gives, {found.differ} of them answered otherwise than at the base"
    keys = f", none without {', '.join(f'`{key}`' for key in found.keys)}" if found.keys else ""
    examples = "; ".join(" ".join(one.split()) for one in found.examples[:2])
    return f"it is fixed {found.word}: {told}{keys} ({examples})"


def _is_dangerous(base: BaseCommit, one: Touch) -> bool:
    """What hardly a fix needs: to look at its caller or at its tests, to run data or another program, to write anywhere
    but where temporary files are."""
    if one.by != PRODUCT:
        return False
    inside = not one.what.startswith(("<", "~", "/"))
    of_tests = inside and one.kind == "read" and base.paths.kind(one.what) == PathKind.TEST
    return one.kind in _DANGEROUS or of_tests or (one.kind == "write" and not one.what.startswith("<tmp>"))
