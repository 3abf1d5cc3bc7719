"""Merge an agent's work into the branch that is checked out here. Never a lost commit."""

from __future__ import annotations

from mngr.actions.commits import refuse_operation, tip
from mngr.actions.site import Site
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.system.git import Git
from mngr.system.interrupts import held
from mngr.system.process import CommandFailed
from mngr.transfer.commits import checkout, fetch, home


class Merged(NamedTuple):
    name: str
    into: str
    commits: int
    uncommitted: int
    commit: str


def merge(
    site: Site, agent_id: str, *, squash: bool = False, message: str | None = None, dry_run: bool = False
) -> Merged:
    """Bring the agent's commits into the branch checked out here. A conflict is found before anything is touched. A
    merge, rebase, ... that the user has in progress is an error, and stays as it is."""
    found = site.run(tip, agent_id)
    record, head, uncommitted = found.record, found.head, found.uncommitted
    here = home(site, record)
    current = Git.of_user(checkout(site, here))
    refuse_operation(current)
    branch = current.current_branch() or "HEAD"
    fetch(site, found, here)
    count = current.count(head, "--not", "HEAD")
    if count == 0:
        return Merged(record.name, branch, 0, uncommitted, current.must("rev-parse", "HEAD"))
    merged_tree = _merged_tree(current, head, record.name)
    if dry_run:
        return Merged(record.name, branch, count, uncommitted, head)
    if squash:
        head = _squashed(current, head, merged_tree, message or f"Work of agent {record.name}")
    # Whether a merge commit is made is the user's setting (`merge.ff`); the rest of git's settings for a merge could
    # leave conflict markers or no merge at all.
    words = ["-q", "--no-autostash", "--no-squash", "--commit"]
    words += ["--ff-only"] if squash else ["--no-edit", "-m", message or f"Merge agent {record.name}"]
    try:
        result = current.run("merge", *words, head)
    except BaseException:
        with held():
            _abort_merge(current, head)
        raise
    if not result.ok and not squash and b"Not possible to fast-forward" in result.stderr:
        raise MngrError(
            f"`{branch}` and `{record.name}` have diverged, and your git settings (`merge.ff = only`) allow no merge "
            "commit; nothing was changed",
            hint=f"`mngr merge {record.name} --squash` adds the work as one commit",
        )
    if not result.ok:
        undone = "nothing was changed" if _abort_merge(current, head) else "and could not undo what it began"
        raise CommandFailed(result, f"git could not merge `{record.name}` into `{branch}`; {undone}")
    return Merged(record.name, branch, count, uncommitted, current.must("rev-parse", "HEAD"))


def _abort_merge(git: Git, head: str) -> bool:
    """Undo the merge of this commit, if git has begun it; a merge of anything else is not ours. False when it stays."""
    return git.commit_of("MERGE_HEAD") != head or git.ok("merge", "--abort")


def _merged_tree(git: Git, commit: str, name: str) -> str | None:
    """What a merge would give, found without touching a file; None with a git that is too old to tell."""
    result = git.run("merge-tree", "--write-tree", "--name-only", "--no-messages", "HEAD", commit)
    first, *paths = result.text.split("\n")
    if result.exit_code == 1:
        paths = [path for path in paths if path]
        shown = ", ".join(f"`{path}`" for path in paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
        raise MngrError(
            f"the work of `{name}` conflicts with yours in {shown}; nothing was changed",
            hint=f"merge by hand: `git merge refs/mngr/pulled/{name}`",
        )
    return first if result.ok else None


def _squashed(git: Git, commit: str, merged_tree: str | None, title: str) -> str:
    """One commit on top of HEAD with the merge of that commit. Made beside the index, which may hold other things."""
    if merged_tree is None:
        raise MngrError("`--squash` needs git 2.38 or newer", hint="`git --version` shows yours; merge without it")
    log = git.must("log", "--reverse", "--format=* %s", f"HEAD..{commit}")
    text = f"{title}\n\n{log}\n".encode("utf-8", "surrogateescape")
    sign = ["-S"] if git.run("config", "--type=bool", "--get", "commit.gpgSign").text == "true" else []
    words = ("commit-tree", *sign, merged_tree, "-p", "HEAD", "-F", "-")
    return git.must(*words, input=text, doing="git could not commit; nothing was changed")
