"""A host that answers with garbage, terminal escapes or paths outside: a named error, nothing written, nothing run."""

import os
import stat
import sys
from pathlib import Path

import pytest

from tests.support.pods import add_settings
from tests.support.user import User

PROGRAM = Path(__file__).parents[1] / "support" / "hostile.py"
ID = "agent-" + "0" * 32
# An answer to `find.records` and `find.listing` that is well made but for what a test changes.
VIEWS = """
ESC = chr(27)
def record(**changed):
    from mngr.agent.record import AgentLife, AgentSpec, AgentWorkspace, Record
    spec = AgentSpec("command", "cat")
    workspace = AgentWorkspace("/there/foo", "mirror", repo="/there", base_commit="0" * 40)
    life = AgentLife("mngr-foo", "2026-01-01T00:00:00.000000Z")
    values = list(Record({id!r}, "foo", spec, workspace, life).changed(**changed))
    return {{"$record": "agent.record:Record", "values": [enc(value) for value in values]}}
def enc(value):
    from mngr.remote.codec import Encoder
    return Encoder().encode(value)
def view(state="RUNNING", reason="", since=1.0, **changed):
    status = {{"$record": "agent.state:Status", "values": [state, reason, since, "seen"]}}
    return {{"$record": "actions.view:AgentView", "values": [record(**changed), status, None]}}
def found(call, number, **changed):
    if call.endswith(":listing"):
        return pack({{"id": number, "answer": {{"$tuple": [[view(**changed)], []]}}}})
    if call.endswith(":records"):
        changed = {{key: value for key, value in changed.items() if key not in ("state", "reason", "since")}}
        return pack({{"id": number, "answer": [record(**changed)]}})
    return None
"""


class Hostile:
    def __init__(self, user: User) -> None:
        self.user = user
        self.answers = user.root / "answers.py"
        command = f'open = "{sys.executable} {PROGRAM} {self.answers}"\n'
        add_settings(user, f'[providers.evil]\ntype = "command"\n{command}')
        user.mngr("create", "mine", "--no-connect", "--command", "cat").ok()
        (user.host_dir / "hosts" / "evil").mkdir(mode=0o700, parents=True)
        (user.host_dir / "hosts" / "evil" / "bad.json").write_text("{}")

    def answers_with(self, text: str) -> None:
        self.answers.write_text(VIEWS.format(id=ID) + text)


@pytest.fixture
def hostile(user: User) -> Hostile:
    return Hostile(user)


GARBAGE = {
    "bytes that are not a frame": "def answer(call, number): return b'GET / HTTP/1.0' * 99",
    "a frame of 4 GB": "def answer(call, number): return b'\\xff' * 8",
    "a header without end": "def answer(call, number): return bytes([3, 0, 0, 0, 0, 0, 0, 0]) + b'[' * (3 << 24)",
    "a value nested too deeply": """
def answer(call, number):
    value = 1
    for _ in range(500):
        value = [value]
    return pack({'id': number, 'answer': value})
""",
    "an answer of another form": "def answer(call, number): return pack({'id': number, 'answer': 5})",
    "an answer of other parts": """
def answer(call, number):
    return pack({'id': number, 'answer': {'$tuple': [[1], [2]]}})
""",
    "a record with a number for a name": "def answer(call, number): return found(call, number, name=5)",
    "a record with a name that is a path": "def answer(call, number): return found(call, number, name='../../x')",
    "a record with an id that is a path": "def answer(call, number): return found(call, number, id='../x')",
    "a state that does not exist": """
def answer(call, number):
    return found(call, number, state=ESC + '[2J') or b'x' * 99
""",
    "a state since the end of time": "def answer(call, number): return found(call, number, since=1e300) or b'x' * 99",
    "a relative work dir": "def answer(call, number): return found(call, number, work_dir='--upload-pack=touch x')",
    "a function that was not sent": "def answer(call, number): return pack({'id': number, 'called': [0, ['x']]})",
    "an error that is none": "def answer(call, number): return pack({'id': number, 'error': 'x'})",
    "a clock that is not one": "ready = {'ready': True, 'now': 'soon'}",
    "a clock at the end of time": "ready = {'ready': True, 'now': 1e308}",
}


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_is_a_named_error_and_the_other_agents_are_listed(hostile: Hostile, what: str) -> None:
    hostile.answers_with(GARBAGE[what])
    done = hostile.user.mngr("list", "--format", "json").ok().json
    assert [agent["name"] for agent in done["agents"]] == ["mine"]
    (error,) = done["errors"]
    assert "bad" in error["error"]
    assert "Error:" not in error["error"], "a bug of ours"
    assert hostile.user.mngr("stop", "foo@bad.evil").exit_code in (1, 6)


