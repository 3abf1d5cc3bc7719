"""Whose settings git obeys: the user's in the user's repository, and in the copy of an agent never those of the copy.

Each copy here is hostile in every way that git has to run a program or to read another place, and every verb of mngr
that runs git there is tried on it. What git runs leaves a file."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from mngr.fleet.fleet import Fleet
from mngr.programs import permissions
from tests.support.sshd import Sshd
from tests.support.user import User

SRC = Path(__file__).parents[2] / "src" / "mngr"
HOOKS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "prepare-commit-msg", "commit-msg"),
    *("post-commit", "pre-merge-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive"),
    *("update", "proc-receive", "post-receive", "post-update", "reference-transaction", "push-to-checkout"),
    *("pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman", "post-index-change"),
)
# Keys whose value git runs, with the value it has to have; `{}` is the program.
PROGRAMS = {
    "core.fsmonitor": "{} fsmonitor; false",
    "core.alternateRefsCommand": "{} alternates",
    "core.pager": "{} pager",
    "core.editor": "{} editor",
    "core.askPass": "{} askpass",
    "core.sshCommand": "{} ssh",
    "core.gitProxy": "{} proxy",
    "sequence.editor": "{} sequence",
    "diff.external": "{} external",
    "diff.own.textconv": "{} textconv",
    "diff.own.command": "{} differ",
    "merge.own.driver": "{} merger %O %A %B",
    "filter.own.clean": "{} clean",
    "filter.own.smudge": "{} smudge",
    "filter.own.process": "{} process",
    "filter.own.required": "true",
    "credential.helper": "!{} credential",
    "gpg.program": "{} gpg",
    "gpg.ssh.program": "{} gpgssh",
    "commit.gpgSign": "true",
    "merge.verifySignatures": "true",
    "log.showSignature": "true",
    "uploadpack.packObjectsHook": "{} packobjects",
    "remote.origin.uploadpack": "{} uploadpack",
    "remote.origin.receivepack": "{} receivepack",
    "remote.origin.promisor": "true",
    "submodule.recurse": "true",
    "submodule.sub.update": "!{} submodule",
    "diff.submodule": "diff",
    "status.submoduleSummary": "true",
    "alias.status": "!{} alias",
    "alias.update-ref": "!{} alias",
    "pager.diff": "{} pagerdiff",
    "interactive.diffFilter": "{} difffilter",
    "tar.tgz.command": "{} tar",
    "trailer.own.cmd": "{} trailer",
    "gc.auto": "1",
    "gc.recentObjectsHook": "{} recent",
    "color.ui": "always",
    "core.worktree": "/",
}


LOOKING = (
    *("list", "diff foo", "diff foo --stat", "diff foo --format=json", "pull foo --dry-run", "pull foo --into none"),
    *("pull foo", "merge foo --dry-run", "push foo --dry-run", "snapshot create foo --name one", "snapshot list"),
    *("clone foo bar", "merge foo", "gc", "doctor", "usage", "cleanup --all --dry-run", "stop foo", "start foo"),
    *("exec foo true", "capture foo", "rename foo fox", "rename fox foo"),
)
REPLACING = (
    *("push foo", "snapshot restore foo/one", "destroy foo --force", "saved list", "saved show foo-1 --patch"),
    *("saved restore foo-1", "destroy foo --force", "destroy bar --force", "gc"),
)


class HostileCopy:
    """A user with a program that notes each of its starts, and what an agent does to its copy to have git run it."""

    def __init__(self, user: User) -> None:
        self.user, self.ran = user, user.root / "ran"
        self.ran.mkdir()
        self.program = user.root / "evil"
        self.program.write_text(f'#!/bin/sh\ntouch "{self.ran}/$(basename "$0")-$1"\ncat\n')
        self.program.chmod(0o755)

    def spoil(self, work: Path, *, submodule: bool = True) -> None:
        """Write every key and hook, an include, and a submodule that has the same."""
        user = self.user
        if submodule:
            user.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(user.repo), "sub", cwd=work)
        (work / ".gitattributes").write_text("*.own diff=own merge=own filter=own\n")
        (work / "a.own").write_text("one\n")
        user.git("add", "-A", cwd=work)
        user.git("commit", "-qm", "hostile", cwd=work)
        (work / "a.own").write_text("two\n")
        if submodule:
            (work / "sub" / "README.md").write_text("changed\n")
        for directory in (work, work / "sub") if submodule else (work,):
            git_dir = Path(user.git("rev-parse", "--absolute-git-dir", cwd=directory))
            shared = git_dir / "commondir"
            if shared.exists():  # of a worktree only this file is the agent's
                user.git("config", "extensions.worktreeConfig", "true", cwd=directory)
            config = git_dir / ("config.worktree" if shared.exists() else "config")
            self._write(config, git_dir)

    def _write(self, config: Path, git_dir: Path) -> None:
        more = git_dir / "more"
        more.write_text("".join(_section(key, value.format(self.program)) for key, value in PROGRAMS.items()))
        hooks = git_dir / "own-hooks"
        for directory in (hooks, git_dir / "hooks"):
            directory.mkdir(exist_ok=True)
            for name in HOOKS:
                (directory / name).unlink(missing_ok=True)
                (directory / name).write_text(f'#!/bin/sh\ntouch "{self.ran}/hook-$(basename "$0")"\n')
                (directory / name).chmod(0o755)
        text = config.read_text() if config.exists() else ""
        include = f'[include]\n\tpath = {more}\n[includeIf "gitdir:/"]\n\tpath = {more}\n'
        config.write_text(text + include + _section("core.hooksPath", str(hooks)) + more.read_text())

    def started(self) -> list[str]:
        return sorted(path.name for path in self.ran.iterdir())


def ran_quietly(hostile: HostileCopy, line: str) -> None:
    hostile.user.mngr(*line.split()).ok()
    assert hostile.started() == [], line


def _section(key: str, value: str) -> str:
    section, _, name = key.rpartition(".")
    head, _, sub = section.partition(".")
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    title = f'{head} "{sub}"' if sub else head
    return f'[{title}]\n\t{name} = "{escaped}"\n'


@pytest.fixture
def hostile(user: User) -> HostileCopy:
    return HostileCopy(user)


def test_the_hostile_copy_is_hostile(user: User, hostile: HostileCopy) -> None:
    """Plain git in it runs these programs, or else what follows would prove nothing."""
    user.create("foo", "--transfer", "git-mirror")
    hostile.spoil(work := user.work_dir("foo"))
    user.run(["git", "-c", "core.worktree=", "--work-tree=.", "status"], cwd=work)
    user.run(["git", "--work-tree=.", "diff"], cwd=work)
    user.run(["git", "--work-tree=.", "add", "a.own"], cwd=work)
    user.run(["git", "update-ref", "refs/x", "HEAD"], cwd=work)
    assert {"evil-fsmonitor", "evil-process", "hook-reference-transaction"} <= set(hostile.started())


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror", "rsync"])
def test_no_verb_runs_anything_that_the_copy_of_an_agent_asks_for(
    user: User, hostile: HostileCopy, transfer: str
) -> None:
    user.create("foo", "--transfer", transfer)
    hostile.spoil(user.work_dir("foo"))
    for line in LOOKING:
        ran_quietly(hostile, line)
    user.git("commit", "--allow-empty", "-qm", "mine")
    user.mngr("destroy", "foo").failed()
    for line in REPLACING:
        ran_quietly(hostile, line)
    assert user.agents() == [] and list((user.host_dir / "git").iterdir()) == []


def test_no_verb_runs_anything_that_a_copy_on_another_machine_asks_for(user: User, hostile: HostileCopy) -> None:
    there = User()
    try:
        with Sshd(there, name="box") as box:
            user.env.update(box.client.env(user.env))
            user.mngr("create", "foo@box", "--no-connect", "--command", "sleep 9999").ok()
            hostile.spoil(user.work_dir("foo"), submodule=False)
            for line in ("diff foo", "pull foo", "merge foo", "push foo", "snapshot create foo --name one"):
                ran_quietly(hostile, line)
            user.git("commit", "--allow-empty", "-qm", "mine")
            for line in ("push foo", "clone foo bar@local", "migrate foo@box foo@local", "destroy foo --force"):
                ran_quietly(hostile, line)
    finally:
        there.close()


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_work_of_a_hostile_copy_is_saved_and_comes_back(user: User, hostile: HostileCopy, transfer: str) -> None:
    user.create("foo", "--transfer", transfer)
    hostile.spoil(user.work_dir("foo"))
    user.mngr("destroy", "foo").failed()
    user.mngr("destroy", "foo", "--force").ok()
    user.mngr("saved", "restore", "foo-1").ok()
    assert (user.work_dir("foo") / "a.own").read_text() == "two\n"
    assert hostile.started() == []


def test_a_worktree_that_names_another_repository_is_refused(user: User, hostile: HostileCopy) -> None:
    user.create("foo")
    work = user.work_dir("foo")
    other = user.root / "other"
    user.git("clone", "-q", str(user.repo), str(other))
    user.git("worktree", "add", "-q", "--detach", str(user.root / "inner"), cwd=other)
    (work / ".git").write_text((user.root / "inner" / ".git").read_text())
    hostile._write(other / ".git" / "config", other / ".git")
    for words in (("diff", "foo"), ("pull", "foo"), ("destroy", "foo"), ("snapshot", "create", "foo")):
        user.mngr(*words).failed()
    assert hostile.started() == []


def test_the_settings_of_the_user_count_in_a_copy(user: User) -> None:
    """Of the user and of the user's repository: who commits, how files are converted."""
    user.git("config", "filter.rot.clean", "tr a-z b-za")
    user.git("config", "filter.rot.smudge", "tr b-za a-z")
    (user.repo / ".gitattributes").write_text("secret filter=rot\n")
    (user.repo / "secret").write_text("plain\n")
    user.git("add", ".")
    user.git("commit", "-qm", "secret")
    for transfer in ("git-worktree", "git-mirror", "rsync"):
        user.create(transfer, "--transfer", transfer)
        assert user.mngr("diff", transfer).ok().stdout == ""
        user.mngr("destroy", transfer).ok()


