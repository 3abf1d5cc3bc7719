"""The code that agents of another machine begin with, on the host where they run: one repository per origin, filled by
`git push`, and plain files for sources without git. Agents are made from here as from any local source."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mngr.actions.site import Site
from mngr.errors import UsageError
from mngr.named_tuples import NamedTuple
from mngr.names import is_id
from mngr.system.git import Git, Repo
from mngr.workspace.workspace import repo_lock

REPOSITORIES = "repos"
FILES = "sources"


class Cache(NamedTuple):
    """A repository for agents to begin at. `has` says that the wanted commit is there already."""

    repo: Repo
    has: bool


def prepare(site: Site, key: str, commit: str, config: Mapping[str, str]) -> Cache:
    """The cache of this key, made at the first use, with these settings of git. Twice is safe."""
    if not key.isalnum():
        raise UsageError(f"{key!r} is not the key of a repository")
    site.host.prepare()
    directory = os.path.join(site.host.dir, REPOSITORIES, key)
    common = os.path.join(directory, ".git")
    with repo_lock(site.host, common):
        if not os.path.isfile(os.path.join(common, "HEAD")):
            site.host.make_dir(directory)
            Git.of_store(directory).must("init", "-q", ".", doing="git could not make a repository")
        git = Git.of_store(directory)
        wanted = {"receive.denyCurrentBranch": "ignore", "gc.auto": "0", **config}
        have = dict(
            item.split("\n", 1) for item in git.must("config", "--local", "-z", "--list").split("\0") if "\n" in item
        )
        for name, value in wanted.items():
            if have.get(name.lower()) != value:
                git.must("config", "--local", name, value)
    return Cache(Repo(directory, directory, common), git.commit_of(commit) is not None)


def files_place(site: Site, agent_id: str, what: str = "begin") -> str:
    """A directory for files that come to this agent: those it begins with stay, to tell later what it changed."""
    directory = _place(site, agent_id, what)
    site.host.prepare()
    site.host.make_dir(directory)
    return directory


def forget_files(site: Site, agent_id: str, what: str = "") -> None:
    """Remove the files that `files_place` had room for: of one kind, or all. Twice is safe."""
    site.host.remove(_place(site, agent_id, what))


def _place(site: Site, agent_id: str, what: str) -> str:
    if not is_id(agent_id) or not (what.isalpha() or not what):
        raise UsageError(f"`{agent_id}/{what}` is not a place for files")
    return os.path.join(site.host.dir, FILES, agent_id, what).rstrip("/")
