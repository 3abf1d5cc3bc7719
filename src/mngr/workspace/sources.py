"""Repositories that are not on this machine: one copy of each, kept up to date, for agents to begin at."""

from __future__ import annotations

import os
import zlib

from mngr.errors import MngrError
from mngr.system import process, tree_removal
from mngr.system.git import Git
from mngr.system.interrupts import held
from mngr.system.process import checked, environment, quote
from mngr.system.state_dir import StateDir

SECONDS = 3600.0
_FOLLOWED = "refs/mngr/followed"  # the commit that we have put there last


def is_url(text: str) -> bool:
    """Whether git would look for it elsewhere: `https://...`, `file://...`, or `user@host:path`."""
    scheme, found, _ = text.partition("://")
    if found:
        return scheme.replace("+", "").isalnum()
    user, at, rest = text.partition("@")
    return bool(at and user and "/" not in user and ":" in rest and "/" not in rest.partition(":")[0])


def project(url: str) -> str:
    """The name of the repository."""
    last = url.rstrip("/").replace(":", "/").rpartition("/")[2].removesuffix(".git")
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in last).strip(".") or "repository"


def bring(host: StateDir, url: str) -> str:
    """The directory with our copy, at what the repository has now. Nothing half-made is left behind."""
    if url.startswith("-"):
        raise MngrError(f"{url!r} is not an address of a repository")
    key = f"{zlib.crc32(os.fsencode(url)):08x}"
    directory = os.path.join(host.dir, "sources", f"{project(url)}-{key}")
    with host.locked(f"source-{key}", timeout=SECONDS, what=f"the copy of `{url}`"):
        if os.path.isdir(directory):
            _update(url, directory)
        else:
            _clone(host, url, directory)
    return directory


def _clone(host: StateDir, url: str, directory: str) -> None:
    host.make_dir(os.path.dirname(directory))
    draft = f"{directory}.{os.urandom(4).hex()}.draft"
    quiet = {**environment(), "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        cloned = process.run(["git", "clone", "-q", "--", url, draft], timeout=SECONDS, env=quiet)
        checked(cloned, f"git could not clone `{url}`")
        Git.of_store(draft).run("update-ref", _FOLLOWED, "HEAD")
        host.move(draft, directory)
    except BaseException:
        with held():
            tree_removal.remove_tree(draft)
        raise


def _update(url: str, directory: str) -> None:
    """Change the copy to what is there now, also after a forced push. A copy that somebody changed is refused, not
    overwritten."""
    git = Git.of_store(directory)
    followed = git.commit_of(_FOLLOWED) or git.commit_of("refs/remotes/origin/HEAD")
    git.must("fetch", "-q", "--prune", "origin", doing=f"git could not fetch `{url}`")
    git.run("remote", "set-head", "origin", "--auto")
    branch, to = git.current_branch(), "refs/remotes/origin/HEAD"
    words = ["merge", "--ff-only", to]
    if branch is not None and git.commit_of("HEAD") == followed:
        words = ["checkout", "--no-track", "-B", branch, to]  # which keeps uncommitted changes, or refuses
    try:
        git.must(*words[:1], "-q", *words[1:], doing=f"`{directory}` cannot follow `{url}`")
    except MngrError as error:
        error.hint = f"somebody changed that copy; `git -C {quote(directory)} status` shows how"
        raise
    git.must("update-ref", _FOLLOWED, "HEAD")
