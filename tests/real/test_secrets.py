"""Values of an agent's variables: in its environment and in a private file, and nowhere else."""

import os
import threading
from pathlib import Path

import pytest

from mngr.secrets import env_values, mask, mask_fields
from tests.support.user import User, wait_for

# Other runs of these tests are in the same process list.
TYPED, PASSED, FILED = "typed-5f2c81", f"passed-{os.urandom(4).hex()}", f"filed 'quoted' {os.urandom(4).hex()}"
ALL = (TYPED, PASSED, FILED)


def give(user: User) -> tuple[str, ...]:
    """The options that give all three."""
    (user.root / "env file").write_text(f'# keys\nexport FILED="{FILED}"\n')
    user.env["PASSED"] = PASSED
    return ("--env", f"TYPED={TYPED}", "--pass-env", "PASSED", "--env-file", f"{user.root}/env file")


class Watch:
    """Reads the command lines of all processes, over and over, until it is left."""

    def __init__(self, *values: str) -> None:
        self.seen: set[tuple[str, str]] = set()
        self._values = [(value, value.encode()) for value in values]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.looks = 0

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.is_set():
            self.looks += 1
            for name in os.listdir("/proc"):
                if name.isdecimal():
                    self._read(name)

    def _read(self, pid: str) -> None:
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return
        for value, data in self._values:
            if data in line:
                self.seen.add((value, line.replace(b"\0", b" ").decode(errors="replace")))


def test_no_process_list_shows_the_values_while_agents_are_made_and_started(user: User) -> None:
    options = give(user)[2:]
    check = ("--extra-provision-command", "sleep 0.1", "-w", "side=sleep 9998")
    passed, filed = f"passed-{os.urandom(4).hex()}", f"filed-{os.urandom(4).hex()}"
    (user.root / "env file").write_text(f"FILED={filed}\n")
    user.env["PASSED"] = passed
    with Watch(passed, filed) as watch:
        user.mngr("create", "foo", "--no-connect", "--command", "sleep 9999", *options, *check).ok()
        user.mngr("create", "w", "--count", "3", "--no-connect", "--command", "sleep 9999", *options, *check).ok()
        user.mngr("stop", "foo").ok()
        user.mngr("start", "foo").ok()
        user.mngr("exec", "foo", "true").ok()
    assert watch.looks > 3
    assert watch.seen == set()


def test_what_was_typed_is_blanked_out_in_our_own_command_line(user: User) -> None:
    slow = ("--extra-provision-command", "touch ~/begun; until [ -e ~/go ]; do sleep 0.05; done")
    child = user.popen(
        "create",
        "foo",
        "--no-connect",
        "--command",
        "sleep 9999",
        "--env",
        f"TYPED={TYPED}",
        f"--env=B={PASSED}",
        *slow,
    )
    line = Path(f"/proc/{child.pid}/cmdline")
    wait_for((user.home / "begun").exists, "the agent to be on its way")
    words = line.read_bytes()
    (user.home / "go").touch()
    assert TYPED.encode() not in words and PASSED.encode() not in words
    assert b"TYPED=" + b"*" * len(TYPED) in words
    said = child.communicate(timeout=60)
    assert child.returncode == 0, said
    assert user.mngr("exec", "foo", "echo $TYPED $B").ok().stdout == f"{TYPED} {PASSED}\n"


def test_the_agent_has_the_values_and_the_disk_has_them_in_one_private_file(user: User) -> None:
    agent = user.create("foo", *give(user), command='printf "%s\\n" "$TYPED" "$PASSED" "$FILED"; sleep 9999')
    wait_for(lambda: all(value in user.mngr("capture", "foo").stdout for value in ALL), "the values on its screen")
    user.mngr("stop", "foo").ok()
    holders = {
        path.relative_to(user.host_dir).as_posix(): path.stat().st_mode & 0o777
        for path in user.host_dir.rglob("*")
        if path.is_file() and any(value.split()[0].encode() in path.read_bytes() for value in ALL)
    }
    screen = f"agents/{agent['id']}/screen.txt"  # what the program itself showed
    assert holders == {f"agents/{agent['id']}/env": 0o600, screen: 0o600}
    assert {path.stat().st_mode & 0o777 for path in user.host_dir.rglob("*") if path.is_dir()} <= {0o700, 0o755}
    assert user.host_dir.stat().st_mode & 0o777 == 0o700


