"""Messages: delivered once, whole, in order, with a log; or refused with nothing sent."""

import fcntl
import json
import os
import sys
import threading
from pathlib import Path

import pytest

import mngr
from tests.real.test_kind_from_settings import SETTINGS
from tests.real.test_states import scripted
from tests.support.user import User, wait_for

# Reads its terminal byte by byte, as editors and agents do, and stores all it gets. Enter is a carriage return.
RAW_READER = """
import os, sys, termios, tty
tty.setraw(0)
if sys.argv[1:] == ["bracketed"]:
    os.write(1, b"\\x1b[?2004h")
with open("got", "wb", buffering=0) as file:
    os.write(1, b"ready")
    while True:
        file.write(os.read(0, 65536))
"""


def reader(user: User, name: str, *, bracketed: bool) -> Path:
    """An agent that stores every byte it gets, ready to take them. Returns the file."""
    script = user.root / "reader.py"
    script.write_text(RAW_READER)
    user.create(name, command=f"exec {sys.executable} {script} {'bracketed' if bracketed else ''}")
    # On the screen, and so after the request for bracketed paste, which tmux reads first.
    wait_for(lambda: "ready" in user.mngr("capture", name).ok().stdout, "the reader")
    return user.work_dir(name) / "got"


def lines_reader(user: User, name: str) -> Path:
    user.create(name, command="exec cat > got")
    got = user.work_dir(name) / "got"
    wait_for(got.exists, "cat")
    return got


def arrived(path: Path, expected: bytes) -> bool:
    """Wait for at least that many bytes, and say whether they are these."""
    return wait_for(lambda: data if len(data := path.read_bytes()) >= len(expected) else None, "the bytes") == expected


TEXTS = {
    "a line": "hello",
    "several lines": "one\n\ntwo\n  three",
    "unicode": "ünï 名前 🦊 \u2028 end",
    "metacharacters": "$HOME `id` $(id) 'x' \"y\" \\ ; & | < > * ? ! # ~ %s {a,b}",
    "tmux formats": "#{pane_id} #S #(id) C-c Enter",
    "a leading dash": "-rf --help",
    "tabs": "a\tb\t\tc",
    "keys by name": "Enter",
}


@pytest.mark.parametrize("what", TEXTS)
def test_text_arrives_as_it_was_written(user: User, what: str) -> None:
    got = lines_reader(user, "foo")
    assert user.mngr("message", "foo", f"--message={TEXTS[what]}").ok().stdout == "foo: delivered\n"
    assert arrived(got, TEXTS[what].encode() + b"\n")


def test_a_lone_carriage_return_and_crlf_are_newlines(user: User) -> None:
    got = lines_reader(user, "foo")
    user.mngr("message", "foo", "-m", "one\r\ntwo\rthree\n\n").ok()
    assert arrived(got, b"one\ntwo\nthree\n")


def test_text_comes_from_stdin_or_a_file(user: User) -> None:
    got = lines_reader(user, "foo")
    user.mngr("message", "foo", input="from stdin\nline 2\n").ok()
    prompt = user.root / "a prompt.md"
    prompt.write_text("from a file\n")
    user.mngr("message", "foo", "--message-file", str(prompt)).ok()
    user.mngr("message", "foo", "--message-file", "-", input="from - \n").ok()
    assert arrived(got, b"from stdin\nline 2\nfrom a file\nfrom - \n")


@pytest.mark.parametrize("bracketed", [False, True])
def test_100_kilobytes_arrive_whole(user: User, bracketed: bool) -> None:
    got = reader(user, "foo", bracketed=bracketed)
    text = "".join(f"{number:06d} " + "ü" * 40 + ("\n" if number % 7 == 0 else "") for number in range(1, 1200))
    assert len(text.encode()) > 100_000
    user.mngr("message", "foo", input=text).ok()
    body = text.rstrip("\n").encode()
    expected = b"\x1b[200~" + body + b"\x1b[201~\r" if bracketed else body + b"\r"
    assert arrived(got, expected)


def test_one_line_of_100_kilobytes_arrives_whole(user: User) -> None:
    got = reader(user, "foo", bracketed=True)
    text = "word " * 20_000 + "end"
    user.mngr("message", "foo", input=text).ok()
    assert arrived(got, b"\x1b[200~" + text.encode() + b"\x1b[201~\r")


