"""The base of a run: what its tests do there, which everything that comes later is measured against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mngr.system.git import Git
from mngr.system.process import quote
from mngr.tmr.branch.objects import Objects
from mngr.tmr.judge.echo import Places
from mngr.tmr.judge.paths import PathKind, Paths
from mngr.tmr.judge.refusals import ContentRules
from mngr.tmr.measure.baseline import BROKEN, FAIL, PASS, UNKNOWN, BaselineTest, folded
from mngr.tmr.measure.baseline import judge as judge_runs
from mngr.tmr.measure.measurement import Measurement, Pytest, StrengthStep
from mngr.tmr.measure.measurer import Measurer
from mngr.tmr.measure.rows import CollectedTest, cases, files_of

# What the tests that are measured together may take, and how long one takes: it is run about that often.
_TOGETHER_SECONDS, _TOGETHER_RUNS, _TOGETHER_MAX = 10.0, 25, 20


class BaseCommit(NamedTuple):
    """`tests` are those that were collected at `commit`, `measured` what each did, `functions` what all cases of those
    with parameters did. `tutorial` is the script whose blocks tests cite, `mutants` how many source mutants each
    changed test gets. `recorded` are directories of what tests with `e2e` recorded there; `dirtied` are files of git
    that its own tests change."""

    measurer: Measurer
    git: Git
    commit: str
    tests: Mapping[str, CollectedTest]
    measured: Mapping[str, BaselineTest]
    paths: Paths
    content: ContentRules = ContentRules()
    gate_command: str = ""
    effect_runs: int = 20
    functions: Mapping[str, BaselineTest] = {}
    tutorial: str = "tutorial.sh"
    mutants: int = 20
    recorded: Sequence[str] = ()
    dirtied: frozenset[str] = frozenset()

    def before(self, task: str) -> BaselineTest:
        """What its test does without any work; the worst of its cases if it has parameters."""
        return self.functions.get(task) or self.measured.get(task) or BaselineTest(UNKNOWN)

    def found(self, task: str) -> CollectedTest | None:
        """Its test, or the first of its cases."""
        return self.tests.get(task) or next((self.tests[case] for case in cases(task, self.tests)), None)

    @property
    def place(self) -> str:
        """Where in the repository pytest runs, as what comes before its own ids: empty at the top."""
        return next((test.place for test in self.tests.values()), "")

    def command_for(self, test: str) -> str:
        """The shell command that runs a test, as a person types it at the top of the repository."""
        return f"{self.measurer.environment.test_command} {quote(test.removeprefix(self.place))}"

    def own(self, task: str) -> list[str]:
        """What its test is called here, with all its cases; all of its file if that is the task."""
        if "::" not in task:
            return [test for test in self.tests if test.startswith(f"{task}::")] or [task]
        return cases(task, self.tests) or [task]

    def failing(self) -> set[str]:
        return {test for test, one in self.measured.items() if one.verdict in (FAIL, BROKEN)}

    def alike(self, task: str, own: BaselineTest) -> list[str]:
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

    def strength_step(
        self, commit: str, tests: Sequence[str] | None, *, only: Sequence[str] = (), after: str = ""
    ) -> StrengthStep:
        """A step that measures what tests notice at a commit."""
        product = [name for name in Objects(self.git).files(commit) if self.paths.kind(name) == PathKind.IMPLEMENTATION]
        return StrengthStep("strength", tests, product, self.mutants, only=only, after=after)

    def measured_together(self, test: str) -> tuple[str, ...]:
        """A test with its neighbours in the file, as long as all of them are quick: to start pytest for each would cost
        more than what is measured."""
        passing = [one for one in self.tests if self.measured.get(one, BaselineTest(UNKNOWN)).verdict == PASS]
        group: list[str] = []
        seconds = 0.0
        for one in [one for one in passing if files_of([one]) == files_of([test])]:
            cost = self.measured[one].seconds * _TOGETHER_RUNS
            if group and (seconds + cost > _TOGETHER_SECONDS or len(group) == _TOGETHER_MAX):
                if test in group:
                    break
                group, seconds = [], 0.0
            group.append(one)
            seconds += cost
        return tuple(group) if test in group else (test,)

    def measured_now(self, task: str, slug: str) -> BaselineTest:
        """What its test does without any work, when no baseline has told."""
        wanted = Measurement(f"base-{slug}", self.commit, [Pytest("test", tests=[task], paths=files_of([task]))])
        rows = self.measurer.must_take(wanted).steps["test"].rows
        if own := cases(task, rows.ran):
            return folded({case: judge_runs([rows.ran[case]], None) for case in own})
        return judge_runs([], *rows.broken[:1] or [None])


class BaseText:
    """Where the files of the base contain a text, by `git grep`. Each text is searched for once, and never in
    `test_file`."""

    def __init__(self, git: Git, commit: str, paths: Paths, test_file: str) -> None:
        self._git, self._commit, self._paths, self._test_file = git, commit, paths, test_file
        self._known: dict[str, Places] = {}

    def test_source(self) -> str | None:
        shown = self._git.run("show", f"{self._commit}:{self._test_file}")
        return shown.stdout.decode(errors="replace") if shown.ok else None

    def where(self, text: str) -> Places:
        """Where the base has this line of text, as words of their own; nowhere if git cannot tell."""
        if text not in self._known:
            found = self._git.run("grep", "-l", "-z", "-I", "-w", "-F", "-e", text, self._commit)
            names = found.stdout.decode(errors="surrogateescape").split("\0")[:-1] if found.ok else []
            files = {name.partition(":")[2] for name in names} - {self._test_file}
            product = {file for file in files if self._is_product(file)}
            self._known[text] = Places(bool(product), bool(files - product))
        return self._known[text]

    def _is_product(self, path: str) -> bool:
        """Settings and build files name pytest in most projects, which says nothing about the product."""
        if path.startswith(".") or self._paths.builds(path):
            return False
        return self._paths.kind(path) == PathKind.IMPLEMENTATION
