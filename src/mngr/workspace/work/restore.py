"""Bring kept work back: as a workspace at a new path, or over what is left of one at its old path. Saves nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.system import git as git_tool
from mngr.system import inside, process, tree_removal
from mngr.system.git import Git
from mngr.system.interrupts import held
from mngr.system.process import checked
from mngr.system.state_dir import StateDir
from mngr.workspace import copy_git
from mngr.workspace.plan import COPIED, MIRROR, NONE, RSYNC, WORKTREE, Plan
from mngr.workspace.work import entry as saved_entry
from mngr.workspace.work import files as uncommitted_files
from mngr.workspace.work import git_state, staged_index
from mngr.workspace.work.entry import SavedEntry
from mngr.workspace.work.git_files import git_dir_of, is_repository
from mngr.workspace.work.measure import own_repository
from mngr.workspace.workspace import Workspace, clone_repository, copy_files, repo_lock, task_dir


def relink(record: Record) -> None:
    """Give a worktree its lost `.git` file back, if git still knows it. Then what it held can be told from git."""
    if (
        record.workspace.transfer != WORKTREE
        or record.workspace.repo is None
        or os.path.lexists(os.path.join(record.workspace.work_dir, ".git"))
    ):
        return
    os.makedirs(record.workspace.work_dir, exist_ok=True)
    if os.path.isdir(record.workspace.repo):
        Git.of_user(record.workspace.repo).run("worktree", "repair")


def endangered(entry: SavedEntry, record: Record) -> tuple[tuple[str, str], ...]:
    """The branch that putting back would move away from commits that nothing else holds, with its tip."""
    if (
        record.workspace.transfer != WORKTREE
        or record.workspace.repo is None
        or entry.branch is None
        or entry.plain_files
    ):
        return ()
    git = Git.of_user(record.workspace.repo)
    ref = f"refs/heads/{entry.branch}"
    tip = git.commit_of(ref)
    if tip is None or git.ok("merge-base", "--is-ancestor", tip, entry.parent):
        return ()
    return () if git.is_shared(tip, besides=entry.branch) else ((ref, tip),)


def put_back(host: StateDir, entry: SavedEntry, record: Record, keep: Sequence[str]) -> tuple[str | None, str]:
    """Make the work dir what it was: files, branch, and the refs of a repository of its own. What is below `keep`
    stays. Returns the branch, and what a person should know about it. Twice is safe, also after half of it."""
    os.makedirs(record.workspace.work_dir, exist_ok=True)
    if entry.plain_files:
        bring_files(Git.of_store(record.workspace.work_dir, git_dir=entry.repo), entry, keep)
        _task_dir(record.workspace.work_dir)
        return None, ""
    git = copy_git.of(host, record)
    if not own_repository(record):
        tree_removal.remove_tree(os.path.join(record.workspace.work_dir, ".git"))
        _make_repository(host, entry, record)
    _end_operations(git)
    if record.workspace.transfer == WORKTREE:
        assert record.workspace.repo is not None
        with repo_lock(host, _common_dir(record.workspace.repo)):
            branch, note = _place_worktree(git, entry, Git.of_user(record.workspace.repo))
    else:
        branch, note = entry.branch, ""
        fetch_kept(git, entry)
        git.must("update-ref", "--no-deref", "HEAD", entry.parent)
        bring_refs(git, entry, None)
        if branch is not None:
            git.must("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    bring_files(git, entry, keep, ("logs/HEAD",))
    if record.workspace.transfer != WORKTREE:
        saved_entry.forget_refs(git, entry.refs_below)
    _task_dir(record.workspace.work_dir)
    return branch, note


def _make_repository(host: StateDir, entry: SavedEntry, record: Record) -> None:
    common = _common_dir(record.workspace.repo or "")
    if record.workspace.transfer == WORKTREE:
        if not common:
            raise MngrError(f"the repository of `{record.name}`, `{record.workspace.repo}`, is gone")
        relink(record)
        if not own_repository(record):
            tree_removal.empty_directory(
                record.workspace.work_dir
            )  # all of it is saved: without git, no file counts as ignored
            with repo_lock(host, common):
                words = ["worktree", "add", "-q", "--no-checkout", "--detach", record.workspace.work_dir, entry.parent]
                Git.of_user(record.workspace.repo or "").must(*words, doing="git could not make the worktree")
    elif not common or record.workspace.repo is None:
        _init(record.workspace.work_dir)
    elif record.workspace.transfer == MIRROR:
        how = COPIED if record.spec.sandbox else ""
        clone_repository(record.workspace.repo, common, record.workspace.work_dir, how, start=entry.parent)
    else:
        copy_files(host, record.workspace.repo, record.workspace.work_dir, git=True)


def _place_worktree(git: Git, entry: SavedEntry, repository: Git) -> tuple[str | None, str]:
    """Point HEAD where it was. A branch that another work tree has is not moved: a new one stands in for it."""
    git.must("update-ref", "--no-deref", "HEAD", entry.parent)
    _add_refs(git, entry)
    if entry.branch is None:
        return None, ""
    branch, note = entry.branch, ""
    at = git.commit_of(f"refs/heads/{branch}")
    place = checked_out(repository).get(branch)
    if place is not None:
        branch = free_branch(git, f"{entry.branch}-restored")
        note = f"branch {entry.branch} is checked out in {place} and stays where it is; the work is on {branch}"
    elif at not in (None, entry.parent):
        note = f"branch {branch} was at {(at or '')[:10]} and is at {entry.parent[:10]} again"
    git.must("update-ref", f"refs/heads/{branch}", entry.parent)
    git.must("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    return branch, note


def _end_operations(git: Git) -> None:
    """Forget a rebase or a series of picks that is not finished: it would continue in another history."""
    git_dir = git_dir_of(git.directory)
    for path in filter(git_state.is_operation, git_state.read(git_dir).files):
        os.unlink(os.path.join(git_dir, path))
    for name in ("rebase-merge", "rebase-apply", "sequencer"):
        tree_removal.remove_tree(os.path.join(git_dir, name))


def _common_dir(repo: str) -> str:
    if not os.path.isdir(repo):
        return ""
    found = Git.of_user(repo).run("rev-parse", "--path-format=absolute", "--git-common-dir")
    return found.text if found.ok else ""


def _init(directory: str) -> None:
    checked(process.run(["git", "init", "-q", directory], timeout=60), "git could not make a repository")


def restore_into(
    host: StateDir,
    entry: SavedEntry,
    directory: str,
    branch: str | None,
    planned: Callable[[Plan], object] = lambda plan: None,
) -> Workspace:
    """Make the workspace again at a new `directory`, as it was: same kind, its branch, its refs, its uncommitted
    files. `planned` is called with the plan before anything is made, and again if that turns out otherwise. On failure
    nothing is left behind."""
    with host.locked("restore", timeout=300, what="another restore"):  # two would take the same branch for a free one
        plan = _plan(entry, directory, branch)
        planned(plan)
        workspace = Workspace(plan, directory)
        lives = entry.agent is not None and os.path.isdir(entry.agent.workspace.work_dir)  # and has the branch
        try:
            _restore_into(host, entry, workspace, same_branch=branch is None and not lives)
            if plan.transfer != NONE:
                _task_dir(directory)
            if workspace.plan is not plan:
                planned(workspace.plan)
        except BaseException:
            with held():
                workspace.unmake(host)
            raise
        return workspace


def _restore_into(host: StateDir, entry: SavedEntry, workspace: Workspace, *, same_branch: bool) -> None:
    plan, directory = workspace.plan, workspace.directory
    detached = entry.branch is None and same_branch
    if plan.transfer == NONE:
        return
    if plan.source == directory:
        workspace.claim()
    else:
        workspace.make(host, {}, task=False)
    if entry.plain_files:
        bring_files(Git.of_store(directory, git_dir=entry.repo), entry)
        return
    repo = plan.repo.home if plan.repo is not None else None
    git = copy_git.at(host, directory, repo, shared=plan.transfer == WORKTREE)
    if plan.source == directory:  # the repository it came from was gone when the work was saved
        _init(directory)
    if plan.transfer == MIRROR:  # `git clone` may bring none of these objects
        fetch_kept(git, entry)
    if plan.source == directory:
        words = ("checkout", "-q", "-B", plan.branch or "", entry.parent)
        git.must(*words, doing="git could not check out the files")
    if detached:
        _detach(git, entry, workspace)
    if plan.transfer != WORKTREE:
        bring_refs(git, entry, None if detached else plan.branch)
    bring_files(git, entry, without=() if same_branch else git_state.OF_A_BRANCH)
    if plan.transfer == MIRROR:
        saved_entry.forget_refs(git, entry.refs_below)


def _task_dir(directory: str) -> None:
    """Make the directory of the agent's task. Where `.mngr` itself is a link there is none, since that is part of the
    work: no agent starts there, but all else is back."""
    try:
        task_dir(directory, replace=True)
    except inside.UnsafePath:
        pass


def _detach(git: Git, entry: SavedEntry, workspace: Workspace) -> None:
    """Leave the branch on which the workspace was made: no branch was checked out."""
    git.must("update-ref", "--no-deref", "HEAD", entry.parent)
    ref = f"refs/heads/{workspace.plan.branch}"
    if workspace.made_branch and ref not in dict(entry.refs):
        git.must("update-ref", "-d", ref)
    workspace.made_branch = False
    branch = entry.agent.workspace.branch if entry.agent else None
    workspace.plan = workspace.plan._replace(branch=branch, create_branch=False)


def _plan(entry: SavedEntry, directory: str, branch: str | None) -> Plan:
    """What the workspace is made from: the source is the directory itself when the entry alone has all of it."""
    agent = entry.agent
    if agent is not None and agent.workspace.transfer == NONE:
        if not os.path.isdir(agent.workspace.work_dir):
            raise MngrError(f"`{agent.workspace.work_dir}`, in which `{entry.name}` worked, is gone")
        return Plan(NONE, agent.workspace.work_dir)
    if entry.plain_files:
        source = (
            agent.workspace.source if agent is not None and agent.workspace.repo is None and not entry.whole else ""
        )
        return Plan(RSYNC, source if os.path.isdir(source) else directory)
    assert agent is not None
    wanted = branch or entry.branch or agent.workspace.branch or f"mngr/{entry.name}"
    if entry.repo != agent.workspace.repo:
        return Plan(MIRROR, directory, branch=wanted, create_branch=True, start=entry.parent)
    if not is_repository(entry.repo):
        raise MngrError(f"the repository of this saved work, `{entry.repo}`, is gone")
    repo = git_tool.repository(entry.repo)
    source_git, create = Git.of_user(entry.repo), True
    if agent.workspace.transfer == WORKTREE:
        _add_refs(source_git, entry)
    if (
        agent.workspace.transfer == WORKTREE or not entry.whole
    ):  # else its repository is its own, and so are its branches
        wanted, create = _branch_for(source_git, wanted, entry, explicit=branch is not None)
    return Plan(
        agent.workspace.transfer,
        repo.top,
        repo,
        branch=wanted,
        create_branch=create,
        base_branch=agent.workspace.base_branch,
        start=entry.parent,
        objects=COPIED if agent.spec.sandbox else "",
    )


def _add_refs(git: Git, entry: SavedEntry) -> None:
    """The branches beside its own that a worktree had, where they are gone."""
    for ref, tip in entry.refs:
        if git.commit_of(ref) is None:
            git.must("update-ref", ref, tip)


def bring_files(git: Git, entry: SavedEntry, keep: Sequence[str] = (), without: tuple[str, ...] = ()) -> None:
    """The uncommitted files, over those of the last commit, the index, and an operation that was not finished; of a
    whole entry nothing else stays, except what is too large to be kept and what is below `keep`. Of what git noted,
    files whose paths begin like one of `without` stay away."""
    if entry.whole:
        uncommitted_files.prune(git, entry.commit, [*keep, *(path for path, _ in entry.left_out)])
    converted: list[str] = []
    if entry.whole and not entry.plain_files:
        git.must("reset", "-q", "--hard", doing="git could not check out the files")
        converted = uncommitted_files.convertible(git)
    uncommitted_files.write_files(git, entry.commit, entry.parent, set(entry.private), converted)
    # git takes a file of another size for a changed one, without a look at its content.
    if converted and (same := set(git.changed_paths()).intersection(converted).difference(entry.changed)):
        git.must("update-index", "-z", "--stdin", input=b"".join(os.fsencode(path) + b"\0" for path in same))
    _check_archives(entry)
    uncommitted_files.unpack(git, git.directory, entry.archives)
    if not entry.plain_files:
        uncommitted_files.unpack(git, git_dir_of(git.directory), entry.modules)
        if entry.staged:
            staged_index.bring(git, entry.staged)
        if entry.state:
            _bring_state(git, entry.state, without)


def _check_archives(entry: SavedEntry) -> None:
    """Raise for an archive that would be written into a git directory. Only of plain files `.git` itself is one."""
    inner = [path for path, _ in entry.archives if ".git" in path.lower().split("/")]
    wrong = [path for path in inner if path != ".git" or not entry.plain_files]
    wrong += [path for path, _ in entry.modules if not path.startswith("modules/")]
    if wrong:
        raise MngrError(f"`{entry.id}` has an archive for `{wrong[0]}`, which it cannot have")


def _bring_state(git: Git, state: str, without: tuple[str, ...]) -> None:
    """What git had noted of an operation that was not finished, of private refs and of the past of HEAD."""
    git_dir = git_dir_of(git.directory)
    for line in filter(None, git.must("ls-tree", "-r", "-z", state).split("\0")):
        facts, path = line.split("\t", 1)
        mode, _, blob = facts.split(" ")
        if mode == "100644" and git_state.restorable(path) and not path.startswith(without):
            inside.make_directory(git_dir, os.path.dirname(path))
            inside.write(git_dir, path, checked(git.run("cat-file", "blob", blob)).stdout, 0o666)


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
    git.fetch(entry.repo, f"+{below}:{below}", doing="the kept work could not be read")


def checked_out(git: Git) -> dict[str, str]:
    """Branches that a work tree has, each with the path of that."""
    found, path = {}, ""
    for line in git.must("worktree", "list", "--porcelain").split("\n"):
        word, _, value = line.partition(" ")
        path = value if word == "worktree" else path
        if word == "branch":
            found[value.removeprefix("refs/heads/")] = path
    return found


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
