"""Edits of what commands did."""

from mngr.e2e import edits
from mngr.e2e.replay import Answer, CommandRecord
from mngr.e2e.trees import Change, Node

SEGMENTS = (("stdout", "a 12\nb "), ("stderr", "oops\n"), ("stdout", "3.5\n"))
FILE = Change(0, "repo/x", Node(0o100644, b"1,tea\n"))


def record(segments=SEGMENTS, *, exit_code=0, changes=(FILE,)) -> CommandRecord:
    return CommandRecord((), (Answer("tool", segments, exit_code, 0.1, False, changes),), 0)


def by_id(found: CommandRecord) -> dict[str, edits.Edit]:
    return {edit.id: edit for edit in edits.edits(found)}


def text(edited: CommandRecord, stream: str) -> str:
    return edited.answers[0].text(stream)


def test_every_edit_changes_something_and_has_an_id_of_its_own() -> None:
    found = edits.edits(record())
    assert len({edit.id for edit in found}) == len(found) > 15
    assert all(edits.edited(record(), edit) != record() for edit in found)


def test_lines_numbers_and_words_are_changed_one_at_a_time() -> None:
    known = by_id(record())
    assert text(edits.edited(record(), known["stdout line dropped 1"]), "stdout") == "b 3.5\n"
    assert text(edits.edited(record(), known["stdout lines swapped 1"]), "stdout") == "b 3.5\na 12\n"
    assert text(edits.edited(record(), known["stdout number changed 2.2"]), "stdout") == "a 12\nb 4.6\n"
    assert text(edits.edited(record(), known["stdout last digit changed 1.2"]), "stdout") == "a 13\nb 3.5\n"
    assert text(edits.edited(record(), known["stderr word changed 1.1"]), "stderr") == "ppqt\n"


def test_an_edit_of_one_stream_leaves_the_other_where_it_was() -> None:
    changed = edits.edited(record(), by_id(record())["stdout number changed 1.2"])
    assert changed.answers[0].segments == (("stdout", "a 23\nb "), *SEGMENTS[1:])
    swapped = edits.edited(record(), by_id(record())["streams swapped"])
    assert text(swapped, "stdout") == "oops\n" and text(swapped, "stderr") == "a 12\nb 3.5\n"


def test_exit_codes_are_flipped_and_a_failing_one_is_changed_too() -> None:
    assert [edit.new for edit in edits.edits(record()) if edit.kind == "exit code"] == ["1"]
    assert [edit.new for edit in edits.edits(record(exit_code=3)) if edit.kind == "exit code"] == ["0", "4"]


def test_files_that_a_command_left_are_missing_or_have_other_content() -> None:
    known = by_id(record())
    assert edits.edited(record(), known["file repo/x: missing"]).answers[0].changes == ()
    [change] = edits.edited(record(), known["file repo/x word changed 1.2"]).answers[0].changes
    assert change.node is not None and change.node.data == b"1,ufb\n"
    removed = record(changes=(Change(0, "repo/y", None),))
    assert edits.edited(removed, by_id(removed)["file repo/y: not removed"]).answers[0].changes == ()


def test_a_repository_of_git_and_what_is_not_text_are_left_alone() -> None:
    found = record(changes=(Change(0, "repo/.git/HEAD", Node(0o100644, b"x")), Change(0, "a", Node(0o100644, b"\0b"))))
    assert [edit.id for edit in edits.edits(found) if edit.path] == ["file a: missing"]


def test_a_cap_keeps_exit_codes_and_the_same_edits_whatever_else_is_run() -> None:
    other = Answer("other", (("stdout", "x 1 2 3\n" * 40),), 1, 0.1, False, ())
    large = CommandRecord((), (*record().answers, other), 0)
    capped = edits.edits(large, 60)
    assert len(capped) == 60 and capped == edits.edits(large, 60)
    assert {edit.id for edit in capped} >= {"exit code flipped", "exit code changed"}
    fewer = {(edit.command, edit.id) for edit in edits.edits(large, 30)}
    assert fewer <= {(edit.command, edit.id) for edit in capped}
