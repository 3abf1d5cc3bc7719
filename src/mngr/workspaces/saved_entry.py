"""Work kept under refs, with an entry that says whose it was: what the safety net and snapshots have in common."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mngr import files, process
from mngr.agents import record as records
from mngr.agents.record import Record
from mngr.errors import MngrError
from mngr.hosts.host import Host
from mngr.interrupts import held
from mngr.process import checked
from mngr.tools import git as git_tool
from mngr.tools.git import Git
from mngr.workspaces import uncommitted_files
from mngr.workspaces.plan import MIRROR, RSYNC, WORKTREE, Plan
from mngr.workspaces.unsaved_work import UnsavedWork, has_repository, own_repository
from mngr.workspaces.workspace import Workspace


class SavedEntry(NamedTuple):
    """One kept piece of work. `commit` holds the uncommitted files on top of `parent`; they are the same commit when
    there were none. `repo` is where the refs are: the source repository, or our own store for plain files. A `whole`
    one holds every file and ref of the workspace, so that what is not in it was not there; `private` are files that
    only their owner may read."""

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
    whole: bool = False
    private: tuple[str, ...] = ()

    @property
    def plain_files(self) -> bool:
        """Whether it holds files only, without a history of their own."""
        return not self.ref.endswith("/work")

    @property
    def refs_below(self) -> str:
        """Where all of its refs are."""
        return self.ref.removesuffix("/work")


class EntryPlace(NamedTuple):
    """Where new work goes: the entry's id, its refs, and the repository for what belongs to no other."""

    id: str
    ref: str
    store: str


