"""git: look at a repository, make worktrees and clones, move commits, keep refs."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.system import files, process
from mngr.system.interrupts import held
from mngr.system.process import CommandFailed, Result, checked, environment, join

SECONDS = 600.0
# The first commits of a large repository, over a slow connection. One that is lost ends by itself.
_TRANSFER_SECONDS = 3600.0
# Done in a moment, and not to be ended in it: git would leave the lock of a ref behind once in a hundred times.
_QUICK = frozenset({"branch", "update-ref", "worktree"})
# These look into nested repositories, with the settings that are there.
_NESTED = frozenset({"status", "diff", "diff-files", "diff-index"})
# These write into the git directory of an agent's copy, but for those below.
_WRITING = frozenset(
    ("checkout", "fetch", "merge", "rebase", "reset", "stash", "symbolic-ref", "update-index", "update-ref")
)
_READING = (("stash", "list"), ("symbolic-ref", "--quiet"))
# What git prints is read by us; where a person sees it, options say that it is to be in colour.
_PLAIN = {"color.ui": "never", "color.diff": "never", "log.showSignature": "false"}
# For repositories that nobody but mngr uses.
_NOTHING_RUN = {"core.hooksPath": os.devnull, "core.fsmonitor": "false"}
# How git notes an operation that is not finished, in this order: a rebase may be stopped at a pick or a merge.
_NOTES = {
    "rebase-merge": "rebase",
    "rebase-apply/applying": "am",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "sequencer": "cherry-pick",
    "BISECT_LOG": "bisect",
}
_IDENTITY = {
    "GIT_AUTHOR_NAME": "mngr",
    "GIT_AUTHOR_EMAIL": "mngr@localhost",
    "GIT_COMMITTER_NAME": "mngr",
    "GIT_COMMITTER_EMAIL": "mngr@localhost",
}


class Repo(NamedTuple):
    """A repository as seen from one of its work trees. `home` outlives them all: its main work tree, or for a bare one
    and one that is kept elsewhere its git directory."""

    top: str
    home: str
    common_dir: str


class Status(NamedTuple):
    """What is checked out in a work tree, and the paths with uncommitted changes."""

    head: str | None
    branch: str | None
    dirty: tuple[str, ...]


class BareRepository(MngrError):
    """A bare repository, which has no files for an agent to work on."""


class BrokenRepository(MngrError):
    """A `.git` that git cannot read as a repository."""


class Git:
    """git run in one directory. How it is made says whose settings git obeys: `of_user`, `of_agent`, `of_store`."""

    def __init__(self, directory: str, words: Sequence[str], env: Mapping[str, str], config: Mapping[str, str]) -> None:
        self.directory = directory
        self.own = ""  # a directory of ours that stands for what the repository shares, of an agent's copy
        self._words, self._env, self._config, self._git_dir = words, env, config, ""
        self._prepare: Callable[[], str] | None = None

    @classmethod
    def of_user(cls, directory: str, *, cautious: bool = False) -> Git:
        """A repository of the user: all settings count, the user's and its own. `cautious` is for a directory that is
        not known yet: a bare repository there, which may be part of a clone, is an error."""
        return cls(directory, ["-C", directory], {}, {"safe.bareRepository": "explicit" if cautious else "all"})

    @classmethod
    def of_store(cls, directory: str, *, git_dir: str = "", env: Mapping[str, str] | None = None) -> Git:
        """A repository that mngr keeps: no program of its settings and no hook is run. With `git_dir`, that one is
        used on the plain files of the directory."""
        words = ["-C", directory, *(["--git-dir", git_dir, "--work-tree", directory] if git_dir else [])]
        return cls(directory, words, env or {}, {"safe.bareRepository": "all", **_NOTHING_RUN})

    @classmethod
    def of_agent(cls, directory: str, own: str, repo: str | None, *, shared: bool) -> Git:
        """An agent's copy of the code: the settings of the user count, and those of `repo`, the user's repository; its
        own do not, nor its hooks. With `shared` it is a worktree of that repository. `own` is a directory of ours, made
        when it is needed, that stands for what the repository of the copy shares: see `mngr.system.git_settings`."""
        git = cls(directory, [], {"GIT_COMMON_DIR": own}, {})
        git.own = own

        def prepare() -> str:
            from mngr.system import git_settings

            return git_settings.write(directory, own, repo, shared=shared)

        git._prepare = prepare
        return git

    def run(
        self,
        *words: str,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        into: str = "",
        private: bool = False,
    ) -> Result:
        """Any exit code is a result. Never asks on the terminal, speaks English, holds no lock it does not need. `into`
        is a file for its output, when that may be too large for the memory. With `private` the files that git writes
        are readable by their owner only."""
        if self._prepare is not None:
            self._git_dir, self._prepare = self._prepare(), None
            self._words = ["-C", self.directory, "--git-dir", self._git_dir, "--work-tree", self.directory]
        if self.own and words[0] in _WRITING and words[:2] not in _READING:
            from mngr.system import git_settings

            git_settings.refuse_links(self._git_dir, self.own)
        settings = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **self._env, **(env or {})}
        unseen = ("--ignore-submodules=dirty",) if self.own and words[0] in _NESTED else ()
        argv = ["git", *self._words, words[0], *unseen, *words[1:]]
        full_env = {**environment(), **settings}
        if into:
            argv = ["sh", "-c", 'exec "$@" > "$0"', into, *argv]
        if private:
            argv = ["sh", "-c", 'umask 077; exec "$@"', "sh", *argv]
        full_env = with_config(full_env, {**_PLAIN, **self._config})
        if words[0] not in _QUICK:
            seconds = _TRANSFER_SECONDS if words[0] in ("fetch", "push") else SECONDS
            return process.run(argv, timeout=seconds, input=input, env=full_env)
        with held():
            return process.run(argv, timeout=SECONDS, input=input, env=full_env)

    def must(
        self, *words: str, input: bytes | None = None, env: Mapping[str, str] | None = None, doing: str = ""
    ) -> str:
        return checked(self.run(*words, input=input, env=env), doing).text

    def fetch(
        self,
        source: str,
        refspec: str,
        *,
        own: str = "",
        env: Mapping[str, str] | None = None,
        doing: str = "",
    ) -> None:
        """Get the commits of a ref of another repository, and nothing beside them. Of an agent's copy, `own` is what
        its `Git` has: git obeys no settings of it there either."""
        words = ["-q", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"]
        words += [f"--upload-pack={there(own, 'git-upload-pack')}"] if own else []
        self.must("fetch", *words, source, refspec, env=env, doing=doing)

    def ok(self, *words: str) -> bool:
        return self.run(*words).ok

    def commit_of(self, revision: str) -> str | None:
        result = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return result.text if result.ok else None

    def has_branch(self, branch: str) -> bool:
        return self.ok("show-ref", "--verify", "--quiet", f"refs/heads/{branch}")

    def current_branch(self) -> str | None:
        """The branch, or None when HEAD is detached."""
        result = self.run("symbolic-ref", "--quiet", "HEAD")  # `--short` calls it `heads/NAME` beside a tag NAME
        return result.text.removeprefix("refs/heads/") if result.ok else None

    def operation(self) -> str | None:
        """What somebody has begun in this work tree and not finished, as the name of git's command for it."""
        git_dir = self.must("rev-parse", "--absolute-git-dir")
        return next((command for name, command in _NOTES.items() if os.path.exists(os.path.join(git_dir, name))), None)

    def rev_list(self, *words: str) -> Result:
        """Git calls a branch that another process deletes at this moment a bad object; it is then asked again."""
        for _ in range(4):
            result = self.run("rev-list", *words)
            if result.ok or b"bad object" not in result.stderr:
                return result
        return self.run("rev-list", *words)

    def count(self, *words: str) -> int:
        return int(checked(self.rev_list("--count", *words)).text)

    def changed_paths(self) -> tuple[str, ...]:
        """Paths with uncommitted changes, untracked files included, ignored ones not. A submodule with such changes
        counts as one path."""
        found = _status_paths(self.must("status", "--porcelain=v2", "-z", "--untracked-files=all").split("\0"))
        inside = set(self.submodules()).difference(found) if self.own else set()
        return (*found, *sorted(path for path in inside if self.inner(path).changed_paths()))

    def submodules(self) -> list[str]:
        """Paths that the index has as a commit of another repository, where there is a repository."""
        lines = self.must("ls-files", "--stage", "-z").split("\0")
        paths = [line.partition("\t")[2] for line in lines if line.startswith("160000 ")]
        places = {path: os.path.join(self.directory, path) for path in paths}
        dirs = {path: worktree_entry(place) or os.path.join(place, ".git") for path, place in places.items()}
        return [path for path, git_dir in dirs.items() if os.path.isfile(os.path.join(git_dir, "HEAD"))]

    def inner(self, path: str) -> Git:
        """git in a repository inside of an agent's copy, which may have settings of its own, too."""
        number = zlib.crc32(os.fsencode(path))
        own = os.path.join(self.own, f"inner-{number:08x}")
        return Git.of_agent(os.path.join(self.directory, path), own, None, shared=False)

    def is_shared(self, commit: str, *, besides: str | None = None) -> bool:
        """Whether a branch, remote branch or tag (other than `besides`) holds this commit."""
        exclude = [f"--exclude={besides}"] if besides else []
        result = self.rev_list("--max-count=1", commit, "--not", *exclude, "--branches", "--remotes", "--tags")
        return result.ok and not result.text

    def commit_tree(self, tree: str, parents: Sequence[str], message: str) -> str:
        words = [word for parent in parents for word in ("-p", parent)]
        return self.must("commit-tree", tree, *words, "-F", "-", input=message.encode(), env=_IDENTITY)


