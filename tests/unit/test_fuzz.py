"""Pure functions on made-up input: what goes in comes out, and nothing but the promised error is raised."""

import json
import os
import subprocess
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mngr import names
from mngr.actions.message import clean
from mngr.agent import launch, record, state
from mngr.agent.record import AgentLife, AgentSpec, AgentWorkspace, CorruptRecord, Record
from mngr.cli.parser.option_values import parse_label
from mngr.errors import MngrError, UsageError
from mngr.system import files, process
from mngr.system.tmux import Pane
from mngr.workspace import plan
from tests.support.records import edited

# Text as the system can hand it over: any character, and bytes that are not UTF-8 the way Python carries them.
odd_bytes = st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF, categories=["Cs"])
characters = st.one_of(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), odd_bytes)
special = st.sampled_from("'\"\\$`!#~;&|<>(){}[]*?=%^ \t\n\r\v\f\x01\x1b\x7f-éß日✓\u2028\U0001f600")
texts = st.text(st.one_of(special, characters), max_size=40).map(lambda text: os.fsdecode(os.fsencode(text)))
agent_names = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,62}\Z")
ids = st.text("0123456789abcdef", min_size=32, max_size=32).map(lambda text: f"agent-{text}")
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=10)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)
moments = st.floats(0, 4e9).map(record.timestamp)


def through_shell(script: str) -> list[str]:
    """What a real shell makes of a script that prints values, each ended by a NUL."""
    done = subprocess.run(["sh"], input=script.encode("utf-8", "surrogateescape"), capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


@settings(deadline=None, max_examples=40)
@given(st.lists(texts, min_size=1, max_size=30))
@example(["", "'", "''", "\n", "\n\n", "$(id)", "a'b\"c", "\\", "\\n", "-n", "~", "!x", "\udcff"])
def test_a_quoted_word_comes_out_of_a_shell_as_it_was(words: list[str]) -> None:
    one_by_one = "".join(f"printf '%s\\0' {process.quote(word)}\n" for word in words)
    assert through_shell(one_by_one) == words
    assert through_shell(f"printf '%s\\0' {process.join(words)}") == words


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(st.from_regex(r"\AFUZZ_[A-Za-z0-9_]{0,10}\Z"), texts, min_size=1, max_size=15))
def test_an_env_file_gives_a_shell_exactly_its_values(env: dict[str, str]) -> None:
    script = launch.env_text(env) + "".join(f'printf "%s\\0" "${{{name}}}"\n' for name in env)
    assert through_shell(script) == list(env.values())


@given(st.text(max_size=12))
def test_a_variable_is_a_name_that_a_shell_can_set_or_refused(text: str) -> None:
    if launch.is_variable(text):
        assert text.isascii() and text.replace("_", "a").isalnum() and not text[:1].isdigit()
    try:
        name, value = launch.parse_variable(text)
    except UsageError:
        return
    assert f"{name}={value}" == text and launch.is_variable(name) and "\0" not in value


@given(st.text(st.one_of(special, st.sampled_from("@.:localab1-"), characters, st.just("\0")), max_size=30))
def test_an_address_is_taken_apart_and_put_together_or_refused(text: str) -> None:
    try:
        address = names.parse_address(text)
    except UsageError:
        return
    assert names.parse_address(str(address)) == address
    assert str(address) == text
    assert address.name is None or names.is_name(address.name)


@given(
    st.none() | agent_names,
    st.none() | st.from_regex(r"\A[a-z0-9][a-z0-9.-]{0,20}[a-z0-9]\Z"),
    st.booleans(),
    st.none() | texts,
)
def test_an_address_of_good_parts_has_these_parts(
    name: str | None, host: str | None, provider: bool, path: str | None
) -> None:
    assume(name or host or provider or path is not None)
    assume(host is None or not host.endswith(".local"))
    made = names.Address(name, host, "local" if provider else None, path)
    assert names.parse_address(str(made)) == made


@given(st.text(max_size=70))
def test_a_name_is_safe_everywhere_or_refused(text: str) -> None:
    try:
        assert names.check_name(text) == text
    except UsageError:
        assert not names.is_name(text)
        return
    assert names.is_name(text) and process.quote(text) == text


@given(st.text(max_size=15), st.lists(st.text(max_size=15), max_size=15))
def test_a_suggestion_is_a_candidate_or_nothing(word: str, candidates: list[str]) -> None:
    found = names.nearest(word, candidates)
    assert found is None or found in candidates
    assert isinstance(names.suggest(word, candidates, "thing"), str)


records = st.builds(
    Record,
    id=ids,
    name=agent_names,
    spec=st.builds(
        AgentSpec,
        kind=texts,
        command=texts,
        project=texts,
        labels=st.dictionaries(texts, texts, max_size=3),
        windows=st.dictionaries(texts, texts, max_size=2),
        reports=st.booleans(),
        limits=st.just({}),
        rules=st.dictionaries(texts, texts, max_size=2),
    ),
    workspace=st.builds(
        AgentWorkspace,
        work_dir=texts.map(lambda text: f"/{text}"),
        transfer=texts,
        source=texts,
        repo=st.none() | texts,
        branch=st.none() | texts,
        created_branch=st.booleans(),
        base_branch=st.none() | texts,
        base_commit=st.none() | texts,
        origin=st.dictionaries(texts, texts, max_size=3),
    ),
    life=st.builds(
        AgentLife,
        session=texts,
        created_at=moments,
        number=st.integers(0, 10**6),
        boot_id=texts,
        creator=st.none() | st.tuples(st.integers(1, 2**22), texts),
        started_at=st.none() | moments,
        stopped_at=st.none() | moments,
        stop_reason=texts,
        archived_at=st.none() | moments,
    ),
    extra=st.dictionaries(st.text(max_size=5).map(lambda text: f"x-{text}"), json_values, max_size=3),
)
record_fields = (*Record._fields, *AgentSpec._fields, *AgentWorkspace._fields, *AgentLife._fields)


