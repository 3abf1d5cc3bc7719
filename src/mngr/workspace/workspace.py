"""Make a workspace as planned, and unmake it. When it fails half-way, what was made of it is removed, and only that."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from mngr.errors import MngrError
from mngr.system import files, inside, process
from mngr.system.git import Git, quoted_path, worktree_entry
from mngr.system.interrupts import held
from mngr.system.process import CommandFailed, checked
from mngr.system.state_dir import StateDir
from mngr.workspace.plan import COPIED, MIRROR, NONE, RSYNC, WORKTREE, Plan

COPY_SECONDS = 3600.0
TASK = ".mngr/task"
TAKEN_HINT = "name a directory that does not exist yet"
# Of a repository's settings, what a copy of it needs: who commits, how files are converted, and where objects come from
# that a partial clone has not.
_CARRIED = (
    r"^(user\.|remote\.origin\.url$|commit\.|core\.autocrlf|core\.eol|gpg\.|filter\."
    r"|extensions\.partialclone$|remote\..*\.(promisor|partialclonefilter)$)"
)


def repo_lock(host: StateDir, common_dir: str) -> AbstractContextManager[bool]:
    """Held while a repository's list of worktrees or refs changes: git fails when ten processes do that at once."""
    return host.locked(
        f"repo-{zlib.crc32(os.fsencode(common_dir)):08x}", timeout=600, what=f"the repository `{common_dir}`"
    )


class Workspace:
    """A workspace to make, and what this process has made of it so far: nothing else may be removed on failure."""

    def __init__(self, plan: Plan, directory: str) -> None:
        self.plan = plan
        self.directory = directory
        self.claimed = False
        self.made_branch = False
        self.registered = False  # as a worktree, in the repository

    def make(self, host: StateDir, extra_paths: Mapping[str, str], *, task: bool = True) -> str | None:
        """Make the workspace and return the commit it begins at. On failure nothing is left that could be removed.
        Without `task`, the caller makes the directory of the agent's task."""
        plan, start = self.plan, self.plan.start
        if plan.transfer == NONE:
            return start
        try:
            if plan.include_unclean and plan.transfer != RSYNC:
                start = unclean_commit(Git.of_user(plan.source), plan)
            self.claim(0o700 if plan.transfer == RSYNC else 0o777)  # until rsync gives it the mode of the source
            if plan.transfer == WORKTREE:
                _worktree(host, self, start)
            elif plan.transfer == MIRROR:
                _mirror(plan, self.directory, start)
            else:
                _copy(host, plan, self.directory)
            _bring_extra_paths(plan, self.directory, extra_paths)
            if task:
                task_dir(self.directory)
        except BaseException as error:
            with held():
                try:
                    if isinstance(error, CommandFailed):
                        error.hint = error.hint or _why(plan, self.directory)
                    self.unmake(host)
                except (MngrError, OSError):
                    pass  # the error that led here is the one to tell
            raise
        return start

    def unmake(self, host: StateDir) -> None:
        """Remove what was made of it so far. Twice is safe."""
        if self.claimed:
            from mngr.system import trash
            from mngr.workspace import copy_git

            trash.discard(host.dir, self.directory)
            copy_git.forget(host, self.directory)
            self.claimed = False
        repo = self.plan.repo
        if repo is None or not (self.registered or self.made_branch):
            return
        with repo_lock(host, repo.common_dir):
            if self.registered:
                forget_worktree(repo.common_dir, self.directory)
            if self.made_branch:
                Git.of_user(repo.top).run("branch", "-q", "-D", "--", self.plan.branch or "")
            self.registered = self.made_branch = False

    def claim(self, mode: int = 0o777) -> None:
        """Make the directory, which nobody else can have made then. Raises when anything is there."""
        refuse_taken(self.directory)
        try:
            os.makedirs(os.path.dirname(self.directory), exist_ok=True)
            with held():
                os.mkdir(self.directory, mode)
                self.claimed = True
        except (FileExistsError, NotADirectoryError):
            refuse_taken(self.directory)  # somebody made it a moment ago
            raise MngrError(f"`{os.path.dirname(self.directory)}` is not a directory") from None


def refuse_taken(directory: str) -> None:
    """Raise when something is where a workspace is to be made."""
    if os.path.lexists(directory):
        raise MngrError(f"`{directory}` exists already", hint=TAKEN_HINT)


