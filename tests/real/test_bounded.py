"""Files that an agent can grow or replace: what a verb reads of them is bounded, and no other agent suffers."""

import json
import os
from pathlib import Path

import pytest

from tests.support.user import MNGR, Ran, User

# More than any verb needs, and less than a file that is read whole takes.
_MOST_KB = 1_000_000
LATEST = "9999-12-31T23:59:59.999999Z"


def within_memory(user: User, *words: str) -> Ran:
    """`mngr` in a process of its own, which fails where it takes more memory than that."""
    return user.run(["sh", "-c", f'ulimit -v {_MOST_KB}; exec "$0" "$@"', MNGR, *words], timeout=300)


def state_dir(user: User, name: str) -> Path:
    return user.host_dir / "agents" / str(user.agent(name)["id"])


@pytest.fixture
def two(user: User) -> Path:
    """Two agents; the state directory of `bad`, as its program sees it in `$MNGR_AGENT_STATE_DIR`."""
    user.create("good")
    user.create("bad")
    return state_dir(user, "bad")


def states(done: Ran) -> dict[str, str]:
    return {agent["name"]: agent["state"] for agent in done.ok().json["agents"]}


def test_events_of_3_gb_keep_no_verb_from_its_work(user: User, two: Path) -> None:
    os.truncate(two / "events.jsonl", 3 << 30)
    assert states(within_memory(user, "list", "--format", "json")) == {"good": "RUNNING", "bad": "RUNNING"}
    within_memory(user, "event", "bad").ok()
    within_memory(user, "transcript", "bad").ok()
    within_memory(user, "stop", "bad").ok()
    within_memory(user, "start", "bad").ok()
    assert states(within_memory(user, "list", "--format", "json")) == {"good": "RUNNING", "bad": "RUNNING"}
    (user.work_dir("bad") / "work").write_text("work\n")
    within_memory(user, "snapshot", "create", "bad").ok()
    within_memory(user, "destroy", "bad", "--force").ok()
    assert states(user.mngr("list", "--format", "json")) == {"good": "RUNNING"}


def test_millions_of_small_events_keep_no_verb_from_its_work(user: User, two: Path) -> None:
    with (two / "events.jsonl").open("ab") as file:
        for _ in range(40):
            file.write(b"{}\n" * (1 << 18))
    assert states(within_memory(user, "list", "--format", "json")) == {"good": "RUNNING", "bad": "RUNNING"}
    assert within_memory(user, "event", "bad", "--tail", "1").ok().json == {}
    within_memory(user, "stop", "bad").ok()


@pytest.mark.parametrize("what", ["a pipe", "a directory", "a link", "a socket"])
def test_an_agent_whose_events_are_not_a_plain_file_can_be_stopped_and_started(
    user: User, two: Path, what: str
) -> None:
    path, victim = two / "events.jsonl", user.root / "victim"
    victim.write_text("mine\n")
    replace(path, what, victim)
    assert states(user.mngr("list", "--format", "json", timeout=30)) == {"good": "RUNNING", "bad": "RUNNING"}
    assert "events.jsonl" in user.agent("bad")["state_reason"]
    user.mngr("event", "bad").failed(1)
    user.mngr("stop", "good").ok()
    user.mngr("stop", "bad").ok()
    assert user.state("bad") == "STOPPED"
    assert victim.read_text() == "mine\n"
    user.mngr("start", "bad").ok()
    assert user.state("bad") == "RUNNING"


def test_an_agent_that_ended_and_whose_events_cannot_be_read_is_unknown(user: User) -> None:
    user.create("bad", command="true")
    user.wait_for_state("bad", "DONE")
    events = state_dir(user, "bad") / "events.jsonl"
    kept = events.rename(events.parent / "kept")
    os.mkfifo(events)
    user.tmux("kill-server")
    assert user.state("bad") == "UNKNOWN"
    events.unlink()
    kept.rename(events)
    assert user.state("bad") == "DONE"


def replace(path: Path, what: str, victim: Path) -> None:
    path.unlink()
    if what == "a pipe":
        os.mkfifo(path)
    elif what == "a directory":
        path.mkdir()
    elif what == "a link":
        path.symlink_to(victim)
    else:
        import socket

        here = os.getcwd()
        os.chdir(path.parent)  # the name of a socket is short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
        os.chdir(here)


@pytest.mark.parametrize("what", ["a pipe", "a directory", "a link", "3 GB"])
def test_a_record_that_cannot_be_read_is_an_error_beside_the_other_agents(user: User, two: Path, what: str) -> None:
    path, kept = two / "agent.json", two / "kept.json"
    path.rename(kept)
    path.write_bytes(kept.read_bytes())
    if what == "3 GB":
        os.truncate(path, 3 << 30)
    else:
        replace(path, what, kept)
    done = within_memory(user, "list", "--format", "json").ok().json
    assert [agent["name"] for agent in done["agents"]] == ["good"]
    assert "agent.json" in done["errors"][0]["error"]
    path.rmdir() if path.is_dir() else path.unlink()
    kept.rename(path)


