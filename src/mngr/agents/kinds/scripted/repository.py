"""Commits in the repository around the agent. With nothing to commit it says so; a refusal is told in git's words."""

from typing import NamedTuple

from mngr import process
from mngr.agents.kinds.scripted.editing import to_bytes
from mngr.process import CommandFailed
from mngr.tools.git import Git


class Commit(NamedTuple):
    """`sha` is empty when there was nothing to commit."""

    sha: str
    output: str


def commit_at(revision: str) -> str:
    """The commit; empty when there is none."""
    return Git(process, ".").commit_of(revision) or ""


def commit(message: str, author: str, paths: tuple[str, ...] = ()) -> Commit:
    """Commit everything, or only these paths. Uses the author's name only where git knows nobody."""
    git = Git(process, ".")
    only = ["--", *paths] if paths else []
    git.must("add", "-A", *only, doing="git cannot add the changes")
    if git.ok("diff", "--cached", "--quiet", *only):
        return Commit("", "nothing to commit")
    known = git.ok("var", "GIT_AUTHOR_IDENT") and git.ok("var", "GIT_COMMITTER_IDENT")
    identity = [] if known else ["-c", f"user.name={author}", "-c", "user.email=scripted@mngr.invalid"]
    result = git.run(*identity, "commit", "-F", "-", *only, input=to_bytes(message))
    if not result.ok:
        raise CommandFailed(result, "git refused to commit")
    return Commit(git.must("rev-parse", "HEAD"), result.text)