def _why(plan: Plan, directory: str) -> str:
    """What git does not say when it could not write."""
    if plan.transfer == WORKTREE and plan.repo is not None and not os.access(plan.repo.common_dir, os.W_OK):
        return "the repository cannot be written to; `--transfer git-mirror` works on a copy of it"
    return files.space_hint(directory) or files.space_hint(plan.source)


def forget_worktree(common_dir: str, directory: str) -> None:
    """Remove git's note of a worktree whose directory is gone, also a locked one. Twice is safe; a repository that is
    gone is fine. What is at its path by now stays. The caller holds `repo_lock`."""
    room = os.path.join(common_dir, "worktrees")
    if not os.path.isdir(room):
        return
    if (
        not os.path.lexists(directory)
        and Git.of_user(common_dir).run("worktree", "remove", "--force", "-f", directory).ok
    ):
        return
    # No command of git removes a note over which git was killed, or one whose path has been taken again.
    for name in os.listdir(room):
        note = os.path.join(room, name)
        path = os.fsdecode(files.content(os.path.join(note, "gitdir"))).removesuffix("\n")
        lost = path == os.path.join(directory, ".git") and worktree_entry(directory) != note
        whole = all(_has_content(os.path.join(note, part)) for part in NOTE)
        if lost or (name == os.path.basename(directory) and not whole):
            from mngr.system.tree_removal import remove_tree

            remove_tree(note)
    if not os.listdir(room):  # git itself removes the list of worktrees with its last entry
        os.rmdir(room)


# What git writes of a worktree before it says so.
NOTE = ("gitdir", "commondir", "HEAD")


