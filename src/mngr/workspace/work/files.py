"""Files of a work tree as a git tree and back, byte for byte: no filters, no line-end conversion, no hooks.

The agent may be at work meanwhile: a file that was listed and is gone when git reads it counts as deleted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from mngr.system import files, process, tree_removal
from mngr.system.git import Git, quoted_path
from mngr.system.process import checked
from mngr.workspace.work import archives
from mngr.workspace.work.disk import look
from mngr.workspace.work.git_files import git_dir_of, head_commit, is_commit

# In every workspace: keeps the directory for outcome and artifacts out of git.
OWN_MARK = ".mngr/task/.gitignore"
_TRIES = 8
# The strongest of all rules about attributes, in a git directory of our own: no file is converted in any way.
_ATTRIBUTES = "* -text -ident -filter -working-tree-encoding\n"
_CONFIG = """[include]
\tpath = {}
[core]
\tautocrlf = false
\tfileMode = true
\tsymlinks = true
\tignoreCase = false
\tprotectHFS = false
\tprotectNTFS = false
\tsparseCheckout = false
\tsplitIndex = false
\tfsmonitor = false
\tuntrackedCache = false
\thooksPath = {}
"""


@contextmanager
def raw_git(git: Git, root: str = "") -> Iterator[Git]:
    """git on the same files and objects, or on the files of another `root`, with an empty index of its own and without
    any conversion of files."""
    words = ("--path-format=absolute", "--show-object-format", "--git-path", "objects")
    kind, objects = git.must("rev-parse", *words).split("\n", 1)
    place = git.own or os.path.dirname(objects)
    own = os.path.join(place, f"mngr-index-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        made = ["git", "init", "-q", "--bare", "--template=", f"--object-format={kind}", own]
        checked(process.run(made, timeout=60), "git could not make an index")
        os.mkdir(os.path.join(own, "info"))
        files.write_new(os.path.join(own, "info", "attributes"), _ATTRIBUTES.encode())
        config = _CONFIG.format(quoted_path(os.path.join(place, "config")), os.devnull)
        with open(os.path.join(own, "config"), "ab") as file:
            file.write(os.fsencode(config))
        env = {"GIT_OBJECT_DIRECTORY": objects, "GIT_LITERAL_PATHSPECS": "1"}
        yield Git.of_store(root or git.directory, git_dir=own, env=env)
    finally:
        tree_removal.remove_tree(own)


def dirty_tree(git: Git, paths: Sequence[str], *, onto: str = "HEAD", root: str = "") -> str:
    """The tree of a commit with these paths as they are on disk, in the work tree or below `root`: changed, added or
    gone. A repository among them is the id of its commit, as git itself has it. Writes objects only."""
    with raw_git(git, root) as raw:
        if head := onto if is_commit(onto) else git.commit_of(onto) if onto else "":
            raw.must("read-tree", head)
        nested: list[str] = []
        for tries_left in reversed(range(_TRIES)):
            added, removed, nested = _sorted_out(raw, paths)
            raw.must("update-index", "--force-remove", "-z", "--stdin", input=_lines(removed))
            done = raw.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", input=_lines(added))
            if done.ok:
                break
            if not tries_left:  # until then the agent may have removed a file while git read it
                checked(done, "the uncommitted files could not be read")
        for path in nested:
            commit = head_commit(os.path.join(raw.directory, path))
            if is_commit(commit) and os.path.basename(path) != ".git":
                line = os.fsencode(f"160000 {commit}\t{path}\0")
                raw.must("update-index", "--replace", "-z", "--index-info", input=line)
        return raw.must("write-tree")


def pack_repositories(git: Git, paths: Sequence[str]) -> list[tuple[str, str]]:
    """The repositories among these paths, each with the blob of an archive of it: its commits, its files, its index."""
    if not any(os.path.isdir(os.path.join(git.directory, path)) for path in paths):
        return []
    with raw_git(git) as raw:
        return pack(raw, raw.directory, _sorted_out(raw, paths)[2])


def pack(git: Git, root: str, paths: Sequence[str]) -> list[tuple[str, str]]:
    """The directories at these paths below `root`, each with the blob of an archive of it."""
    found: list[tuple[str, str]] = []
    if paths:
        with raw_git(git) as raw:
            archive = raw.must("rev-parse", "--absolute-git-dir") + "/nested.tar"
            for path in paths:
                if archives.pack(root, path, git_dir_of(git.directory), archive):
                    found.append((path, raw.must("hash-object", "-w", "--no-filters", "--", archive)))
    return found


def _sorted_out(raw: Git, paths: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Paths for git to read, paths that hold nothing to keep, and repositories."""
    added, removed, nested = [], [], []
    waiting = [path.rstrip("/") for path in paths]
    links = _links_above(raw.directory, waiting)
    while waiting:
        path = waiting.pop()
        full = os.path.join(raw.directory, path)
        seen = look(full)
        if path.startswith(links):
            removed.append(path)  # its directory became a link, and what that leads to is not in the work tree
        elif seen is None or stat.S_ISREG(seen.st_mode) or stat.S_ISLNK(seen.st_mode):
            added.append(path)
        elif not stat.S_ISDIR(seen.st_mode):
            removed.append(path)  # a pipe or a socket
        elif os.path.basename(path) == ".git" or os.path.lexists(os.path.join(full, ".git")):
            nested.append(path)
        else:
            removed.append(path)  # a directory that took the place of a file
            below = raw.must("ls-files", "-z", "--cached", "--others", "--", path).split("\0")
            waiting += [name.rstrip("/") for name in below if name.startswith(f"{path}/") and name != f"{path}/"]
    return added, removed, nested


