"""Verbs through a channel: a pipe to ourselves with an empty environment."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.actions import create, execute, find
from mngr.agent.record import Record
from mngr.errors import MngrError, NotFoundError
from mngr.programs.kind import Kind
from mngr.remote import boot
from mngr.remote.channel import Channel, Opening, Unreached
from mngr.remote.frames import FrameReader, pack
from mngr.system.process import Result
from tests.support import far as far_machine
from tests.support.user import User, wait_for


@pytest.fixture
def far() -> Iterator[User]:
    made = User()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def channel(far: User) -> Iterator[Channel]:
    made = far_machine.open_channel(far)
    yield made
    made.close()


def call(channel: Channel, verb, *args, **options):
    return channel.call(f"{verb.__module__}:{verb.__name__}", args, options)


def shell(channel: Channel, record: Record, line: str) -> Result:
    """Run a command where the agent works."""
    return call(channel, execute.execute, record.id, line, timeout=60)


def make(channel: Channel, far: User, name: str = "foo", command: str = "sleep 9999", **more):
    request = create.CreateRequest(name=name, kind=Kind("command"), rest=(command,), source=str(far.repo), **more)
    return far_machine.create_one(channel, request)


def test_the_program_is_sent_once_and_the_state_directory_is_private(far):
    far_machine.open_channel(far).close()
    (found,) = (far.host_dir / "lib").iterdir()
    assert found.name == boot.program().key
    assert far.host_dir.stat().st_mode & 0o777 == 0o700
    before = found.stat().st_mtime_ns
    far_machine.open_channel(far).close()
    assert found.stat().st_mtime_ns == before
    assert len(list((far.host_dir / "lib").iterdir())) == 1


def test_the_far_half_needs_the_standard_library_only(far):
    place = far.root / "far"
    for name, data in boot.program().files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    modules = [name[:-3].replace("/", ".") for name in boot.program().files if name.endswith(".py")]
    modules = [name.removesuffix(".__init__") for name in modules if not name.endswith("__main__") and name != "start"]
    lines = "".join(f"import {name}\n" for name in modules)
    program = f"import sys\nsys.path.insert(0, {str(place)!r})\n{lines}"
    far.run([sys.executable, "-I", "-S", "-c", program]).ok()


def test_verbs_return_records_and_raise_errors_with_hint_and_exit_code(channel, far):
    record = make(channel, far)
    agents, errors = call(channel, find.listing)
    assert [agent.record for agent in agents] == [record]
    assert errors == []
    with pytest.raises(NotFoundError, match="no agent named `fooo`") as raised:
        call(channel, find.records, ["fooo"])
    assert "the closest name is `foo`" in raised.value.hint


def test_nothing_of_the_near_environment_reaches_the_agent(far, monkeypatch):
    monkeypatch.setenv("MNGR_CANARY", "1")
    monkeypatch.setenv("CANARY", "secret")
    channel = far_machine.open_channel(far)
    make(channel, far, command="env > $HOME/seen; sleep 9999")
    seen = wait_for(lambda: p.read_text() if (p := far.home / "seen").exists() else "", "the environment")
    assert "CANARY" not in seen
    channel.close()


def test_large_and_odd_output_arrives(channel, far):
    record = make(channel, far)
    done = shell(channel, record, "head -c 5000000 /dev/zero; printf '\\377' >&2; exit 3")
    assert (done.exit_code, len(done.stdout), done.stderr) == (3, 5_000_000, b"\xff")


def test_calls_of_several_threads_run_at_the_same_time(channel, far):
    record = make(channel, far)
    began = time.monotonic()
    found: list[bytes] = []

    def wait(number: int) -> None:
        found.append(shell(channel, record, f"sleep 1; echo {number}").stdout)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [b"0\n", b"1\n", b"2\n", b"3\n"]
    assert time.monotonic() - began < 3.5


def test_progress_is_called_here_while_the_verb_runs_there(channel, far):
    told: list[int] = []
    kind, rest, source = Kind("command"), ("sleep 99",), str(far.repo)
    requests = [create.CreateRequest(name=name, kind=kind, rest=rest, source=source) for name in ("foo", "bar")]
    call(channel, create.create, requests, told.append)
    assert told == [1, 2]


def test_a_closed_channel_takes_back_what_was_being_made(far):
    channel = far_machine.open_channel(far)

    def begin() -> None:
        with pytest.raises(Unreached):
            make(channel, far, provision=("sleep 30",))

    thread = threading.Thread(target=begin)
    thread.start()
    other = far_machine.open_channel(far)
    wait_for(lambda: call(other, find.listing)[0], "the agent to be there")
    channel.close()
    thread.join()
    wait_for(lambda: not call(other, find.listing)[0], "the agent to be gone again")
    wait_for(lambda: "mngr/foo" not in far.git("branch", "--list"), "its branch to be gone again")
    other.close()


def test_an_interrupt_here_interrupts_the_verb_there(far):
    agents = far_machine.open_channel(far)
    make(agents, far)
    program = """
