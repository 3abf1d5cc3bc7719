"""What `doctor` makes of versions, space and names, without a machine to look at."""

import pytest

from mngr.actions.doctor import Check, coding_agents, disk_space, version_check
from mngr.actions.leftovers import launched_from, unknown_places

ONE = "agent-0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("program", "text", "version"),
    [
        ("tmux", "tmux 3.3a", "3.3a"),
        ("tmux", "tmux next-3.5", "3.5"),
        ("tmux", "tmux 3.10", "3.10"),
        ("git", "git version 2.39.5 (Apple Git-154)", "2.39.5"),
        ("git", "git version 2.45.GIT", "2.45.GIT"),
    ],
)
def test_versions_are_found_in_what_programs_print(program: str, text: str, version: str) -> None:
    assert version_check(program, text) == Check(program, "ok", version)


@pytest.mark.parametrize(
    ("text", "status"),
    [("tmux 3.2", "ok"), ("tmux 3.2a", "ok"), ("tmux 4.0", "ok"), ("tmux 3.1c", "fail"), ("tmux 1.8", "fail")],
)
def test_tmux_before_3_2_fails(text: str, status: str) -> None:
    check = version_check("tmux", text)
    assert check.status == status
    assert ("3.2 or later" in check.hint) == (status == "fail")


def test_a_tmux_without_a_number_is_unknown_and_not_a_failure() -> None:
    assert version_check("tmux", "tmux master").status == "unknown"
    assert version_check("git", "git version unknown").status == "unknown"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("git version 2.30.9", "fail"),
        ("git version 2.31.0", "warn"),
        ("git version 2.37.7", "warn"),
        ("git version 2.38.0", "ok"),
        ("git version 2.100.1", "ok"),
        ("git version 3.0.0", "ok"),
    ],
)
def test_git_before_2_31_fails_and_before_2_38_cannot_preview_conflicts(text: str, status: str) -> None:
    assert version_check("git", text).status == status


def test_less_than_a_gigabyte_is_a_warning() -> None:
    assert disk_space(1_000_000_000, "/x") == Check("disk", "ok", "1.0 GB free")
    low = disk_space(999_000_000, "/x y")
    assert (low.status, low.found) == ("warn", "only 999 MB free at /x y")
    assert "df -h '/x y'" in low.hint


def test_one_coding_agent_is_enough() -> None:
    assert coding_agents(["codex"]) == Check("coding agents", "ok", "codex")
    assert coding_agents(["claude", "codex", "opencode"]).found == "claude, codex, opencode"
    assert coding_agents([]).status == "warn"


def test_a_work_dir_belongs_to_the_agent_whose_short_id_ends_its_name() -> None:
    renamed, foreign, short = "/w/old-name-01234567", "/w/old-name-76543210", "/w/01234567x"
    assert unknown_places([renamed, foreign, short], [ONE]) == [foreign, short]


@pytest.mark.parametrize(
    ("command", "directory"),
    [
        ("sh /h/agents/x/launch.sh", "/h/agents/x"),
        ('sh "/my h\'s/agents/x/launch.sh"', "/my h's/agents/x"),
        ("sh 'unclosed", ""),
        ("", ""),
    ],
)
def test_a_session_tells_the_state_directory_that_it_was_started_from(command: str, directory: str) -> None:
    assert launched_from(command) == directory
