"""What the work tree of an agent holds and no commit has, as git sees it, whatever the index hides from git.

Raises when a directory cannot be read: git itself takes such a directory for an empty one.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence

from mngr.named_tuples import NamedTuple
from mngr.system.git import Git, quoted_path, with_config
from mngr.system.process import CommandFailed, Result, checked, environment
from mngr.workspace.work import files as uncommitted_files
from mngr.workspace.work.disk import UnreadableDirectory, files_below
from mngr.workspace.work.disk import look as look_at

_STATUS = (
    "status",
    "--porcelain=v2",
    "--branch",
    "-z",
    "--ignored=traditional",
    "--no-renames",
    "--untracked-files=normal",
    "--ignore-submodules=dirty",
)
_UNTRACKED = ("ls-files", "-z", "--others", "--exclude-standard")
# An agent can set these in its copy, and git would no longer see what is there.
_SEE_ALL = {
    "core.trustCtime": "true",
    "core.checkStat": "default",
    "core.ignoreStat": "false",
    "core.untrackedCache": "false",
    "core.fsmonitor": "false",
}
# Of `ls-files -v -s`: every line but those of usual files, links, and programs.
_UNUSUAL = re.compile(r"(?:^|(?<=\0))(?!H 1[02])(\S) (\d+) ([0-9a-f]+) \d\t([^\0]*)")
_UNOPENED = re.compile(r"could not open directory '([^\n]*?)(?:': |$)", re.MULTILINE)  # git cuts long lines


class WorkTree(NamedTuple):
    """`changed` are the paths whose content is in no commit: modified, deleted and untracked ones; a repository inside
    is one path. `ignored` are files, and directories with a slash at the end. `submodules` are the paths that the index
    has as commits of other repositories. `staged`: the index has content that is neither in HEAD nor on the disk."""

    head: str | None
    branch: str | None
    changed: tuple[str, ...]
    ignored: tuple[str, ...]
    submodules: tuple[str, ...]
    staged: bool


class OmittedPath(NamedTuple):
    """A path that git ignores and that is too large to save."""

    path: str
    megabytes: float


def look(git: Git, *, modes: bool) -> WorkTree:
    """Compare the work tree with the index, and the index with HEAD. A damaged index counts as that of HEAD. With
    `modes`, also where a setting says that the file system does not keep them."""
    settings = {**_SEE_ALL, **({"core.fileMode": "true"} if modes else {})}
    env = with_config(environment(), settings)
    listed = git.run("ls-files", "-v", "-s", "-z")
    result = git.run(*_STATUS, env=env)
    if not (listed.ok and result.ok):
        head = git.commit_of("HEAD")
        if head is None:
            raise CommandFailed(result if listed.ok else listed, f"git cannot read the repository in `{git.directory}`")
        with uncommitted_files.raw_git(git) as raw:
            raw.must("read-tree", head)
            raw.must("update-ref", "--no-deref", "HEAD", head)
            listed = checked(raw.run("ls-files", "-v", "-s", "-z"))
            found = _parse(raw, checked(raw.run(*_STATUS)), listed)
        return found._replace(head=head, branch=git.current_branch())
    return _parse(git, result, listed)


def _parse(git: Git, result: Result, listed: Result) -> WorkTree:
    _refuse_unread(git.directory, result)
    lines = iter(result.text.split("\0"))
    facts: dict[str, str] = {}
    changed: list[str] = []
    untracked: list[str] = []
    ignored: list[str] = []
    staged = False
    for line in lines:
        kind = line[:1]
        if kind == "#":
            name, _, value = line[2:].partition(" ")
            facts[name] = value
        elif kind in ("1", "u"):
            changed.append(line.split(" ", 8 if kind == "1" else 10)[-1])
            staged = staged or kind == "u" or "." not in line[2:4]
        elif kind == "?":
            untracked.append(line[2:])
        elif kind == "!":
            ignored.append(line[2:])
    if any(path.endswith("/") for path in untracked):
        result = checked(git.run(*_UNTRACKED))
        _refuse_unread(git.directory, result)
        untracked = [path for path in result.text.split("\0") if path]
    unusual = _UNUSUAL.findall(listed.text)
    hidden = [(path, oid) for tag, _, oid, path in unusual if tag == "S" or tag.islower()]
    changed += [path for path in _hidden_changes(git, hidden) if path not in changed]
    _refuse_unreadable(git.directory, changed)
    head, branch = facts.get("branch.oid"), facts.get("branch.head")
    return WorkTree(
        head=None if head == "(initial)" else head,
        branch=None if branch == "(detached)" else branch,
        changed=(*changed, *untracked),
        ignored=tuple(ignored),
        submodules=tuple(path for _, mode, _, path in unusual if mode == "160000"),
        staged=staged,
    )


def _refuse_unread(directory: str, result: Result) -> None:
    if found := _UNOPENED.search(result.error_text):
        raise UnreadableDirectory(os.path.join(directory, found[1]))


def _refuse_unreadable(directory: str, paths: Iterable[str]) -> None:
    """git calls a file deleted whose directory it may not enter."""
    for path in paths:
        try:
            look_at(os.path.join(directory, path))
        except PermissionError:
            raise UnreadableDirectory(os.path.join(directory, os.path.dirname(path))) from None


def _hidden_changes(git: Git, hidden: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Of files that the index tells git not to look at (assume-unchanged, skip-worktree), those that differ from it. A
    sparse checkout has no such files on the disk."""
    regular: list[tuple[str, str]] = []
    for path, oid in hidden:
        found = look_at(os.path.join(git.directory, path))
        if found is None:
            continue
        if stat.S_ISREG(found.st_mode):
            regular.append((path, oid))
        elif not stat.S_ISLNK(found.st_mode) or _link_id(git.directory, path, oid) != oid:
            yield path
    if regular:
        names = b"".join(os.fsencode(quoted_path(path)) + b"\n" for path, _ in regular)
        ids = git.must("hash-object", "--stdin-paths", input=names).split("\n")
        yield from (path for (path, oid), new in zip(regular, ids, strict=True) if new != oid)


def _link_id(directory: str, path: str, like: str) -> str:
    """What git would call the target of a link."""
    target = os.fsencode(os.readlink(os.path.join(directory, path)))
    kind = hashlib.sha1 if len(like) == 40 else hashlib.sha256
    return kind(b"blob %d\0" % len(target) + target).hexdigest()


def ignored_files(
    directory: str, ignored: Iterable[str], *, megabytes: float
) -> tuple[tuple[str, ...], tuple[OmittedPath, ...]]:
    """Of what git ignores, the files that are small enough to save, and the files or directories that are too large. A
    repository in it is one path."""
    kept: list[str] = []
    omitted: list[OmittedPath] = []
    for top in ignored:
        found = dict(files_below(directory, top.rstrip("/")))
        found.pop(uncommitted_files.OWN_MARK, None)
        size = sum(found.values())
        if size > megabytes * 1_000_000:
            omitted.append(OmittedPath(top, size / 1_000_000))
        else:
            kept += found
    return tuple(kept), tuple(omitted)
