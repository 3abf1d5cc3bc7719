"""Results in every format, tables on every width, and text that must not steer a terminal."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.cli.output.output import Output, state_style, to_json
from mngr.cli.output.table import Column, table
from mngr.cli.output.template import Template
from mngr.cli.output.terminal import cut, paint, visible, visible_lines, width
from mngr.errors import UsageError

ROWS: list[dict[str, Any]] = [
    {"name": "fix-login", "state": "RUNNING", "labels": {"team": "web", "a.b": "x"}, "host": {"name": "local"}, "n": 1},
    {"name": "b", "state": "FAILED", "labels": {}, "host": {"name": "local"}, "n": None},
]
COLUMNS = [
    Column("NAME", "name"),
    Column("STATE", "state", style=state_style),
    Column("TEAM", "labels.team", flexible=True),
    Column("N", "n", right=True),
]
KNOWN = ("name", "state", "labels.*", "host.name", "n")


def make(format: str = "human", **more) -> tuple[Output, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    return Output(format, out, err, **more), out, err


def rows_as(format: str, rows=ROWS, **more) -> str:
    output, out, _ = make(format)
    output.emit_rows(rows, COLUMNS, **more)
    return out.getvalue()


def test_a_table_is_aligned_and_has_no_trailing_blanks():
    assert rows_as("human") == (
        "NAME       STATE    TEAM  N\n"
        "fix-login  RUNNING  web   1\n"
        "b          FAILED\n"
    )  # fmt: skip


def test_an_empty_listing_says_so_to_people_only():
    assert rows_as("human", [], empty="No agents found") == "No agents found\n"
    assert rows_as("json", [], empty="No agents found", envelope={"agents": [], "errors": []}) == (
        '{\n  "agents": [],\n  "errors": []\n}\n'
    )
    assert rows_as("jsonl", [], empty="No agents found") == ""
    assert rows_as("{name}", [], empty="No agents found") == ""


def test_json_is_the_envelope_or_the_rows_and_jsonl_a_row_a_line():
    assert json.loads(rows_as("json")) == ROWS
    assert json.loads(rows_as("json", envelope={"agents": ROWS, "errors": []}))["agents"] == ROWS
    lines = rows_as("jsonl").splitlines()
    assert [json.loads(line) for line in lines] == ROWS
    assert lines[0].startswith('{"name":"fix-login","state":')


def test_json_stays_readable_but_cannot_steer_a_terminal_or_break_utf8():
    text = "é \x1b[31m \x9b31m \x7f \u2028 \udcff"
    written = to_json({"text": text})
    assert "é" in written
    assert not any(c in written for c in "\x1b\x9b\x7f\u2028\udcff")
    written.encode()
    assert json.loads(written)["text"] == text


def test_a_template_reaches_into_tables():
    assert rows_as(r"{name}\t{host.name}\t{labels.team}", known=KNOWN) == "fix-login\tlocal\tweb\nb\tlocal\t\n"
    assert rows_as("{labels.a.b}|{n}|{labels}", known=KNOWN).splitlines() == ['x|1|{"team":"web","a.b":"x"}', "||{}"]
    assert rows_as(r"{{{name}}}\n\\", known=KNOWN).splitlines() == ["{fix-login}", "\\", "{b}", "\\"]


def test_an_unknown_field_names_the_nearest_also_without_rows():
    for rows in (ROWS, []):
        with pytest.raises(UsageError, match="there is no field `nmae`") as caught:
            rows_as("{nmae}", rows, known=KNOWN)
        assert caught.value.hint == "the closest field is `name`"
    with pytest.raises(UsageError):
        rows_as("{nmae}")
    assert rows_as("{labels.any}", known=KNOWN) == "\n\n"


@pytest.mark.parametrize("text", ["{", "{name", "{}", "{name}}", "{ {name}"])
def test_a_broken_template_is_refused(text):
    with pytest.raises(UsageError, match="the template has"):
        Template(text)


def test_a_word_that_is_no_format_names_the_nearest():
    with pytest.raises(UsageError, match="`jsno` is not a format") as caught:
        make("jsno")
    assert "`json`" in caught.value.hint


@given(st.text())
def test_any_format_is_taken_or_refused_with_a_usage_error(text):
    try:
        rows_as(text)
    except UsageError:
        pass


def test_an_object_in_every_format():
    value = {"agent_id": "agent-1", "ok": True, "none": None}
    shown = {}
    for format in ("human", "json", "jsonl", "{agent_id}:{ok}:{none}"):
        output, out, _ = make(format)
        output.emit_object(value)
        shown[format] = out.getvalue()
    assert shown["human"] == "agent_id: agent-1\nok: true\nnone: \n"
    assert json.loads(shown["json"]) == value
    assert shown["jsonl"] == '{"agent_id":"agent-1","ok":true,"none":null}\n'
    assert shown["{agent_id}:{ok}:{none}"] == "agent-1:true:\n"
    output, out, _ = make()
    output.emit_object(value, human="created `foo`")
    assert out.getvalue() == "created `foo`\n"


def test_lines_are_for_people_and_notes_for_stderr():
    for format in ("human", "json"):
        output, out, err = make(format)
        output.line("merged 3 commits")
        output.note("a note")
        assert out.getvalue() == ("merged 3 commits\n" if format == "human" else "")
        assert err.getvalue() == "a note\n"
    output, out, err = make(quiet=True)
    output.note("a note")
    output.warn("one host did not answer")
    assert (out.getvalue(), err.getvalue()) == ("", "warning: one host did not answer\n")


def test_colour_only_where_it_was_asked_for():
    output, out, _ = make(colour=True)
    output.emit_rows(ROWS, COLUMNS)
    assert paint("FAILED", "red") in out.getvalue()
    assert out.getvalue().startswith("\x1b[2mNAME\x1b[0m")
    assert paint("BLOCKED", state_style({"state": "BLOCKED"})) == "\x1b[1;31mBLOCKED\x1b[0m"
    output, out, _ = make("json", colour=True)
    output.emit_rows(ROWS, COLUMNS)
    assert "\x1b" not in out.getvalue()
    assert "\x1b" not in rows_as("human")


def test_agents_cannot_write_escapes_through_any_format():
    rows: list[dict[str, Any]] = [
        {"name": "\x1b]0;gotcha\x07\nx\u202e", "state": "\x9b", "labels": {"team": "\r\t"}, "n": 0}
    ]
    shown = rows_as("human", rows)
    assert "\\x1b]0;gotcha\\x07\\nx\\u202e" in shown
    assert shown.count("\n") == 2
    output, out, err = make("{name}", columns=80)
    output.emit_rows(rows, COLUMNS)
    output.note("\x1b[2J")
    assert "\x1b" not in out.getvalue() + err.getvalue()


def test_wide_characters_keep_columns_aligned():
    rows = [{"name": "修复登录", "state": "DONE", "n": 1}, {"name": "e\u0301te", "state": "DONE", "n": 1}]
    lines = table(rows, COLUMNS[:2]).splitlines()
    assert [width(line) for line in lines[1:]] == [14, 14]
    assert lines[1] == "修复登录  DONE"
    assert lines[2] == "e\u0301te       DONE"


def test_on_a_terminal_the_flexible_column_gives_way():
    rows: list[dict[str, Any]] = [
        {"name": "fix-login", "state": "RUNNING", "labels": {"team": "a very long text " * 5}, "n": 1}
    ]
    shown = table(rows, COLUMNS, fit=50)
    assert [width(line) for line in shown.splitlines()] == [50, 50]
    assert "…" in shown
    assert "fix-login  RUNNING" in shown
    assert "…" not in table(rows, COLUMNS)


def test_a_terminal_too_narrow_for_anything_still_shows_the_names():
    shown = table(ROWS, COLUMNS, fit=5)
    assert "fix-login  RUNNING" in shown


def test_cutting_counts_cells():
    assert cut("修复登录", 5) == "修复…"
    assert cut("修复登录", 4) == "修…"
    assert cut("abc", 3) == "abc"
    assert cut("abc", 0) == ""


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_a_cut_text_fits(text, cells):
    assert width(cut(visible(text), cells)) <= cells


@given(st.text())
def test_visible_text_has_no_control_character_and_one_line(text):
    shown = visible(text)
    assert len(shown.splitlines()) <= 1
    assert not any(ord(c) < 32 or 0x7F <= ord(c) <= 0x9F or 0xD800 <= ord(c) <= 0xDFFF for c in shown)


def test_visible_keeps_what_is_harmless():
    assert visible("naïve 修复 👩\u200d💻 a\u00a0b") == "naïve 修复 👩\u200d💻 a\u00a0b"
    assert visible_lines("a\n\tb\x1b") == "a\n\tb\\x1b"


def test_an_output_that_knows_no_unicode_gets_escapes_instead_of_an_error():
    buffer = io.BytesIO()
    output = Output("human", io.TextIOWrapper(buffer, encoding="ascii"), io.StringIO())
    output.line("修")
    output.flush()
    assert buffer.getvalue() == b"\\u4fee\n"


def test_raw_output_is_unchanged_and_in_order():
    buffer = io.BytesIO()
    output = Output("human", io.TextIOWrapper(buffer, encoding="utf-8"), io.StringIO())
    output.line("first")
    output.raw(b"\x00\xff\x1b[31m")
    assert buffer.getvalue() == b"first\n\x00\xff\x1b[31m"


def foreign(data: bytes, *, columns: int | None, colour: bool) -> bytes:
    buffer = io.BytesIO()
    stdout = io.TextIOWrapper(buffer, encoding="utf-8")
    Output("human", stdout, io.StringIO(), colour=colour, columns=columns).foreign(data)
    return buffer.getvalue()


def test_what_other_programs_print_is_text_and_colours_on_a_terminal_and_unchanged_elsewhere():
    colours = b"\x1b[1;31m-old\x1b[m \x1b[0;38;5;8mdim\ttab\n"
    steering = "\x1b]52;c;Y2F0\x07\u009b2J\x1b[8mhidden\x1b[K\rx\u202etxt.exe".encode() + b"\x9b"
    shown = rb"\x1b]52;c;Y2F0\x07\x9b2J\x1b[8mhidden\x1b[K\rx\u202etxt.exe\x9b"
    assert foreign(colours + steering, columns=None, colour=False) == colours + steering
    assert foreign(steering + colours, columns=80, colour=True) == shown + colours + b"\x1b[0m"
    assert foreign(steering + colours, columns=80, colour=False) == shown + colours.replace(b"\x1b", rb"\x1b")


def test_json_does_not_turn_text_around():
    assert to_json({"a": "x\u202etxt.exe\u2066"}) == '{"a":"x\\u202etxt.exe\\u2066"}'