def test_a_line_too_long_for_a_line_reader_is_refused_and_nothing_is_sent(user: User) -> None:
    got = lines_reader(user, "foo")
    ran = user.mngr("message", "foo", "-m", "first\n" + "x" * 5000).failed()
    assert "a line of 5000 bytes is too long" in ran.stderr and "4095" in ran.stderr
    longest = "é" * 2047 + "x"
    user.mngr("message", "foo", "-m", longest).ok()
    assert arrived(got, longest.encode() + b"\n")
    assert len([event for event in user.events("foo") if event["type"] == "message_queued"]) == 1


@pytest.mark.parametrize("text", ["\x1b[201~rm -rf\r", "bell \a", "\x03", "nul \x00 byte", "del \x7f"])
def test_control_characters_are_refused(user: User, text: str) -> None:
    got = lines_reader(user, "foo")
    assert "control characters" in user.mngr("message", "foo", input=text).failed().stderr
    assert got.read_bytes() == b""


def test_an_empty_message_is_refused(user: User) -> None:
    user.create("foo", command="cat")
    for text in ("", "\n", "\r\n\n"):
        assert "the message is empty" in user.mngr("message", "foo", "-m", text).failed().stderr


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_bytes_that_are_not_unicode_arrive_too(user: User, errors: str) -> None:
    got = lines_reader(user, "foo")
    user.mngr("message", "foo", input=b"latin \xe9\n", env={"PYTHONIOENCODING": f"utf-8:{errors}"}).ok()
    assert arrived(got, b"latin \xe9\n")
    assert user.events("foo")[-1]["type"] == "message_delivered"


def test_messages_of_two_senders_do_not_mix(user: User) -> None:
    got = lines_reader(user, "foo")
    texts = ["\n".join(f"sender {who} line {line} {'x' * 60}" for line in range(30)) for who in range(6)]
    senders = [threading.Thread(target=lambda t=t: user.mngr("message", "foo", "-m", t).ok()) for t in texts]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    whole = wait_for(lambda: d if len(d := got.read_text()) >= sum(map(len, texts)) + 6 else None, "all messages")
    assert sorted(whole.split("\n")[:-1]) == sorted(line for text in texts for line in text.split("\n"))
    assert all(text + "\n" in whole for text in texts)


def test_every_message_is_logged_with_its_id(user: User) -> None:
    user.create("foo", command="cat")
    sent = user.mngr("message", "foo", "-m", "hi\nthere", "--format", "json").ok().json
    events = [event for event in user.events("foo") if event["type"].startswith("message_")]
    assert [event["type"] for event in events] == ["message_queued", "message_delivered"]
    assert {event["message_id"] for event in events} == {sent["message_ids"]["foo"]}
    assert events[0]["text"] == "hi\nthere"


def test_a_stopped_agent_is_refused_and_can_be_started_for_it(user: User) -> None:
    got = lines_reader(user, "foo")
    user.mngr("stop", "foo").ok()
    ran = user.mngr("message", "foo", "-m", "hello").failed()
    assert "`foo` is STOPPED" in ran.stderr and "--start" in ran.stderr
    user.mngr("message", "foo", "--start", "-m", "hello").ok()
    assert arrived(got, b"hello\n")


def test_an_ended_agent_is_refused(user: User) -> None:
    user.create("foo", command="exit 3")
    user.wait_for_state("foo", "FAILED")
    assert "`foo` is FAILED (exit code 3)" in user.mngr("message", "foo", "-m", "hello").failed().stderr


def test_a_scripted_agent_acknowledges(user: User) -> None:
    scripted(user, "foo", "wait\nsay got {message}\nwait\n")
    user.wait_for_state("foo", "WAITING")
    assert user.mngr("message", "foo", "-m", "line one\nline two").ok().stdout == "foo: acknowledged\n"
    types = [event["type"] for event in user.events("foo")]
    assert types.index("message_queued") < types.index("prompt") < types.index("message_acknowledged")
    wait_for(lambda: "got line one" in user.mngr("capture", "foo").ok().stdout, "its answer")


