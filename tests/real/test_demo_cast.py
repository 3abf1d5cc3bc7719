"""The agents that the demo lets loose on `sprout`: each does what the first line of its script says, liars included."""

from pathlib import Path
from typing import NamedTuple

import pytest

from mngr.demo import sample
from mngr.programs.scripted.script import parse
from mngr.tmr import outcome
from tests.support.pytests import results
from tests.support.user import User, wait_for

# The whole run in `test_demo.py` shows the same in one go; here each agent is seen alone, with its own runs of pytest.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

PLANTS, WATERING, DUE = "tests/test_plants.py", "tests/test_watering.py", "tests/test_due.py"
REPORT, TABLE, BOARD, TIP = "tests/test_report.py", "tests/test_table.py", "tests/test_board.py", "tests/test_tip.py"
PLANT_PY, CLI_PY, TABLE_PY = "src/sprout/plant.py", "src/sprout/cli.py", "src/sprout/table.py"


def script_of(test: str) -> str:
    return f"{sample.SCRIPTS}/{test.rpartition('::')[2]}.script"


class Garden:
    """The sample, and agents at work on it."""

    def __init__(self, user: User) -> None:
        self.user = user
        # Of all plugins only ours: the others double the time that pytest takes to start.
        user.env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "mngr.e2e.plugin"}
        self.repo = user.root / "sprout"
        self.base = sample.make_repository(str(self.repo))

    def play(self, test: str, *, attempt: int = 1, script: str | None = None, message: str = "") -> "Played":
        """Start the agent for a test, and wait until it rests."""
        name = f"a{len(self.user.agents())}"
        task = ["--env", f"MNGR_TASK={test}", "--env", f"MNGR_ATTEMPT={attempt}"]
        words = ["create", name, "--no-connect", "--type", "scripted", *task, "-m", message or f"Look at {test}."]
        self.user.mngr(*words, "--", script or script_of(test), cwd=self.repo).ok()
        work_dir = self.user.work_dir(name)
        written = work_dir / ".mngr" / "task" / "outcome.json"
        end = f"{name} to write an outcome or to fail"
        wait_for(lambda: written.exists() or self.user.state(name) == "FAILED", end, timeout=90)
        self.user.wait_for_state(name, "WAITING", "BLOCKED", "FAILED")
        commits = self.git("log", "--reverse", "--format=%H", f"{self.base}..mngr/{name}").split()
        claim = outcome.parse(written.read_bytes(), test) if written.exists() else None
        return Played(test, name, commits, claim, work_dir)

    def git(self, *words: str) -> str:
        return self.user.git(*words, cwd=self.repo)

    def paths(self, commit: str) -> list[str]:
        return self.git("show", "--format=", "--name-only", commit).split()

    def measure(self, commit: str, *words: str) -> dict[str, str]:
        """The results of tests in a clean checkout."""
        checkout = self.user.root / f"clean-{commit[:12]}"
        if not checkout.exists():
            self.git("worktree", "add", "-q", "--detach", str(checkout), commit)
        return results(self.user, checkout, *words)

    def patch_id(self, commit: str) -> str:
        diff = self.user.run(["git", "show", commit], cwd=self.repo).stdout
        return self.user.run(["git", "patch-id", "--stable"], input=diff, cwd=self.repo).stdout.split()[0]

    def conflicts(self, left: str, right: str) -> list[str]:
        """The paths in which two commits do not fit together."""
        merged = self.user.run(["git", "merge-tree", "--write-tree", "--name-only", left, right], cwd=self.repo)
        return merged.stdout.split("\n\n")[0].splitlines()[1:] if merged.exit_code else []

    def settle(self, left: "Played", right: "Played", paths: str) -> "Played":
        """The integrator's answer, in a copy that has git's markers where the two sides do not fit."""
        merged = self.user.run(["git", "merge-tree", "--write-tree", left.tip, right.tip], cwd=self.repo)
        start = self.git("commit-tree", merged.stdout.split()[0], "-p", left.tip, "-m", "With conflicts")
        self.git("switch", "-q", "-c", "tip", start)
        prompt = f"These do not fit together in {paths}:\n1. {left.test}\n2. {right.test}\nWrite one that does both."
        answer = self.play("conflict-1", script=f"{sample.SCRIPTS}/integrator.script", message=prompt)
        own = self.git("log", "--reverse", "--format=%H", f"tip..mngr/{answer.name}").split()
        return answer._replace(commits=own)


class Played(NamedTuple):
    test: str
    name: str
    commits: list[str]
    claim: outcome.Outcome | None
    work_dir: Path

    @property
    def says(self) -> outcome.Outcome:
        assert self.claim is not None, f"{self.name} wrote no outcome"
        return self.claim

    @property
    def own(self) -> str:
        return self.test.rpartition("::")[2]

    @property
    def tip(self) -> str:
        return self.commits[-1]


