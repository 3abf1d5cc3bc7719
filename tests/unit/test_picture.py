"""The SVG of a screen."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.cli.picture import svg
from mngr.tools.tmux import Screen

TAG = "{http://www.w3.org/2000/svg}"


def drawn(text: str, cursor: tuple[int, int] | None = None, title: str = "a") -> list[ET.Element]:
    return list(ET.fromstring(svg(Screen(40, 5, cursor, text), title)).iter())


def texts(text: str) -> dict[str | None, dict[str, str]]:
    return {element.text: dict(element.attrib) for element in drawn(text) if element.tag == f"{TAG}text"}


@given(st.text(), st.text())
def test_any_screen_is_a_well_formed_picture_without_other_elements(text, title):
    tags = {element.tag.removeprefix(TAG) for element in drawn(text, (3, 2), title)}
    assert tags <= {"svg", "title", "rect", "g", "text"}


@pytest.mark.parametrize(
    ("codes", "attribute", "value"),
    [
        ("1", "font-weight", "bold"),
        ("3", "font-style", "italic"),
        ("4:3;58;2;255;0;0", "text-decoration", "underline"),
        ("4;9", "text-decoration", "underline line-through"),
        ("38;5;208", "fill", "#ff8700"),
        ("38;5;244", "fill", "#808080"),
        ("38;2;1;2;300", "fill", "#0102ff"),
        ("31;39;1", "fill", "#d7dae0"),
        ("2", "opacity", "0.6"),
    ],
)
def test_codes_become_attributes(codes, attribute, value):
    assert texts(f"\x1b[{codes}mx")["x"][attribute] == value


def test_a_style_ends_with_its_code_and_goes_on_over_lines():
    found = texts("\x1b[1ma\nb\x1b[22mc\x1b[1md\x1b[0me")
    assert [name for name in "abcde" if "font-weight" in found[name]] == ["a", "b", "d"]


def test_reversed_text_and_the_cursor_change_places_with_what_is_behind():
    assert texts("\x1b[7mx")["x"]["fill"] == "#16181d"
    boxes = [element for element in drawn("ab", (1, 0)) if element.tag == f"{TAG}rect"]
    assert [box.get("x") for box in boxes[1:]] == ["20.4"]
    assert len([element for element in drawn("", (3, 4)) if element.tag == f"{TAG}rect"]) == 2


def test_wide_letters_and_drawn_lines_take_their_cells():
    found = texts("a漢字b\n\x0elqk\x0f q")
    assert (found["漢字"]["textLength"], found["b"]["x"]) == ("33.6", "54")
    assert "┌─┐" in found and " q" in found
