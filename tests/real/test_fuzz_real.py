"""Made-up text through the real tools: labels, variables, arguments and messages arrive exactly as they were given."""

import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mngr.system import tmux
from tests.support.user import MNGR, User, wait_for

numbers = itertools.count()
odd_bytes = st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF, categories=["Cs"])
special = st.sampled_from("'\"\\$`!#~;&|<>(){}[]*?=%^@:., \t\n\r\v\f\x01\x1b\x7f-éß日✓\u2028\U0001f600")
characters = st.one_of(special, st.characters(exclude_categories=["Cs"], exclude_characters="\0"), odd_bytes)
texts = st.text(characters, max_size=30).map(lambda text: os.fsdecode(os.fsencode(text)))
NASTY = [
    "",
    ";",
    "';",
    "\n",
    "a\nb\n",
    "\r\n",
    "$(touch pwned)`touch pwned`",
    "#{pane_pid}#(touch pwned)##",
    "%if %H %%",
    "\\",
    "\\\n",
    "~",
    "{",
    "-x",
    "=",
    "\udcff\udc80",
    "a'b\"c",
    "\\u0041 \\101 \\e",
]
few = settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def world() -> Iterator[User]:
    """One user for all examples, with an agent that writes down every byte of its terminal, and one that does not."""
    made = User()
    try:
        (made.root / "listen.py").write_text(LISTENER)
        made.create("listener", "--transfer", "none", command=f"exec python3 {made.root}/listen.py {made.root}/heard")
        made.create("sink", "--transfer", "none", command=f"exec python3 {made.root}/listen.py {made.root}/sunk")
        # Once tmux shows this word it also knows what was said before it: that the program wants pastes in brackets.
        wait_for(lambda: "listening" in made.mngr("capture", "listener").ok().stdout, "the listener")
        yield made
        assert not list(made.root.glob("**/pwned"))
    finally:
        made.close()


LISTENER = r"""
import os, sys, tty
tty.setraw(0)
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(1, b"\x1b[?2004hlistening")
while data := os.read(0, 65536):
    os.write(out, data)
"""


TMUX = ("tmux", "-u", "-L", "mngr")


def output(world: User, argv: list[str]) -> bytes:
    return subprocess.run(argv, env=world.env, cwd=world.repo, capture_output=True, check=True, timeout=60).stdout


def values_of(path: Path) -> list[bytes]:
    wait_for(lambda: path.exists() and path.read_bytes().endswith(b"\0end\0"), f"{path.name} to be whole")
    return path.read_bytes().split(b"\0")[:-2]


@pytest.mark.timeout(600)
@few
@given(st.lists(texts, min_size=1, max_size=30))
@example(NASTY)
def test_a_word_in_a_tmux_command_file_is_that_word(world: User, words: list[str]) -> None:
    lines = [f"set-option -g @fuzz{at} {tmux._quote(word)}" for at, word in enumerate(words)]
    world.run([*TMUX, "source-file", "-"], input="\n".join(lines).encode("utf-8", "surrogateescape")).ok()
    show = [part for at in range(len(words)) for part in ("show-options", "-gv", f"@fuzz{at}", ";")]
    assert output(world, [*TMUX, *show]) == b"".join(os.fsencode(word) + b"\n" for word in words)


@pytest.mark.timeout(600)
@few
@given(st.dictionaries(st.from_regex(r"\AFUZZ_[A-Z0-9_]{0,8}\Z"), texts, min_size=1, max_size=8), texts)
@example({f"FUZZ_{at}": text for at, text in enumerate(NASTY)}, "of\nthe 'caller'\udcff")
def test_variables_arrive_exactly(world: User, env: dict[str, str], inherited: str) -> None:
    name, out = f"env{next(numbers)}", world.root / f"env{next(numbers)}"
    words = [word for key, value in env.items() for word in ("--env", f"{key}={value}")]
    command = f"env -0 > {out}; printf 'end\\0' >> {out}; exec sleep 9999"
    world.mngr(
        *("create", name, "--no-connect", "--transfer", "none", "--command", command, *words),
        env={"CALLER": inherited},
    ).ok()
    wanted = {**env, "CALLER": inherited}
    found = dict(item.split(b"=", 1) for item in values_of(out))
    assert {key: found[os.fsencode(key)] for key in wanted} == {key: os.fsencode(text) for key, text in wanted.items()}
    again = output(world, [MNGR, "exec", name, "env -0"])
    found = dict(item.split(b"=", 1) for item in again.split(b"\0")[:-1])
    assert {key: found[os.fsencode(key)] for key in env} == {key: os.fsencode(text) for key, text in env.items()}
    world.mngr("destroy", name).ok()