def test_no_output_of_ours_shows_the_values(user: User) -> None:
    options = (*give(user), "--no-connect", "--command", f"echo {TYPED} '{PASSED}'; cat")
    outputs = [user.mngr("create", "foo", *options, "--dry-run", *form) for form in ((), ("--format", "json"))]
    outputs += [user.mngr("create", "w", "--count", "2", *options, "--dry-run")]
    outputs += [user.mngr("create", "foo", *options, "-m", f"use {TYPED} and {PASSED}")]
    outputs += [user.mngr("create", "foo", *options), user.mngr("create", "foo", *options, "--reuse")]
    outputs += [user.mngr("create", "foo", "--reuse", "--no-connect", "--command", "other")]
    for words in (
        ["list", "--format", "json"],
        ["list", "--explain", "foo"],
        ["list", "--fields", "command"],
        ["event", "foo"],
        ["event", "foo", "--format", "jsonl"],
    ):
        outputs.append(user.mngr(*words).ok())
    for ran in outputs:
        for value in ALL:
            assert value not in ran.stdout + ran.stderr
    assert "use *** and ***" in outputs[-1].stdout
    assert user.agent("foo")["command"] == "echo *** '***'; cat"


def test_a_crash_file_does_not_hold_the_values(user: User) -> None:
    user.env["TMUX_TMPDIR"] = "/dev/null/x"
    options = give(user)
    user.mngr("create", "foo", "--no-connect", "--command", "cat", *options)
    for path in user.host_dir.glob("crashes/*"):
        assert not any(value in path.read_text() for value in ALL)


def test_a_transcript_that_we_write_does_not_hold_the_values(user: User) -> None:
    (user.repo / "script").write_text("on hello\nsay the key is typed-5f2c81\nwait\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", "script")
    user.mngr("create", "foo", "scripted", "--no-connect", *give(user)).ok()
    user.wait_for_state("foo", "WAITING")
    user.mngr("message", "foo", "-m", f"the key is {TYPED}, the other sk-ant-0123456789abcdefghij").ok()
    state = user.host_dir / "agents" / user.agent("foo")["id"]
    written = state / "transcript.jsonl"
    wait_for(lambda: written.exists() and "the other" in written.read_text(), "the message in its transcript")
    text = written.read_text()
    assert TYPED not in text and "the key is ***, the other ***" in text
    assert TYPED not in (state / "events.jsonl").read_text()


def test_a_variable_without_a_name_is_not_repeated_in_the_error(user: User) -> None:
    for text in ("hunter2SECRET", "-hunter2SECRET=x", "=hunter2SECRET"):
        ran = user.mngr("create", "foo", "--command", "true", f"--env={text}").failed(2)
        assert "is not `KEY=VALUE`" in ran.stderr and "hunter2SECRET" not in ran.stdout + ran.stderr


def test_destroy_removes_the_values_also_when_the_work_is_saved(user: User) -> None:
    agent = user.create("foo", *give(user), command='echo "$PASSED" on the screen; sleep 9999')
    (Path(agent["work_dir"]) / "new").write_text("work")
    wait_for(lambda: PASSED in user.mngr("capture", "foo").ok().stdout, "the value on the screen")
    user.mngr("destroy", "foo", "--force").ok()
    kept = user.host_dir / "saved" / "foo-1" / "agent"
    assert "*** on the screen" in (kept / "screen.txt").read_text()
    assert sorted(path.name for path in kept.iterdir()) == ["events.jsonl", "screen.txt"]
    assert not [path for path in user.host_dir.rglob("*") if path.is_file() and PASSED.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("text", "values", "masked"),
    [
        ("a secret-1 b", ["secret-1"], "a *** b"),
        ("short ones stay: 8000 debug", ["8000", "debug"], "short ones stay: 8000 debug"),
        ("longer first: secret-longer", ["secret", "secret-longer"], "longer first: ***"),
        ("one\nline-of-it\ntwo", ["first-line\nline-of-it"], "one\n***\ntwo"),
        ("ghp_0123456789abcdefghijABCD and AKIA0123456789ABCDEF", [], "*** and ***"),
        ("github is a word, sk-8 too", [], "github is a word, sk-8 too"),
    ],
)
def test_values_and_keys_are_hidden_in_text(text: str, values: list[str], masked: str) -> None:
    assert mask(text, values) == masked


def test_fields_are_masked_at_any_depth() -> None:
    event = {"text": "secret-1", "more": [{"deep": "x secret-1"}, 7, None], "secret-1": True}
    assert mask_fields(event, ["secret-1"]) == {"text": "***", "more": [{"deep": "x ***"}, 7, None], "secret-1": True}


def test_the_values_of_an_env_file_are_read_as_a_shell_would() -> None:
    assert env_values("export A='it'\"'\"'s'\nexport B=plain\nexport C='two\nlines'\n") == (
        "it's",
        "plain",
        "two\nlines",
    )
    assert env_values("") == ()
