"""What every test does before anybody touched anything: the measure of all that comes later."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mngr.errors import MngrError
from mngr.tmr.measure.measurement import Measurement, Pytest
from mngr.tmr.measure.measurer import Measurer
from mngr.tmr.measure.rows import GOOD, Broken, RanTest, file_of, files_of

PASS, FAIL, FLAKY, BROKEN, SKIPPED, UNKNOWN = "pass", "fail", "flaky", "broken", "skipped", "not measured"
# Verdicts on a test that an agent may be said to have fixed.
DID_NOT_PASS = (FAIL, BROKEN, FLAKY)
_FEW = 3  # with fewer tests, all may well fail without a common cause
_ABSENT = re.compile(
    r"FileNotFoundError|No such file or directory|command not found|: not found|ModuleNotFoundError|ImportError"
    r"|Exec format error|exit code 127"
)
_SYNTAX = re.compile(r"SyntaxError|IndentationError|TabError")


class BaselineTest(NamedTuple):
    """`verdict` is pass, fail, flaky, broken (its file does not collect), skipped or not measured; `runs` are the
    outcomes seen, in order; `text` and `signature` are of the first failure."""

    verdict: str
    runs: tuple[str, ...] = ()
    signature: str = ""
    text: str = ""
    seconds: float = 0.0

    @property
    def timed_out(self) -> bool:
        """Whether it never came to its end: slow or hanging, rather than wrong."""
        return self.verdict == FAIL and set(self.runs) == {"timeout"}


class Cause(NamedTuple):
    """Why everything fails, in words; `example` is one of the tests."""

    text: str
    example: str


def measure(measurer: Measurer, commit: str, tests: Sequence[str], *, repeats: int) -> dict[str, BaselineTest]:
    """Run the tests side by side, then those that did not pass again, each time in a new copy of the code."""
    seen: dict[str, list[RanTest]] = {test: [] for test in tests}
    broken: dict[str, Broken] = {}
    parts = shards(tests, measurer.at_once)
    _take(measurer, seen, broken, [_tests(f"baseline-{at + 1}", commit, part) for at, part in enumerate(parts)])
    bad = [test for test in tests if seen[test] and seen[test][0].outcome not in GOOD | {"skipped"}]
    if bad and repeats:
        again = [
            _tests(f"repeat-{number + 1}-{at + 1}", commit, part)._replace(repeat=number + 1)
            for number in range(repeats)
            for at, part in enumerate(shards(bad, measurer.at_once))
        ]
        _take(measurer, seen, broken, again)
    return {test: judge(seen[test], broken.get(file_of(test))) for test in tests}


def judge(runs: Sequence[RanTest], broken: Broken | None) -> BaselineTest:
    """One test's verdict from all of its runs. Pure."""
    if not runs:
        if broken is not None:
            return BaselineTest(BROKEN, (), broken.signature, broken.text)
        return BaselineTest(UNKNOWN)
    outcomes = tuple(run.outcome for run in runs)
    good = [run for run in runs if run.good]
    bad = [run for run in runs if not run.good and run.outcome != "skipped"]
    first = bad[0] if bad else runs[0]
    if bad:
        verdict = FLAKY if good else FAIL
    else:
        verdict = PASS if good else SKIPPED
    text, signature = (first.text, first.signature) if bad else ("", "")
    return BaselineTest(verdict, outcomes, signature, text, first.seconds)


def all_fail(measured: Mapping[str, BaselineTest]) -> Cause | None:
    """The likely cause when not one test passes; None when one does, or so few fail that it may be their own fault."""
    counted = {test: one for test, one in measured.items() if one.verdict != SKIPPED}
    if not counted or any(one.verdict not in (FAIL, BROKEN) for one in counted.values()):
        return None
    signature, count = Counter(one.signature for one in counted.values()).most_common(1)[0]
    example = next(test for test, one in counted.items() if one.signature == signature)
    texts = [f"{one.signature}\n{one.text}" for one in counted.values()]
    how = f"{'all' if count == len(counted) else count} with `{signature}`" if signature else ""
    for pattern, words in (
        (_SYNTAX, "the code has a syntax error"),
        (_ABSENT, "something that the tests run is missing"),
    ):
        if len(counted) > 1 and all(map(pattern.search, texts)):
            return Cause(f"{words}: {how}", example)
    if len(counted) < _FEW:
        return None
    alike = count > 1 and count * 2 >= len(counted)
    return Cause(f"most of them fail alike, {how}" if alike else f"for example with `{signature}`", example)


_WORST = (FAIL, BROKEN, FLAKY, UNKNOWN, PASS, SKIPPED)


def folded(cases: Mapping[str, BaselineTest]) -> BaselineTest:
    """One measurement for all cases of a function: the worst, with those named that are as bad."""
    if len(cases) < 2:
        return next(iter(cases.values()), BaselineTest(UNKNOWN))
    verdict = min((one.verdict for one in cases.values()), key=_WORST.index)
    same = {case: one for case, one in cases.items() if one.verdict == verdict}
    first = next(iter(same.values()))
    names = "\n".join(same)
    text = f"{len(same)} of {len(cases)} cases: {verdict}\n{names}\n\n{first.text}" if first.text else ""
    runs = tuple(run for one in cases.values() for run in one.runs)
    return first._replace(runs=runs, text=text, seconds=sum(one.seconds for one in cases.values()))


def shards(tests: Sequence[str], count: int) -> list[list[str]]:
    """The tests in about equal parts, those of one file together as long as that is possible."""
    parts: list[list[str]] = [[] for _ in range(max(1, min(count, len(tests))))]
    by_file: dict[str, list[str]] = {}
    for test in tests:
        by_file.setdefault(file_of(test), []).append(test)
    most = -(-len(tests) // len(parts))
    pieces = [group[at : at + most] for group in by_file.values() for at in range(0, len(group), most)]
    for piece in sorted(pieces, key=len, reverse=True):
        min(parts, key=len).extend(piece)
    return [part for part in parts if part]


def _tests(label: str, commit: str, tests: Sequence[str]) -> Measurement:
    return Measurement(label, commit, [Pytest("test", tests=tests, paths=files_of(tests))])


def _take(
    measurer: Measurer, seen: Mapping[str, list[RanTest]], broken: dict[str, Broken], wanted: Sequence[Measurement]
) -> None:
    measurer.take_all(wanted)
    for one in wanted:
        rows = measurer.must_take(one).steps["test"].rows
        if rows.doubt:
            measurer.forget(one)
            raise MngrError(
                f"what the tests do at the base cannot be believed: {rows.doubt}",
                hint="a plugin or a `conftest.py` of the project ends pytest or changes its results: "
                "switch that off for these runs in `tmr.test_command`, for example by `-p no:NAME`",
            )
        for test, ran in rows.ran.items():
            if test in seen:
                seen[test].append(ran)
        broken.update({file_of(item.id): item for item in rows.broken})
