"""Frames on a stream, and values as JSON and bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.actions.usage import CollectedUsage
from mngr.agent.limits import Limits
from mngr.agent.record import CorruptRecord
from mngr.errors import FAILED, MngrError, NotFoundError, TimedOut
from mngr.remote import frames
from mngr.remote.codec import Decoder, Encoder
from mngr.remote.frames import BadStream, FrameReader, MessageReader, pack
from mngr.system.process import CommandFailed, ProgramMissing, Result
from tests.support.records import make_record

RECORD = make_record(
    id="agent-" + "a" * 32,
    name="foo",
    kind="command",
    command="cat",
    work_dir="/w",
    transfer="none",
    session="mngr-foo",
    created_at="2026-01-01T00:00:00.000000Z",
    allowed_commands=("make",),
    labels={"a": "b"},
)


def again(value: object) -> object:
    """The value after a way through a stream."""
    encoder = Encoder()
    encoded = encoder.encode(value)
    (message,) = MessageReader().feed(pack({"id": 1, "answer": encoded}, bytes(encoder.body)))
    return Decoder(message.body).decode(message.header["answer"])


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.frozensets(st.text() | st.binary())
    ),
    max_leaves=20,
)


@given(values)
def test_every_plain_value_arrives_as_it_was(value):
    assert again(value) == value
    assert type(again(value)) is type(value)


def test_odd_bytes_of_file_names_arrive():
    assert again({"\udcff": "\udc80 x"}) == {"\udcff": "\udc80 x"}


def test_records_arrive_with_their_class_and_types():
    found = again(CollectedUsage([], [], [CorruptRecord("bad", hint="repair it")]))
    assert isinstance(found, CollectedUsage)
    assert isinstance(found.errors[0], CorruptRecord)
    assert again(RECORD) == RECORD
    assert again(Limits(idle_seconds=3.0)) == Limits(idle_seconds=3.0)


@pytest.mark.parametrize(
    "error",
    [
        MngrError("a", hint="b", details="c"),
        NotFoundError("x", exit_code=9),
        TimedOut("late"),
        ProgramMissing("tmux"),
        CommandFailed(Result(("git", "x"), 3, b"out", b"err\xff")),
    ],
)
def test_errors_arrive_with_their_class_message_hint_and_exit_code(error: MngrError) -> None:
    found = again(error)
    assert type(found) is type(error)
    assert isinstance(found, MngrError)
    assert {**vars(found), "exit_code": found.exit_code} == {**vars(error), "exit_code": error.exit_code}
    assert str(found) == error.message


def test_an_error_of_an_unknown_class_arrives_as_the_nearest_known_one():
    class Special(NotFoundError):
        pass

    found = again(Special("gone"))
    assert type(found) is NotFoundError
    assert found.exit_code == FAILED


@pytest.mark.parametrize(
    "value",
    [
        {"$record": "os:system", "values": []},
        {"$record": "process:run", "values": []},
        {"$record": "__main__:x", "values": []},
        {"$record": "cli.main:App", "values": []},
        {"$record": "agent.record:Record", "values": [1]},
        {"$record": "errors:MngrError", "values": []},
        {"$error": ["subprocess:Popen"], "fields": {"exit_code": "x"}},
        {"$bytes": 5},
        {"$bytes": -1},
        {"$tuple": 3},
        {"$function": 0},
        {"$what": 1},
        json.loads("[" * 100 + "]" * 100),
    ],
)
def test_what_no_encoder_makes_is_refused(value):
    with pytest.raises(BadStream):
        Decoder(b"").decode(value)


def test_a_value_that_is_no_data_is_a_clear_error():
    with pytest.raises(TypeError, match="object cannot be sent"):
        Encoder().encode(object())


def test_frames_arrive_whole_however_the_stream_is_cut():
    data = pack({"id": 1}, b"one") + pack({"id": 2}) + pack({"id": 3}, b"three")
    reader = FrameReader()
    found = [frame for byte in data for frame in reader.feed(bytes([byte]))]
    assert [(frame.header["id"], frame.body) for frame in found] == [(1, b"one"), (2, b""), (3, b"three")]


def test_a_large_body_travels_in_parts_that_other_messages_may_come_between():
    large = bytes(range(256)) * (frames.PART // 100)
    data = pack({"id": 1, "answer": 0}, large)
    first = data[: frames.PART + 100]
    cut = len(b"".join(frames._frame(frame.header, frame.body) for frame in FrameReader().feed(first)))
    messages = list(MessageReader().feed(data[:cut] + pack({"id": 2}, b"small") + data[cut:]))
    assert [m.header["id"] for m in messages if "part" in m.header and not m.body] == [1] * (len(messages) - 2)
    assert [(m.header["id"], m.body) for m in messages if m.body] == [(2, b"small"), (1, large)]


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 8,
        (5).to_bytes(4, "big") + (0).to_bytes(4, "big") + b"hello",
        (2).to_bytes(4, "big") + (0).to_bytes(4, "big") + b"[]",
        (1).to_bytes(4, "big") + (frames.LONGEST_BODY + 1).to_bytes(4, "big") + b"1",
    ],
)
def test_garbage_ends_the_stream_with_an_error(data):
    with pytest.raises(BadStream):
        list(FrameReader().feed(data))


@given(st.binary(max_size=200))
def test_random_bytes_never_crash_the_reader(data):
    try:
        list(MessageReader().feed(data))
    except BadStream:
        pass
