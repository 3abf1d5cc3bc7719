"""Values hidden in a stream of text, however it is cut."""

from hypothesis import example, given
from hypothesis import strategies as st

from mngr.agent.launch import env_text
from mngr.agent.recorder import MASK, QuestionFilter, SecretFilter, read_secrets

SECRETS = ["abcabd", "secret-value", "zz\nline two of it"]


@given(
    st.lists(
        st.sampled_from(["abc", "abcabd", "abd", "a", "secret-", "value", "secret-value", "\r\n", "line two of it"])
    )
)
def test_a_secret_is_hidden_wherever_the_stream_is_cut(chunks):
    masked = SecretFilter(SECRETS)
    pieces = [piece for at, chunk in enumerate(chunks) for piece in masked.feed(chunk, float(at))] + masked.end()
    whole = "".join(chunks)
    for secret in ("abcabd", "secret-value", "line two of it"):
        whole = whole.replace(secret, MASK)
    assert "".join(text for _, text in pieces) == whole
    times = [at for at, _ in pieces]
    assert times == sorted(times)


@example([b"\x1b\\", b"\x1b\\\x1b[5n", b"\x1b[5n"])
@given(st.lists(st.sampled_from([b"\x1b", b"\\", b"\x1b\\", b"[5n", b"\x1b[5n", b"\x1b\\\x1b[5n", b"x", b""])))
def test_the_question_of_the_launch_script_is_left_out_wherever_the_stream_is_cut(chunks):
    answered = QuestionFilter()
    pieces = [answered.feed(chunk) for chunk in chunks]
    question = b"\x1b\\\x1b[5n"
    assert b"".join([*pieces, answered.end()]) == b"".join(chunks).replace(question, b"")


def test_text_kept_back_for_nothing_keeps_its_time():
    masked = SecretFilter(["abcdef"])
    assert masked.feed("xabc", 1.0) == [(1.0, "x")]
    assert masked.feed("y", 9.0) == [(1.0, "abc"), (9.0, "y")]


def test_short_values_are_no_secrets():
    assert SecretFilter(["8000", "true"]).feed("8000 true", 0.0) == [(0.0, "8000 true")]


def test_values_come_from_the_environment_file_as_it_is_written(tmp_path):
    values = {"A": "it's $HOME", "B": "two\nlines", "C": "", "D": "x=y"}
    (tmp_path / "env").write_text(env_text(values))
    assert read_secrets(str(tmp_path / "env")) == list(values.values())
    assert read_secrets(str(tmp_path / "absent")) == []
