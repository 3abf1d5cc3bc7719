"""git in the copy of an agent, which obeys nothing that the agent can have written: see `mngr.system.git_settings`."""

from __future__ import annotations

import os

from mngr.agent.record import Record
from mngr.system.git import Git
from mngr.system.state_dir import StateDir
from mngr.workspace.plan import NONE, WORKTREE

DIRECTORY = "git"  # in the state directory: one directory for each copy, named by `key`


def of(host: StateDir, record: Record) -> Git:
    """git in the work dir of an agent. One that works in place has no copy: what is there is the user's."""
    if record.workspace.transfer == NONE:
        return Git.of_user(record.workspace.work_dir)
    return at(host, record.workspace.work_dir, record.workspace.repo, shared=record.workspace.transfer == WORKTREE)


def at(host: StateDir, directory: str, repo: str | None, *, shared: bool) -> Git:
    """git in a copy that was made of a repository, at a directory."""
    return Git.of_agent(directory, os.path.join(host.dir, DIRECTORY, key(directory)), repo, shared=shared)


def forget(host: StateDir, directory: str) -> None:
    """Remove what `of` and `at` have made for a copy that is gone. Twice is safe."""
    host.remove(os.path.join(host.dir, DIRECTORY, key(directory)))


def key(directory: str) -> str:
    import hashlib

    return hashlib.sha256(os.fsencode(os.path.abspath(directory))).hexdigest()[:16]
