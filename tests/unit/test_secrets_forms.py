"""Values of variables are found and hidden in the forms in which programs write them."""

import base64
import json
import shlex
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from mngr import secrets
from mngr.tmr.masking import mask_files

VALUE = 'q7/Zx+"horse" & bat\'tery=Ω\\'


@pytest.mark.parametrize(
    "text",
    [
        VALUE,
        json.dumps({"a": VALUE}),
        json.dumps({"a": VALUE}, ensure_ascii=False),
        json.dumps([json.dumps({"a": VALUE})]),
        repr(["x", VALUE]),
        f"export A={shlex.quote(VALUE)}",
        f"https://x/?a={quote(VALUE)}",
        f"https://x/?a={quote(VALUE, safe='')}&b=1",
        f"a={quote_plus(VALUE)}",
        VALUE.encode().hex(),
        *(base64.b64encode(before + VALUE.encode() + b"!").decode() for before in (b"", b"a", b"ab", b"abc", b"u:p:")),
        base64.urlsafe_b64encode(b"??" + VALUE.encode()).decode(),
    ],
)
def test_a_value_is_masked_in_each_form(text: str) -> None:
    shown = secrets.mask(text, [VALUE])
    assert "***" in shown
    assert not any(form in shown for form in secrets.forms((VALUE,)))
    assert len(shown.replace("***", "")) < len(text) - len(VALUE) // 2


def test_lines_of_a_value_count_alone_and_short_ones_do_not() -> None:
    assert secrets.mask("first-line and short", ["first-line\nshort"]) == "*** and short"
    assert secrets.mask("a long text with short words", ["short"]) == "a long text with short words"


def test_other_text_stays() -> None:
    text = json.dumps({"a": "horse", "b": [1, 2], "c": "tery=Ω"})
    assert secrets.mask(text, [VALUE]) == text


def test_files_are_masked_and_names_in_rows_stay(tmp_path: Path) -> None:
    value = "src/library"
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "log").write_text(f"in {value} it failed\n")
    (tmp_path / "binary").write_bytes(b"\0" + value.encode() + b"\0")
    row = {"type": "ran", "id": f"{value}/test_a.py::test", "text": f"{value} is odd", "seconds": 0.5}
    (tmp_path / "test.rows").write_text(json.dumps(row) + "\n{torn " + value)
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "log")
    mask_files(str(tmp_path), [value])
    assert (tmp_path / "deep" / "log").read_text() == "in *** it failed\n"
    assert (tmp_path / "binary").read_bytes() == b"\0" + b"*" * len(value) + b"\0"
    assert json.loads((tmp_path / "test.rows").read_text()) == {**row, "text": "*** is odd"}
    assert (tmp_path / "link").is_symlink()
