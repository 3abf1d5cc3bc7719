"""The scripted agent's script and keys: what they mean, what they refuse."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.programs.scripted.keys import END, INTERRUPT, Composer, plain, shorten
from mngr.programs.scripted.script import FORMS, ScriptError, ScriptStep, expand, inside_json, parse

GUIDE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "guides", "scripted-agent.md")


def error_of(text: str) -> ScriptError:
    with pytest.raises(ScriptError) as caught:
        parse(text)
    return caught.value


def test_comments_and_blank_lines_are_skipped_and_lines_are_counted():
    assert parse("# hello\n\n  say one\r\n# two\nsay  three  \n") == (
        ScriptStep(3, "say", "one"),
        ScriptStep(5, "say", "three"),
    )


def test_a_here_document_is_kept_byte_for_byte():
    (step,) = parse("write a b.txt <<X\n  one\n# two\r\n\nEND\nX \nX\n")
    assert (step.text, step.body) == ("a b.txt", "  one\n# two\r\n\nEND\nX \n")


def test_a_script_inside_a_script_knows_its_own_lines():
    (step,) = parse("repeat 3 <<END\n  say one\n  write f <<TEXT\nx\nTEXT\nEND")
    assert step.number == 3
    assert [(inner.line, inner.verb) for inner in step.steps] == [(2, "say"), (3, "write")]
    assert error_of("repeat 3 <<END\nsay one\nsya two\nEND").message.startswith("line 3: ")


def test_a_replacement_has_an_old_and_a_new_text():
    (step,) = parse("replace f <<END\nold 1\nold 2\n====\nnew\nEND")
    assert step.words == ("old 1\nold 2", "new")
    (step,) = parse("replace f <<END\r\nold\r\n====\r\nEND")
    assert step.words == ("old", "")


def test_a_crash_has_a_code_or_a_signal():
    assert [(s.number, s.words) for s in parse("crash\ncrash 139\ncrash SIGKILL\ncrash segv")] == [
        (1, ()),
        (139, ()),
        (0, ("KILL",)),
        (0, ("SEGV",)),
    ]


def test_usage_has_six_values_and_no_cost_or_model_that_was_not_given():
    assert parse("usage output=200 cost=0.01")[0].words == ("0", "200", "0", "0", "0.01", "")
    assert parse("usage cache_write=3 model=a-b")[0].words == ("0", "0", "0", "3", "", "a-b")


def test_an_unknown_directive_names_the_line_and_the_nearest_one():
    error = error_of("say hi\ncomit now")
    assert error.message == "line 2: no directive is called `comit`"
    assert error.hint == "the nearest is `commit MESSAGE`"
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("say", "`say` needs TEXT"),
        ("hang now", "`hang` takes nothing after it"),
        ("write f", "`write` needs a text after it"),
        ("write <<END\nEND", "`write` needs PATH"),
        ("write f <<END\nx", "the text of `write` has no end"),
        ("think long", "`long` is not a number from 0 to 1e+09"),
        ("think -1", "`-1` is not a number from 0 to 1e+09"),
        ("think 1e400", "`1e400` is not a number from 0 to 1e+09"),
        ("repeat 1.5 <<END\nEND", "`1.5` is not a whole number from 0 to 1e+09"),
        ("exit 256", "`256` is not a whole number from 0 to 255"),
        ("exit ²", "`²` is not a whole number from 0 to 255"),
        ("crash BANG", "`BANG` is no exit code and no signal of"),
        (
            "usage tokens=1",
            "`tokens=1` is not one of input, output, cache_read, cache_write, cost, model, each once, with its value",
        ),
        ("usage input=1 input=2", "`input=2` is not one of"),
        ("usage input=", "`` is not a whole number"),
        ("replace f <<END\nold\nEND", "`replace` needs one line `====` between the old and the new text"),
        ("replace f <<END\n====\nnew\nEND", "the old text of `replace` is empty"),
        ("outcome <<END\n{\nEND", "the text of `outcome` is not JSON: "),
        ('outcome <<END\n{"a": {head}}\nEND', "the text of `outcome` is not JSON: "),
        ("artifact ../x <<END\nEND", "`../x` is not a name inside the directory of artifacts"),
        ("artifact /x <<END\nEND", "`/x` is not a name inside the directory of artifacts"),
        ("if-message ( <<END\nEND", "`(` is not a regular expression: "),
        ("run a\0b", "a NUL character cannot be given to `run`"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_line(script: str, message: str):
    assert error_of(script).message.startswith(f"line 1: {message}")


LINES = st.one_of(
    st.text(max_size=30),
    st.builds(
        "{} {} {}".format,
        st.sampled_from(sorted(FORMS)),
        st.one_of(st.text(max_size=12), st.integers().map(str), st.floats().map(str)),
        st.sampled_from(["", "<<END", "<<E2", "--", "-- x", "===="]),
    ),
    st.sampled_from(["END", "E2", "====", "{", "{}", '"{message}"']),
)


@given(st.lists(LINES, max_size=12).map("\n".join))
def test_any_text_is_a_script_or_a_script_error(text: str):
    try:
        found = {step.verb for step in parse(text)}
    except ScriptError as error:
        found = {error.message.partition(" ")[0]}
    assert found <= FORMS.keys() or found == {"line"}


@given(st.text())
def test_placeholders_inside_json_stay_one_string(message: str):
    import json

    text = expand('{"a": "{message}", "b": {}}', lambda name: inside_json(message))
    assert json.loads(text) == {"a": message, "b": {}}


def test_the_guide_has_every_directive_as_it_is_written():
    with open(GUIDE, encoding="utf-8") as file:
        guide = file.read()
    assert [verb for verb, form in FORMS.items() if f"| `{form.usage(verb)}` |" not in guide] == []


def composed(*chunks: bytes) -> list[bytes | str]:
    composer = Composer()
    return [key for chunk in chunks for key in composer.feed(chunk)]


def test_enter_inside_a_paste_is_part_of_the_text():
    assert composed(b"\x1b[200~one\r\ntwo\n\x1b[201~", b"\r") == [b"one\r\ntwo"]


def test_enter_on_nothing_does_nothing():
    assert composed(b"\r\n\r", b"\x1b[200~\n\x1b[201~\r") == []


def test_a_draft_can_be_cleared_in_the_middle_of_the_bytes():
    composer = Composer()
    found = []
    for key in composer.feed(b"half\x03whole\r"):
        found.append(key)
        composer.draft.clear()
    assert found == [INTERRUPT, b"whole"]


def test_typed_text_can_be_edited():
    assert composed("ab\x7fä\x7fc\r".encode(), b"gone\x15kept\n") == [b"ac", b"kept"]


def test_other_keys_of_the_terminal_are_passed_over():
    assert composed(b"a\x1b[A\x1b[1;5C\x1bOP\x1b\x1b[Ib\r", b"\x03\x04") == [b"ab", INTERRUPT, END]


def test_the_end_of_the_input_submits_what_is_left():
    composer = Composer()
    assert list(composer.feed(b"one\ntwo")) == [b"one"]
    assert list(composer.finish()) == [b"two", END]


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\x1b", exclude_categories=["Cs"]))), st.data())
def test_pastes_arrive_whole_however_they_are_cut(texts: list[str], data: st.DataObject):
    stream = b"".join(b"\x1b[200~" + text.encode() + b"\x1b[201~\r" for text in texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    stripped = [text.rstrip("\r\n").encode() for text in texts]
    assert composed(*chunks) == [text for text in stripped if text]


@given(st.binary())
def test_any_bytes_are_composed(data: bytes):
    composer = Composer()
    for byte in data:
        list(composer.feed(bytes([byte])))
    assert list(composer.finish())[-1] == END


def test_a_long_message_is_shown_as_its_first_line():
    assert shorten("one\ntwo\nthree", 40) == "one (+2 lines)"
    assert shorten("one\rtwo", 40) == "one (+1 line)"
    assert shorten("abcdefg", 6) == "abcde…"
    assert shorten("abcdef", 6) == "abcdef"


@given(st.text(), st.integers(20, 100))
def test_what_is_shown_never_moves_the_cursor(text: str, width: int):
    shown = shorten(text, width)
    assert shown.isprintable()
    assert plain(text).replace("\n", "").isprintable()