def with_config(env: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Variables for git, with these settings beside those that they have."""
    given = env.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isdecimal() else 0
    found = {**env, "GIT_CONFIG_COUNT": str(first + len(settings))}
    for at, (key, value) in enumerate(settings.items(), first):
        found |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return found


def there(own: str, program: str) -> str:
    """The shell line that serves an agent's copy to another git, without the settings of that copy."""
    return f"env {join([f'GIT_COMMON_DIR={own}'])} {program}"


def quoted_path(path: str) -> str:
    """A path in quotes, as git reads it in its configuration, or in a list that it splits at colons."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def worktree_entry(directory: str) -> str | None:
    """Where the repository keeps what belongs to this worktree, as its `.git` file says; None without one."""
    try:
        line = os.fsdecode(files.read_followed(os.path.join(directory, ".git"), 1 << 16)).removesuffix("\n")
    except OSError:
        return None
    path = line.removeprefix("gitdir: ")
    return os.path.normpath(os.path.join(directory, path)) if path != line else None


def locate(path: str) -> Repo | None:
    """The repository around a directory; None when there is none. Raises for one that git cannot read, and for a bare
    one: a directory of a clone may look like one, and git would obey the settings in it."""
    git = Git.of_user(path, cautious=True)
    questions = ("--git-dir", "--git-common-dir", "--show-toplevel")
    where = git.run("rev-parse", "--path-format=absolute", *questions)
    if not where.ok:
        if "not a git repository" in where.error_text:
            if broken := _unreadable_entry(path):
                raise BrokenRepository(
                    f"`{broken}` is not a repository that git can read",
                    details=where.error_text,
                    hint="for a worktree whose repository was moved: `git worktree repair` there; "
                    "or `--transfer rsync` to copy plain files",
                )
            return None
        if "cannot use bare repository" in where.error_text or "must be run in a work tree" in where.error_text:
            raise BareRepository(
                f"`{path}` is a bare repository, or inside of `.git`: there are no files for an agent to work on",
                hint="`cd` to a work tree; of a bare repository make one with `git worktree add` or `git clone`",
            )
        raise CommandFailed(where, f"git cannot read the repository at `{path}`")
    answers = where.text.split("\n")
    if len(answers) != len(questions):  # a path with a newline in it: one question at a time
        answers = [git.must("rev-parse", "--path-format=absolute", question) for question in questions]
    git_dir, common_dir, top = answers
    main = common_dir.removesuffix("/.git")
    return Repo(top=top, home=top if git_dir == common_dir else main, common_dir=common_dir)


def _unreadable_entry(path: str) -> str | None:
    """The `.git` of a directory or of one above it, on the same file system, which git has passed over or refused. An
    empty directory is none: some sandboxes make one as a place to mount on."""
    directory = os.path.realpath(path)
    try:
        device = os.stat(directory).st_dev
        while os.stat(directory).st_dev == device:
            entry = os.path.join(directory, ".git")
            if os.path.lexists(entry) and not (os.path.isdir(entry) and not os.listdir(entry)):
                return entry
            if directory == os.path.dirname(directory):
                break
            directory = os.path.dirname(directory)
    except PermissionError as error:
        return str(error.filename)
    except OSError:
        pass  # the directory itself is gone
    return None


def repository(path: str) -> Repo:
    """The repository that is known to be kept in this directory, a bare one too. It stands for its own work tree."""
    return Repo(path, path, Git.of_user(path).must("rev-parse", "--path-format=absolute", "--git-common-dir"))


def status(directory: str) -> Status:
    """What is checked out in this work tree and what is changed there; of a directory without a file that git knows,
    only its name."""
    words = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal")
    lines = Git.of_user(directory).must(*words).split("\0")
    facts = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# "))
    head, branch = facts.get("branch.oid"), facts.get("branch.head")
    return Status(
        head=None if head == "(initial)" else head,
        branch=None if branch == "(detached)" else branch,
        dirty=_status_paths(line for line in lines if not line.startswith("# ")),
    )


def _status_paths(lines: Iterable[str]) -> tuple[str, ...]:
    """The paths in `git status --porcelain=v2 -z`. A rename is followed by its old path, which is changed too."""
    found: list[str] = []
    rename_source = False
    for line in lines:
        if rename_source:
            found.append(line)
            rename_source = False
        elif line[:1] == "1":
            found.append(line.split(" ", 8)[8])
        elif line[:1] == "2":
            found.append(line.split(" ", 9)[9])
            rename_source = True
        elif line[:1] == "u":
            found.append(line.split(" ", 10)[10])
        elif line[:1] == "?":
            found.append(line[2:])
    return tuple(found)