ONLY_ALIVE = """
import os, threading, time
def beat():
    while True:
        time.sleep(0.1)
        os.write(1, pack({{"beat": True}}))
threading.Thread(target=beat, daemon=True).start()
def answer(call, number):
    return found(call, number) or b"" if SEEN else b""
SEEN = {seen}
"""


def test_a_host_that_only_says_that_it_is_there_keeps_no_verb_waiting(hostile: Hostile) -> None:
    user = hostile.user
    add_settings(user, "[hosts]\nverb_seconds = 1\n")
    hostile.answers_with(ONLY_ALIVE.format(seen=True))
    assert {agent["name"] for agent in user.agents()} == {"mine", "foo"}
    for words in (
        *(["message", "foo", "-m", "x"], ["pull", "foo"], ["destroy", "foo"], ["rename", "foo", "bar"]),
        *(["exec", "foo", "true", "--timeout", "1s"], ["wait", "foo", "DONE", "--timeout", "1s"]),
    ):
        done = user.mngr(*words, timeout=30).failed(6)
        assert "`bad` gave no answer and showed no progress for " in done.stderr, (words, done)
    hostile.answers_with(ONLY_ALIVE.format(seen=False))
    assert "`bad`" in user.mngr("message", "foo@bad.evil", "-m", "x", timeout=30).failed(6).stderr
    agents = user.mngr("list", "--format", "json", "-S", "hosts.answer_seconds=1").ok().json["agents"]
    assert {agent["name"]: agent["state"] for agent in agents} == {"mine": "RUNNING", "foo": "UNKNOWN"}


def test_escapes_in_states_reasons_and_errors_do_not_reach_the_terminal(hostile: Hostile) -> None:
    hostile.answers_with(
        """
def answer(call, number):
    bad = ESC + "]0;owned" + chr(7) + ESC + "[2J" + chr(0x9b) + "31m"
    changed = dict(reason=bad, command=bad, kind=bad, branch=bad, project=bad, work_dir="/" + bad)
    error = {"$error": ["errors:MngrError"], "fields": {"message": bad, "hint": bad, "details": bad, "exit_code": 0}}
    return found(call, number, labels={bad: bad}, **changed) or pack({"id": number, "error": error})
"""
    )
    hidden = ("\x1b", "\x07", "\x9b")
    for words in (
        ["list"],
        ["list", "--format", "json"],
        ["list", "--fields", "name,state_reason,command,type,work_dir,labels"],
        ["stop", "foo"],
        ["pull", "foo"],
        ["message", "foo", "-m", "x"],
        ["exec", "foo", "true"],
        ["capture", "foo"],
        ["capture", "foo", "--colors"],
        ["transcript", "foo"],
        ["destroy", "foo"],
        ["diff", "foo"],
    ):
        done = hostile.user.mngr(*words)
        assert not any(letter in done.stdout + done.stderr for letter in hidden), (words, done)
        assert done.exit_code == (0 if words[0] == "list" else 1), (words, done)


