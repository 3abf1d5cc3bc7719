"""What the pages are made of: documents as scripts, names as keys, recordings and transcripts made fit."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.report import casts
from mngr.report.e2e_runs import events_of
from mngr.report.server import PageServer
from mngr.report.source import is_id, key, script

JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_a_document_survives_as_a_script_that_holds_nothing_but_one_call(value):
    text = script("run/x", value).decode("ascii")
    assert "<" not in text and ">" not in text and text.count("\n") == 1
    call = re.fullmatch(r'mngrData\("run/x", (".*")\);\n', text)
    assert call is not None
    assert json.loads(json.loads(call[1])) == value


def test_numbers_that_json_lacks_become_null():
    assert b'[null,null,{\\"a\\":null}]' in script("x", [float("nan"), float("inf"), {"a": float("-inf")}])


@given(st.text(min_size=1))
def test_any_name_becomes_a_key_that_is_safe_in_a_path_and_an_address(name):
    assert is_id(key(name)) and not key(name).startswith(".") and "/" not in key(name)


def test_a_safe_name_is_its_own_key_and_others_do_not_meet():
    assert key("2026-09-21_a.b") == "2026-09-21_a.b"
    assert len({key(name) for name in ("a b", "a/b", "a-b", "..", ".", "", "a\ud800b")}) == 7


@pytest.mark.parametrize("text", ["", "..", "a/..", "a//b", "/a", "a/", "a%2fb", "a\\b", "a\n", ".a", "a/.b", "a b"])
def test_what_is_no_id_is_seen(text):
    assert not is_id(text)


def cast(*events, **header):
    lines = [{"version": 2, "width": 80, "height": 24, **header}, *events]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def test_a_recording_keeps_what_a_player_can_play():
    found = casts.clean(cast([0.5, "o", "a"], [0.2, "o", "b"], [1, "i", "secret"], [2, "r", "100x30"], [3, "o", "c"]))
    lines = [json.loads(line) for line in found.text.splitlines()]
    assert lines == [
        {"version": 2, "width": 80, "height": 24},
        [0.5, "o", "a"],
        [0.5, "o", "b"],
        [2.0, "r", "100x30"],
        [3.0, "o", "c"],
    ]
    assert (found.seconds, found.poster, found.problem) == (3.0, 3.0, "")


def test_the_poster_of_a_full_screen_program_is_its_last_screen():
    found = casts.clean(cast([0, "o", "\x1b[?1049h"], [2, "o", "screen"], [3, "o", "\x1b[?1049l"], [4, "o", "$ "]))
    assert (found.seconds, found.poster) == (4.0, 2.0)


def test_torn_and_hostile_lines_of_a_recording_are_left_out():
    bad = [{"a": 1}, [1], ["x", "o", "y"], [True, "o", "y"], [float("nan"), "o", "y"], [1, "o", 5], [1, "r", "9x99999"]]
    bad += [[10**400, "o", "y"], [float("inf"), "o", "y"]]
    found = casts.clean(
        cast(*bad, [1, "o", "good"], width=10**9, height=-4, theme={"fg": "url(//evil)"}) + b'[2, "o", "to'
    )
    assert found.text.count("\n") == 2 and "evil" not in found.text
    assert (found.columns, found.rows) == (80, 24)


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"", "header"), (b"\xff\xfe", "header"), (b'{"version": 3}\n', "version 2"), (cast(), "nothing was shown")],
)
def test_a_recording_that_cannot_be_played_says_why(data, problem):
    assert problem in casts.clean(data).problem


def test_a_recording_too_large_is_cut_at_a_line_with_a_note(tmp_path):
    path = tmp_path / "a.cast"
    path.write_bytes(cast(*([at, "o", "x" * 100] for at in range(100))))
    found = casts.read(str(tmp_path), "a.cast", most=1000)
    assert 5 < found.text.count("\n") < 10 and found.seconds < 9
    assert found.note.startswith("Only the first") and found.bytes == path.stat().st_size
    assert casts.read(str(tmp_path), "none.cast").problem


def test_events_keep_known_fields_of_the_right_type():
    raw: list[dict[str, Any]] = [
        {"type": "command", "time": 5.5, "number": 1, "command": "ls", "comment": None, "cwd": "/", "more": {"x": 1}},
        {"type": "output", "time": "late", "number": 1, "stream": "stderr", "text": "x"},
        {"type": "exit", "number": 1, "exit_code": 2, "duration": float("inf"), "timed_out": "yes"},
        {"type": "keys", "time": 6, "number": True, "keys": ["Up", "Enter"]},
        {"type": "note", "time": 10**400, "text": "x"},
        {"type": "unheard"},
        {"type": ["x"]},
        {},
    ]
    assert events_of(raw, 3.0) == [
        {"type": "command", "time": 5.5, "number": 1, "command": "ls", "comment": "", "cwd": "/"},
        {"type": "output", "time": 3.0, "number": 1, "stream": "stderr", "text": "x"},
        {"type": "exit", "time": 3.0, "number": 1, "exit_code": 2, "duration": None, "timed_out": False},
        {"type": "keys", "time": 6.0, "number": None, "keys": "Up Enter"},
        {"type": "note", "time": 3.0, "number": None, "text": "x"},
    ]


def test_output_beyond_the_limit_is_counted_by_command():
    raw = [{"type": "output", "number": number, "stream": "stdout", "text": "x" * 60} for number in (1, 1, 2)]
    found = events_of(raw, 0.0, most=100)
    assert [len(event["text"]) for event in found if event["type"] == "output"] == [60, 40]
    cuts = {event["number"]: event["text"].split()[0] for event in found if event["type"] == "cut"}
    assert cuts == {1: "20", 2: "60"}


class Unreadable:
    """A source whose documents cannot be read."""

    title = home = "runs"
    scripts: tuple[str, ...] = ()

    def ids(self) -> Iterator[str]:
        return iter(())

    def load(self, id: str) -> Any:
        raise PermissionError(13, "Permission denied", "/secret/run.json")

    version = load


def test_a_server_says_why_a_document_cannot_be_read():
    with PageServer(Unreadable()) as server, ThreadPoolExecutor() as pool:
        pool.submit(server.serve_forever)
        try:
            for path in ("data/runs.js", "version/runs"):
                with pytest.raises(HTTPError) as caught:
                    urlopen(f"{server.url}{path}", timeout=60)
                with caught.value as answer:
                    assert answer.code == 500 and "Permission denied" in answer.read().decode()
        finally:
            server.shutdown()
