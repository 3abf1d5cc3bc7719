"""The main verbs once more, in a world where nothing is as it was when they were written: see `HostileUser`."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hostile_world import HostileUser
from tests.support.trees import Tree, tree
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


def files_in(directory: Path) -> Tree:
    """Without the git directory of its submodule, which may be elsewhere."""
    return {path: what for path, what in tree(directory).items() if not path.startswith(b"sub/.git")}


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


def test_clone_has_all_that_its_source_has(user: HostileUser) -> None:
    work_dir = user.create_hostile("foo")
    tip = commit(user, work_dir, "one")
    user.mngr("clone", "foo", "bar", "--no-connect").ok()
    clone = user.work_dir("bar")
    assert user.git("rev-parse", "HEAD", cwd=clone) == tip and user.state("bar") == "RUNNING"
    assert files_in(clone) == files_in(work_dir)
    assert user.git("log", "-1", "--format=%s", cwd=clone / "sub") == "inside the submodule"


def test_a_renamed_agent_is_the_same_agent(user: HostileUser) -> None:
    user.create("foo", command="exec cat > got")
    work_dir = user.work_dir("foo")
    for old, new in (("foo", "bar"), ("bar", "foo")):
        user.mngr("rename", old, new).ok()
        assert [agent["name"] for agent in user.agents()] == [new] and sessions(user) == {f"mngr-{new}"}
        user.scroll(new)
        user.mngr("message", new, "-m", new).ok()
    wait_for(lambda: (work_dir / "got").read_text() == "bar\nfoo\n", "both messages")


def test_a_snapshot_brings_everything_back(user: HostileUser) -> None:
    work_dir = user.create_hostile("foo")
    commit(user, work_dir, "one")
    before = files_in(work_dir)
    user.mngr("snapshot", "create", "foo", "before").ok()
    assert files_in(work_dir) == before
    (work_dir / "one").write_text("changed\n")
    (work_dir / "Änderung.txt").unlink()
    shutil.rmtree(work_dir / "sub")
    user.mngr("snapshot", "restore", "before").ok()
    assert files_in(work_dir) == before and user.state("foo") == "RUNNING"
    assert user.git("log", "-1", "--format=%s", cwd=work_dir / "sub") == "inside the submodule"


def test_destroy_refuses_then_saves_and_everything_can_be_restored(user: HostileUser) -> None:
    work_dir = user.create_hostile("foo")
    user.mngr("merge", "foo").ok()  # the pointer to the submodule's commit, and nothing of the submodule
    before = files_in(work_dir)
    assert "2 uncommitted files and 1 repository inside" in user.mngr("destroy", "foo").failed().stderr
    (work_dir / "Änderung.txt").unlink()
    (work_dir / ".gitattributes").unlink()
    assert "1 repository inside" in user.mngr("destroy", "foo").failed().stderr
    (work_dir / "Änderung.txt").write_text("not committed\n")
    (work_dir / ".gitattributes").write_text("*.txt filter=agent\n")
    assert user.state("foo") == "RUNNING" and files_in(work_dir) == before
    user.make_deletable()
    user.mngr("destroy", "foo", "--force").ok()
    assert user.agents() == [] and not work_dir.exists() and not user.tmux("list-sessions").stdout
    user.mngr("saved", "restore", "foo-1").ok()
    restored = user.work_dir("foo")
    assert files_in(restored) == before
    assert user.git("log", "-1", "--format=%s", cwd=restored / "sub") == "inside the submodule"


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


def test_gc_removes_what_is_left_over_and_nothing_that_lives(user: HostileUser) -> None:
    user.create_hostile("foo")
    work_dir = user.create_hostile("bar")
    user.mngr("stop", "bar").ok()
    shutil.rmtree(user.host_dir / "agents" / user.agent("bar")["id"])
    user.make_deletable()
    for _ in range(2):
        assert user.mngr("gc", "--dry-run", "--format", "json").ok().json["leftovers"]
    user.mngr("gc").ok()
    assert not work_dir.exists() and user.state("foo") == "RUNNING" and sessions(user) == {"mngr-foo"}
    user.mngr("saved", "restore", "bar-1").ok()
    assert (user.work_dir("bar") / "sub" / "own").read_text() == "only here\n"
    for _ in range(2):
        assert user.mngr("gc").ok().stdout == "Nothing to remove\n"


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


def test_a_limit_stops_an_agent_and_saves_its_work(user: HostileUser) -> None:
    user.create_hostile("foo")
    user.mngr("limit", "foo", "--timeout", "1s").ok()
    agent = user.wait_for_state("foo", "STOPPED")
    assert "limit" in agent["state_reason"]
    (entry,) = user.mngr("saved", "list", "--format", "json").ok().json["saved"]
    assert set(entry["uncommitted"]) == {"Änderung.txt", ".gitattributes", "sub"}
    user.mngr("saved", "restore", entry["id"], "--to", str(user.root / "restored")).ok()
    assert (user.root / "restored" / "sub" / "own").read_text() == "only here\n"
    user.mngr("start", "foo").ok()


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


def test_files_are_copied_both_ways_and_never_outside(user: HostileUser) -> None:
    work_dir = user.create_hostile("foo")
    (work_dir / "new\nline").write_text("n\n")
    os.symlink(user.home, work_dir / "out")
    target = user.root / "Dateien für mich"
    user.mngr("pull", "foo", "--files", str(target)).ok()
    assert (target / "new\nline").read_text() == "n\n" and (target / "Änderung.txt").exists()
    assert (target / "sub" / "own").exists() and (target / "out").is_symlink()
    (user.repo / "data.txt").write_text(TEXT)
    user.mngr("push", "foo:deep/er/data.txt", "data.txt").ok()
    assert (work_dir / "deep" / "er" / "data.txt").read_text() == TEXT
    before = tree(user.home)
    assert user.mngr("push", "foo:out/data.txt", "data.txt").exit_code not in (0, 70)
    assert user.mngr("pull", "foo:out/.gitconfig", str(target)).exit_code not in (0, 70)
    assert not (user.home / "data.txt").exists() and set(tree(user.home)) == set(before)


@pytest.mark.parametrize("transfer", ["git-mirror", "rsync"])
def test_a_repository_of_its_own_is_no_less_safe(user: HostileUser, transfer: str) -> None:
    work_dir = user.create_hostile("foo", "--transfer", transfer)
    tip = commit(user, work_dir, "one", TEXT)
    assert user.agent("foo")["transfer"] == transfer
    assert f"+{TEXT}" in user.mngr("diff", "foo", "--format", "json").ok().json["diff"]
    user.mngr("merge", "foo").ok()
    assert user.git("rev-parse", "main") == tip
    (work_dir / "Änderung.txt").unlink()
    (work_dir / ".gitattributes").unlink()
    assert "1 repository inside" in user.mngr("destroy", "foo").failed().stderr
    user.make_deletable()
    user.mngr("destroy", "foo", "--force").ok()
    user.mngr("saved", "restore", "foo-1").ok()
    assert user.git("log", "-1", "--format=%s", cwd=user.work_dir("foo") / "sub") == "inside the submodule"


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