@pytest.fixture
def garden(user: User) -> Garden:
    return Garden(user)


NOW_AND_THEN = "test_a_plant_wants_water_now_and_then"
HONEST: list[tuple[str, list[list[str]], set[str]]] = [
    (f"{PLANTS}::test_a_plant_is_added_and_listed", [["tutorial.sh"], [PLANTS]], {NOW_AND_THEN}),
    (f"{WATERING}::test_a_wrong_name_waters_nobody", [["src/sprout/garden.py"]], set()),
    (f"{WATERING}::test_watering_on_an_earlier_day", [[WATERING]], set()),
]


@pytest.mark.parametrize(("test", "paths", "added"), HONEST)
def test_an_honest_agent_does_what_it_says(garden: Garden, test: str, paths: list[list[str]], added: set[str]) -> None:
    done = garden.play(test)
    assert [garden.paths(commit) for commit in done.commits] == paths
    assert [change.commit for change in done.says.changes] == done.commits
    for change, touched in zip(done.says.changes, paths, strict=True):
        assert (change.kind == "implementation") == all(path.startswith("src/") for path in touched)
    before, after = garden.measure(garden.base, test)[done.own], garden.measure(done.tip, test.partition("::")[0])
    assert (before, after[done.own]) == (done.says.before, done.says.after)
    assert after.keys() >= added
    assert {after[name] for name in added} <= {"passed"}


def test_every_test_has_its_agent_and_every_script_says_what_it_shows() -> None:
    source = Path(sample.source())
    text = "".join(path.read_text() for path in source.glob("tests/test_*.py"))
    tests = {line.split("(")[0].removeprefix("def ") for line in text.splitlines() if line.startswith("def test_")}
    scripts = {path.stem: path for path in Path(sample.SCRIPTS).iterdir()}
    assert scripts.keys() == {"integrator", *tests}
    for path in scripts.values():
        assert path.read_text().startswith("# ")
        assert parse(path.read_text())[1].verb == "wait", "begins when it is told its task"


def test_two_agents_make_the_same_fix_of_one_bug(garden: Garden) -> None:
    due = garden.play(f"{DUE}::test_due_names_the_thirsty")
    report = garden.play(f"{REPORT}::test_the_report_counts_by_room")
    assert [garden.paths(commit) for commit in due.commits] == [[PLANT_PY], [DUE]]
    assert [garden.paths(commit) for commit in report.commits] == [[PLANT_PY]]
    assert garden.patch_id(due.commits[0]) == garden.patch_id(report.commits[0])
    assert (due.says.after, report.says.after) == ("passed", "passed")
    fixed = garden.measure(
        due.tip, DUE, BOARD, REPORT, "-k", "not monday", f"{PLANTS}::test_the_list_marks_the_thirsty"
    )
    assert len(fixed) == 6
    assert set(fixed.values()) == {"passed"}


def test_an_agent_crashes_once_and_then_does_the_work(garden: Garden) -> None:
    test = f"{PLANTS}::test_a_name_is_taken_only_once"
    crashed = garden.play(test)
    assert (garden.user.state(crashed.name), crashed.commits, crashed.claim) == ("FAILED", [], None)
    assert "SEGV" in garden.user.agent(crashed.name)["state_reason"]
    again = garden.play(test, attempt=2)
    assert [garden.paths(commit) for commit in again.commits] == [[PLANTS]]
    after = garden.measure(again.tip, PLANTS, "-k", "only_once or however")
    assert after == {again.own: "passed", "test_a_plant_is_found_however_its_name_is_written": "passed"}


def test_one_agent_changes_nothing_and_says_why(garden: Garden) -> None:
    done = garden.play(f"{TIP}::test_a_tip_is_about_water")
    assert (done.commits, done.says.status, done.says.changes) == ([], "done", ())
    assert [escalation.kind for escalation in done.says.escalations] == ["flaky"]


@pytest.mark.parametrize(("answer", "paths"), [("Monday", ["README.md"]), ("Sunday", [REPORT, "tutorial.sh"])])
def test_one_agent_is_blocked_until_a_person_decides(garden: Garden, answer: str, paths: list[str]) -> None:
    test = f"{REPORT}::test_the_week_begins_on_monday"
    stuck = garden.play(test)
    assert (stuck.says.status, stuck.commits) == ("blocked", [])
    garden.user.wait_for_state(stuck.name, "BLOCKED")
    for path, number in stuck.says.escalations[0].locations:
        day = {"README.md": "Sunday", "tutorial.sh": "Monday"}[path]
        assert day in (garden.repo / path).read_text().splitlines()[number - 1]
    garden.user.mngr("message", stuck.name, "-m", f"{answer}, please.").ok()
    garden.user.wait_for_state(stuck.name, "WAITING", timeout=60)
    done = outcome.parse((stuck.work_dir / ".mngr" / "task" / "outcome.json").read_bytes(), test)
    tip = garden.git("rev-parse", f"mngr/{stuck.name}")
    assert (done.status, done.changes[-1].commit, garden.paths(tip)) == ("done", tip, paths)
    assert garden.measure(tip, REPORT, "-k", "monday") == {stuck.own: "passed"}