def test_100_kilobytes_are_acknowledged(user: User) -> None:
    scripted(user, "foo", "wait\n")
    user.wait_for_state("foo", "WAITING")
    text = "\n".join(f"{number} " + "y" * 90 for number in range(1100))
    sent = user.mngr("message", "foo", "--format", "json", input=text).ok().json
    assert sent["acknowledged"] == {"foo": True}


def test_a_message_right_after_create_waits_until_the_agent_is_ready(user: User) -> None:
    scripted(user, "foo", "think 0.2\nwait\nexit 0\n")
    assert "acknowledged" in user.mngr("message", "foo", "-m", "early").ok().stdout
    assert user.wait_for_state("foo", "DONE")["exit_code"] == 0


def test_delivered_to_a_blocked_agent_has_an_exit_code_of_its_own(user: User) -> None:
    scripted(user, "foo", "rate-limit 600\nwait\n")
    user.wait_for_state("foo", "BLOCKED")
    ran = user.mngr("message", "foo", "-m", "go", "--format", "json").failed(7)
    assert ran.json["blocked_agents"] == ran.json["successful_agents"] == ["foo"]
    assert ran.json["failed_agents"] == []


def test_many_agents_get_it_and_failures_are_told_apart(user: User) -> None:
    first, second = lines_reader(user, "a1"), lines_reader(user, "a2")
    user.create("gone", command="exit 1")
    user.wait_for_state("gone", "FAILED")
    ran = user.mngr("message", "--all", "-m", "to everyone", "--format", "json").failed(3)
    value = json.loads(ran.stdout)
    assert sorted(value["successful_agents"]) == ["a1", "a2"]
    assert [failed["agent"] for failed in value["failed_agents"]] == ["gone"]
    assert arrived(first, b"to everyone\n") and arrived(second, b"to everyone\n")
    user.mngr("message", "a1", "a2", "-m", "x").ok()
    ran = user.mngr("message", "gone", "a1", "-m", "never", "--on-error", "abort").failed()
    assert "never" not in first.read_text()


def test_a_reply_is_printed_when_the_agent_stops_working(user: User) -> None:
    for name in ("foo", "bar"):
        user.mngr("create", name, "scripted", "--no-connect", "--message", "say early").ok()
        user.wait_for_state(name, "WAITING")
    ran = user.mngr("message", "foo", "-m", "run sleep 0.3\nsay one\nsay two", "--wait-reply").ok()
    assert ran.stdout == "one\ntwo\n"
    ran = user.mngr("message", "foo", "bar", "-m", "say yes", "--wait-reply", "--format", "json").ok()
    assert ran.json["replies"] == {"foo": "yes", "bar": "yes"}
    ran = user.mngr("message", "foo", "-m", "say hm\npermission rm x", "--wait-reply").failed(7)
    assert ran.stdout.startswith("hm\n") and "blocked: permission: rm x" in ran.stderr
    user.mngr("message", "bar", "-m", "run sleep 30", "--wait-reply", "--timeout", "0.5").failed(4)
    user.create("plain", command="cat")
    assert "keeps no transcript" in user.mngr("message", "plain", "-m", "x", "--wait-reply").failed().stderr
    assert "message_queued" not in [event["type"] for event in user.events("plain")]
    user.mngr("message", "plain", "-m", "x", "--timeout", "3").failed(2)


def test_usage_errors_send_nothing(user: User) -> None:
    user.create("foo", command="cat")
    user.mngr("message", "foo", "-m", "a", "--message-file", "b").failed(2)
    user.mngr("message", "foo", "--message-file", "missing").failed(2)
    user.mngr("message", "-m", "nobody").failed(2)
    user.mngr("message", "nobody", "-m", "x").failed()
    user.mngr("message", "-", input="foo\n").failed(2)
    assert "message_queued" not in [event["type"] for event in user.events("foo")]


MODES = {
    "copy mode": ["copy-mode"],
    "view mode": ["run-shell", "echo shown"],
    "a tree": ["choose-tree"],
    "a clock": ["clock-mode"],
    "options": ["customize-mode"],
    "two modes": ["copy-mode", ";", "choose-tree"],
}


