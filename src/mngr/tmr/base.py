"""The base of a run: what its tests do there, which everything that comes later is measured against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mngr.records import NamedTuple
from mngr.tmr.baseline import BROKEN, FAIL, PASS, UNKNOWN, Measured, folded
from mngr.tmr.baseline import judge as judge_runs
from mngr.tmr.content import ContentRules
from mngr.tmr.measurement import Measurement, Pytest
from mngr.tmr.measurer import Measurer
from mngr.tmr.paths import Paths
from mngr.tmr.rows import Found, cases
from mngr.tools.git import Git


class BaseCommit(NamedTuple):
    """`tests` are those that were collected at `commit`, `measured` what each did, `functions` what all cases of those
    with parameters did. `tutorial` is the script whose blocks tests cite, `mutants` how many source mutants each
    changed test gets. `recorded` are directories of what tests with `e2e` recorded there; `dirtied` are files of git
    that its own tests change."""

    measurer: Measurer
    git: Git
    commit: str
    tests: Mapping[str, Found]
    measured: Mapping[str, Measured]
    paths: Paths
    content: ContentRules = ContentRules()
    gate_command: str = ""
    effect_runs: int = 20
    functions: Mapping[str, Measured] = {}
    tutorial: str = "tutorial.sh"
    mutants: int = 20
    recorded: Sequence[str] = ()
    dirtied: frozenset[str] = frozenset()

    def before(self, task: str) -> Measured:
        """What its test does without any work; the worst of its cases if it has parameters."""
        return self.functions.get(task) or self.measured.get(task) or Measured(UNKNOWN)

    def found(self, task: str) -> Found | None:
        """Its test, or the first of its cases."""
        return self.tests.get(task) or next((self.tests[case] for case in cases(task, self.tests)), None)

    def own(self, task: str) -> list[str]:
        """What its test is called here, with all its cases; all of its file if that is the task."""
        if "::" not in task:
            return [test for test in self.tests if test.startswith(f"{task}::")] or [task]
        return cases(task, self.tests) or [task]

    def failing(self) -> set[str]:
        return {test for test, one in self.measured.items() if one.verdict in (FAIL, BROKEN)}

    def alike(self, task: str, own: Measured) -> list[str]:
        """Other tests that a change of the product made for this one may fix: those that failed in the same way, or,
        for one that passed, any that failed."""
        if own.verdict not in (FAIL, PASS):
            return []
        if own.verdict == PASS:
            return sorted(test for test in self.failing() if "::" in test)[: self.effect_runs]
        if not own.signature:
            return []
        same = [test for test, one in self.measured.items() if one.verdict == FAIL and one.signature == own.signature]
        return [test for test in same if test not in cases(task, same)][: self.effect_runs]

    def measured_now(self, task: str, slug: str) -> Measured:
        """What its test does without any work, when no baseline has told."""
        wanted = Measurement(f"base-{slug}", self.commit, [Pytest("test", tests=[task], paths=files_of([task]))])
        rows = self.measurer.must_take(wanted).steps["test"].rows
        if own := cases(task, rows.ran):
            return folded({case: judge_runs([rows.ran[case]], None) for case in own})
        return judge_runs([], *rows.broken[:1] or [None])


def files_of(tests: Sequence[str]) -> list[str]:
    return sorted({test.partition("::")[0] for test in tests})