def test_every_place_that_runs_git_says_whose_settings_count() -> None:
    plain = re.compile(r"(?<![\w.])Git\(")
    found = [path for path in SRC.rglob("*.py") if path.name != "git.py" and plain.search(path.read_text())]
    assert found == [], "use `Git.of_user`, `Git.of_agent` or `Git.of_store`"


def test_codex_is_given_no_git_directory_that_its_agent_names(user: User) -> None:
    """Its sandbox lets the agent write `.git` of a worktree, which says where the repository is."""
    other = user.root / "other"
    user.git("clone", "-q", str(user.repo), str(other))
    site = Fleet(environ=user.env).local

    def given(name: str) -> list[str]:
        record = site.store.read(user.agent(name)["id"]).changed(permissions="edits")
        words = permissions.codex_words(site.place(record))
        return [path for word, path in pairwise(words) if word == "--add-dir"]

    user.create("tree")
    user.create("mirror", "--transfer", "git-mirror")
    common, tree, mirror = user.repo / ".git", user.work_dir("tree"), user.work_dir("mirror")
    private = str(common / "worktrees" / tree.name)
    shared = [str(common / name) for name in ("objects", "refs/heads/mngr", "logs/refs/heads/mngr")]
    assert given("tree") == [private, *shared] and given("mirror") == [str(mirror / ".git")]
    (tree / ".git").write_text(f"gitdir: {other}/.git\n")
    (mirror / ".git").rename(mirror / "old")
    (mirror / ".git").symlink_to(other / ".git")
    assert given("tree") == given("mirror") == []
    (mirror / ".git").unlink()
    (mirror / ".git").write_text(f"gitdir: {other}/.git\n")
    assert given("mirror") == []