def test_paths_outside_in_answers_are_refused(hostile: Hostile) -> None:
    user = hostile.user
    (user.root / "bait").write_text("from the host")
    for path in ("..", "/", "../../x", f"{user.root}/bait/..", ""):
        hostile.answers_with(
            f"""
def answer(call, number):
    if call.endswith(":look"):
        values = ["foo", "/there", {path!r}, True, True, False]
        return pack({{"id": number, "answer": {{"$record": "actions.file_copy:AgentPath", "values": values}}}})
    return found(call, number) or pack({{"id": number, "answer": True}})
"""
        )
        before = everything(user.root)
        assert "bad" in user.mngr("pull", "foo:x", "got/").failed(6).stderr
        assert everything(user.root) == before


def everything(root: Path) -> set[str]:
    return {str(path) for path in root.rglob("*") if "/tmux-" not in str(path) and "/.mngr/sources" not in str(path)}


@pytest.mark.parametrize(
    ("branch", "head", "code"),
    [
        ("other", "", 1),
        ("main", "", 1),
        ("../../config", "", 1),
        ("-d", "", 1),
        ("x", "--output=owned", 6),
        ("x", "main", 6),
        ("x", "", 0),
    ],
)
def test_commits_of_a_host_move_no_branch_of_its_choice(hostile: Hostile, branch: str, head: str, code: int) -> None:
    user = hostile.user
    user.git("branch", "other")
    there = user.root / "there"
    user.git("clone", "-q", str(user.repo), str(there))
    user.git("commit", "-q", "--allow-empty", "-m", "theirs", cwd=there)
    tip = user.git("rev-parse", "HEAD", cwd=there)
    base = user.git("rev-parse", "HEAD")
    hostile.answers_with(
        f"""
def answer(call, number):
    changed = dict(branch={branch!r}, created_branch=True, base_commit={base!r}, work_dir={str(there)!r})
    if call.endswith(":tip"):
        values = [record(**changed), {head or tip!r}, "x", 1, 0, ""]
        return pack({{"id": number, "answer": {{"$record": "actions.commits:AgentTip", "values": values}}}})
    return found(call, number, **changed) or pack({{"id": number, "answer": None}})
"""
    )
    before = user.git("for-each-ref", "refs/heads")
    user.mngr("pull", "foo").failed(code)
    after = user.git("for-each-ref", "refs/heads")
    assert (after == before) == bool(code)
    assert not (user.repo / "owned").exists()


def test_a_broken_commit_of_a_host_is_not_taken(hostile: Hostile) -> None:
    user = hostile.user
    there = user.root / "there"
    user.git("clone", "-q", str(user.repo), str(there))
    base = user.git("rev-parse", "HEAD")
    blob = user.run(["git", "hash-object", "-w", "--stdin"], input="owned", cwd=there).ok().stdout.strip()
    raw = b"100644 ..\0" + bytes.fromhex(blob)
    tree = user.run(["git", "hash-object", "-w", "-t", "tree", "--literally", "--stdin"], input=raw, cwd=there)
    commit = user.git("commit-tree", tree.ok().stdout.strip(), "-p", base, "-m", "evil", cwd=there)
    user.git("update-ref", "HEAD", commit, cwd=there)
    hostile.answers_with(
        f"""
def answer(call, number):
    changed = dict(branch="x", created_branch=True, base_commit={base!r}, work_dir={str(there)!r})
    if call.endswith(":tip"):
        values = [record(**changed), {commit!r}, "x", 1, 0, ""]
        return pack({{"id": number, "answer": {{"$record": "actions.commits:AgentTip", "values": values}}}})
    return found(call, number, **changed) or pack({{"id": number, "answer": None}})
"""
    )
    assert "hasDotdot" in user.mngr("pull", "foo").failed(1).stderr
    assert user.run(["git", "cat-file", "-e", commit]).exit_code != 0