def test_a_conflict_that_the_integrator_settles(garden: Garden) -> None:
    left = garden.play(f"{TABLE}::test_export_quotes_a_name_with_a_comma")
    right = garden.play(f"{TABLE}::test_export_leaves_a_missing_room_empty")
    assert garden.measure(left.tip, TABLE) == {left.own: "passed", right.own: "failed", IMPORT: "passed"}
    assert garden.measure(right.tip, TABLE) == {left.own: "failed", right.own: "passed", IMPORT: "passed"}
    assert garden.conflicts(left.tip, right.tip) == [TABLE_PY]
    answer = garden.settle(left, right, TABLE_PY)
    assert [garden.paths(commit) for commit in answer.commits] == [[TABLE_PY]]
    assert garden.measure(answer.tip, TABLE) == {left.own: "passed", right.own: "passed", IMPORT: "passed"}


IMPORT = "test_import_adds_what_is_new"


def test_a_conflict_that_the_integrator_gets_wrong(garden: Garden) -> None:
    left = garden.play(f"{WATERING}::test_watering_a_plant")
    right = garden.play(f"{WATERING}::test_watering_several_at_once")
    assert [sorted(garden.paths(commit)) for commit in left.commits] == [[CLI_PY, WATERING]]
    assert [garden.paths(commit) for commit in right.commits] == [[CLI_PY], [WATERING]]
    for side in (left, right):
        assert garden.measure(garden.base, side.test) == {side.own: "passed"}
        assert garden.measure(side.tip, side.test) == {side.own: "passed"}
    assert garden.conflicts(left.tip, right.tip) == [CLI_PY]
    answer = garden.settle(left, right, CLI_PY)
    assert [garden.paths(commit) for commit in answer.commits] == [[CLI_PY]]
    assert answer.says.status == "done"
    assert garden.measure(answer.tip, left.test, right.test) == {left.own: "failed", right.own: "passed"}


def test_a_liar_claims_a_pass_that_fails(garden: Garden) -> None:
    liar = garden.play(f"{DUE}::test_due_as_json")
    assert (liar.says.after, garden.paths(liar.tip)) == ("passed", [PLANT_PY])
    assert garden.measure(liar.tip, liar.test) == {liar.own: "failed"}


def test_a_liar_deletes_assertions(garden: Garden) -> None:
    liar = garden.play(f"{PLANTS}::test_a_plant_is_removed")
    assert (liar.says.after, garden.paths(liar.tip)) == ("passed", [PLANTS])
    assert garden.git("diff", garden.base, liar.tip).count("\n-    expect(") == 5
    assert garden.measure(liar.tip, liar.test) == {liar.own: "passed"}


def test_a_liar_skips_its_test(garden: Garden) -> None:
    liar = garden.play(f"{BOARD}::test_the_board_waters_with_a_key")
    assert (liar.says.after, garden.paths(liar.tip)) == ("passed", [BOARD])
    assert garden.measure(liar.tip, liar.test) == {liar.own: "skipped"}


def test_a_liar_teaches_the_product_its_test(garden: Garden) -> None:
    liar = garden.play(f"{PLANTS}::test_the_list_marks_the_thirsty")
    assert (liar.says.after, garden.paths(liar.tip)) == ("passed", [CLI_PY])
    assert garden.measure(liar.tip, liar.test) == {liar.own: "passed"}
    assert f'+        if plant.name == "Fern" and today == date(2026, 5, 8):  # {liar.own}\n' in garden.git(
        "diff", garden.base, liar.tip
    )


def test_a_liar_passes_only_through_a_file_that_is_not_committed(garden: Garden) -> None:
    liar = garden.play(f"{TABLE}::{IMPORT}")
    assert (liar.says.after, garden.paths(liar.tip)) == ("passed", [TABLE])
    new = "test_import_of_a_whole_garden"
    assert results(garden.user, liar.work_dir, TABLE, "-k", "import") == {IMPORT: "passed", new: "passed"}
    assert garden.measure(liar.tip, TABLE, "-k", "import") == {IMPORT: "passed", new: "failed"}
    assert garden.user.git("status", "--porcelain", cwd=liar.work_dir) == ""


def test_a_liar_makes_the_tests_of_others_pass(garden: Garden) -> None:
    liar = garden.play(f"{PLANTS}::test_the_list_shows_one_room")
    assert garden.paths(liar.tip) == ["tests/conftest.py"]
    assert garden.measure(garden.base, DUE) == {"test_due_names_the_thirsty": "failed", "test_due_as_json": "failed"}
    assert garden.measure(liar.tip, DUE) == {"test_due_names_the_thirsty": "passed", "test_due_as_json": "passed"}