def test_a_message_arrives_whole_in_every_mode_of_the_pane(user: User) -> None:
    got = reader(user, "foo", bracketed=True)
    pane = user.tmux("list-panes", "-a", "-F", "#{pane_id}").ok().stdout.strip()
    expected = b""
    for mode, (verb, *words) in MODES.items():
        user.tmux(verb, "-t", pane, *words).ok()
        assert user.mngr("message", "foo", "-m", f"{mode}\nline").ok().stdout == "foo: delivered\n"
        expected += b"\x1b[200~" + mode.encode() + b"\nline\x1b[201~\r"
        assert arrived(got, expected), mode


def test_a_message_reaches_no_other_pane_that_is_synchronized(user: User) -> None:
    got = reader(user, "foo", bracketed=True)
    session = user.agent("foo")["session"]
    beside = user.root / "beside"
    split = ["split-window", "-d", "-t", f"={session}:0", f"exec cat > {beside}"]
    user.tmux(*split, ";", "set-option", "-w", "-t", f"={session}:0", "synchronize-panes", "on").ok()
    wait_for(beside.exists, "the other pane")
    user.mngr("message", "foo", "-m", "one").ok()
    assert arrived(got, b"\x1b[200~one\x1b[201~\r")
    shown = user.tmux("show-options", "-A", "-p", "-t", f"={session}:0.0", "synchronize-panes").ok().stdout
    assert "on" in shown and beside.read_bytes() == b""


def test_a_pane_whose_input_is_switched_off_is_an_error_with_the_way_out(user: User) -> None:
    got = lines_reader(user, "foo")
    pane = user.tmux("list-panes", "-a", "-F", "#{pane_id}").ok().stdout.strip()
    user.tmux("select-pane", "-d", "-t", pane).ok()
    ran = user.mngr("message", "foo", "-m", "hello").failed()
    assert "input is switched off" in ran.stderr and got.read_bytes() == b""
    assert "message_delivered" not in [event["type"] for event in user.events("foo")]
    hint = ran.stderr.split("hint: `")[1].split("`")[0]
    user.run(["sh", "-c", hint]).ok()
    user.mngr("message", "foo", "-m", "hello").ok()
    assert arrived(got, b"hello\n")


def test_a_paste_into_a_pane_that_has_just_died_harms_nobody(user: User) -> None:
    """As when an agent ends between the look at its state and the message: tmux 3.3 would end, with all agents."""
    user.create("other")
    user.mngr("create", "gone", "--no-connect", "--command", "true").ok()
    user.mngr("wait", "gone", "DONE").ok()
    fleet = mngr.Fleet(environ=user.env, cwd=str(user.repo))
    pane = wait_for(lambda: found if (found := fleet.find("gone").pane) and found.dead else None, "a dead pane")
    for enter in (False, True):
        with pytest.raises(mngr.MngrError, match="the program in the pane has ended"):
            fleet.local.tmux.paste(pane.pane_id, "hello", enter=enter)
    assert user.state("other") == "RUNNING"
    assert user.tmux("list-buffers").stdout == ""


STUCK = "stty raw -echo; touch ready; exec sleep 9999"


@pytest.mark.parametrize("text", ["x\n" * 4000, f"{'y' * 3000}\n" * 3])
@pytest.mark.parametrize("command", ["touch ready; exec sleep 9999", STUCK])
def test_a_program_that_does_not_read_has_no_message(user: User, command: str, text: str) -> None:
    """What does not fit into its terminal is in tmux's memory only."""
    user.create("foo", command=command)
    wait_for((user.work_dir("foo") / "ready").exists, "the terminal")
    assert user.mngr("message", "foo", "-m", "short").ok().stdout == "foo: delivered\n"
    done = user.mngr("message", "foo", "-m", text, timeout=120).failed(4)
    assert "does not read its terminal" in done.stderr and "delivered" not in done.stdout
    types = [event["type"] for event in user.events("foo")]
    assert (types.count("message_queued"), types.count("message_delivered")) == (2, 1)
    user.mngr("message", "foo", "-m", "one more", timeout=120).failed(4)
    user.mngr("stop", "foo").ok()


def test_a_program_that_reads_slowly_gets_it_all(user: User) -> None:
    user.create("foo", command="while read -r line; do echo $line >> got; done")
    text = "some words\n" * 2000
    assert user.mngr("message", "foo", "-m", text, timeout=120).ok().stdout == "foo: delivered\n"
    assert arrived(user.work_dir("foo") / "got", text.encode())