def test_an_event_at_the_end_of_time_keeps_nobody_from_listing(user: User, two: Path) -> None:
    with (two / "events.jsonl").open("a") as file:
        for event in ({"type": "exited", "exit_code": 3, "timestamp": LATEST}, {"type": "state", "timestamp": LATEST}):
            file.write(json.dumps(event) + "\n")
    found = {agent["name"]: agent["state"] for agent in user.agents()}
    assert found == {"good": "RUNNING", "bad": "FAILED"}
    user.mngr("list").ok()
    user.mngr("stop", "bad").ok()
    user.mngr("list").ok()


def test_what_is_printed_as_json_is_json(user: User, two: Path) -> None:
    deep = '{"a": ' * 900 + "1" + "}" * 900
    with (two / "events.jsonl").open("a") as file:
        file.write('{"type": "odd", "a": 1e999, "b": -1e999, "c": NaN, "d": [Infinity, 2.5]}\n')
        file.write(f'{{"type": "deep", "a": {deep}}}\n')
        file.write('{"type": "nul", "a": "\\u0000", "b": "\\ud800"}\n')
    lines = user.mngr("event", "bad").ok().stdout.splitlines()
    found = {event["type"]: event for event in (json.loads(line, parse_constant=int) for line in lines)}
    odd = found["odd"]
    assert (odd["a"], odd["b"], odd["c"], odd["d"]) == (None, None, None, [None, 2.5])
    assert found["nul"]["a"] == "\0"
    assert "deep" not in found


def test_a_reason_of_a_megabyte_is_cut(user: User) -> None:
    user.mngr("create", "foo", "--type", "scripted", "--no-connect").ok()
    user.wait_for_state("foo", "WAITING")
    event = {"type": "state", "state": "BLOCKED", "reason": "x" * 1_000_000, "event_id": "y" * 100_000}
    with (state_dir(user, "foo") / "events.jsonl").open("a") as file:
        file.write(json.dumps(event) + "\n")
    assert len(user.mngr("list", "--format", "json").ok().stdout) < 10_000
    assert len(user.mngr("list", "--explain", "foo").ok().stdout) < 10_000


@pytest.mark.parametrize("what", ["a pipe", "a link"])
def test_what_an_agent_said_is_read_from_plain_files_only(user: User, what: str) -> None:
    user.mngr("create", "foo", "--type", "scripted", "--no-connect").ok()
    user.wait_for_state("foo", "WAITING")
    path, victim = state_dir(user, "foo") / "transcript.jsonl", user.root / "victim"
    victim.write_text('{"role": "assistant", "text": "a secret"}\n')
    path.touch()
    replace(path, what, victim)
    done = user.mngr("transcript", "foo", timeout=30)
    assert "secret" not in done.stdout
    user.mngr("destroy", "foo", timeout=30).ok()
    assert not [kept for kept in user.host_dir.glob("saved/**/*") if kept.is_file() and "secret" in kept.read_text()]


def test_a_last_screen_that_is_a_pipe_keeps_nobody_waiting(user: User, two: Path) -> None:
    user.mngr("stop", "bad").ok()
    screen = two / "screen.txt"
    screen.unlink(missing_ok=True)
    os.mkfifo(screen)
    assert "screen.txt" in user.mngr("capture", "bad", timeout=30).failed(1).stderr


ODD_VALUES: list[object] = [
    None,
    True,
    -1,
    1e999,
    10**300,
    "",
    "x" * 100_000,
    "\ud800\0",
    "9999-12-31T23:59:59Z",
    [[]],
    {"a": {}},
]
_TYPES = (
    "started",
    "exited",
    "state",
    "prompt",
    "usage",
    "message_queued",
    "message_delivered",
    "message_acknowledged",
)
_KEYS = ("timestamp", "message_id", "text", "state", "reason", "exit_code", "event_id", "source", "cost_usd", "model")


@pytest.mark.parametrize("kind", [["--command", "sleep 9999"], ["--type", "scripted"]])
def test_events_of_odd_values_are_no_bug_of_any_verb(user: User, kind: list[str]) -> None:
    user.mngr("create", "foo", "--no-connect", *kind).ok()
    user.wait_for_state("foo", "WAITING", "RUNNING")
    with (state_dir(user, "foo") / "events.jsonl").open("a") as file:
        for value in ODD_VALUES:
            for type in _TYPES:
                event = {"type": type, "timestamp": "2026-01-01T00:00:00Z", "message_id": "m", "text": "hello"}
                file.write(json.dumps(event | {"state": "RUNNING"}) + "\n")
                for key in _KEYS:
                    file.write(json.dumps({**event, key: value}) + "\n")
                file.write(json.dumps({"type": type}) + "\n")
            file.write(json.dumps({"type": value}) + "\n")
    for words in (
        *(["list"], ["list", "--explain", "foo"], ["event", "foo"], ["event", "foo", "--include", "exit_code != 0"]),
        *(["transcript", "foo"], ["usage", "foo"], ["capture", "foo"], ["message", "foo", "-m", "x"]),
        *(["wait", "foo", "--timeout", "1s"], ["limit", "foo", "--timeout", "1h"], ["limit", "foo"]),
        *(["rename", "foo", "bar"], ["rename", "bar", "foo"], ["stop", "foo"], ["start", "foo"]),
        *(["snapshot", "create", "foo", "--name", "s"], ["clone", "foo", "two", "--no-connect"], ["destroy", "two"]),
        *(["destroy", "foo", "--force"], ["list"]),
    ):
        done = user.mngr(*words)
        assert done.exit_code in (0, 1, 4), (words, done)