def free_ref(record: Record, wanted: str) -> str:
    """This ref, or one with a number after it: an agent of the same name in another state directory may keep its work
    in the same repository."""
    if record.repo is None or not has_repository(record.repo):
        return wanted
    parent, _, name = wanted.rpartition("/")
    refs = Git(record.repo).must("for-each-ref", "--format=%(refname)", f"{parent}/").split("\n")
    taken = {ref.removeprefix(f"{parent}/").partition("/")[0] for ref in refs}
    names = (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
    return f"{parent}/{next(name for name in names if name not in taken)}"


def keep_workspace(
    place: EntryPlace, record: Record, found: UnsavedWork, *, reason: str, at: str, whole: bool = False
) -> SavedEntry:
    """Put what `found` names under refs. The workspace itself is not changed."""
    paths = [*found.changed, *found.ignored]
    message = f"Work of agent {record.name}, {'a snapshot' if whole else f'saved on {reason}'}\n"
    branch = None
    if own_repository(record):
        repo, commit, parent, branch = _keep_repository(place, record, found, message, whole)
        ref = f"{place.ref}/work"
    else:
        base = record.source if record.repo is None and not whole else ""
        commit, parent = keep_plain(place, record.work_dir, base, paths, message)
        repo, ref = place.store, place.ref
    return SavedEntry(
        id=place.id,
        name=record.name,
        reason=reason,
        saved_at=at,
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
        whole=whole,
        private=tuple(uncommitted_files.private_files(record.work_dir, paths)),
    )


def keep_plain(place: EntryPlace, directory: str, source: str, paths: Sequence[str], message: str) -> tuple[str, str]:
    """Plain files go into a repository of our own: first as the source has them, then as they are in the directory.
    Returns both commits, the later one first."""
    make_store(place.store)
    before = Git(source, git_dir=place.store) if source and os.path.isdir(source) else None
    after = Git(directory, git_dir=place.store)
    empty = after.must("mktree", input=b"")
    parent = after.commit_tree(
        uncommitted_files.dirty_tree(before, paths) if before else empty, [], f"Before: {message}"
    )
    commit = after.commit_tree(uncommitted_files.dirty_tree(after, paths), [parent], message)
    after.must("update-ref", place.ref, commit)
    return commit, parent


def _keep_repository(
    place: EntryPlace, record: Record, found: UnsavedWork, message: str, whole: bool
) -> tuple[str, str, str, str | None]:
    git = Git(record.work_dir)
    branch = git.current_branch()
    parent = git.commit_of("HEAD") or git.commit_tree(git.must("write-tree"), [], "Nothing was committed\n")
    paths = [*found.changed, *found.ignored, *(uncommitted_files.convertible(git) if whole else ())]
    commit = git.commit_tree(uncommitted_files.dirty_tree(git, paths), [parent], message) if paths else parent
    repo = record.repo if record.repo and has_repository(record.repo) else make_store(place.store)
    refs = [(f"{place.ref}/work", commit), *((f"{place.ref}/{name}", tip) for name, tip in found.refs)]
    git.must("update-ref", "--stdin", input="".join(f"update {ref} {tip}\n" for ref, tip in refs).encode())
    if record.transfer != WORKTREE or repo != record.repo:
        try:
            Git(repo).must(
                "fetch",
                "-q",
                "--no-tags",
                "--no-write-fetch-head",
                git.directory,
                f"+{place.ref}/*:{place.ref}/*",
                doing="the agent's work could not be copied to a safe place",
            )
        finally:
            forget_refs(git, place.ref)
    return repo, commit, parent, branch


def restore_into(host: Host, entry: SavedEntry, directory: str, branch: str | None) -> Workspace:
    """Make the workspace again at a new `directory`, as it was: same kind, its branch, its refs, its uncommitted
    files. On failure nothing is left behind."""
    if entry.plain_files:
        return _restore_plain(host, entry, directory)
    agent = entry.agent
    assert agent is not None
    wanted = branch or entry.branch or agent.branch or f"mngr/{entry.name}"
    if entry.repo != agent.repo:
        return _restore_alone(host, entry, directory, wanted)
    repo = git_tool.look(entry.repo)
    if repo is None:
        raise MngrError(f"the repository of this saved work, `{entry.repo}`, is gone")
    source = Git(entry.repo)
    if agent.transfer == WORKTREE:
        for ref, tip in entry.refs:
            if source.commit_of(ref) is None:
                source.must("update-ref", ref, tip)
    if entry.whole and agent.transfer != WORKTREE:
        name, create = wanted, True  # its repository is its own, and so are its branches
    else:
        name, create = _branch_for(source, wanted, entry, explicit=branch is not None)
    plan = Plan(
        agent.transfer,
        repo.top,
        repo,
        branch=name,
        create_branch=create,
        base_branch=agent.base_branch,
        start=entry.parent,
        copied_objects=bool(agent.sandbox),
    )
    workspace = Workspace(plan, directory)
    workspace.make(host, {})
    try:
        git = Git(directory)
        if agent.transfer != WORKTREE:
            bring_refs(git, entry, name)
        bring_files(git, entry)
    except BaseException:
        with held():
            workspace.unmake(host)
        raise
    return workspace


def _restore_alone(host: Host, entry: SavedEntry, directory: str, branch: str) -> Workspace:
    """A repository of its own, from our store: the one it came from was gone when the work was saved."""
    workspace = Workspace(Plan(MIRROR, directory, branch=branch, create_branch=True, start=entry.parent), directory)
    try:
        workspace.claim()
        checked(process.run(["git", "init", "-q", directory], timeout=60), "git could not make a repository")
        git = Git(directory)
        fetch_kept(git, entry)
        git.must("checkout", "-q", "-B", branch, entry.parent, doing="git could not check out the files")
        bring_refs(git, entry, branch)
        bring_files(git, entry)
        forget_refs(git, entry.refs_below)
    except BaseException:
        with held():
            workspace.unmake(host)
        raise
    workspace.release()
    return workspace


def _restore_plain(host: Host, entry: SavedEntry, directory: str) -> Workspace:
    agent = entry.agent
    source = agent.source if agent is not None and agent.repo is None else ""
    workspace = Workspace(Plan(RSYNC, source or directory), directory)
    try:
        if source and os.path.isdir(source) and not entry.whole:
            workspace.make(host, {})
        else:
            workspace.claim()
        bring_files(Git(directory, git_dir=entry.repo), entry)
    except BaseException:
        with held():
            workspace.unmake(host)
        raise
    workspace.release()
    return workspace


def bring_files(git: Git, entry: SavedEntry, spare: Sequence[str] = ()) -> None:
    """The uncommitted files, over those of the last commit; of a whole entry nothing else stays, except what is too
    large to be kept and what is below `spare`."""
    if entry.whole:
        uncommitted_files.prune(git, entry.commit, [*spare, *(path for path, _ in entry.left_out)])
    converted: list[str] = []
    if entry.whole and not entry.plain_files:
        git.must("reset", "-q", "--hard", doing="git could not check out the files")
        converted = uncommitted_files.convertible(git)
    uncommitted_files.write_files(git, entry.commit, entry.parent, set(entry.private), converted)
    # git takes a file of another size for a changed one, without a look at its content.
    if converted and (same := set(git.changed_paths()).intersection(converted).difference(entry.changed)):
        git.must("update-index", "-z", "--stdin", input=b"".join(os.fsencode(path) + b"\0" for path in same))


def bring_refs(git: Git, entry: SavedEntry, branch: str | None) -> None:
    """The branches, tags and stash of a repository of its own, besides the branch that is checked out. A whole entry
    leaves no others."""
    refs = {ref: tip for ref, tip in entry.refs if not ref.startswith("stash/")}
    stashes = [tip for ref, tip in sorted(entry.refs, key=_stash_number) if ref.startswith("stash/")]
    current = f"refs/heads/{branch}" if branch else ""
    if entry.whole:
        present = git.must("for-each-ref", "--format=%(refname)").split("\n")
        foreign = ("refs/remotes/", "refs/mngr/")
        extra = [ref for ref in present if ref and ref not in refs and ref != current and not ref.startswith(foreign)]
        if "refs/stash" in extra:
            git.must("stash", "clear")
            extra.remove("refs/stash")
        git.must("update-ref", "--stdin", input="".join(f"delete {ref}\n" for ref in extra).encode())
    lines = [f"update {ref} {tip}\n" for ref, tip in refs.items() if ref != current]
    git.must("update-ref", "--stdin", input="".join(lines).encode())
    for tip in reversed(stashes):  # a stack: the newest comes last
        git.must("stash", "store", "-m", git.must("log", "-1", "--format=%s", tip), tip)


def _stash_number(item: tuple[str, str]) -> int:
    head, _, number = item[0].partition("/")
    return int(number) if head == "stash" else -1


def fetch_kept(git: Git, entry: SavedEntry) -> None:
    """Get an entry's objects and refs from where they are kept. `forget_refs` removes the refs."""
    below = f"{entry.refs_below}/*"
    git.must(
        "fetch",
        "-q",
        "--no-tags",
        "--no-write-fetch-head",
        entry.repo,
        f"+{below}:{below}",
        doing="the kept work could not be read",
    )


def forget_refs(git: Git, below: str) -> None:
    refs = git.run("for-each-ref", "--format=%(refname)", below).text.split("\n")
    lines = "".join(f"delete {ref}\n" for ref in refs if ref)
    if lines:
        git.run("update-ref", "--stdin", input=lines.encode())


def checked_out(git: Git) -> dict[str, str]:
    """Branches that a work tree has, each with the path of that."""
    found, path = {}, ""
    for line in git.must("worktree", "list", "--porcelain").split("\n"):
        word, _, value = line.partition(" ")
        path = value if word == "worktree" else path
        if word == "branch":
            found[value.removeprefix("refs/heads/")] = path
    return found


def make_store(path: str) -> str:
    """A repository of ours, for what belongs to no other. Twice is safe."""
    if not os.path.isdir(os.path.join(path, "objects")):
        checked(
            process.run(["git", "init", "-q", "--bare", path], timeout=60), "a store for kept files could not be made"
        )
    return path


def write(host: Host, directory: str, entry: SavedEntry) -> None:
    value = {**entry._asdict(), "agent": json.loads(records.dump(entry.agent)) if entry.agent else None}
    host.write(os.path.join(directory, "entry.json"), files.json_bytes(value, indent=1), durable=True)


def read(host: Host, directory: str) -> SavedEntry | None:
    """None for one that is being written at this moment."""
    path = os.path.join(directory, "entry.json")
    try:
        value: dict[str, Any] = json.loads(host.read(path).decode("utf-8", "surrogateescape"))
        records.seconds_of(value["saved_at"])
        agent = records.parse(json.dumps(value["agent"]).encode(), path) if value["agent"] else None
        pairs = {key: tuple(tuple(item) for item in value[key]) for key in ("left_out", "refs")}
        lists = {key: tuple(value.get(key, ())) for key in ("changed", "ignored", "private")}
        fields = {
            key: value[key] for key in SavedEntry._fields if key in value or key not in SavedEntry._field_defaults
        }
        return SavedEntry(**fields | pairs | lists | {"agent": agent})
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError) as error:
        raise MngrError(
            f"`{path}` cannot be read: {error}", hint="the work itself is safe under its ref; repair or move the file"
        ) from None