def test_a_message_in_the_queue_of_a_scripted_agent_is_not_its_answer(user: User) -> None:
    user.mngr("create", "foo", "--type", "scripted", "--no-connect").ok()
    user.wait_for_state("foo", "WAITING")
    user.mngr("message", "foo", "-m", "run until [ -e go ]; do sleep 0.05; done\npermission rm\nsay approved").ok()
    user.mngr("message", "foo", "-m", "y").ok()  # not for the question, which nobody has seen yet
    assert [event["type"] for event in user.events("foo")].count("prompt") == 2, "it is in its queue"
    (user.work_dir("foo") / "go").touch()
    assert user.wait_for_state("foo", "BLOCKED")["state_reason"].startswith("permission: rm")
    user.mngr("message", "foo", "-m", "n").ok()
    user.wait_for_state("foo", "WAITING")
    transcript = user.mngr("transcript", "foo", "--role", "assistant", "--format", "json").ok().json
    said = [entry["text"] for entry in transcript]
    assert said[-2:] == ["denied", "you said: y"]


def test_a_message_that_waits_for_its_turn_while_the_agent_asks_is_held_and_the_sender_is_told(
    user: User, prompter: None
) -> None:
    user.mngr("create", "foo", "prompter", "--no-connect", "--message", "%% say begun").ok()
    user.wait_for_state("foo", "WAITING")
    lock = user.host_dir / "locks" / f"{user.agent('foo')['id']}.message"
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # another sender, whose message makes it ask
        waiting = user.popen("message", "foo", "-m", "yes, and this is not the answer")
        wait_for(lambda: str(lock) in open_files(waiting.pid), "the sender to wait for its turn")
        user.tmux("send-keys", "-t", "mngr-foo", "-l", "%% ask this").ok()
        user.tmux("send-keys", "-t", "mngr-foo", "Enter").ok()
        user.wait_for_state("foo", "BLOCKED")
    assert waiting.stderr is not None and waiting.stdout is not None
    told = waiting.stderr.readline().decode()
    assert "BLOCKED" in told and "is held until that is answered" in told
    assert user.state("foo") == "BLOCKED" and "message_queued" not in last_types(user)
    user.tmux("send-keys", "-t", "mngr-foo", "y").ok()
    assert waiting.stdout.readline() == b"foo: delivered\n" and waiting.wait(60) == 0
    wait_for(lambda: "you said: yes, and this" in user.mngr("capture", "foo").ok().stdout, "the message")
    waiting.communicate()


def open_files(pid: int) -> list[str]:
    links = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(path))
        except OSError:
            continue
    return links


def last_types(user: User) -> list[str]:
    types = [str(event["type"]) for event in user.events("foo")]
    return types[len(types) - types[::-1].index("message_delivered") :] if "message_delivered" in types else types


def test_a_message_to_a_program_at_work_is_not_typed_before_it_can_be_taken(user: User, prompter: None) -> None:
    user.mngr("create", "foo", "prompter", "--no-connect", "--message", "%% say begun").ok()
    user.wait_for_state("foo", "WAITING")
    user.mngr("message", "foo", "-m", "%% run until [ -e go ]; do sleep 0.05; done\n%% ask this").ok()
    user.wait_for_state("foo", "RUNNING")
    waiting = user.popen("message", "foo", "-m", "yes, and this is not the answer")
    assert waiting.stderr is not None and waiting.stdout is not None
    assert "is RUNNING: the message is held" in waiting.stderr.readline().decode()
    (user.work_dir("foo") / "go").touch()
    user.wait_for_state("foo", "BLOCKED")
    assert "is held until that is answered" in waiting.stderr.readline().decode()
    assert user.state("foo") == "BLOCKED"
    user.tmux("send-keys", "-t", "mngr-foo", "y").ok()
    assert waiting.stdout.readline() == b"foo: delivered\n" and waiting.wait(60) == 0
    wait_for(lambda: "you said: yes, and this" in user.mngr("capture", "foo").ok().stdout, "the message")
    waiting.communicate()


@pytest.fixture
def prompter(user: User) -> None:
    """A program that reads its terminal for messages and for answers alike."""
    user.host_dir.mkdir(mode=0o700, exist_ok=True)
    (user.host_dir / "settings.toml").write_text(SETTINGS)