def test_files_of_a_host_are_plain_files(hostile: Hostile) -> None:
    user = hostile.user
    there = user.root / "there"
    there.mkdir()
    (there / "tool").write_text("#!/bin/sh\n")
    (there / "tool").chmod(0o6755)
    os.mkfifo(there / "pipe")
    (there / "out").symlink_to("/etc")
    hostile.answers_with(
        f"""
def answer(call, number):
    if call.endswith(":look"):
        values = ["foo", {str(user.root)!r}, {str(there)!r}, True, True, False]
        return pack({{"id": number, "answer": {{"$record": "actions.file_copy:AgentPath", "values": values}}}})
    return found(call, number) or pack({{"id": number, "answer": True}})
"""
    )
    user.mngr("pull", "foo:there", "../got").ok()
    got = user.root / "got"
    assert sorted(os.listdir(got)) == ["out", "tool"]
    assert stat.S_IMODE((got / "tool").stat().st_mode) == 0o755
    assert (got / "out").is_symlink()


def test_times_are_by_the_clock_of_the_host(hostile: Hostile) -> None:
    """A clock that is an hour behind changes no age."""
    hostile.answers_with(
        """
import time
from mngr.agent.record import timestamp
ready = {"ready": True, "now": time.time() - 3600}
def answer(call, number):
    return found(call, number, started_at=timestamp(time.time() - 3600 - 50))
"""
    )
    assert 40 < hostile.user.agent("foo")["runtime_seconds"] < 600


def test_settings_of_git_and_names_of_refs_are_data(hostile: Hostile) -> None:
    """An agent that comes from a host brings a program for git to run, a ref of the user's, and a path outside."""
    user = hostile.user
    there = user.root / "there"
    user.git("clone", "-q", str(user.repo), str(there))
    tip = user.git("rev-parse", "HEAD")
    user.git("update-ref", "refs/mngr/snapshots/foo/s/work", tip, cwd=there)
    planted = user.root / "planted"
    before = user.git("for-each-ref")
    for changed, code in (
        ({}, 0),
        ({"refs": (("heads/x\nupdate refs/heads/main", tip),)}, 1),
        ({"refs": (("heads/../../heads/main", tip),)}, 1),
        ({"branch": "--upload-pack=x"}, 1),
        ({"commit": "--output=x"}, 1),
        ({"private": ("../../x",)}, 1),
        ({"base_commit": "--output=x"}, 1),
    ):
        hostile.answers_with(
            f"""
def answer(call, number):
    changed, given = {changed!r}, dict(branch="x", repo={str(there)!r}, work_dir={str(there)!r})
    given["base_commit"] = changed.pop("base_commit", {tip!r})
    if call.endswith(":check_source"):
        return pack({{"id": number, "answer": record(**given)}})
    if call.endswith(":pack"):
        from mngr.remote.codec import Decoder, Encoder
        from mngr.actions.portable import Portable
        from mngr.workspace.work.entry import SavedEntry
        agent = Decoder(b"").decode(record(**given))
        entry = SavedEntry("foo/s", "foo", "snapshot", "2026-01-01T00:00:00Z", {str(there)!r},
            "refs/mngr/snapshots/foo/s/work", {tip!r}, {tip!r}, 0, (), (), (), (), agent, "x")
        for name, value in changed.items():
            entry = entry._replace(**{{name: value}})
        config = {{"core.fsmonitor": "touch {planted}; false", "core.hooksPath": "/x", "user.name": "Far"}}
        encoder = Encoder()
        answer = encoder.encode(Portable(entry, {{}}, "0123456789abcdef", config))
        return pack({{"id": number, "answer": answer}}, bytes(encoder.body))
    return found(call, number, **given) or pack({{"id": number, "answer": None}})
"""
        )
        done = user.mngr("clone", "foo", "y@local", "--no-connect", "--trust-host")
        assert done.exit_code == code, (changed, done)
        if code == 0:
            user.git("status", cwd=user.agent("y")["work_dir"])
            (config,) = user.host_dir.glob("repos/*/.git/config")
            assert "Far" in config.read_text() and "touch" not in config.read_text()
            user.mngr("destroy", "y", "--force").ok()
    assert user.git("for-each-ref") == before
    assert not planted.exists()