@given(records)
def test_a_record_comes_back_as_it_was_written(made: Record) -> None:
    data = record.dump(made)
    assert record.parse(data, "agent.json") == made
    json.loads(data.decode())  # for other programs, too


@given(st.binary(max_size=200))
@example(b"[" * 100_000)
@example(b"\xff\xfe{}")
def test_any_bytes_are_a_record_or_a_corrupt_one(data: bytes) -> None:
    try:
        record.parse(data, "agent.json")
    except CorruptRecord:
        return


@given(records, st.dictionaries(st.sampled_from(record_fields), json_values, min_size=1, max_size=3))
def test_a_record_with_any_field_replaced_is_good_or_corrupt(made: Record, changed: dict[str, Any]) -> None:
    value = json.loads(record.dump(made))
    try:
        parsed = record.parse(json.dumps(edited(value, **changed)).encode(), "agent.json")
    except CorruptRecord:
        return
    facts = state.Facts(None, True, (), "", False)
    assert state.decide(parsed, facts, from_events=False).state in state.STATES
    assert record.parse(record.dump(parsed), "agent.json") == parsed


@given(st.binary(max_size=300))
@example(b'{"a": 1}\n{"b": \n\xff\n[1]\n5\n\n{"c": 2}')
@example(b"[" * 100_000 + b'\n{"a": 1}\n')
def test_lines_of_any_bytes_give_objects_only(data: bytes) -> None:
    assert all(isinstance(value, dict) for value in files.read_lines(data))


@given(st.lists(st.dictionaries(texts, texts | st.integers(), max_size=3), max_size=5), st.binary(max_size=20))
def test_objects_are_found_again_before_a_torn_line(values: list[dict[str, Any]], torn: bytes) -> None:
    assume(b"\n" not in torn)
    data = b"".join(files.json_bytes(value) for value in values)
    assert files.read_lines(data + torn)[: len(values)] == values


@given(st.text(max_size=30) | moments)
@example("2020-01-01T00:00:00.9e999Z")
@example("99999999999-01-01T00:00:00Z")
def test_a_point_in_time_is_read_or_refused(text: str) -> None:
    try:
        seconds = record.seconds_of(text)
    except ValueError:
        return
    assert 0 <= seconds < 3e11
    record.timestamp(seconds)


panes = st.builds(
    Pane,
    agent_id=texts,
    session=texts,
    pane_id=st.just("%1"),
    pid=st.integers(),
    tty=texts,
    dead=st.booleans(),
    exit_code=st.none() | st.integers(),
    signal=st.none() | st.integers(),
    died_at=st.none() | st.floats(0, 4e9),
    active_at=st.floats(0, 4e9),
    attached=st.booleans(),
)
known_words = st.sampled_from(["exited", "state", "started", "RUNNING", "WAITING", "BLOCKED", "DONE"])
events = st.dictionaries(
    st.sampled_from(["type", "state", "timestamp", "exit_code", "signal", "reason", "event_id"]),
    known_words | json_values | moments,
    max_size=6,
)
facts = st.builds(
    state.Facts,
    pane=st.none() | panes,
    panes_known=st.booleans(),
    events=st.lists(events, max_size=5),
    boot_id=texts,
    creator_alive=st.booleans(),
)


@given(records, facts, st.booleans())
def test_every_set_of_facts_has_one_state(made: Record, seen: state.Facts, from_events: bool) -> None:
    status = state.decide(made, seen, from_events=from_events)
    assert status.state in state.STATES
    assert status.evidence
    assert status.since >= 0
    if not seen.panes_known and made.life.stopped_at is None:
        assert status.state == state.UNKNOWN
    assert (status.state == state.DONE) == (status.exit_code == 0)


@given(st.text(st.one_of(special, st.characters(), st.sampled_from("\r\n\0\x1b\x9b")), max_size=60))
@example("\ud800")
@example("\udc80\udcff")
def test_a_message_is_plain_text_or_refused(text: str) -> None:
    try:
        cleaned = clean(text)
    except MngrError:
        return
    assert clean(cleaned) == cleaned
    assert cleaned and not cleaned.endswith("\n")
    assert not any((c < " " and c not in "\n\t") or c == "\x7f" for c in cleaned)
    assert cleaned == text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    cleaned.encode("utf-8", "surrogateescape")


@given(st.text(st.sampled_from("ab:/*-") | characters, max_size=20), agent_names, st.none() | agent_names)
def test_a_branch_option_is_a_base_and_a_new_branch(spec: str, name: str, current: str | None) -> None:
    base, new = plan.split_branch(spec, name, current)
    if ":" not in spec:
        assert (base, new) == (spec or current, None)
        return
    before, _, after = spec.partition(":")
    assert base == (before or None)
    assert new == (after or "mngr/*").replace("*", name)


@given(texts)
def test_a_label_is_a_key_and_any_text_or_refused(text: str) -> None:
    try:
        key, value = parse_label(text)
    except UsageError:
        return
    assert f"{key}={value}" == text and key.isprintable()


@given(st.text(max_size=20) | json_values)
def test_json_of_anything_can_be_read_back(value: Any) -> None:
    assert json.loads(files.json_bytes({"value": value}).decode()) == {"value": value}
