"""A full or read-only disk: the reason is said, nothing is half-made, and what can still be done works."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support import leftovers
from tests.support.user import MNGR, Ran, User

CREATE = f"{MNGR} create foo --no-connect --command 'sleep 9999'"


def with_mounts(user: User, script: str) -> Ran:
    """Run a shell script where it may mount file systems that nobody else sees. Its tmux server ends with it."""
    probe = "unshare -rm sh -c 'mount -t tmpfs none /mnt'"
    able = subprocess.run(["sh", "-c", probe], capture_output=True, check=False)
    if able.returncode:
        pytest.skip(f"this machine allows no mounts of our own: {able.stderr.decode().strip()}")
    ending = "trap 'tmux -L mngr kill-server 2>/dev/null' EXIT\n"
    return user.run(["unshare", "-rm", "sh", "-c", ending + script], timeout=110)


def says_full(done: Ran) -> bool:
    """git often says only that it could not write, so `mngr` adds how little space is left."""
    return "o space left on" in done.stderr or "MB are left on the disk" in done.stderr


def fill(path: Path | str) -> str:
    return f"cat /dev/zero > {shlex.quote(str(path))}/filler 2>/dev/null\n"


def random_files(user: User, megabytes: int) -> None:
    """Files that git cannot make smaller, so that a checkout does not fit on a small disk."""
    for number in range(megabytes):
        (user.repo / f"file{number}.bin").write_bytes(os.urandom(1_000_000))
    user.git("add", ".")
    user.git("commit", "-q", "-m", "large")


NOTHING_LEFT = f"""
{MNGR} list --format json | tr -d ' \\n'; echo
ls "$HOME/.mngr/agents" "$HOME/.mngr/worktrees" "$HOME/.mngr/clones" 2>/dev/null | grep -v ':$' | grep .
git worktree list | wc -l
git branch --list 'mngr/*'
ls .git/worktrees 2>/dev/null
find .git -name '*.lock'
tmux -L mngr list-sessions 2>/dev/null
true
"""
CLEAN = '{"agents":[],"errors":[]}\n1\n'


def test_a_full_state_directory_from_the_start(user: User) -> None:
    done = with_mounts(
        user,
        f"""
        mkdir {user.host_dir}; mount -t tmpfs -o size=64k none {user.host_dir}
        mkdir {user.host_dir}/crashes
        {fill(user.host_dir / "crashes")}
        {CREATE}; echo code $?
        rm {user.host_dir}/crashes/filler
        {NOTHING_LEFT}
        {CREATE}; echo code $?
        """,
    )
    assert "no space left on the disk" in done.stderr
    assert "hint: free some space" in done.stderr
    assert done.stdout == f"code 1\n{CLEAN}created foo on branch mngr/foo\ncode 0\n", done


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror", "rsync"])
def test_a_disk_that_is_full_half_way_through_the_copy(user: User, transfer: str) -> None:
    random_files(user, 4)
    done = with_mounts(
        user,
        f"""
        mkdir {user.host_dir}; mount -t tmpfs -o size=3m none {user.host_dir}
        {CREATE} --transfer {transfer}; echo code $?
        {NOTHING_LEFT}
        """,
    )
    assert says_full(done), done
    assert done.stdout == f"code 1\n{CLEAN}", done


@pytest.mark.parametrize("left_kb", [0, 4, 8, 16, 24, 40])
def test_a_disk_that_is_full_at_any_step_of_the_state(user: User, left_kb: int) -> None:
    """tmpfs counts in pages, so each 4 kB more lets one more file of the state be written."""
    done = with_mounts(
        user,
        f"""
        mkdir {user.host_dir}; mount -t tmpfs -o size=512k none {user.host_dir}
        {MNGR} create warm --no-connect --command 'sleep 9999' --transfer none && {MNGR} destroy warm
        head -c {left_kb * 1024} /dev/zero > {user.host_dir}/room
        {fill(user.host_dir)}
        rm {user.host_dir}/room
        {CREATE}; code=$?; echo code $code
        rm {user.host_dir}/filler
        [ $code = 0 ] && {MNGR} destroy foo
        {NOTHING_LEFT}
        """,
    )
    said = done.stdout.removeprefix("created warm on branch main\ndestroyed warm\n")
    made = "created foo on branch mngr/foo\ncode 0\ndestroyed foo\n"
    assert said in (f"code 1\n{CLEAN}", f"{made}{CLEAN}"), done
    if said.startswith("code 1"):
        assert says_full(done), done


def test_a_full_disk_of_the_repository(user: User) -> None:
    done = with_mounts(
        user,
        f"""
        mount -t tmpfs -o size=600k none /mnt
        git clone -q . /mnt/repo && cd /mnt/repo
        {fill("/mnt")}
        {CREATE}; echo code $?
        rm ../filler
        {NOTHING_LEFT}
        """,
    )
    assert says_full(done), done
    assert done.stdout == f"code 1\n{CLEAN}", done


def test_destroy_on_a_full_disk_keeps_the_work(user: User) -> None:
    done = with_mounts(
        user,
        f"""
        mkdir {user.host_dir}; mount -t tmpfs -o size=1m none {user.host_dir}
        mount -t tmpfs -o size=600k none /mnt; git clone -q . /mnt/repo; cd /mnt/repo
        {CREATE}
        work=$(echo {user.host_dir}/worktrees/foo-*); echo precious > "$work"/new.txt
        {fill(user.host_dir)}
        {fill("/mnt")}
        {MNGR} destroy foo --force; echo code $?
        cat {user.host_dir}/worktrees/foo-*/new.txt
        rm {user.host_dir}/filler /mnt/filler
        {MNGR} destroy foo --force; echo code $?
        {MNGR} saved restore foo --to /mnt/back >/dev/null; cat /mnt/back/new.txt
        """,
    )
    assert "o space left on" in done.stderr, done
    assert "code 1\nprecious\n" in done.stdout, done
    assert done.stdout.endswith("code 0\nprecious\n"), done


def test_an_event_that_did_not_fit_spoils_no_later_one(user: User) -> None:
    done = with_mounts(
        user,
        f"""
        mkdir {user.host_dir}; mount -t tmpfs -o size=512k none {user.host_dir}
        {CREATE} >/dev/null
        events=$(echo {user.host_dir}/agents/*/events.jsonl)
        printf '{{"torn": "li' >> "$events"
        {MNGR} label foo team=a >/dev/null
        {MNGR} event foo --format '{{type}}'
        """,
    )
    assert done.stdout.split() == ["created", "started", "labeled"], done


def test_a_read_only_state_directory(user: User) -> None:
    done = with_mounts(
        user,
        f"""
        {CREATE} >/dev/null
        mount --bind {user.host_dir} {user.host_dir} && mount -o remount,bind,ro {user.host_dir}
        {MNGR} list --format '{{name}} {{state}}'
        {MNGR} exec foo 'cat README.md'
        {MNGR} create bar --no-connect --command 'sleep 9999'; echo code $?
        {MNGR} stop foo; echo code $?
        {MNGR} destroy foo --force; echo code $?
        {MNGR} label foo a=b; echo code $?
        {MNGR} list --format '{{name}} {{state}}'
        mount -o remount,bind,rw {user.host_dir}
        {MNGR} destroy foo; echo code $?
        {NOTHING_LEFT}
        """,
    )
    expected = "foo RUNNING\nhello\ncode 1\ncode 1\ncode 1\ncode 1\nfoo RUNNING\ndestroyed foo\ncode 0\n"
    assert done.stdout == expected + CLEAN, done
    assert done.stderr.count("Read-only file system") == 4
    assert "bug" not in done.stderr


def test_a_read_only_repository(user: User) -> None:
    done = with_mounts(
        user,
        f"""
        mount --bind {user.repo} {user.repo} && mount -o remount,bind,ro {user.repo}
        cd /; cd {user.repo}
        {CREATE}; echo code $?
        {CREATE} --transfer git-mirror; echo code $?
        {MNGR} destroy foo; echo code $?
        {NOTHING_LEFT}
        """,
    )
    assert done.stdout.startswith("code 1\ncreated foo on branch mngr/foo\ncode 0\ndestroyed foo\ncode 0\n"), done
    assert done.stdout.endswith(CLEAN), done
    assert "hint: the repository cannot be written to; `--transfer git-mirror`" in done.stderr


def test_leftovers_looks_where_it_should(user: User) -> None:
    """The other tests trust it, so it must see an agent when there is one."""
    user.create("foo")
    found = "\n".join(leftovers.found(user))
    for what in ("agent foo", "state", "worktree", "branch", "tmux session"):
        assert what in found
