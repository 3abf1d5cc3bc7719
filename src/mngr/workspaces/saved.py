"""The safety net: work that would go is kept under refs, with an entry that says whose it was and why."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from mngr import files
from mngr.agents import record as records
from mngr.agents.record import Record, timestamp
from mngr.errors import MngrError, NotFoundError
from mngr.names import suggest
from mngr.process import checked
from mngr.records import TYPE_CHECKING, NamedTuple
from mngr.tools.git import Git
from mngr.workspaces import make, tree
from mngr.workspaces.plan import MIRROR, WORKTREE, Plan
from mngr.workspaces.work import Work, has_repository

if TYPE_CHECKING:
    from typing import Any

    from mngr.hosts.host import Host


class Entry(NamedTuple):
    """One saved piece of work. `commit` holds the uncommitted files on top of `parent`; they are the same commit when
    there were none. `repo` is where the refs are: the source repository, or our own store for plain files."""

    id: str
    name: str
    reason: str
    saved_at: str
    repo: str
    ref: str
    commit: str
    parent: str
    commits: int
    changed: tuple[str, ...]
    ignored: tuple[str, ...]
    left_out: tuple[tuple[str, float], ...]
    refs: tuple[tuple[str, str], ...]
    agent: Record | None
    branch: str | None = None

    @property
    def plain_files(self) -> bool:
        """Whether it holds files only, without a history of their own."""
        return not self.ref.endswith("/work")


def entries(host: Host) -> list[Entry]:
    """All of them, oldest first. One that cannot be read is named in an error, not skipped."""
    found = [_read(host, name) for name in host.entries(_dir(host)) if not name.endswith(".git")]
    return sorted((entry for entry in found if entry), key=lambda entry: entry.saved_at)


def find(host: Host, name: str) -> Entry:
    """By its id, or the newest one of an agent of that name."""
    all_entries = entries(host)
    matching = [entry for entry in all_entries if entry.id == name] or [
        entry for entry in all_entries if entry.name == name
    ]
    if matching:
        return matching[-1]
    raise NotFoundError(
        f"no saved work is called `{name}`",
        hint=suggest(name, [entry.id for entry in all_entries], "one") or "`mngr saved list` shows all",
    )


def save_agent(host: Host, record: Record, found: Work, reason: str) -> Entry | None:
    """Keep what `found` names. Nothing to keep gives None. The workspace itself is not changed."""
    if not (found.any or found.ignored):
        return None
    entry_id, number = _reserve(host, record.name)
    paths = [*found.changed, *found.ignored]
    own_git = record.repo is not None and has_repository(record.work_dir)
    message = f"Work of agent {record.name}, saved on {reason}\n"
    branch = None
    if not own_git:
        base = record.source if record.repo is None else ""
        repo, ref, commit, parent = _save_plain(host, entry_id, record.work_dir, base, paths, message)
    else:
        git = Git(host, record.work_dir)
        parent = git.commit_of("HEAD") or git.commit_tree(git.must("write-tree"), [], "Nothing was committed\n")
        commit = git.commit_tree(tree.dirty_tree(git, paths), [parent], message) if paths else parent
        repo = record.repo if record.repo and os.path.isdir(record.repo) else _store(host)
        ref = f"refs/mngr/saved/{record.name}/{number}"
        refs = [(f"{ref}/work", commit), *((f"{ref}/{name}", tip) for name, tip in found.refs)]
        branch = git.current_branch()
        _keep(host, git, repo, refs, own_repository=record.transfer != WORKTREE or repo != record.repo)
        ref = f"{ref}/work"
    entry = Entry(
        id=entry_id,
        name=record.name,
        reason=reason,
        saved_at=timestamp(),
        repo=repo,
        ref=ref,
        commit=commit,
        parent=parent,
        commits=found.commits,
        changed=found.changed,
        ignored=found.ignored,
        left_out=tuple((item.path, item.megabytes) for item in found.left_out),
        refs=found.refs,
        agent=record,
        branch=branch,
    )
    _write(host, entry)
    return entry


def save_files(host: Host, name: str, directory: str, paths: Sequence[str], reason: str) -> Entry:
    """Keep some files of any directory as they are now, before something writes over them."""
    entry_id, _ = _reserve(host, name)
    repo, ref, commit, parent = _save_plain(host, entry_id, directory, "", paths, f"Files saved on {reason}\n")
    entry = Entry(entry_id, name, reason, timestamp(), repo, ref, commit, parent, 0, tuple(paths), (), (), (), None)
    _write(host, entry)
    return entry


def restore_into(host: Host, entry: Entry, directory: str, branch: str | None) -> Plan:
    """Make the workspace again at `directory`, as it was: same kind, its branch, its refs, its uncommitted files."""
    from mngr.tools import git as git_tool

    if entry.plain_files:
        return _restore_plain(host, entry, directory)
    agent = entry.agent
    assert agent is not None
    wanted = branch or entry.branch or agent.branch or f"mngr/{entry.name}"
    if entry.repo != agent.repo:
        return _restore_alone(host, entry, directory, wanted)
    repo = git_tool.look(host, entry.repo)
    if repo is None:
        raise MngrError(f"the repository of this saved work, `{entry.repo}`, is gone")
    source = Git(host, entry.repo)
    if agent.transfer == WORKTREE:
        for ref, tip in entry.refs:
            if source.commit_of(ref) is None:
                source.must("update-ref", ref, tip)
    name, create = _branch_for(source, wanted, entry, explicit=branch is not None)
    plan = Plan(
        agent.transfer,
        repo.top,
        repo,
        branch=name,
        create_branch=create,
        base_branch=agent.base_branch,
        start=entry.parent,
    )
    make.make(host, plan, directory, {})
    try:
        _bring_back(Git(host, directory), entry, name)
    except BaseException:
        make.unmake(host, plan, directory)
        raise
    return plan


def _restore_alone(host: Host, entry: Entry, directory: str, branch: str) -> Plan:
    """A repository of its own, from our store: the one it came from was gone when the work was saved."""
    assert entry.agent is not None
    plan = Plan(MIRROR, directory, branch=branch, create_branch=True, start=entry.parent)
    try:
        checked(host.run(["git", "init", "-q", directory], timeout=60), "git could not make a repository")
        git = Git(host, directory)
        kept = entry.ref.removesuffix("/work")
        git.must("fetch", "-q", "--no-tags", "--no-write-fetch-head", entry.repo, f"+{kept}/*:{kept}/*")
        git.must("checkout", "-q", "-B", branch, entry.parent, doing="git could not check out the files")
        _bring_back(git, entry, branch)
        for ref in git.must("for-each-ref", "--format=%(refname)", kept).split("\n"):
            git.must("update-ref", "-d", ref)
    except BaseException:
        files.remove_tree(directory)
        raise
    return plan


def _bring_back(git: Git, entry: Entry, branch: str) -> None:
    """The uncommitted files, and in a repository of its own the other refs and the stash."""
    tree.write_files(git, entry.commit, entry.parent, git.directory)
    assert entry.agent is not None
    if entry.agent.transfer == WORKTREE:
        return
    for ref, tip in reversed(entry.refs):  # the stash is a stack: the newest comes last
        if ref.startswith("stash/"):
            git.must("stash", "store", "-m", git.must("log", "-1", "--format=%s", tip), tip)
        elif ref != f"refs/heads/{branch}":
            git.must("update-ref", ref, tip)


def drop(host: Host, entry: Entry) -> None:
    """Forget saved work for good: its refs and its entry."""
    git = Git(host, entry.repo)
    prefix = entry.ref.removesuffix("/work")
    refs = git.run("for-each-ref", "--format=%(refname)", prefix)
    for ref in filter(None, refs.text.split("\n")):
        git.run("update-ref", "-d", ref)
    host.remove(os.path.join(_dir(host), entry.id))


def agent_dir(host: Host, entry: Entry) -> str:
    """Where the state directory of a destroyed agent is kept."""
    return os.path.join(_dir(host), entry.id, "agent")


def _save_plain(
    host: Host, entry_id: str, directory: str, source: str, paths: Sequence[str], message: str
) -> tuple[str, str, str, str]:
    """Plain files go into a repository of our own: first as the source has them, then as they are in the directory."""
    store = _store(host)
    before = Git(host, source, git_dir=store) if source and os.path.isdir(source) else None
    after = Git(host, directory, git_dir=store)
    empty = after.must("mktree", input=b"")
    parent = after.commit_tree(tree.dirty_tree(before, paths) if before else empty, [], f"Before: {message}")
    commit = after.commit_tree(tree.dirty_tree(after, paths), [parent], message)
    ref = f"refs/mngr/saved/{entry_id}"
    after.must("update-ref", ref, commit)
    return store, ref, commit, parent


def _restore_plain(host: Host, entry: Entry, directory: str) -> Plan:
    agent = entry.agent
    source = agent.source if agent is not None and agent.repo is None else ""
    plan = Plan("rsync", source or directory)
    if source and os.path.isdir(source):
        make.make(host, plan, directory, {})
    else:
        os.makedirs(directory, exist_ok=True)
    tree.write_files(Git(host, directory, git_dir=entry.repo), entry.commit, entry.parent, directory)
    return plan


def _keep(host: Host, git: Git, repo: str, refs: Sequence[tuple[str, str]], *, own_repository: bool) -> None:
    """Point refs of `repo` at commits; from a repository of its own the objects travel too."""
    if not own_repository:
        for ref, commit in refs:
            git.must("update-ref", ref, commit)
        return
    for ref, commit in refs:
        git.must("update-ref", ref, commit)
    try:
        keep = Git(host, repo)
        keep.must(
            "fetch",
            "-q",
            "--no-tags",
            "--no-write-fetch-head",
            git.directory,
            *(f"+{ref}:{ref}" for ref, _ in refs),
            doing="the agent's work could not be copied to a safe place",
        )
    finally:
        for ref, _ in refs:
            git.run("update-ref", "-d", ref)


def _branch_for(git: Git, wanted: str, entry: Entry, *, explicit: bool) -> tuple[str, bool]:
    """The branch to restore to: the old one if it is free or still where it was, else one beside it."""
    at = git.commit_of(f"refs/heads/{wanted}")
    if at is None:
        return wanted, True
    if at == entry.parent and f"worktree {wanted}" not in _checked_out(git):
        return wanted, False
    if explicit:
        raise MngrError(
            f"a branch called `{wanted}` exists already and is elsewhere or in use",
            hint="choose another with `--branch`",
        )
    return f"{wanted}-{entry.id.rpartition('-')[2]}-restored", True


def _checked_out(git: Git) -> set[str]:
    lines = git.must("worktree", "list", "--porcelain").split("\n")
    return {"worktree " + line.removeprefix("branch refs/heads/") for line in lines if line.startswith("branch ")}


def _store(host: Host) -> str:
    path = os.path.join(_dir(host), "files.git")
    if not os.path.isdir(os.path.join(path, "objects")):
        checked(
            host.run(["git", "init", "-q", "--bare", path], timeout=60), "a store for saved files could not be made"
        )
    return path


def _dir(host: Host) -> str:
    return os.path.join(host.dir, "saved")


def _reserve(host: Host, name: str) -> tuple[str, int]:
    """A free id `NAME-N`, taken by making its directory."""
    number = 1
    while True:
        try:
            os.mkdir(os.path.join(_dir(host), f"{name}-{number}"), 0o700)
            return f"{name}-{number}", number
        except FileExistsError:
            number += 1


def _write(host: Host, entry: Entry) -> None:
    value = {**entry._asdict(), "agent": json.loads(records.dump(entry.agent)) if entry.agent else None}
    host.write(os.path.join(_dir(host), entry.id, "entry.json"), files.json_bytes(value, indent=1))


def _read(host: Host, name: str) -> Entry | None:
    path = os.path.join(_dir(host), name, "entry.json")
    try:
        value: dict[str, Any] = json.loads(host.read(path).decode("utf-8", "surrogateescape"))
        agent = records.parse(json.dumps(value["agent"]).encode(), path) if value["agent"] else None
        pairs = {key: tuple(tuple(item) for item in value[key]) for key in ("left_out", "refs")}
        lists = {key: tuple(value[key]) for key in ("changed", "ignored")}
        fields = {key: value[key] for key in Entry._fields if key in value or key not in Entry._field_defaults}
        return Entry(**fields | pairs | lists | {"agent": agent})
    except FileNotFoundError:
        return None  # being saved at this moment
    except (ValueError, KeyError, TypeError) as error:
        raise MngrError(
            f"`{path}` cannot be read: {error}", hint="the work itself is safe under its ref; repair or move the file"
        ) from None
