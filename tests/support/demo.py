"""What a whole run of `mngr demo` must have led to: agents that fix, crash, ask, clash and lie, and one branch of what
holds."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.pytests import PLAIN, results_in

FLAKY, UNDECIDED = "test_a_tip_is_about_water", "test_the_week_begins_on_monday"


class Demo:
    """A demo that ran to its end: what `mngr tmr status` tells of it, and what it left."""

    def __init__(self, directory: Path, found: dict[str, Any], env: Mapping[str, str]) -> None:
        self.directory, self.found, self.env = directory, found, env
        self.repo = directory / "sprout"
        self.run_dir = self.repo / ".mngr" / "runs" / "demo"
        self.rows = {row["task"].rpartition("::")[2]: row for row in found["rows"]}
        self.integration: dict[str, Any] = found["integration"]
        self.commits: list[dict[str, Any]] = self.integration["commits"]
        self.fixes = [commit for commit in self.commits if commit["kind"] == "implementation"]

    def run(self, *argv: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        env = {**self.env, **PLAIN}
        return subprocess.run(
            argv, cwd=cwd or self.repo, env=env, capture_output=True, text=True, timeout=250, check=False
        )

    def git(self, *words: str) -> str:
        done = self.run("git", *words)
        assert done.returncode == 0, done
        return done.stdout.rstrip("\n")

    def pytest(self, *words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
        return self.run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, cwd=cwd)

    def flags(self, test: str) -> list[str]:
        return [flag["kind"] for flag in self.rows[test]["flags"]]

    def ledger(self, type: str) -> list[dict[str, Any]]:
        entries = (json.loads(line) for line in (self.run_dir / "ledger.jsonl").read_text().splitlines())
        return [entry for entry in entries if entry["type"] == type]

    def checkout(self, name: str, commit: str) -> Path:
        place = self.directory / name
        self.git("worktree", "add", "-q", "--detach", str(place), commit)
        return place


def all_18_tests_got_an_agent(demo: Demo) -> None:
    assert demo.found["tasks"] == 18
    assert demo.found["exit_code"] == 3, "some agents did not come to a good end; the demo itself did"
    integrators = ["conflict", "conflict", "narrative"]
    attempts = [entry["task"] for entry in demo.ledger("attempt")]
    # 18 and a second attempt of one; two conflicts and the words for the pull request. No run of tests is among them.
    assert len(attempts) == 22
    assert sorted(task.split()[0] for task in attempts if "::" not in task) == integrators


def the_branch_is_linear_and_tells_whose_it_is(demo: Demo) -> None:
    assert demo.integration["green"] is True
    span = f"main..{demo.integration['branch']}"
    log = demo.git("log", "--reverse", "--format=%H %P", span).splitlines()
    parents = [line.split() for line in log]
    assert [line[0] for line in parents] == [commit["id"] for commit in demo.commits]
    assert all(len(line) == 2 for line in parents) and parents[0][1] == demo.git("rev-parse", "main")
    for commit in demo.commits:
        trailers = demo.git("log", "-1", "--format=%(trailers:only,unfold)", commit["id"]).splitlines()
        told = [tuple(line.split(": ", 1)) for line in trailers if line]
        assert ("Mngr-Run", "demo") in told
        assert [value for key, value in told if key == "Mngr-Agent"] == commit["agents"]
        assert {value for key, value in told if key == "Mngr-Test"} == set(commit["tests"])
        assert [value for key, value in told if key == "Mngr-Rank"] == ([str(commit["rank"])] if commit["rank"] else [])
    assert [fix["rank"] for fix in demo.fixes] == [1, 2, 3, 4, 5], "most important first"
    for fix in demo.fixes:
        paths = demo.git("show", "--format=", "--name-only", fix["id"]).split()
        assert paths and all(path.startswith("src/") for path in paths)
    assert demo.fixes[0]["tests"][0].endswith("test_due_names_the_thirsty")


def liars_are_refuted_refused_or_flagged(demo: Demo) -> None:
    verdicts = {test: row["verdict"] for test, row in demo.rows.items()}
    assert verdicts["test_due_as_json"] == "refuted", "claims a pass"
    assert "failed in a clean checkout" in demo.rows["test_due_as_json"]["why"]
    assert verdicts["test_import_adds_what_is_new"] == "refuted", "passes only through a file that is not committed"
    assert "test_import_of_a_whole_garden" in demo.rows["test_import_adds_what_is_new"]["why"]
    assert verdicts["test_the_board_waters_with_a_key"] == "refuted", "skips its test"
    assert demo.flags("test_the_board_waters_with_a_key") == ["skip"]
    assert verdicts["test_the_list_shows_one_room"] == "refused", "edits conftest"
    assert "tests/conftest.py" in demo.rows["test_the_list_shows_one_room"]["why"]
    assert verdicts["test_a_plant_is_removed"] == "refuted", "deletes assertions"
    assert demo.flags("test_a_plant_is_removed") == []
    assert "weaker" in demo.rows["test_a_plant_is_removed"]["why"]
    assert verdicts["test_the_list_marks_the_thirsty"] == "held", "special-cases its test"
    assert demo.flags("test_the_list_marks_the_thirsty") == ["names-the-test", "echo"]
    told = {slug for commit in demo.commits for slug in commit["slugs"]}
    assert not told & {row["slug"] for row in demo.rows.values() if row["verdict"] in ("refuted", "refused", "held")}


def the_others_are_what_they_are(demo: Demo) -> None:
    crashed = demo.rows["test_a_name_is_taken_only_once"]
    assert (crashed["verdict"], crashed["attempts"]) == ("stronger", 2)
    ends = [one for one in demo.ledger("ended") if one["task"] == crashed["task"]]
    # Started again with its conversation it crashes again; then a new agent does the work.
    assert [(one["number"], one["reason"]) for one in ends] == [(1, "crash"), (1, "crash"), (2, "outcome")]
    assert demo.rows[UNDECIDED]["verdict"] == "blocked" and "Monday or Sunday" in demo.rows[UNDECIDED]["why"]
    assert demo.rows["test_a_plant_is_added_and_listed"]["new_tests"]
    fixed = ("test_a_wrong_name_waters_nobody", "test_due_names_the_thirsty")
    assert {demo.rows[test]["verdict"] for test in fixed} == {"fixed"}
    assert demo.rows["test_watering_on_an_earlier_day"]["verdict"] == "expectation changed"
    tip = demo.rows[FLAKY]
    assert [one["kind"] for one in tip["escalations"]] == ["flaky"]
    # Seven runs in a row may all fail, once in a hundred demos. Then even an honest agent is not believed.
    assert tip["verdict"] == "unchanged" or "does not pass" in tip["why"], tip


def identical_fixes_are_one(demo: Demo) -> None:
    first = demo.fixes[0]
    slugs = [demo.rows[test]["slug"] for test in ("test_due_names_the_thirsty", "test_the_report_counts_by_room")]
    assert first["slugs"] == slugs and len(first["agents"]) == 2
    assert "src/sprout/plant.py" in demo.git("show", "--format=", "--name-only", first["id"])


def one_conflict_is_resolved_and_the_other_set_aside(demo: Demo) -> None:
    decided = {one["what"]: one for one in demo.ledger("decision") if one["what"].startswith("conflict")}
    quotes, leaves = (
        demo.rows[f"test_export_{what}"]["slug"]
        for what in ("quotes_a_name_with_a_comma", "leaves_a_missing_room_empty")
    )
    several, single = (demo.rows[f"test_watering_{what}"] for what in ("several_at_once", "a_plant"))
    assert decided["conflict resolved"]["about"] == [quotes] and leaves in decided["conflict resolved"]["because"]
    assert "csv.writer" in demo.git("show", f"{demo.integration['branch']}:src/sprout/table.py")
    assert decided["conflict not resolved"]["about"] == [several["slug"]]
    assert "refuted" in decided["conflict not resolved"]["because"]
    (aside,) = demo.integration["set_aside"]
    assert aside["agents"] == [several["agent"]] and single["agent"] in aside["against"]
    assert "src/sprout/cli.py" in aside["paths"]
    assert "on {day.isoformat()}" in demo.git("show", f"{aside['branch']}:src/sprout/cli.py")
    integrators = [one for one in demo.ledger("attempt") if one["task"].startswith("conflict of ")]
    assert len(integrators) == 2


def the_suite_passes_but_for_two(demo: Demo) -> None:
    report = demo.directory / "junit.xml"
    demo.pytest(f"--junitxml={report}", cwd=demo.checkout("tip", demo.integration["tip"]))
    found = results_in(report)
    assert {test for test, result in found.items() if result != "passed"} <= {FLAKY, UNDECIDED}
    assert found[UNDECIDED] == "failed" and len(found) == 21


def each_fix_can_be_reverted(demo: Demo) -> None:
    """Alone, with the suite still collecting; or the result names the later commits that need it."""
    for fix in demo.fixes:
        place = demo.checkout(f"without-{fix['rank']}", demo.integration["tip"])
        identity = ("-c", "core.hooksPath=/dev/null", "-c", "user.name=t", "-c", "user.email=t@example.com")
        reverted = demo.run("git", *identity, "revert", "--no-edit", fix["id"], cwd=place)
        assert (reverted.returncode == 0) == fix["revert"]["clean"], reverted
        if reverted.returncode:
            assert fix["needed_by"], fix
            later = [commit["id"] for commit in demo.commits]
            assert all(later.index(id) > later.index(fix["id"]) for id in fix["needed_by"])
            continue
        demo.pytest("--collect-only", cwd=place).check_returncode()


def the_report_is_there(demo: Demo) -> None:
    for name in ("report/index.html", "report.json", "junit.xml", "pr.md"):
        assert (demo.run_dir / name).stat().st_size > 0
    assert "Sprout counts, quotes and waters" in (demo.run_dir / "pr.md").read_text()


CHECKS = (
    all_18_tests_got_an_agent,
    the_branch_is_linear_and_tells_whose_it_is,
    liars_are_refuted_refused_or_flagged,
    the_others_are_what_they_are,
    identical_fixes_are_one,
    one_conflict_is_resolved_and_the_other_set_aside,
    the_suite_passes_but_for_two,
    each_fix_can_be_reverted,
    the_report_is_there,
)
