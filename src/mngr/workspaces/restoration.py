"""Put a workspace back to what a snapshot holds, at the same path, whatever is left of it. Saves nothing itself."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mngr import files, process
from mngr.agents.record import Record
from mngr.errors import MngrError
from mngr.hosts.host import Host
from mngr.interrupts import held
from mngr.process import checked
from mngr.tools.git import Git
from mngr.workspaces import saved_entry, unsaved_work
from mngr.workspaces.plan import MIRROR, WORKTREE
from mngr.workspaces.saved_entry import SavedEntry
from mngr.workspaces.workspace import clone_repository, copy_files, repo_lock, task_dir, worktree_entry


def relink(host: Host, record: Record) -> None:
    """Give a worktree its lost `.git` file back, if git still knows it. Then what it held can be told from git."""
    if record.transfer != WORKTREE or record.repo is None or os.path.lexists(os.path.join(record.work_dir, ".git")):
        return
    common = _common_dir(record.repo)
    for name in host.entries(os.path.join(common, "worktrees")) if common else ():
        note = os.path.join(common, "worktrees", name)
        if _same_path(_first_line(os.path.join(note, "gitdir")), os.path.join(record.work_dir, ".git")):
            os.makedirs(record.work_dir, exist_ok=True)
            _write_line(os.path.join(record.work_dir, ".git"), f"gitdir: {note}")
            return


def endangered(entry: SavedEntry, record: Record) -> tuple[tuple[str, str], ...]:
    """The branch that putting back would move away from commits that nothing else holds, with its tip."""
    if record.transfer != WORKTREE or record.repo is None or entry.branch is None or entry.plain_files:
        return ()
    git = Git(record.repo)
    ref = f"refs/heads/{entry.branch}"
    tip = git.commit_of(ref)
    if tip is None or git.ok("merge-base", "--is-ancestor", tip, entry.parent):
        return ()
    return () if git.is_shared(tip, besides=entry.branch) else ((ref, tip),)


def put_back(host: Host, entry: SavedEntry, record: Record, spare: Sequence[str]) -> tuple[str | None, str]:
    """Make the work dir what it was: files, branch, and the refs of a repository of its own. What is below `spare`
    stays. Returns the branch, and what a person should know about it. Twice is safe, also after half of it."""
    os.makedirs(record.work_dir, exist_ok=True)
    if entry.plain_files:
        saved_entry.bring_files(Git(record.work_dir, git_dir=entry.repo), entry, spare)
        task_dir(record.work_dir)
        return None, ""
    git = Git(record.work_dir)
    if not unsaved_work.own_repository(record):
        files.remove_tree(os.path.join(record.work_dir, ".git"))
        _make_repository(host, entry, record)
    _end_operations(git)
    if record.transfer == WORKTREE:
        with repo_lock(host, git.must("rev-parse", "--path-format=absolute", "--git-common-dir")):
            branch, note = _place_worktree(git, entry)
    else:
        branch, note = entry.branch, ""
        saved_entry.fetch_kept(git, entry)
        git.must("update-ref", "--no-deref", "HEAD", entry.parent)
        saved_entry.bring_refs(git, entry, None)
        if branch is not None:
            git.must("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    saved_entry.bring_files(git, entry, spare)
    if record.transfer != WORKTREE:
        saved_entry.forget_refs(git, entry.refs_below)
    task_dir(record.work_dir)
    return branch, note


def _make_repository(host: Host, entry: SavedEntry, record: Record) -> None:
    common = _common_dir(record.repo or "")
    if record.transfer == WORKTREE:
        if not common:
            raise MngrError(f"the repository of `{record.name}`, `{record.repo}`, is gone")
        relink(host, record)
        if not unsaved_work.own_repository(record):
            _link_anew(host, record, common, entry.parent)
    elif not common or record.repo is None:
        made = process.run(["git", "init", "-q", record.work_dir], timeout=60)
        checked(made, "git could not make a repository")
    elif record.transfer == MIRROR:
        how = "--no-hardlinks" if record.sandbox else ""
        clone_repository(record.repo, common, record.work_dir, how)
    else:
        copy_files(host, record.repo, record.work_dir, git=True)


def _link_anew(host: Host, record: Record, common: str, commit: str) -> None:
    """A new worktree for a directory that holds files, which git itself refuses: made elsewhere, then moved there."""
    assert record.repo is not None
    aside = f"{record.work_dir}.{os.urandom(4).hex()}"
    with repo_lock(host, common), held():
        words = ["worktree", "add", "-q", "--no-checkout", "--detach", aside, commit]
        Git(record.repo).must(*words, doing="git could not make the worktree")
        note = worktree_entry(aside)
        assert note is not None
        _write_line(os.path.join(record.work_dir, ".git"), f"gitdir: {note}")
        _write_line(os.path.join(note, "gitdir"), os.path.join(record.work_dir, ".git"))
        files.remove_tree(aside)


def _place_worktree(git: Git, entry: SavedEntry) -> tuple[str | None, str]:
    """Point HEAD where it was. A branch that another work tree has is not moved: a new one stands in for it."""
    git.must("update-ref", "--no-deref", "HEAD", entry.parent)
    for ref, tip in entry.refs:
        if git.commit_of(ref) is None:
            git.must("update-ref", ref, tip)
    if entry.branch is None:
        return None, ""
    branch, note = entry.branch, ""
    at = git.commit_of(f"refs/heads/{branch}")
    place = saved_entry.checked_out(git).get(branch)
    if place is not None:
        branch = saved_entry.free_branch(git, f"{entry.branch}-restored")
        note = f"branch {entry.branch} is checked out in {place} and stays where it is; the work is on {branch}"
    elif at not in (None, entry.parent):
        note = f"branch {branch} was at {(at or '')[:10]} and is at {entry.parent[:10]} again"
    git.must("update-ref", f"refs/heads/{branch}", entry.parent)
    git.must("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    return branch, note


def _end_operations(git: Git) -> None:
    """A rebase or a series of picks that was under way would go on in another history."""
    git_dir = git.must("rev-parse", "--absolute-git-dir")
    if os.path.isdir(os.path.join(git_dir, "rebase-merge")) or os.path.isdir(os.path.join(git_dir, "rebase-apply")):
        git.run("rebase", "--quit")
    for name in ("rebase-merge", "rebase-apply", "sequencer"):
        files.remove_tree(os.path.join(git_dir, name))


def _common_dir(repo: str) -> str:
    if not os.path.isdir(repo):
        return ""
    found = Git(repo).run("rev-parse", "--path-format=absolute", "--git-common-dir")
    return found.text if found.ok else ""


def _same_path(one: str, two: str) -> bool:
    return bool(one) and os.path.realpath(one) == os.path.realpath(two)


def _first_line(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read().rstrip(b"\n"))
    except OSError:
        return ""


def _write_line(path: str, text: str) -> None:
    files.write_atomic(path, os.fsencode(text) + b"\n", 0o644)
