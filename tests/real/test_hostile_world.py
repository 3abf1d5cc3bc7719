"""The main verbs once more, in a world where nothing is as it was when they were written: see `HostileUser`."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hostile_world import HostileUser
from tests.support.trees import tree
from tests.support.user import wait_for

ESCAPE = "\x1b"
TEXT = "Grüße an alle: „ja“"


@pytest.fixture
def user() -> Iterator[HostileUser]:
    made = HostileUser()
    try:
        yield made
        assert not made.ran_by_git.exists(), "a program that an agent named in its copy's git configuration has run"
        assert not any(made.second_tmux_dir.iterdir()), "there is a second tmux server"
    finally:
        made.close()


def commit(user: HostileUser, directory: Path, name: str, text: str = "text\n") -> str:
    (directory / name).write_text(text)
    user.git("add", "--", name, cwd=directory)
    user.git("commit", "-qm", f"write {name}", cwd=directory)
    return user.git("rev-parse", "HEAD", cwd=directory)


def wait_for_end(path: Path, text: str) -> None:
    wait_for(lambda: path.read_text().endswith(text), f"{path.name} to end with {text!r}")


def sessions(user: HostileUser) -> set[str]:
    return set(user.tmux("list-sessions", "-F", "#{session_name}").ok().stdout.split())


def test_the_output_may_be_read_slowly_or_not_at_all(user: HostileUser) -> None:
    user.create("foo", "--label", f"long={'x' * 8000}")
    assert user.read_slowly("list", "--format", "json").ok().json["agents"][0]["name"] == "foo"
    assert user.read_slowly("exec", "foo", "seq 20000").ok().stdout.split()[-1] == "20000"
    gone = user.read_by_nobody("list", "--format", "json")
    assert gone.exit_code == 141 and gone.stderr == ""


def test_create_makes_a_copy_of_its_own_for_each_agent(user: HostileUser) -> None:
    for name in ("foo", "bar"):
        user.create(name, command=f"pwd > where; printf '{TEXT}' > text; exec sleep 9999")
        work_dir = user.work_dir(name)
        wait_for((work_dir / "text").exists, "the agent to write")
        assert (work_dir / "where").read_text() == f"{work_dir}\n" and (work_dir / "text").read_text() == TEXT
        assert user.git("branch", "--show-current", cwd=work_dir) == f"mngr/{name}"
        assert (work_dir / "local.ini").read_text() == "local\n"
        assert (work_dir / ".mngr" / "task" / "artifacts").is_dir()
    assert sessions(user) == {"mngr-foo", "mngr-bar"}
    assert user.git("status", "--porcelain") == ""
    taken = user.mngr("create", "foo", "--no-connect", "--command", "true").failed()
    assert "`foo` exists" in taken.stderr or "exists already" in taken.stderr


def test_a_repository_whose_own_directory_for_mngr_leads_elsewhere_is_refused(user: HostileUser) -> None:
    (user.home / ".gitignore").write_text("mine\n")
    before = tree(user.home)
    for link, target in ((".mngr/task", "../../../.."), (".mngr/task", str(user.home)), (".mngr", str(user.home))):
        path = user.repo / link
        shutil.rmtree(user.repo / ".mngr", ignore_errors=True)
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(target)
        user.git("add", "-fA")
        user.git("commit", "-qm", "a link")
        refused = user.mngr("create", "foo", "--no-connect", "--command", "sleep 9999")
        assert refused.exit_code not in (0, 70) and link in refused.stderr, refused
        assert user.agents() == [] and user.git("branch", "--list", "mngr/*") == ""
        assert {path: what for path, what in tree(user.home).items() if not path.startswith(b".mngr/")} == before
        path.unlink()


def test_list_says_the_same_from_every_shell(user: HostileUser) -> None:
    user.create_hostile("foo")
    user.create("bar", command="exit 3")
    user.wait_for_state("bar", "FAILED")
    for _ in range(2):
        seen = {agent["name"]: (agent["state"], agent["state_reason"]) for agent in user.agents()}
        assert seen["foo"][0] == "RUNNING" and seen["bar"][0] == "FAILED" and "3" in seen["bar"][1]
        table = user.mngr("list").ok()
        assert "foo" in table.stdout and ESCAPE not in table.stdout and table.stderr == ""
        assert user.mngr("list", "--include", 'name == "bar"', "--format", "{name}").ok().stdout == "bar\n"


def test_a_message_arrives_whole_and_once(user: HostileUser) -> None:
    user.create("foo", command="exec cat > got")
    got = user.work_dir("foo") / "got"
    wait_for(got.exists, "the reader")
    for number in (1, 2):
        user.scroll("foo")
        user.mngr("message", "foo", "-m", f"{TEXT} {number}").ok()
        wait_for_end(got, f" {number}\n")
    assert got.read_text() == f"{TEXT} 1\n{TEXT} 2\n"


def test_exec_runs_where_the_agent_works(user: HostileUser) -> None:
    work_dir = user.create_hostile("foo")
    for words in ((), ("--stream",)):
        ran = user.mngr("exec", "foo", *words, f"pwd; printf '{TEXT}'; exit 7").failed()
        assert ran.stdout == f"{work_dir}\n{TEXT}"
    assert user.mngr("exec", "foo", "cat", input=TEXT).ok().stdout in ("", TEXT)


def test_stop_ends_an_agent_and_start_starts_it_once(user: HostileUser) -> None:
    user.create_hostile("foo", command="echo run >> runs; exec sleep 9999")
    runs = user.work_dir("foo") / "runs"
    wait_for(runs.exists, "the agent to run")
    for _ in range(3):  # from either shell
        user.mngr("start", "foo").ok()
    assert runs.read_text() == "run\n"
    for number in (2, 3):
        user.mngr("stop", "foo").ok()
        assert user.state("foo") == "STOPPED" and not any("sleep 9999" in line for line in commands(user))
        user.mngr("start", "foo").ok()
        wait_for_end(runs, "run\n" * number)
        assert user.state("foo") == "RUNNING" and sum("sleep 9999" in line for line in commands(user)) == 1


def commands(user: HostileUser) -> list[str]:
    found = []
    for pid in user.processes():
        try:
            found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def test_capture_shows_the_screen_and_not_the_place_that_was_scrolled_to(user: HostileUser) -> None:
    user.create("foo", command=f"echo '{TEXT}'; read line; seq 100; echo last; exec sleep 9999")
    wait_for(lambda: TEXT in user.mngr("capture", "foo").ok().stdout, "the first line")
    user.mngr("message", "foo", "-m", "go on").ok()
    wait_for(lambda: "last" in user.mngr("capture", "foo").ok().stdout, "the last line")
    user.scroll("foo")
    for _ in range(2):
        assert user.mngr("capture", "foo").ok().stdout.split()[-2:] == ["100", "last"]
    assert TEXT in user.mngr("capture", "foo", "--history", "500").ok().stdout
    user.mngr("stop", "foo").ok()
    assert user.mngr("capture", "foo").ok().stdout.split()[-2:] == ["100", "last"]


def test_pull_brings_commits_as_a_branch(user: HostileUser) -> None:
    work_dir = user.create_hostile("foo")
    tip = commit(user, work_dir, "one")
    would = user.mngr("pull", "foo", "--dry-run").ok().stdout
    assert "write one" in would and ESCAPE not in would and "another program" not in would
    before = user.git("rev-parse", "main")
    user.mngr("pull", "foo").ok()
    assert user.git("rev-parse", "mngr/foo") == tip and user.git("rev-parse", "main") == before
    user.mngr("pull", "foo", "--into", "current").ok()
    assert user.git("rev-parse", "main") == tip and (user.repo / "one").exists()
    assert user.mngr("exec", "foo", "ls -A").ok().stdout.count("Änderung.txt") == 1


def test_push_moves_the_agents_branch_forward(user: HostileUser) -> None:
    for name, transfer in (("foo", "git-worktree"), ("bar", "git-mirror")):
        user.create(name, "--transfer", transfer)
        work_dir = user.work_dir(name)
        user.watch_copy(work_dir)
        tip = commit(user, user.repo, f"for {name}", TEXT)
        user.mngr("push", name).ok()
        assert user.git("rev-parse", "HEAD", cwd=work_dir) == tip
        assert (work_dir / f"for {name}").read_text() == TEXT
        assert user.git("status", "--porcelain", cwd=work_dir) == "?? .gitattributes"


def test_merge_brings_the_work_into_the_current_branch(user: HostileUser) -> None:
    work_dir = user.create_hostile("foo")
    tip = commit(user, work_dir, "größe.txt")
    user.mngr("merge", "foo").ok()
    assert user.git("rev-parse", "main") == tip and (user.repo / "größe.txt").exists()
    commit(user, user.repo, "mine")
    commit(user, work_dir, "two")
    before = user.git("rev-parse", "main")
    refused = user.mngr("merge", "foo").failed()
    assert "merge.ff" in refused.stderr and user.git("rev-parse", "main") == before
    user.mngr("merge", "foo", "--squash").ok()
    assert (user.repo / "two").exists() and user.git("rev-parse", "main^") == before


def test_diff_obeys_the_user_for_people_and_nobody_for_programs(user: HostileUser) -> None:
    work_dir = user.create_hostile("foo")
    commit(user, work_dir, "one", TEXT + "\n")
    assert "drawn by another program" in user.mngr("diff", "foo").ok().stdout  # by the one that the user chose
    assert "one" in user.mngr("diff", "foo", "--name-only").ok().stdout.splitlines()
    for _ in range(2):
        shown = user.mngr("diff", "foo", "--format", "json").ok().json["diff"]
        assert f"\n+{TEXT}\n" in shown and ESCAPE not in shown and "another program" not in shown
        assert "+Subproject commit" in shown and "+not committed" in shown


def test_a_renamed_agent_is_the_same_agent(user: HostileUser) -> None:
    user.create("foo", command="exec cat > got")
    work_dir = user.work_dir("foo")
    for old, new in (("foo", "bar"), ("bar", "foo")):
        user.mngr("rename", old, new).ok()
        assert [agent["name"] for agent in user.agents()] == [new] and sessions(user) == {f"mngr-{new}"}
        user.scroll(new)
        user.mngr("message", new, "-m", new).ok()
    wait_for(lambda: (work_dir / "got").read_text() == "bar\nfoo\n", "both messages")


def test_an_agent_whose_files_cannot_be_deleted_is_there_or_gone(user: HostileUser) -> None:
    user.create("foo")
    work_dir = user.work_dir("foo")
    if not user.make_undeletable(work_dir / "build" / "by-root"):
        pytest.skip("no file can be made undeletable here")
    ran = user.mngr("destroy", "foo")
    assert ran.exit_code != 70 and "by-root" in ran.stderr + ran.stdout, ran
    left = [agent["name"] for agent in user.agents()]
    if left:
        assert tree(work_dir) and user.git("status", "--porcelain", cwd=work_dir) == ""
    again = user.mngr("destroy", "foo")
    assert "work that is found nowhere else" not in again.stderr
    user.make_deletable()
    user.mngr(*(("destroy", "foo") if left else ("gc",))).ok()
    assert user.agents() == [] and not work_dir.exists()
    assert user.mngr("gc").ok().stdout == "Nothing to remove\n"
    assert not list(user.root.rglob("by-root"))


def test_wait_sees_the_end_and_no_other(user: HostileUser) -> None:
    user.create("foo", command="read line")
    for _ in range(2):
        user.mngr("wait", "foo", "DONE", "--timeout", "1s").failed(4)
    user.mngr("message", "foo", "-m", "end").ok()
    for _ in range(2):
        user.mngr("wait", "foo", "DONE", "--timeout", "60s").ok()


def test_events_and_transcript_hold_what_was_said(user: HostileUser) -> None:
    user.mngr("create", "foo", "--no-connect", "--type", "scripted", "--message", TEXT).ok()
    user.wait_for_state("foo", "WAITING")
    user.scroll("foo")
    user.mngr("message", "foo", "-m", f"say {TEXT} 2").ok()
    wait_for(lambda: f"{TEXT} 2" in user.mngr("transcript", "foo", "--role", "assistant").ok().stdout, "the answer")
    said = user.mngr("transcript", "foo", "--role", "user", "--format", "jsonl").ok().stdout.splitlines()
    assert [json.loads(line)["text"] for line in said] == [TEXT, f"say {TEXT} 2"]
    assert {"message_delivered", "started"} <= {event["type"] for event in user.events("foo")}


def test_cleanup_takes_no_living_agent_for_a_failed_one(user: HostileUser) -> None:
    user.create_hostile("foo")
    user.create("bar", command="true")
    user.wait_for_state("bar", "DONE")
    for _ in range(2):
        assert user.mngr("cleanup", "--destroy", "--state", "FAILED", "--yes").ok().stdout == "No agents found\n"
    assert user.mngr("cleanup", "--destroy", "--state", "DONE", "--yes").ok().stdout.startswith("destroyed bar")
    assert user.mngr("cleanup", "--destroy", "--state", "RUNNING", "--yes").exit_code not in (0, 70)
    assert user.mngr("cleanup", "--stop", "--all", "--yes").ok().stdout.startswith("stopped foo")
    assert user.state("foo") == "STOPPED" and (user.work_dir("foo") / "sub" / "own").exists()


def test_settings_and_labels_are_read_and_written(user: HostileUser) -> None:
    user.create_hostile("foo")
    for number in (1, 2):
        user.mngr(
            "config", "set", "--scope", "user", "commands.create.label", json.dumps([f"note={TEXT} {number}"])
        ).ok()
        assert f"{TEXT} {number}" in user.mngr("config", "get", "commands.create.label").ok().stdout
        user.mngr("label", "foo", f"note={TEXT} {number}").ok()
        assert user.agent("foo")["labels"]["note"] == f"{TEXT} {number}"
    user.create("bar")
    assert user.agent("bar")["labels"]["note"] == f"{TEXT} 2"
    assert user.mngr("config", "list").ok().stderr == ""