def _has_content(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def _worktree(host: StateDir, workspace: Workspace, start: str | None) -> None:
    plan, directory = workspace.plan, workspace.directory
    assert plan.repo is not None and start is not None and plan.branch is not None
    git = Git.of_user(plan.repo.top)
    rooms = os.path.join(plan.repo.common_dir, "worktrees")
    words = ["--no-track", "-b", plan.branch, directory, start] if plan.create_branch else [directory, plan.branch]
    with repo_lock(host, plan.repo.common_dir):
        # Only the registration needs the lock; the files are written outside it, so many agents start in parallel.
        before, made = host.entries(rooms), None
        with held():
            try:
                made = git.run("worktree", "add", "-q", "--no-checkout", *words)
                workspace.made_branch = made.ok and plan.create_branch
            finally:  # git undoes its own failures, unless it was killed
                said = made.error_text if made is not None else ""
                if f"'{directory}' already exists" in said:
                    workspace.claimed = False  # another program put something there
                else:  # what a killed git leaves may not name its directory yet, but has its name
                    left = {os.path.basename(directory)}.intersection(host.entries(rooms)).difference(before)
                    workspace.registered = bool(worktree_entry(directory) or left)
                if plan.create_branch and not workspace.made_branch and "a branch named" not in said:
                    git.run("update-ref", "-d", f"refs/heads/{plan.branch}", start)
        if not made.ok:
            refuse_taken_branch(plan)  # in plainer words than git's
        checked(made, "git could not make the worktree")
    # Not with `git reset`, which locks the branch for a moment, and leaves that lock when ended.
    Git.of_user(directory).must(
        "read-tree", "--no-recurse-submodules", "--reset", "-u", "HEAD", doing="git could not check out the files"
    )


def _mirror(plan: Plan, directory: str, start: str | None) -> None:
    assert plan.repo is not None and start is not None and plan.branch is not None
    clone_repository(plan.repo.top, plan.repo.common_dir, directory, plan.objects, start=start)
    words = ["--no-track", "-B", plan.branch, start] if plan.create_branch else [plan.branch]
    Git.of_user(directory).must(
        "checkout", "-q", "--no-recurse-submodules", *words, doing="git could not check out the files"
    )
    if plan.submodules:
        from mngr.workspace import submodules

        for submodule in submodules.find(plan.source, start):
            submodules.make(submodule, directory, plan.objects)


def clone_repository(source: str, common_dir: str, directory: str, how: str = "", *, start: str | None = None) -> None:
    """Make `.git` in a directory, with all branches and tags of the source and the commit `start`, and check out
    nothing. With `--shared` it reads the objects of the source: linking and removing each of them can take longer than
    what the copy is for. With `--no-local` it gets the objects that its branches and tags need, and no others."""
    git_dir = os.path.join(directory, ".git")
    words = ["git", "clone", "-q", "--bare", common_dir, git_dir]
    clone = process.run([*words, *filter(None, [how])], timeout=COPY_SECONDS)
    if not clone.ok and not how and b"hardlink different" in clone.stderr:
        # In a container that was started from a snapshot, a file of the snapshot becomes another one when it is linked.
        clone = process.run([*words, "--no-hardlinks"], timeout=COPY_SECONDS)
    settings = Git.of_user(source).run("config", "--local", "-z", "--get-regexp", _CARRIED).text.split("\0")
    carried = dict(item.split("\n", 1) for item in settings if "\n" in item)
    if not clone.ok and how == COPIED and "extensions.partialclone" in carried:
        raise MngrError(
            f"`{source}` is a partial clone, and a copy in a sandbox needs all objects",
            details=clone.error_text,
            hint=f"get them: `git -C {process.quote(source)} fetch --refetch --no-filter`",
        )
    checked(clone, "git could not copy the repository")
    _edit_config(git_dir, common_dir, carried)
    # A shallow clone, and `--no-local`, bring no more than branches and tags hold.
    made = Git.of_store(git_dir)
    if start is not None and not made.ok("cat-file", "-e", start):
        made.fetch(common_dir, start)


def _edit_config(git_dir: str, common_dir: str, carried: Mapping[str, str]) -> None:
    """The configuration that git made, with a work tree and the user's identity and upstream, and no way back into the
    source repository."""
    path = os.path.join(git_dir, "config")
    made = (
        files.content(path)
        .decode("utf-8", "surrogateescape")
        .replace("bare = true", "bare = false\n\tlogallrefupdates = true")
    )
    sections = ["[" + section.rstrip("\n") for section in ("\n" + made).split("\n[")[1:]]
    lines = [section for section in sections if not section.startswith("[remote")]
    if any(key.startswith("extensions.") for key in carried):
        lines += ["[core]", "\trepositoryformatversion = 1"]
    if os.path.isdir(os.path.join(common_dir, "lfs")):
        lines += ["[lfs]", f"\tstorage = {quoted_path(os.path.join(common_dir, 'lfs'))}"]
    for key, value in carried.items():
        section, _, name = key.rpartition(".")
        head, _, sub = section.partition(".")
        lines += [f"[{head} {quoted_path(sub)}]" if sub else f"[{head}]", f"\t{name} = {quoted_path(value)}"]
        if key == "remote.origin.url":
            lines.append("\tfetch = +refs/heads/*:refs/remotes/origin/*")
    files.write_atomic(path, ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"), 0o644)


def copy_files(host: StateDir, source: str, directory: str, *, git: bool) -> None:
    """Everything in the source directory, its repository too, without the work trees that belong to others."""
    files.make_private_dir(directory)
    inside = os.path.relpath(host.dir, source)  # a home directory may hold our own state: not copied into itself
    exclude = [] if inside.startswith("..") else ["--exclude", f"/{inside}"]
    if git:
        exclude += ["--exclude", "/.git/worktrees"]  # they would point to the work trees of others
    words = ["rsync", "-a", *exclude, f"{source.rstrip('/')}/", f"{directory}/"]
    checked(process.run(words, timeout=COPY_SECONDS), "the files could not be copied")


def _copy(host: StateDir, plan: Plan, directory: str) -> None:
    copy_files(host, plan.source, directory, git=plan.repo is not None)
    if plan.repo is not None and plan.branch is not None:
        git = Git.of_user(directory)
        if not plan.include_unclean:
            git.must("reset", "-q", "--hard", doing="git could not reset the copy")
            git.must("clean", "-q", "-f", "-d", doing="git could not clean the copy")
        words = ["-B", plan.branch, *([plan.start] if plan.start else [])] if plan.create_branch else [plan.branch]
        git.must("checkout", "-q", *words, doing="git could not switch the copy")


def unclean_commit(git: Git, plan: Plan) -> str:
    """The source's uncommitted changes as a commit on top of HEAD; the source itself stays as it is. Repositories in it
    that git does not track, which no commit can hold, are left out."""
    from mngr.workspace.work import files as uncommitted_files

    assert plan.start is not None
    changed = [path for path in git.changed_paths() if not path.startswith(".mngr/") and not path.endswith("/")]
    if not changed:
        return plan.start
    tree = uncommitted_files.dirty_tree(git, changed)
    return git.commit_tree(tree, [plan.start], f"Uncommitted changes carried into {plan.branch}\n")


def existing_branches(plan: Plan) -> list[str]:
    """All branches that a new one could get in the way of."""
    if not plan.create_branch or plan.transfer == RSYNC:
        return []
    return Git.of_user(plan.source).must("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").split("\n")


def refuse_taken_branch(plan: Plan, branches: Sequence[str] | None = None) -> None:
    """Raise when the new branch exists, or another one is in its place."""
    branch = plan.branch or ""
    for other in existing_branches(plan) if branches is None else branches:
        if other == branch:
            raise MngrError(
                f"a branch called `{branch}` exists already",
                hint=f"to continue on that branch: `--branch {branch}`, or choose another: `--branch ':{branch}-2'`",
            )
        if branch.startswith(f"{other}/"):
            raise MngrError(
                f"git cannot have `{branch}` beside a branch called `{other}`",
                hint="choose another name: `--branch ':agents/*'`, or rename that branch: "
                f"`git branch -m {other} {other}-old`",
            )
        if other.startswith(f"{branch}/"):
            raise MngrError(
                f"git cannot have `{branch}` beside a branch called `{other}`",
                hint=f"choose another name: `--branch ':{branch}-2'`",
            )


def _bring_extra_paths(plan: Plan, directory: str, extra_paths: Mapping[str, str]) -> None:
    """Untracked files an agent needs (`workspace.extra_paths`): copied, or shared by a link."""
    for path, how in extra_paths.items():
        relative = extra_path(plan.source, path)
        source, target = os.path.join(plan.source, relative), os.path.join(directory, relative)
        if os.path.lexists(target):
            continue  # tracked, or copied with everything else
        if how == "share":
            inside.make_directory(directory, os.path.dirname(relative))
            inside.link(directory, relative, source)
        else:
            copy_into(source, directory, relative)
        if plan.repo is not None and not Git.of_user(directory).ok("check-ignore", "-q", "--", relative):
            raise MngrError(
                f"`workspace.extra_paths` names `{path}`, which git does not ignore: the agent would commit it",
                hint=f"add `/{relative}` to `.gitignore` or to `.git/info/exclude`"
                + (" (a pattern that ends in `/` does not match a link)" if how == "share" else ""),
            )


def copy_into(source: str, root: str, path: str) -> None:
    """Copy a file or directory, links as links, to a path below a directory, and follow no link on the way there."""
    above, name = os.path.split(path.rstrip("/"))
    with inside.directory(root, above, make=0o777) as fd:
        target = os.path.join(inside.for_programs(fd, os.path.join(root, above)), name)
        copied = process.run(["cp", "-a", "--", source, target], timeout=COPY_SECONDS)
    checked(copied, f"`{source}` could not be copied")


def extra_path(source: str, path: str) -> str:
    """A path of `workspace.extra_paths` relative to the source and without links, except that it may be one itself: a
    repository may name these paths without trust. Raise for one that leads out of the source or into git's own."""
    above, name = os.path.split(os.path.normpath(path))
    if name in ("", ".", "..") or ".git" in path.lower().split("/"):
        raise MngrError(f"`workspace.extra_paths` names `{path}`, which is not a file or directory of the source")
    try:
        relative = os.path.normpath(os.path.join(inside.resolve(source, above), name))
    except inside.UnsafePath:
        end = os.path.realpath(os.path.join(source, path))
        raise MngrError(
            f"`workspace.extra_paths` names `{path}`, which is not below the source directory: "
            f"`{path}` leads out of `{source}`, to `{end}`"
        ) from None
    if not os.path.lexists(os.path.join(source, relative)):
        raise MngrError(f"`workspace.extra_paths` names `{path}`, which does not exist in `{source}`")
    return relative


def task_dir(directory: str, *, replace: bool = False) -> None:
    """Make the directory for outcome and artifacts inside the work dir, which git ignores without a change to the
    repository. Raise if a link is in its place; with `replace`, one below `.mngr` is removed."""
    if replace:
        inside.remove_links(directory, f"{TASK}/artifacts", below=os.path.dirname(TASK))
    inside.make_directory(directory, f"{TASK}/artifacts")
    inside.write(directory, f"{TASK}/.gitignore", b"*\n", 0o644)