import sys
from mngr.remote.channel import Channel, Opening
channel = Channel(Opening("far", sys.argv[1:], {}))
(record,) = channel.call("mngr.actions.find:records", [["foo"]], {})
print("ready", flush=True)
channel.call("mngr.actions.execute:execute", [record.id, "touch $HOME/begun; sleep 77.7"], {"timeout": 90})
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program, *far_machine.argv(far)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    wait_for((far.home / "begun").exists, "the command to run")
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=20)
    assert b"KeyboardInterrupt" in said
    assert far.run(["pgrep", "-f", "sleep 77[.]7"]).exit_code == 1
    agents.close()


def test_an_ended_stream_is_an_error_and_no_hang(far):
    channel = far_machine.open_channel(far)
    record = make(channel, far)
    (pid,) = {int(line) for line in far.run(["pgrep", "-f", "lib/.*/start[.]py"]).stdout.split() if is_far(line, far)}
    thread = threading.Timer(0.3, os.kill, [pid, 9])
    thread.start()
    with pytest.raises(Unreached, match="connection to `far` was lost"):
        shell(channel, record, "sleep 30")
    with pytest.raises(Unreached):
        call(channel, find.listing)
    thread.join()
    channel.close()


def is_far(pid: str, far: User) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word.startswith(os.fsencode(far.host_dir)) for word in words)


