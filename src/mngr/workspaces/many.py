"""Make many workspaces of one source at once: what is the same for all is done once, the rest in parallel.

Git cannot add worktrees in parallel (one that reads the list while another is added to it fails), and adds them one by
one in three processes each. So their entries are written here, in the layout of gitrepository-layout(5), all under one
lock; a repository with extensions that change this layout is left to git.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mngr import files
from mngr.interrupts import held
from mngr.process import checked
from mngr.records import TYPE_CHECKING
from mngr.tools.git import Git
from mngr.workspaces import make
from mngr.workspaces.make import Workspace
from mngr.workspaces.plan import MIRROR, RSYNC, WORKTREE, Plan

if TYPE_CHECKING:
    from mngr.hosts.host import Host

# What would have to be in a worktree's own directory too, or in another form.
_SPECIAL = r"^(extensions\.(worktreeconfig|refstorage|relativeworktrees)|core\.(sharedrepository|sparsecheckout))$"


def with_unclean(host: Host, plans: Sequence[Plan]) -> list[Plan]:
    """The uncommitted changes that all of them carry along as one commit, made once. A plain copy has them anyway."""
    first = plans[0]
    if not first.include_unclean or first.transfer == RSYNC:
        return list(plans)
    start = make.unclean_commit(Git(host, first.source), first)
    return [plan._replace(start=start, include_unclean=False) for plan in plans]


class Workspaces:
    """Workspaces that differ only in their branch and directory. `begin`, then `fill` each, in any thread."""

    def __init__(self, host: Host, places: Sequence[Workspace], extra_paths: Mapping[str, str]) -> None:
        self._host = host
        self._places = places
        self._extra_paths = extra_paths
        self._transfer = places[0].plan.transfer
        self._registered = False  # by us, not by git
        self._template: _Template | None = None

    def begin(self) -> None:
        """What is done once for all. On failure nothing is left of it."""
        if self._transfer == WORKTREE:
            self._register()
        elif self._transfer == MIRROR:
            first = self._places[0]
            repo = first.plan.repo
            assert repo is not None
            try:
                first.claim()
                make.clone_repository(self._host, repo.top, repo.common_dir, first.directory)
                first.release()
                if len(self._places) > 2:
                    # Loose objects cost a directory each in every copy.
                    Git(self._host, first.directory).must("repack", "-q", "-d")
                self._template = _Template(os.path.join(first.directory, ".git"))
            except BaseException:
                with held():
                    make.unmake(self._host, first)
                raise

    def fill(self, place: Workspace) -> None:
        """Make this one whole."""
        if self._registered:
            make.check_out_worktree(self._host, place.directory)
        elif self._template is not None:
            if place.directory != self._places[0].directory:
                self._copy(self._template, place)
            make.check_out_mirror(self._host, place.plan, place.directory)
        else:
            make.make(self._host, place, self._extra_paths)
            return
        make.furnish(self._host, place.plan, place.directory, self._extra_paths)

    def _copy(self, template: _Template, place: Workspace) -> None:
        place.claim()
        try:
            template.copy_to(os.path.join(place.directory, ".git"))
        except OSError:  # no links on this disk, or somebody packed the objects again
            files.empty_directory(place.directory)
            repo = place.plan.repo
            assert repo is not None
            make.clone_repository(self._host, repo.top, repo.common_dir, place.directory)
        place.release()

    def unmake(self, places: Sequence[Workspace]) -> None:
        """Remove whatever was made of these, and nothing else."""
        if not self._registered:
            for place in places:
                make.unmake(self._host, place)
            return
        repo = places[0].plan.repo
        assert repo is not None
        for place in places:
            place.remove_files()
        with make.repo_lock(self._host, repo.common_dir):
            for place in places:
                place.remove_entry()
            git = Git(self._host, repo.top)
            # Only while they are where we put them. One that moved would keep all others, so then each by itself.
            for group in (places, *([place] for place in places)):
                commands = "".join(f"delete refs/heads/{place.plan.branch} {place.plan.start}\n" for place in group)
                if git.run("update-ref", "--stdin", input=commands.encode()).ok and group is places:
                    break

    def _register(self) -> None:
        """Branches and entries of all worktrees, unless this repository has to be left to git."""
        repo = self._places[0].plan.repo
        assert repo is not None
        git = Git(self._host, repo.top)
        special = git.run("config", "--get-regexp", _SPECIAL)
        if special.exit_code != 1 or not all(place.plan.create_branch for place in self._places):
            return
        commands = "".join(f"create refs/heads/{place.plan.branch} {place.plan.start}\n" for place in self._places)
        with make.repo_lock(self._host, repo.common_dir):
            with held():
                made = git.run("update-ref", "--stdin", "-m", "branch: Created by mngr", input=commands.encode())
                self._registered = made.ok
            checked(made, "git could not make the branches")
            rooms = os.path.join(repo.common_dir, "worktrees")
            os.makedirs(rooms, exist_ok=True)
            for place in self._places:
                _write_entry(repo.common_dir, rooms, place)

    @property
    def source_of_copies(self) -> str | None:
        """The workspace that others are copied from while they are filled; nothing may run there until then."""
        return self._places[0].directory if self._template is not None else None


def _write_entry(common_dir: str, rooms: str, place: Workspace) -> None:
    """What `git worktree add` writes. The entry appears whole: others may read the list at any moment."""
    name = os.path.basename(place.directory)
    entry, draft = os.path.join(rooms, name), os.path.join(common_dir, f"mngr-{name}")
    place.claim()
    files.write_new(os.path.join(place.directory, ".git"), os.fsencode(f"gitdir: {entry}\n"), 0o666)
    place.release()
    with held():
        os.mkdir(draft)
        try:
            for file, text in (
                ("gitdir", os.path.join(place.directory, ".git")),
                ("HEAD", f"ref: refs/heads/{place.plan.branch}"),
                ("commondir", "../.."),
            ):
                files.write_new(os.path.join(draft, file), os.fsencode(text + "\n"), 0o666)
            os.rename(draft, entry)
            place.entry = entry
        except BaseException:
            files.remove_tree(draft)
            raise


class _Template:
    """The `.git` of a fresh clone, ready to be copied: small files in memory, objects shared by links as
    `git clone --local` does. Git never changes a read-only file in place."""

    def __init__(self, git_dir: str) -> None:
        self._source = git_dir
        self._directories: list[str] = []
        self._files: list[tuple[str, int, bytes]] = []
        self._links: list[str] = []
        for directory, names, leaves in os.walk(git_dir):
            inside = os.path.relpath(directory, git_dir)
            self._directories += [os.path.normpath(os.path.join(inside, name)) for name in names]
            for leaf in leaves:
                if not leaf.endswith(".sample"):
                    self._take(os.path.normpath(os.path.join(inside, leaf)))

    def _take(self, path: str) -> None:
        full = os.path.join(self._source, path)
        mode = os.stat(full).st_mode & 0o777
        if path.startswith("objects/") and not mode & 0o222:
            self._links.append(path)
            return
        with open(full, "rb") as file:
            self._files.append((path, mode, file.read()))

    def copy_to(self, git_dir: str) -> None:
        os.makedirs(git_dir)
        for path in self._directories:
            os.mkdir(os.path.join(git_dir, path))
        for path, mode, data in self._files:
            files.write_new(os.path.join(git_dir, path), data, mode)
        for path in self._links:
            os.link(os.path.join(self._source, path), os.path.join(git_dir, path))
