"""The settings that git obeys in an agent's copy of the code: ours, in a directory that the agent does not write.

`GIT_COMMON_DIR` tells git where a repository keeps what all of its work trees share: objects, hooks and `config`. Here
that is a directory of our own. The objects in it are links to those of the copy; the `config` is written by us, and
there are no hooks. So git never opens the configuration of the copy, whatever keys or includes it may have.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from mngr.errors import MngrError
from mngr.system import files, inside, process
from mngr.system.git import quoted_path, worktree_entry
from mngr.system.process import environment

CONFIG = "config"
# What git keeps in the common directory and what is data. Not `hooks` and not `config`.
_LINKED = (
    *("objects", "refs", "packed-refs", "logs", "info", "shallow", "worktrees", "modules", "lfs", "rr-cache"),
    "reftable",
)
_CONFIG_BYTES = 1 << 20
# The form of the repository, and which files are checked out: without them git would read it wrongly. None of these
# can name a program or a place.
_FORM = r"^(extensions\.(objectformat|refstorage|partialclone)|core\.sparsecheckout(cone)?)$"
# In the place of whatever the user has set: nothing is run or looked at that this copy does not need.
_LAST = """\
[core]
\tfsmonitor = false
\thooksPath = {null}
[submodule]
\trecurse = false
[diff]
\tsubmodule = short
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""

# Of a git directory, what git does not write. All else there it writes through links, wherever they lead.
_MAY_BE_LINKS = frozenset({"hooks", "info", "config", "config.worktree", "description", "modules", "worktrees", "lfs"})


class ForeignRepository(MngrError):
    """The `.git` of a worktree names another repository than the one it was made in."""


def write(directory: str, place: str, repo: str | None, *, shared: bool) -> str:
    """Make or renew the common directory of a copy at `place`; return the copy's git directory. `repo` is the user's
    repository, whose settings count; with `shared` the copy is a worktree of it. Raise ForeignRepository if it is one
    of another. Twice is safe, also at the same time."""
    git_dir = worktree_entry(directory) or os.path.join(directory, ".git")
    source = kept_in(repo) if repo and os.path.isdir(repo) else None
    common = common_dir(git_dir)
    if shared and source is not None:
        if os.path.realpath(common) != os.path.realpath(source):
            raise ForeignRepository(
                f"the `.git` of `{directory}` names `{common}`, and its repository is `{source}`",
                hint=f"`git -C {repo} worktree repair {directory}` names the right one again",
            )
        common = source
    files.make_private_dir(place)
    for name in _LINKED:
        _link(os.path.join(common, name), os.path.join(place, name), follow=shared)
    path, text = os.path.join(place, CONFIG), _config(git_dir, common, source).encode("utf-8", "surrogateescape")
    try:
        with open(path, "rb") as file:
            same = file.read() == text
    except FileNotFoundError:
        same = False
    if not same:
        files.write_atomic(path, text)
    return git_dir


def refuse_links(git_dir: str, place: str) -> None:
    """Raise UnsafePath if git would write through a link that an agent can have made in the git directory of its copy,
    or among the branches of agents: an index, a log or a ref in any directory of the user."""
    tops = [(git_dir, False), *((os.path.join(git_dir, name), True) for name in ("refs", "logs"))]
    tops += [(os.path.join(git_dir, name), False) for name in ("objects", "objects/info", "objects/pack")]
    tops += [(os.path.join(place, name), True) for name in ("refs/heads/mngr", "logs/refs/heads/mngr")]
    for top, deep in tops:
        for path in _links(top, deep):
            if os.path.dirname(path) != git_dir or os.path.basename(path) not in _MAY_BE_LINKS:
                raise inside.UnsafePath(
                    f"`{path}` is a link to `{os.readlink(path)}`, and git would write there",
                    hint=f"`{process.join(['rm', '--', path])}` removes the link",
                )


def _links(top: str, deep: bool) -> Iterator[str]:
    """The links in a directory, and itself if it is one; with `deep` also those in the directories below it."""
    if os.path.islink(top):
        yield top
        return
    try:
        entries = list(os.scandir(top))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if entry.is_symlink():
            yield entry.path
        elif deep and entry.is_dir(follow_symlinks=False):
            yield from _links(entry.path, deep)


def common_dir(git_dir: str) -> str:
    """Where a git directory says that its repository keeps what all work trees share."""
    found = _text(git_dir, "commondir")
    return os.path.normpath(os.path.join(git_dir, os.fsdecode(found).rstrip("\n"))) if found else git_dir


def kept_in(repo: str) -> str:
    """The common directory of a repository of the user, as `Repo.home` names it."""
    inner = os.path.join(repo, ".git")
    return common_dir(worktree_entry(repo) or (inner if os.path.isdir(inner) else repo))


def _link(target: str, path: str, *, follow: bool) -> None:
    """Make a link. Without `follow`, what is a link itself counts as missing: git would write wherever it leads."""
    if not follow and os.path.islink(target):
        target = os.devnull
    try:
        if os.readlink(path) == target:
            return
    except FileNotFoundError:
        pass
    draft = f"{path}.{os.urandom(4).hex()}.draft"
    os.symlink(target, draft)
    os.replace(draft, path)


def _config(git_dir: str, common: str, source: str | None) -> str:
    forms = [*_form(_text(common, CONFIG)), *_form(_text(git_dir, "config.worktree"))]
    extended = any(key.startswith("extensions.") for key, _ in forms)
    lines = ["[core]", f"\trepositoryformatversion = {int(extended)}"]
    if source is not None:
        lines += ["[include]", f"\tpath = {quoted_path(os.path.join(source, CONFIG))}"]
        if common != source and os.path.isdir(os.path.join(source, "lfs")):
            lines += ["[lfs]", f"\tstorage = {quoted_path(os.path.join(source, 'lfs'))}"]
    for key, value in forms:
        section, _, name = key.partition(".")
        lines += [f"[{section}]", f"\t{name} = {quoted_path(value)}"]
    return "\n".join(lines) + "\n" + _LAST.format(null=os.devnull)


def _form(text: bytes) -> list[tuple[str, str]]:
    """What settings say about the form of their repository. git reads this text, and no file that it names."""
    if not any(word in text.lower() for word in (b"extensions", b"sparse")):
        return []
    words = ["git", "config", "--file", "-", "--no-includes", "-z", "--get-regexp", _FORM]
    found = process.run(words, timeout=60, input=text, cwd="/", env={**environment(), "GIT_DIR": os.devnull})
    pairs = (item.partition("\n") for item in found.text.split("\0") if item)
    return [(key, value) for key, newline, value in pairs if newline]


def _text(directory: str, name: str) -> bytes:
    """A file that an agent may have made; nothing if it is not a regular file."""
    try:
        return inside.read(directory, name, _CONFIG_BYTES) or b""
    except (inside.UnsafePath, OSError):
        return b""
