"""What an agent has that is found nowhere else. The one definition of its work: see docs/design/003-safety-net.md."""

from __future__ import annotations

import os

from mngr.agent.record import Record
from mngr.named_tuples import NamedTuple
from mngr.system.git import Git
from mngr.system.process import CommandFailed
from mngr.system.state_dir import StateDir
from mngr.workspace import copy_git
from mngr.workspace.plan import NONE, RSYNC, WORKTREE
from mngr.workspace.work import commits as own_commits
from mngr.workspace.work import history, lfs, nested, plain, tree
from mngr.workspace.work.disk import look
from mngr.workspace.work.files import OWN_MARK
from mngr.workspace.work.git_files import common_dir_of, git_dir_of, has_repository, is_repository
from mngr.workspace.work.tree import OmittedPath


class UnsavedWork(NamedTuple):
    """`commits`, annotated `tags`, `changed` files and `modules` are work: nothing removes them unless it was told to,
    and then they are saved first. All else is saved along: `ignored` files, commits that only a reflog names
    (`left_behind`), the index where it is `staged`, objects of Git LFS, the `history` (conversation, recording,
    outcome). `left_out` is what is too large for that.

    `refs` are refs (name to object) that are not the same in the source repository, each entry of the stash as
    `stash/N`; `loose` commits that neither they nor HEAD hold. `repositories` are submodules and embedded repositories,
    of which those in `changed` have work of their own; `modules` are git directories of submodules that are not checked
    out and have commits of their own. With `unreadable`, why git cannot read the repository: all files count then."""

    commits: int = 0
    tags: int = 0
    changed: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    left_out: tuple[OmittedPath, ...] = ()
    refs: tuple[tuple[str, str], ...] = ()
    loose: tuple[str, ...] = ()
    left_behind: int = 0
    repositories: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    lfs: tuple[str, ...] = ()
    staged: bool = False
    history: bool = False
    unreadable: str = ""

    @property
    def any(self) -> bool:
        """Whether removing the workspace would lose work."""
        return bool(self.commits or self.tags or self.changed or self.modules)

    @property
    def along(self) -> bool:
        """Whether the workspace holds anything else to save."""
        return bool(self.ignored or self.left_behind or self.lfs)

    def describe(self) -> str:
        """What the work is, in words. Empty without any."""
        inner = [path for path in self.changed if path.endswith("/") or path in self.repositories]
        counts = (
            (self.commits, "commit", "commits", " that no other branch has"),
            (self.tags, "tag", "tags", ""),
            (len(self.changed) - len(inner), "uncommitted file", "uncommitted files", ""),
            (len(inner) + len(self.modules), "repository", "repositories", " inside with work of its own"),
        )
        parts = [f"{count} {one if count == 1 else many}{more}" for count, one, many, more in counts if count]
        return " and ".join(parts) + (" (git cannot read its repository)" if self.unreadable else "")

    def describe_left_out(self) -> str:
        """What is neither work nor saved, with its size."""
        return ", ".join(f"`{item.path}` ({item.megabytes:.0f} MB, ignored by git)" for item in self.left_out)


def measure(host: StateDir, record: Record, *, ignored_max_mb: float, whole: bool = False) -> UnsavedWork:
    """Measure it, without changing anything. A workspace that is gone has nothing left but commits, one in place
    nothing but its history. With `whole`, also what is found elsewhere too: all files of a plain copy, all repositories
    in it, and all refs of a repository of its own. Raises when something cannot be read."""
    found = _measure(host, record, ignored_max_mb, whole)
    return found._replace(history=history.exists(host, record))


def _measure(host: StateDir, record: Record, megabytes: float, whole: bool) -> UnsavedWork:
    workspace = record.workspace
    if workspace.transfer == NONE:
        return UnsavedWork()
    if not os.path.isdir(workspace.work_dir):
        return _of_lost_worktree(record)
    if workspace.repo is None:
        source = "" if whole else workspace.source
        return UnsavedWork(changed=plain.differing_files(workspace.work_dir, source, skip=host.dir))
    if not own_repository(record):
        # The agent removed its own repository, or the one it belongs to is gone: all that is left are files.
        files = plain.differing_files(workspace.work_dir, "", skip=host.dir)
        return _of_lost_worktree(record)._replace(changed=files)
    try:
        return _of_repository(copy_git.of(host, record), record, megabytes, whole)
    except CommandFailed as error:
        if whole:
            raise
        files = plain.differing_files(workspace.work_dir, "", skip=host.dir)
        return _of_lost_worktree(record)._replace(changed=files, unreadable=str(error))


def _of_repository(git: Git, record: Record, megabytes: float, whole: bool) -> UnsavedWork:
    directory = record.workspace.work_dir
    git_dir = git_dir_of(directory)
    found = tree.look(git, modes=_keeps_modes(record))
    base = record.workspace.base_commit or ""
    inner = nested.survey(git, git_dir, found.submodules, whole=whole, base=base)
    changed = dict.fromkeys([*found.changed, *inner.changed])
    kept, left = tree.ignored_files(directory, [*found.ignored, *inner.ignored], megabytes=megabytes)
    commits = own_commits.measure(
        git, git_dir, record, found.head, all_refs=whole and record.workspace.transfer != WORKTREE
    )
    return UnsavedWork(
        **commits._asdict(),
        changed=tuple(changed),
        ignored=tuple(path for path in kept if path not in changed),
        left_out=left,
        repositories=(*inner.changed, *inner.others),
        modules=inner.modules,
        lfs=lfs.own_objects(git_dir, record),
        staged=found.staged,
    )


def _of_lost_worktree(record: Record) -> UnsavedWork:
    """The commits of a worktree whose directory, or the `.git` file in it, is gone, and that no branch has."""
    workspace = record.workspace
    if workspace.transfer != WORKTREE or workspace.repo is None or not is_repository(workspace.repo):
        return UnsavedWork()
    name = os.path.basename(workspace.work_dir)
    private = os.path.join(common_dir_of(workspace.repo), "worktrees", name)
    if not os.path.isfile(os.path.join(private, "HEAD")):
        return UnsavedWork()
    git = Git.of_user(workspace.repo)
    head = git.commit_of(f"worktrees/{name}/HEAD")
    found = own_commits.measure(git, private, record, head, branch_stays=True)
    loose = (*found.loose, head) if head and found.commits else found.loose
    return UnsavedWork(**found._replace(loose=loose)._asdict())


def _keeps_modes(record: Record) -> bool:
    """Whether the work dir is where files can be programs or not: ours is none. A copy of all files has them as the
    user's setting wants."""
    mark = look(os.path.join(record.workspace.work_dir, OWN_MARK))
    if mark is None or mark.st_mode & 0o111:
        return False
    if record.workspace.transfer != RSYNC:
        return True
    said = Git.of_user(record.workspace.repo or "").run("config", "--type=bool", "core.fileMode")
    return said.ok and said.text == "true"


def own_repository(record: Record) -> bool:
    """Whether git works in the agent's workspace with the repository it was made with. A worktree that the agent turned
    into a repository of its own has another one."""
    if record.workspace.repo is None or not has_repository(record.workspace.work_dir):
        return False
    return record.workspace.transfer != WORKTREE or os.path.isfile(os.path.join(record.workspace.work_dir, ".git"))