def _links_above(directory: str, paths: Sequence[str]) -> tuple[str, ...]:
    parents = {path[:at] for path in paths for at, letter in enumerate(path) if letter == "/"}
    return tuple(f"{parent}/" for parent in parents if os.path.islink(os.path.join(directory, parent)))


def _lines(paths: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def convertible(git: Git) -> list[str]:
    """Tracked files that may have other bytes on disk than in git although git calls them unchanged: line ends. Not
    those that go through a program (`filter`), which keeps the real content elsewhere."""
    rules = git.must("ls-files", "-z", "--", ":(glob)**/.gitattributes")
    own_rules = git.must("rev-parse", "--path-format=absolute", "--git-path", "info/attributes")
    settings = git.run("config", "--get-regexp", r"^core\.(autocrlf|eol|attr)").text
    if not (rules or settings or os.path.exists(own_rules)):
        return []  # nothing converts, so reading every file is saved
    return list(filter(None, git.must("ls-files", "-z", "--", ":(attr:!filter)").split("\0")))


def private_files(directory: str, paths: Sequence[str]) -> list[str]:
    """The files that only their owner may read, mostly secrets. git does not record that."""
    seen = ((path, look(os.path.join(directory, path))) for path in paths)
    return [path for path, found in seen if found and stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077]


def prune(git: Git, commit: str, keep: Sequence[str]) -> None:
    """Delete every file that is not in the commit. What is below `keep` stays, and so do git's own files."""
    with raw_git(git) as raw:
        raw.must("read-tree", commit)
        kept = [os.path.dirname(OWN_MARK), *(path.rstrip("/") for path in keep)]
        raw.must("clean", "-q", "-ffdx", *(f"--exclude=/{_pattern(path)}" for path in kept))


def _pattern(path: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\*?[ " else letter for letter in path)


def write_files(git: Git, commit: str, parent: str, private: Collection[str] = (), also: Sequence[str] = ()) -> None:
    """Give the files that `commit` changed over `parent`, and those in `also`, the bytes that the commit has. Those in
    `private` become readable by their owner only."""
    fields = git.must("diff-tree", "-r", "-z", "--no-renames", "--name-status", parent, commit).split("\0")
    changes = dict(zip(fields[1::2], fields[0::2], strict=False))
    # What is gone goes first: a file may stand where a directory was.
    for path in [path for path, change in changes.items() if change == "D"]:
        _remove(git.directory, path)
        del changes[path]
    with raw_git(git) as raw:
        raw.must("read-tree", commit)
        there = set(raw.must("ls-files", "-z").split("\0")) if also or private else set()
        paths = {*changes, *there.intersection([*also, *private])}
        for chosen, only_owner in ((paths - set(private), False), (paths & set(private), True)):
            words = ("checkout-index", "-f", "-z", "--stdin")
            written = raw.run(*words, input=_lines(sorted(chosen)), private=only_owner)
            if not written.ok:  # a file that cannot be replaced may be as it was: git then leaves it alone
                raw.run("update-index", "-q", "--refresh")
                written = raw.run(*words, input=_lines(sorted(chosen)), private=only_owner)
            checked(written, "git could not write the files")


def unpack(git: Git, root: str, packed: Sequence[tuple[str, str]]) -> None:
    """Write the directories of `pack` below `root`, each in place of what is there."""
    if packed:
        with raw_git(git) as raw:
            archive = raw.must("rev-parse", "--absolute-git-dir") + "/nested.tar"
            for path, blob in packed:
                checked(raw.run("cat-file", "blob", blob, into=archive), f"the repository `{path}` could not be read")
                archives.unpack(archive, root, path)


def _remove(directory: str, path: str) -> None:
    """Delete a file and the directories that are empty without it. Nothing that a link leads to."""
    if _links_above(directory, [path]):
        return
    tree_removal.remove_tree(os.path.join(directory, path))
    while path := os.path.dirname(path):
        try:
            os.rmdir(os.path.join(directory, path))
        except OSError:
            return