def test_a_silent_near_end_ends_the_verbs_there():
    program = """
import os
from mngr.remote.serve import Server
Server(0, 1, silence=0.4).serve()
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    began = time.monotonic()
    child.stdin.write(pack({"beat": True}))
    child.stdin.flush()
    assert child.wait(10) == 0
    assert time.monotonic() - began < 8
    said = child.stdout.read()
    frames = list(FrameReader().feed(said))
    assert frames, said
    assert frames[0].header["ready"] is True
    child.stdin.close()
    child.stdout.close()


def test_a_closed_channel_reads_nothing_of_files_that_are_opened_later(far):
    """Its thread may still wait for the descriptor, whose number another file has by then."""
    for _ in range(5):
        far_machine.open_channel(far).hang_up()
        pipes = [os.pipe() for _ in range(4)]
        for _, theirs in pipes:
            os.write(theirs, b"mine")
        wait_for(lambda: not any(is_far(pid, far) for pid in os.listdir("/proc") if pid.isdigit()), "the far end to go")
        time.sleep(0.05)  # for the thread that wakes up with that
        for ours, theirs in pipes:
            os.close(theirs)
            assert os.read(ours, 10) == b"mine"
            os.close(ours)


def test_garbage_from_the_near_end_ends_the_server():
    child = subprocess.Popen(
        [sys.executable, "-c", "from mngr.remote.serve import Server; Server(0, 1).serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    out, _ = child.communicate(b"GET / HTTP/1.0\r\n\r\n", timeout=10)
    assert any("error" in frame.header for frame in FrameReader().feed(out))


NOISE = "printf 'Welcome!\\n\\033[31mred'; "


@pytest.mark.parametrize(
    ("shell", "seen"),
    [
        ([], ""),
        (["sh", "-c", NOISE + 'exec "$@"', "sh"], ""),
        (["sh", "-c", "echo denied >&2; exit 255"], "denied"),
        (["sh", "-c", "echo no shell for you; sleep 1", "sh"], "no shell for you"),
        (["sh", "-c", "yes", "sh"], "y"),
        (["/no/such/program"], ""),
    ],
)
def test_what_a_login_prints_is_skipped_and_shown_when_there_is_no_answer(far, shell, seen):
    opening = far_machine.opening(far, shell)
    if seen or shell[:1] == ["/no/such/program"]:
        with pytest.raises(Unreached) as raised:
            Channel(opening)
        assert seen in raised.value.details
        assert raised.value.exit_code == 6
    else:
        channel = Channel(opening)
        assert call(channel, find.listing)[0] == []
        channel.close()


def test_a_host_that_never_answers_is_an_error_within_the_deadline(far):
    began = time.monotonic()
    with pytest.raises(Unreached, match=r"`far` did not answer within 0.5 s"):
        Channel(Opening("far", ["sh", "-c", "sleep 30", "sh"], far.env, seconds=0.5))
    assert time.monotonic() - began < 5


DEAF = """
case $1 in *mngr-*) token=${1#*mngr-}; echo "mngr-${token%% *} send";; esac
sleep 30
"""


def test_a_host_that_asks_for_our_program_and_does_not_read_it_is_an_error_within_the_deadline(far):
    began = time.monotonic()
    with pytest.raises(Unreached, match=r"`far` did not answer within 0.5 s"):
        Channel(Opening("far", ["sh", "-c", DEAF, str(far.root)], far.env, seconds=0.5))
    assert time.monotonic() - began < 10


HOSTILE = """
case $1 in *mngr-*) token=${1#*mngr-}; echo "mngr-${token%% *} ready";; esac
cd "$0"; cat ready; head -c 9 >&2; cat answer; cat >&2
"""


def test_a_hostile_host_cannot_make_objects_of_its_choice(far):
    (far.root / "ready").write_bytes(pack({"ready": True, "now": 0}))
    (far.root / "answer").write_bytes(pack({"id": 1, "answer": {"$record": "os:system", "values": ["x"]}}))
    channel = Channel(Opening("far", ["sh", "-c", HOSTILE, str(far.root)], far.env, seconds=5))
    with pytest.raises(Unreached, match="not an answer"):
        call(channel, find.listing)
    channel.close()


@pytest.mark.parametrize("lacking", ["tmux", "git", "python3"])
def test_what_a_host_lacks_is_named_with_the_command_that_installs_it(far, lacking):
    tools = far.root / "bin"
    tools.mkdir()
    for name in {"sh", "env", "tmux", "git", "python3", "id", "cut", "getent"} - {lacking}:
        found = far.run(["sh", "-c", f"command -v {name}"]).stdout.strip()
        if found:
            (tools / name).symlink_to(found)
    far.env["PATH"] = str(tools)
    with pytest.raises(MngrError) as raised:
        far_machine.open_channel(far)
    assert raised.value.message.startswith("`far` has no ")
    assert lacking.title()[:6] in raised.value.message.title()
    assert f"install -y {lacking}" in raised.value.hint or "install" in raised.value.hint
    assert not far.host_dir.exists()


def test_a_directory_of_another_program_is_left_alone(far):
    (far.host_dir / "profiles").mkdir(parents=True)
    with pytest.raises(Unreached) as raised:
        far_machine.open_channel(far)
    assert "was written by another program" in raised.value.details


def test_a_verb_that_works_is_waited_for_and_one_that_stands_still_is_given_up(far):
    channel = Channel(far_machine.opening(far), beat=0.3)
    record = make(channel, far)
    name = f"{execute.execute.__module__}:{execute.execute.__name__}"
    busy = "end=$(($(date +%s) + 8)); while [ $(date +%s) -lt $end ]; do :; done; echo done"
    assert channel.call(name, [record.id, busy], {"timeout": 60}, 5.0).text == "done"
    with pytest.raises(Unreached, match=r"`far` gave no answer and showed no progress for 1\.5 s"):
        channel.call(name, [record.id, "echo $$ > still; exec sleep 9999"], {"timeout": 9999}, 1.5)
    pid = int((Path(record.workspace.work_dir) / "still").read_text())
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "the command to be interrupted")
    assert [view.name for view in call(channel, find.listing)[0]] == ["foo"]
    channel.close()