@pytest.mark.timeout(600)
@few
@given(st.lists(texts, min_size=1, max_size=8))
@example(NASTY)
def test_arguments_arrive_exactly(world: User, words: list[str]) -> None:
    name, out = f"args{next(numbers)}", world.root / f"args{next(numbers)}"
    script = f"printf '%s\\0' \"$@\" > {out}; printf 'end\\0' >> {out}; exec sleep 9999"
    command = ("--type", "command", "--", "sh", "-c", script, "sh", *words)
    world.mngr("create", name, "--no-connect", "--transfer", "none", *command).ok()
    assert values_of(out) == [os.fsencode(word) for word in words]
    printed = output(world, [MNGR, "exec", name, "--", "printf", "%s\\0", *words])
    assert printed.split(b"\0")[:-1] == [os.fsencode(word) for word in words]
    world.mngr("destroy", name).ok()


@pytest.mark.timeout(600)
@few
@given(st.dictionaries(st.from_regex(r"\A[a-z][a-z.]{0,8}\Z"), texts, min_size=1, max_size=6))
@example({f"k{at}": text for at, text in enumerate(NASTY)})
def test_labels_arrive_exactly(world: User, labels: dict[str, str]) -> None:
    world.mngr("label", "listener", *(f"{key}={value}" for key, value in labels.items())).ok()
    shown = world.agent("listener")["labels"]
    assert {key: shown[key] for key in labels} == labels
    assert [event for event in world.events("listener") if event["type"] == "labeled"][-1]["labels"] == {
        key: value for key, value in shown.items() if key != "project"
    }
    world.mngr("list").ok()
    assert "\x1b" not in world.mngr("list", "--fields", "labels").ok().stdout
    key, value = next(iter(labels.items()))
    chosen = world.mngr("list", "--label", f"{key}={value}", "--format", "{name}").ok().stdout
    assert chosen == "listener\n"
    expression = f"labels[{json.dumps(key)}] == {json.dumps(value, ensure_ascii=False)}"
    if value.isprintable():
        assert world.mngr("list", "--include", expression, "--format", "{name}").ok().stdout == "listener\n"
    assert world.mngr("list", "--include", f"name != '{value}'").exit_code in (0, 2)


printable = texts.filter(lambda text: all(c in "\n\t" or (c >= " " and c != "\x7f") for c in text))


@pytest.mark.timeout(600)
@few
@given(printable.filter(lambda text: bool(text.strip("\n"))), st.booleans())
@example("one\ntwo\n\n  three\t'\"$(touch pwned)`touch pwned`\\ #{x} \udcff ✓", False)
@example("-m", False)
@example(";", True)
def test_a_message_arrives_exactly(world: User, text: str, on_stdin: bool) -> None:
    heard = world.root / "heard"
    before = heard.stat().st_size
    if on_stdin:
        world.mngr("message", "listener", input=os.fsencode(text)).ok()
    else:
        world.mngr("message", "listener", f"--message={text}").ok()
    wanted = b"\x1b[200~" + os.fsencode(text.rstrip("\n")) + b"\x1b[201~\r"
    wait_for(lambda: heard.stat().st_size >= before + len(wanted), "the message")
    assert heard.read_bytes()[before:] == wanted
    logged = [event for event in world.events("listener") if event["type"] == "message_queued"][-1]
    assert os.fsencode(logged["text"]) == os.fsencode(text.rstrip("\n"))


@pytest.mark.timeout(600)
@few
@given(st.binary(max_size=30))
@example(b"\xff\xfe")
@example(b"\0")
def test_any_bytes_on_stdin_are_a_message_or_refused(world: User, data: bytes) -> None:
    done = world.mngr("message", "sink", input=data)
    assert done.exit_code in (0, 1, 2), done
    assert "bug" not in done.stderr
    for words in (("destroy", "-"), ("stop", "-"), ("list", "--stdin")):
        done = world.mngr(*words, input=data)
        assert done.exit_code in (0, 1, 2), done
        assert "bug" not in done.stderr
