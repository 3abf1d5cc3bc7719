"""`kill -9` at any moment of a verb: every commit and file that was there is found again, `gc` makes all clean again,
and then the same verb works."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.real.test_faults_interrupted import orphans
from tests.support import leftovers
from tests.support.user import MNGR, User, wait_for

SEED = int(os.environ.get("MNGR_KILL_SEED", "0")) or random.SystemRandom().randrange(10**6)


class Case(NamedTuple):
    """A verb: what is there before, its words, and how it is run to its end after it was killed."""

    prepare: Callable[[User], None]
    words: tuple[str, ...]
    again: Callable[[User], None]


def work(user: User, name: str) -> None:
    """A commit, a changed file and a new one, each with a text that is nowhere else."""
    work_dir = user.work_dir(name)
    for number, path in enumerate(("committed", "README.md", "new")):
        (work_dir / path).write_text(f"precious-{name}-{number}\n")
        if not number:
            user.git("add", path, cwd=work_dir)
            user.git("commit", "-q", "-m", f"own of {name}", cwd=work_dir)


def agent_with_work(user: User, *words: str) -> None:
    user.create("foo", *words)
    work(user, "foo")


def names(user: User) -> list[str]:
    return [agent["name"] for agent in user.agents()]


def ensure_gone(user: User, name: str) -> None:
    if name in names(user):
        user.mngr("destroy", name, "--force").ok()
    assert name not in names(user)


def create_again(user: User) -> None:
    ensure_gone(user, "foo")
    user.create("foo")


def prepare_push(user: User) -> None:
    user.create("foo", "--transfer", "git-mirror")
    (user.repo / "mine").write_text("precious-mine\n")
    user.git("add", ".")
    user.git("commit", "-q", "-m", "mine")


def prepare_restore(user: User) -> None:
    agent_with_work(user)
    user.mngr("destroy", "foo", "--force").ok()


def restore_again(user: User) -> None:
    ensure_gone(user, "foo")
    user.mngr("saved", "restore", "foo-1").ok()
    check_work(user.work_dir("foo"))


def prepare_snapshot(user: User) -> None:
    agent_with_work(user)
    user.mngr("snapshot", "create", "foo").ok()
    work_dir = user.work_dir("foo")
    (work_dir / "README.md").write_text("precious-later-1\n")
    (work_dir / "later").write_text("precious-later-2\n")
    (work_dir / "new").unlink()
    user.git("add", "later", cwd=work_dir)
    user.git("commit", "-q", "-m", "later", cwd=work_dir)


def restore_snapshot_again(user: User) -> None:
    user.mngr("snapshot", "restore", "foo/snap-1").ok()
    check_work(user.work_dir("foo"))
    assert not (user.work_dir("foo") / "later").exists()


def check_work(work_dir: Path) -> None:
    texts = [(work_dir / path).read_text() for path in ("committed", "README.md", "new")]
    assert texts == [f"precious-foo-{number}\n" for number in range(3)]


def clone_again(user: User) -> None:
    ensure_gone(user, "bar")
    user.mngr("clone", "foo", "bar", "--no-connect").ok()
    check_work(user.work_dir("bar"))


def rename_again(user: User) -> None:
    (name,) = names(user)
    user.mngr("rename", name, "baz").ok()
    assert user.state("baz") == "RUNNING"


def prepare_start(user: User) -> None:
    agent_with_work(user)
    user.mngr("stop", "foo").ok()


def start_again(user: User) -> None:
    user.mngr("start", "foo").ok()
    assert user.state("foo") == "RUNNING"


def merge_again(user: User) -> None:
    user.mngr("merge", "foo").ok()
    assert (user.repo / "committed").read_text() == "precious-foo-0\n" and user.git("status", "--short") == ""


def pull_again(user: User) -> None:
    user.mngr("pull", "foo").ok()
    assert "own of foo" in user.git("log", "--format=%s", "mngr/foo")


def push_again(user: User) -> None:
    user.mngr("push", "foo").ok()
    assert (user.work_dir("foo") / "mine").read_text() == "precious-mine\n"


CREATE = ("create", "foo", "--no-connect", "--command", "sleep 9999")
CASES = {
    "create": Case(lambda user: None, CREATE, create_again),
    "create-mirror": Case(lambda user: None, (*CREATE, "--transfer", "git-mirror"), create_again),
    "destroy": Case(agent_with_work, ("destroy", "foo", "--force"), lambda user: ensure_gone(user, "foo")),
    "destroy-mirror": Case(
        lambda user: agent_with_work(user, "--transfer", "git-mirror"),
        ("destroy", "foo", "--force", "-b"),
        lambda user: ensure_gone(user, "foo"),
    ),
    "merge": Case(agent_with_work, ("merge", "foo"), merge_again),
    "pull": Case(lambda user: agent_with_work(user, "--transfer", "git-mirror"), ("pull", "foo"), pull_again),
    "push": Case(prepare_push, ("push", "foo"), push_again),
    "restore": Case(prepare_restore, ("saved", "restore", "foo-1"), restore_again),
    "snapshot-restore": Case(prepare_snapshot, ("snapshot", "restore", "foo/snap-1"), restore_snapshot_again),
    "clone": Case(agent_with_work, ("clone", "foo", "bar", "--no-connect"), clone_again),
    "rename": Case(agent_with_work, ("rename", "foo", "bar"), rename_again),
    "start": Case(prepare_start, ("start", "foo"), start_again),
}
# 20 in `make test`, 200 in `make soak`.
OFTEN = ("destroy", "destroy-mirror", "clone", "restore", "snapshot-restore", "create", "create-mirror", "merge")


def kills() -> Iterator[Any]:
    for name in CASES:
        yield pytest.param(name, 2 if name in OFTEN else 1, marks=pytest.mark.timeout(300))
    for name in CASES:
        yield pytest.param(name, 20 if name in OFTEN else 10, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])


@pytest.mark.parametrize(("name", "times"), list(kills()))
def test_a_verb_killed_at_any_moment_loses_nothing_and_leaves_nothing_after_gc(name: str, times: int) -> None:
    chances = random.Random(f"{SEED} {name} {times}")
    case = CASES[name]
    with closing(User()) as user:
        case.prepare(user)
        started = time.monotonic()
        user.run([MNGR, *case.words]).ok()
        whole = time.monotonic() - started
    for _ in range(times):
        after = chances.uniform(0.1, 1.05) * whole
        with closing(User()) as user:
            case.prepare(user)
            try:
                killed(user, case, after)
            except BaseException as error:
                error.add_note(f"MNGR_KILL_SEED={SEED}: `mngr {' '.join(case.words)}` killed after {after:.3f} s")
                raise


def killed(user: User, case: Case, after: float) -> None:
    before = precious(user)
    child = subprocess.Popen(
        [MNGR, *case.words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=user.repo,
        env=user.env,
        start_new_session=True,
    )
    time.sleep(after)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    wait_for(lambda: not orphans(user), "git and tmux, which outlived it, to be through")
    assert before <= precious(user), before - precious(user)
    removed = user.mngr("gc").ok().stdout
    again = user.mngr("gc").ok().stdout
    assert again == "Nothing to remove\n", removed + again
    assert before <= precious(user), f"{before - precious(user)} after {removed}"
    assert user.mngr("list", "--format", "json").ok().json["errors"] == []
    for words in (["log", "--all", "--oneline"], ["fsck", "--no-dangling", "--connectivity-only"]):
        user.git(*words)
    assert rubbish(user) == [], removed
    case.again(user)
    assert before <= precious(user)


def rubbish(user: User) -> list[str]:
    """What belongs to no agent and no saved work."""
    known = {agent["id"][6:14] for agent in user.agents()}
    left = [
        line
        for line in leftovers.found(user)
        if not line.startswith(("agent ", "tmux session", "branch "))
        and "refs/mngr/saved" not in line
        and "refs/mngr/snapshots" not in line
        and "refs/mngr/pulled" not in line
        and not any(short in line for short in known)
    ]
    rooms = [user.host_dir / room for room in ("trash", "saved", "snapshots")]
    left += [str(path) for path in rooms[0].glob("*")]
    left += [str(path) for room in rooms for path in room.glob("**/unfinished.json")]
    return left + [str(path) for path in user.host_dir.glob("git/*/mngr-index-*")]


def precious(user: User) -> set[str]:
    """Every commit and every such text that can be reached: in an agent, in the user's repository, in saved work."""
    copies = [path for room in ("worktrees", "clones") for path in (user.host_dir / room).glob("*") if path.is_dir()]
    found: set[str] = set()
    for place in (user.repo, *copies):
        for path in place.rglob("*"):
            if ".git" not in path.parts and path.is_file() and "precious" in (text := path.read_text()):
                found.add(text)
        if (place / ".git").exists():
            refs = user.git("for-each-ref", "--format=%(refname)", cwd=place).split()
            found |= set(user.git("rev-list", "HEAD", *refs, "--", cwd=place).split())
            for ref in refs:
                if ref.startswith("refs/mngr/saved/") or place != user.repo:
                    ran = user.run(["git", "grep", "-h", "precious", ref], cwd=place)
                    found |= {f"{line}\n" for line in ran.stdout.splitlines()}
    return found - _made_by_us(user, found)


def _made_by_us(user: User, found: set[str]) -> set[str]:
    """Commits that mngr made to save files: they go with what they were made for."""
    objects = [name for name in found if len(name) == 40]
    shown = user.run(["git", "log", "--no-walk", "--ignore-missing", "--format=%H %ae", *objects]) if objects else None
    lines = shown.stdout.splitlines() if shown else []
    return {line.split()[0] for line in lines if line.endswith("mngr@localhost")}