def survey(host: Host, directory: str, ids: Iterable[str]) -> tuple[list[SavedEntry], dict[str, MngrError]]:
    """The entries with these ids, oldest first, and by their ids the errors of those that cannot be read."""
    found: list[SavedEntry] = []
    broken: dict[str, MngrError] = {}
    for entry_id in ids:
        try:
            if entry := read(host, os.path.join(directory, entry_id)):
                found.append(entry)
        except MngrError as error:
            broken[entry_id] = error
    return sorted(found, key=lambda entry: entry.saved_at), broken


def _branch_for(git: Git, wanted: str, entry: SavedEntry, *, explicit: bool) -> tuple[str, bool]:
    """The branch to restore to: the old one if it is free or still where it was, else one beside it."""
    at = git.commit_of(f"refs/heads/{wanted}")
    if at is None:
        return wanted, True
    if at == entry.parent and wanted not in checked_out(git):
        return wanted, False
    if explicit:
        raise MngrError(
            f"a branch called `{wanted}` exists already and is elsewhere or in use",
            hint="choose another with `--branch`",
        )
    beside = f"{wanted}-{entry.id.replace('/', '-').rpartition('-')[2]}-restored"
    return free_branch(git, beside), True


def free_branch(git: Git, wanted: str) -> str:
    """This name, or with a number after it, that no branch has."""
    number, name = 2, wanted
    while git.has_branch(name):
        name, number = f"{wanted}-{number}", number + 1
    return name
