"""Keep work under refs: what an agent holds, for the safety net or a snapshot, and files before they are replaced."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mngr.agent.record import Record, timestamp
from mngr.named_tuples import NamedTuple
from mngr.system.git import Git
from mngr.system.process import CommandFailed
from mngr.system.state_dir import StateDir
from mngr.workspace import copy_git
from mngr.workspace.plan import WORKTREE
from mngr.workspace.work import entry as saved_entry
from mngr.workspace.work import files as uncommitted_files
from mngr.workspace.work import git_state, lfs, staged_index
from mngr.workspace.work.entry import SAVED, EntryPlace, SavedEntry
from mngr.workspace.work.git_files import common_dir_of, git_dir_of, is_repository
from mngr.workspace.work.measure import UnsavedWork, own_repository


class _Kept(NamedTuple):
    """What was written to a repository: see `SavedEntry`."""

    repo: str
    commit: str
    parent: str
    branch: str | None = None
    archives: tuple[tuple[str, str], ...] = ()
    modules: tuple[tuple[str, str], ...] = ()
    staged: str = ""
    state: str = ""


def save_agent(
    host: StateDir, record: Record, found: UnsavedWork, reason: str, *, always: bool = False
) -> SavedEntry | None:
    """Keep all that was measured. Nothing to keep gives None, unless it is `always` wanted. The workspace itself is not
    changed."""
    if not (found.any or found.along or always):
        return None
    place = saved_entry.reserve(host, SAVED, record.name, record)
    entry = keep_workspace(host, place, record, found, reason=reason)
    saved_entry.write(host, entry)
    return entry


def save_files(host: StateDir, name: str, directory: str, paths: Sequence[str], reason: str) -> SavedEntry:
    """Keep some files of any directory as they are now, before something writes over them."""
    place = saved_entry.reserve(host, SAVED, name, None)
    kept = _keep_plain(place, directory, "", paths, f"Files saved on {reason}\n")
    entry = SavedEntry(
        place.id,
        name,
        reason,
        timestamp(),
        place.store,
        place.ref,
        kept.commit,
        kept.parent,
        0,
        tuple(paths),
        (),
        (),
        (),
        None,
        archives=kept.archives,
    )
    saved_entry.write(host, entry)
    return entry


def keep_workspace(
    host: StateDir, place: EntryPlace, record: Record, found: UnsavedWork, *, reason: str, whole: bool = False
) -> SavedEntry:
    """Put what was measured under refs. The workspace itself is not changed."""
    paths = [*found.changed, *found.ignored]
    message = f"Work of agent {record.name}, {'a snapshot' if whole else f'saved on {reason}'}\n"
    if own_repository(record) and not found.unreadable:
        kept, ref = _keep_repository(host, place, record, found, message, whole), f"{place.ref}/work"
    else:
        base = record.workspace.source if record.workspace.repo is None and not whole else ""
        commits = _bring_commits(place, record, found)
        kept, ref = _keep_plain(place, record.workspace.work_dir, base, paths, message, commits), place.ref
    return SavedEntry(
        id=place.id,
        name=record.name,
        reason=reason,
        saved_at=timestamp(),
        repo=kept.repo,
        ref=ref,
        commit=kept.commit,
        parent=kept.parent,
        commits=found.commits,
        changed=found.changed,
        ignored=found.ignored,
        left_out=tuple((item.path, item.megabytes) for item in found.left_out),
        refs=found.refs,
        agent=record,
        branch=kept.branch,
        whole=whole,
        private=tuple(uncommitted_files.private_files(record.workspace.work_dir, paths)),
        archives=kept.archives,
        modules=kept.modules,
        staged=kept.staged,
        state=kept.state,
        left_behind=found.left_behind,
    )


def _keep_plain(
    place: EntryPlace, directory: str, source: str, paths: Sequence[str], message: str, commits: Sequence[str] = ()
) -> _Kept:
    """Plain files go into a repository of our own: first as the source has them, then as they are in the directory.
    `commits` are in that repository already."""
    saved_entry.make_store(place.store)
    before = Git.of_store(source, git_dir=place.store) if source and os.path.isdir(source) else None
    after = Git.of_store(directory if os.path.isdir(directory) else place.store, git_dir=place.store)
    empty = after.must("mktree", input=b"")
    tree = uncommitted_files.dirty_tree(before, paths, onto="") if before and paths else empty
    parent = after.commit_tree(tree, [], f"Before: {message}")
    packed = uncommitted_files.pack_repositories(after, paths)
    tree = uncommitted_files.dirty_tree(after, paths, onto="") if paths else empty
    beside = _commit_beside(after, {"archives": _tree_of_blobs(after, packed)}, commits)
    commit = after.commit_tree(tree, [parent, *beside], message)
    after.must("update-ref", place.ref, commit)
    return _Kept(place.store, commit, parent, archives=tuple(packed))


def _bring_commits(place: EntryPlace, record: Record, found: UnsavedWork) -> list[str]:
    """Commits of a worktree whose files are kept without it, copied to our own repository."""
    commits = sorted({*found.loose, *(tip for _, tip in found.refs)})
    if not commits or record.workspace.repo is None:
        return []
    store = Git.of_store(saved_entry.make_store(place.store))
    source = Git.of_user(record.workspace.repo)
    refs = {f"refs/mngr/keeping/{os.urandom(4).hex()}/{number}": commit for number, commit in enumerate(commits)}
    source.must("update-ref", "--stdin", input="".join(f"create {ref} {tip}\n" for ref, tip in refs.items()).encode())
    try:
        for ref in refs:
            store.fetch(common_dir_of(record.workspace.repo), ref, doing="the agent's commits could not be saved")
    finally:
        source.run("update-ref", "--stdin", input="".join(f"delete {ref}\n" for ref in refs).encode())
    return commits


def _keep_repository(
    host: StateDir, place: EntryPlace, record: Record, found: UnsavedWork, message: str, whole: bool
) -> _Kept:
    git, git_dir = copy_git.of(host, record), git_dir_of(record.workspace.work_dir)
    branch, head = git.current_branch(), git.commit_of("HEAD")
    parent = head or git.commit_tree(git.must("mktree", input=b""), [], "Nothing was committed\n")
    paths = [*found.changed, *found.ignored, *found.repositories]
    tree = f"{parent}^{{tree}}"
    archives = uncommitted_files.pack_repositories(git, paths)
    if paths := [*paths, *(uncommitted_files.convertible(git) if whole else ())]:
        tree = uncommitted_files.dirty_tree(git, paths, onto=head or "")
    modules = uncommitted_files.pack(git, git_dir, found.modules)
    current = git_state.read(git_dir)
    index = staged_index.keep(git) if found.staged or current.unfinished else ""
    state = _keep_state(git, git_dir, current.files) if current.unfinished or found.loose else ""
    parts = {
        "archives": _tree_of_blobs(git, archives),
        "modules": _tree_of_blobs(git, modules),
        "index": index,
        "state": state,
    }
    beside = _commit_beside(git, parts, found.loose)
    commit = git.commit_tree(tree, [parent, *beside], message) if paths or beside else parent
    repo = (
        record.workspace.repo
        if record.workspace.repo and is_repository(record.workspace.repo)
        else saved_entry.make_store(place.store)
    )
    refs = [(f"{place.ref}/work", commit), *((f"{place.ref}/{name}", tip) for name, tip in found.refs)]
    git.must("update-ref", "--stdin", input="".join(f"update {ref} {tip}\n" for ref, tip in refs).encode())
    if record.workspace.transfer != WORKTREE or repo != record.workspace.repo:
        try:
            _fetch_all(git, repo, place.ref)
        finally:
            saved_entry.forget_refs(git, place.ref)
    lfs.keep(git_dir, common_dir_of(repo), found.lfs)
    return _Kept(repo, commit, parent, branch, tuple(archives), tuple(modules), index, state)


def _fetch_all(git: Git, repo: str, below: str) -> None:
    """Copy all refs below one to the user's repository. git fetches nothing into a repository that has a damaged ref:
    then through a repository of ours with the same objects and all other refs."""
    spec, user = f"+{below}/*:{below}/*", Git.of_user(repo)
    try:
        user.fetch(git.directory, spec, own=git.own, doing="the agent's work could not be copied to a safe place")
    except CommandFailed:
        with uncommitted_files.raw_git(user) as other:
            lines = user.must("for-each-ref", "--format=%(refname) %(objectname)").split("\n")
            tips = dict(line.split(" ") for line in lines if line)
            kinds = user.must("cat-file", "--batch-check", input="\n".join(tips.values()).encode()).split("\n")
            whole = [name for name, kind in zip(tips, kinds, strict=True) if not kind.endswith(" missing")]
            if len(whole) == len(tips) and "ignoring broken ref" not in user.run("for-each-ref").error_text:
                raise
            other.must("update-ref", "--stdin", input="".join(f"create {x} {tips[x]}\n" for x in whole).encode())
            other.fetch(git.directory, spec, own=git.own)
            refs = other.must("for-each-ref", "--format=update %(refname) %(objectname)", f"{below}/").encode()
        user.must("update-ref", "--stdin", input=refs + b"\n")


def _keep_state(git: Git, git_dir: str, names: Sequence[str]) -> str:
    """What git wrote of operations, private refs and reflogs, as a tree."""
    if not names:
        return ""
    return uncommitted_files.dirty_tree(git, names, onto="", root=git_dir)


def _tree_of_blobs(git: Git, packed: Sequence[tuple[str, str]]) -> str:
    lines = "".join(f"100644 blob {blob}\t{number}\n" for number, (_, blob) in enumerate(packed))
    return git.must("mktree", input=lines.encode()) if lines else ""


def _commit_beside(git: Git, parts: Mapping[str, str], commits: Sequence[str]) -> list[str]:
    """A commit that holds these trees by their names, and these commits; none for nothing."""
    lines = "".join(f"040000 tree {tree}\t{name}\n" for name, tree in parts.items() if tree)
    if not lines and not commits:
        return []
    return [git.commit_tree(git.must("mktree", input=lines.encode()), commits, "What is beside the files\n")]
