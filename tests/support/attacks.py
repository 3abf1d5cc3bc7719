"""The table of attacks: what an agent, a cloned repository, a host or the user's own settings can do, what is expected,
and the tests that show it. `python -m tests.support.attacks [ROW...]` runs them and prints `row | expected | seen`."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

TOP = Path(__file__).parents[2]


class Row(NamedTuple):
    name: str
    expected: str
    tests: tuple[str, ...]  # `file::test`, both without `test_`


def _row(name: str, expected: str, *tests: str) -> Row:
    return Row(name, expected, tests)


ROWS = (
    # Code that runs
    _row("C1", "an archive by its name is a file like others", "attacks::an_archive_by_its_name_is_not_unpacked"),
    _row(
        "C2",
        "a run that came with a clone is asked about",
        "trust::a_run_that_came_with_a_clone_does_nothing_before_it_is_trusted",
    ),
    _row(
        "C3",
        "settings of a bare repository in a clone are not read",
        "git_settings::a_bare_repository_that_is_part_of_a_clone_runs_nothing",
    ),
    _row(
        "C4",
        "what a host says of commands and variables does not run here",
        "claims_of_hosts::a_command_windows_and_a_sandbox_are_those_that_were_given",
        "claims_of_hosts::variables_are_nothing_but_variables",
    ),
    _row(
        "C5",
        "extra paths stay inside of the source",
        "paths_inside::extra_paths_do_not_leave_the_source_through_a_link",
    ),
    _row(
        "C6",
        "a clone picks no template of the user, nor how code is copied",
        "trust::a_clone_cannot_choose_a_template_of_the_user_or_how_the_code_is_copied",
    ),
    _row(
        "C7",
        "a copy writes and reads through no link",
        "paths_inside::pull_does_not_write_through_a_link_that_an_earlier_pull_brought",
        "paths_inside::push_does_not_leave_the_work_dir_through_a_link",
    ),
    _row("C8", "trust ends with the repository", "trust::an_answer_is_not_for_another_repository_at_the_same_path"),
    # Data that is lost
    _row("D1", "a large ignored file is named", "work_measured::a_large_ignored_file_of_a_clean_agent_is_named"),
    _row(
        "D2",
        "a link in place of `.mngr/task` is refused or replaced",
        "paths_inside::create_refuses_a_task_directory_that_is_a_link",
        "paths_inside::a_link_that_an_agent_puts_in_place_of_its_task_directory_is_replaced",
    ),
    _row(
        "D3",
        "what a refused merge fetched is not safe by that",
        "work_measured::a_pull_that_was_not_merged_makes_nothing_safe_and_is_not_overwritten",
    ),
    _row(
        "D4",
        "commits of inner repositories are work",
        "work_measured::an_embedded_repository_that_was_committed_as_a_link_comes_back",
        "work_measured::commits_inside_a_submodule_come_back",
    ),
    _row(
        "D5",
        "what the index or a setting hides is work",
        "work_measured::changes_that_the_index_hides_are_work",
        "work_measured::a_program_is_work_where_a_setting_hides_modes",
    ),
    _row(
        "D6",
        "what cannot be read is not empty",
        "work_measured::a_directory_that_cannot_be_read_is_not_empty",
        "work_measured::a_directory_of_plain_files_that_cannot_be_read_is_not_empty",
    ),
    _row("D7", "what is staged is saved", "work_measured::what_is_staged_and_differs_from_the_disk_comes_back"),
    _row("D8", "an autostash is saved", "work_measured::a_rebase_with_changes_put_aside_can_be_continued"),
    _row(
        "D9",
        "outcome and artifacts are kept",
        "work_measured::outcome_and_artifacts_of_a_plain_copy_are_work",
        "work_measured::outcome_and_artifacts_of_an_agent_in_place_are_kept",
    ),
    _row("D10", "conversation and recording are kept", "work_measured::a_conversation_and_a_recording_are_kept"),
    _row(
        "D11",
        "commits that only private refs or reflogs hold, and LFS objects, are kept",
        "work_measured::commits_that_only_a_private_ref_names_are_work",
        "work_measured::commits_that_only_a_reflog_names_are_kept",
        "work_measured::commits_of_a_worktree_that_the_agent_made_are_work",
        "work_measured::a_merge_that_is_not_finished_comes_back",
        "work_measured::a_push_to_a_path_that_is_gone_makes_nothing_safe",
        "work_measured::objects_of_git_lfs_are_not_lost",
    ),
    _row("D12", "a link that a pull replaces is saved", "paths_inside::a_link_that_pull_replaces_is_saved_as_a_link"),
    _row(
        "D13",
        "a file with the name of an archive of ours comes back",
        "work_measured::a_file_that_is_called_like_an_archive_of_ours_is_a_file",
    ),
    _row(
        "D14",
        "a change that keeps size and time is a change",
        "work_measured::a_change_of_plain_files_that_keeps_size_and_time_is_a_change",
    ),
    # Secrets that are shown
    _row("S1", "a sandboxed copy has reachable objects only", "sandbox::it_has_no_objects_that_no_branch_or_tag_needs"),
    _row(
        "S2",
        "values of variables are not kept, nor repeated in errors",
        "secrets::a_variable_without_a_name_is_not_repeated_in_the_error",
        "attacks::no_value_of_a_variable_is_in_what_is_saved",
    ),
    _row("S3", "pages show nothing through links", "paths_inside::pages_of_e2e_runs_show_nothing_through_a_link"),
    _row("S4", "servers of pages want a token", "e2e_pages::serve_answers_its_own_pages_on_this_machine_only"),
    _row("S5", "what `git push --mirror` publishes is said in docs/security.md"),
    # Wrong answers, and none
    _row(
        "W1",
        "events without end hold up no verb",
        "bounded::events_of_3_gb_keep_no_verb_from_its_work",
        "bounded::millions_of_small_events_keep_no_verb_from_its_work",
    ),
    _row(
        "W2", "an event of the year 9999 is no error", "bounded::an_event_at_the_end_of_time_keeps_nobody_from_listing"
    ),
    _row("W3", "work on a shallow clone comes back", "odd_repositories::work_on_a_shallow_clone_comes_back"),
    _row(
        "W4",
        "a tag with the branch's name changes nothing",
        "odd_repositories::a_tag_with_the_name_of_the_branch_of_an_agent_changes_nothing",
    ),
    _row(
        "W5",
        "a repository made anew is work, and can be destroyed",
        "work_measured::a_repository_that_was_made_anew_is_saved",
    ),
    _row(
        "W6",
        "no inner repository is carried into an agent",
        "work_measured::no_repository_inside_is_carried_into_an_agent",
    ),
    _row(
        "W7",
        "settings are regular files with a limit",
        "paths_inside::settings_of_a_clone_have_to_be_a_regular_file",
        "paths_inside::settings_of_a_clone_have_a_limit",
    ),
    _row(
        "W8",
        "escape sequences of others are spelled out",
        "output::nothing_of_an_agent_reaches_the_terminal_as_a_command",
    ),
    _row(
        "W9",
        "a damaged ref of the user is in nobody's way",
        "work_measured::a_damaged_ref_of_the_user_is_in_nobodys_way",
    ),
    _row("W10", "a merge puts no changes aside", "git_settings::a_merge_never_puts_uncommitted_changes_aside"),
    _row("W11", "a squash is signed", "git_settings::a_squash_is_signed_if_commits_are"),
    _row(
        "W12",
        "a mirror of a partial clone is complete",
        "odd_repositories::the_mirror_of_a_partial_clone_gets_what_it_lacks",
    ),
    _row(
        "W13",
        "no crash by `.git/config` as an extra path, a mount, a locale",
        "paths_inside::extra_paths_name_nothing_of_git_and_nothing_outside",
        "removal::what_is_mounted_in_a_work_dir_is_not_deleted_and_the_agent_stays",
        "locale::names_are_those_of_the_files_in_any_locale",
    ),
    _row(
        "W14",
        "killed verbs leave nothing after gc",
        "removal::a_clone_that_was_killed_leaves_nothing_after_gc",
        "removal::a_note_of_a_worktree_that_git_was_killed_over_goes",
        "kill_loop::a_verb_killed_at_any_moment_loses_nothing_and_leaves_nothing_after_gc",
    ),
    _row(
        "W15",
        "no safe key makes a verb never end",
        "trust::a_clone_cannot_make_a_verb_that_looks_fail_or_never_end",
    ),
    _row("W16", "no merge into a bisect", "git_settings::a_bisect_of_the_user_is_kept"),
    _row("W17", "events are JSON", "bounded::what_is_printed_as_json_is_json"),
    # Neighbours of these, found by a second look
    _row(
        "N1",
        "a pull leaves the git directories of the user alone",
        "files::a_repository_at_the_target_keeps_its_git_directory",
    ),
    _row(
        "N2",
        "git outside of a sandbox writes through no link of the agent",
        "sandbox::git_outside_of_the_sandbox_writes_through_no_link_in_its_repository",
    ),
    _row(
        "N3",
        "an archive's link to settings of git is not followed",
        "unit/archives::settings_that_a_link_leads_to_are_left_alone",
    ),
    _row(
        "N4",
        "an outcome that is a pipe, a device or without end holds up no verb",
        "attacks::an_outcome_of_any_kind_keeps_nobody_waiting",
    ),
)


def path_of(test: str) -> str:
    """The id of pytest."""
    file, _, name = test.partition("::")
    folder, _, file = file.rpartition("/")
    return f"tests/{folder or 'real'}/test_{file}.py::test_{name}"


def main(names: list[str]) -> int:
    rows = [row for row in ROWS if not names or row.name in names]
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        ids = [path_of(test) for row in rows for test in row.tests]
        words = ["-m", "pytest", "-q", "-n", "2", f"--junitxml={report.name}", *ids]
        subprocess.run([sys.executable, *words], cwd=TOP, stdout=subprocess.DEVNULL, check=False)
        seen: dict[str, set[str]] = {}
        for case in ElementTree.parse(report.name).iter("testcase"):
            test = f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name'].partition('[')[0]}"
            bad = [part.tag for part in case if part.tag in ("failure", "error", "skipped")]
            seen.setdefault(test, set()).add(bad[0] if bad else "passed")
    failed = 0
    for row in rows:
        results = {result for test in row.tests for result in seen.get(path_of(test), {"not run"})}
        failed += bool(results - {"passed"})
        print(f"{row.name} | {row.expected} | {', '.join(sorted(results))}: {', '.join(map(path_of, row.tests))}")
    print(f"{len(rows)} rows, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
