"""A user whose world is not a friendly one: everything that the verbs of mngr may meet, all at once.

Blanks and umlauts in the home, no locale, every second verb from a shell with another `TMUX_TMPDIR`, git settings that
change what git prints and does, panes in copy mode, and what an agent can do to its copy: see the methods."""

import fcntl
import functools
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import forking
from tests.support.user import Ran, User, ran

# What many people have in theirs, and what breaks whoever reads git's output or relies on its defaults.
_GIT_CONFIG = """\
[diff]
\texternal = {script}
\tmnemonicPrefix = true
\tnoprefix = true
\trenames = copies
\tignoreSubmodules = all
\tsubmodule = log
\trelative = true
\tcontext = 0
[color]
\tui = always
[column]
\tui = always
[merge]
\tff = only
\tconflictStyle = diff3
[status]
\tshort = true
\tshowUntrackedFiles = no
\tbranch = true
\tsubmoduleSummary = true
[log]
\tshowSignature = true
\tdecorate = full
\tabbrevCommit = true
\tdate = relative
[format]
\tpretty = oneline
[i18n]
\tlogOutputEncoding = ISO-8859-1
[fetch]
\tprune = true
\tpruneTags = true
\trecurseSubmodules = true
[branch]
\tsort = -committerdate
\tautoSetupMerge = always
\tautoSetupRebase = always
[push]
\tdefault = nothing
\trecurseSubmodules = check
[clone]
\tdefaultRemoteName = upstream
[checkout]
\tdefaultRemote = upstream
[submodule]
\trecurse = true
[core]
\tabbrev = 4
\thooksPath = {hooks}
\tlogAllRefUpdates = false
\tuntrackedCache = true
[index]
\tversion = 4
[feature]
\tmanyFiles = true
[rerere]
\tenabled = true
[protocol "file"]
\tallow = always
"""
_OWN_GIT_CONFIG = """\
[init]
\tdefaultBranch = main
[maintenance]
\tauto = false
[protocol "file"]
\tallow = always
"""


class HostileUser(User):
    def __init__(self) -> None:
        super().__init__(home="Jörg & Söhne's home")
        self.second_tmux_dir = self.root / "second"
        self.second_tmux_dir.mkdir()
        self.env = {name: value for name, value in self.env.items() if name != "LANG" and not name.startswith("LC_")}
        script = self.root / "differ"
        script.write_text("#!/bin/sh\necho 'drawn by another program'\n")
        script.chmod(0o755)
        hooks = self.home / "hooks of mine"
        hooks.mkdir()
        for hook in ("post-checkout", "post-merge", "pre-push", "reference-transaction", "post-index-change"):
            (hooks / hook).write_text("#!/bin/sh\necho said by a hook\necho said by a hook >&2\n")
            (hooks / hook).chmod(0o755)
        with (self.home / ".gitconfig").open("a") as file:
            file.write(_GIT_CONFIG.format(script=script, hooks=hooks))
        self._own_config = self.root / "gitconfig"  # what the test itself runs git with, to look and to work
        self._own_config.write_text("[user]\n\tname = An Agent\n\temail = agent@example.com\n" + _OWN_GIT_CONFIG)
        self.ran_by_git = self.root / "ran-by-git"
        self._verbs = 0
        self._immutable: list[Path] = []
        (self.repo / ".mngr").mkdir()
        (self.repo / ".mngr" / "settings.toml").write_text('[workspace]\nextra_paths = ["local.ini"]\n')
        (self.repo / ".gitignore").write_text("local.ini\nbuild/\n")
        (self.repo / "local.ini").write_text("local\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "Einstellungen für mngr")

    def mngr(
        self,
        *words: str,
        input: str | bytes | None = None,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> Ran:
        """Every second verb comes from a shell whose login set another `TMUX_TMPDIR`."""
        self._verbs += 1
        elsewhere = {"TMUX_TMPDIR": str(self.second_tmux_dir)} if self._verbs % 2 == 0 else {}
        full = {**self.env, **elsewhere, **(env or {})}
        data = input.encode() if isinstance(input, str) else input or b""
        return ran(_forker().run(words, data, str(cwd or self.repo), full, timeout))

    def git(self, *words: str, cwd: str | Path | None = None) -> str:
        """As one who obeys neither the user's settings nor those of the copy."""
        env = {"GIT_CONFIG_GLOBAL": str(self._own_config)}
        own = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "filter.agent.clean=cat", "filter.agent.smudge=cat")
        options = [word for setting in own for word in ("-c", setting)]
        done = self.run(["git", *options, *words], cwd=cwd, env=env)
        assert done.exit_code == 0, f"git {words}: {done.stderr}"
        return done.stdout.rstrip("\n")

    def create(self, name: str, *words: str, command: str = "sleep 9999") -> dict[str, Any]:
        agent = super().create(name, *words, command=command)
        self.scroll(name)
        return agent

    def create_hostile(self, name: str, *words: str, command: str = "sleep 9999") -> Path:
        """An agent that has done all it can to its copy. Returns its work dir."""
        self.create(name, *words, command=command)
        work_dir = self.work_dir(name)
        self.add_submodule(work_dir)
        (work_dir / "Änderung.txt").write_text("not committed\n")
        self.make_undeletable(work_dir / "build" / "by-root")
        self.watch_copy(work_dir)
        return work_dir

    def scroll(self, name: str) -> None:
        """As one turn of the mouse wheel in the agent's terminal does: its pane is in copy mode."""
        self.tmux("copy-mode", "-t", f"=mngr-{name}:0").ok()

    def watch_copy(self, work_dir: Path) -> None:
        """As an agent may: make git run a program at each look at this copy, which leaves the file `ran_by_git`."""
        own, common = self.git("rev-parse", "--git-dir", "--git-common-dir", cwd=work_dir).split("\n")
        words = ["--worktree"] if own != common else []
        if words:
            self.git("config", "extensions.worktreeConfig", "true", cwd=work_dir)
        hooks = self.root / "hooks"
        hooks.mkdir(exist_ok=True)
        for hook in ("post-checkout", "post-merge", "reference-transaction", "post-index-change"):
            (hooks / hook).write_text(f"#!/bin/sh\ntouch {self.ran_by_git}\n")
            (hooks / hook).chmod(0o755)
        run = f"touch {self.ran_by_git}; false"
        for name, value in {
            "core.fsmonitor": run,
            "core.hooksPath": str(hooks),
            "diff.external": run,
            "core.pager": run,
            "filter.agent.clean": f"touch {self.ran_by_git}; cat",
            "filter.agent.smudge": f"touch {self.ran_by_git}; cat",
        }.items():
            self.git("config", *words, name, value, cwd=work_dir)
        (work_dir / ".gitattributes").write_text("*.txt filter=agent\n")

    def add_submodule(self, work_dir: Path) -> str:
        """As an agent may: a submodule with a commit that no other repository has. Returns that commit."""
        origin = self.root / "library"
        if not origin.exists():
            self.git("clone", "-q", str(self.repo), str(origin))
        self.git("submodule", "--quiet", "add", str(origin), "sub", cwd=work_dir)
        (work_dir / "sub" / "own").write_text("only here\n")
        self.git("add", "own", cwd=work_dir / "sub")
        self.git("commit", "-qm", "inside the submodule", cwd=work_dir / "sub")
        self.git("add", "-A", cwd=work_dir)
        self.git("commit", "-qm", "a submodule", cwd=work_dir)
        return self.git("rev-parse", "HEAD", cwd=work_dir / "sub")

    def make_undeletable(self, path: Path) -> bool:
        """As one that a container made as root. False where this machine has no such thing: that needs root, and a
        file system with attributes."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("cannot be deleted\n")
        done = subprocess.run(["chattr", "+i", str(path)], capture_output=True, check=False)
        if done.returncode == 0:
            self._immutable.append(path)
        return done.returncode == 0

    def make_deletable(self) -> None:
        """Again, wherever the files are by now: mngr may have moved them."""
        if self._immutable:
            self._immutable.clear()
            subprocess.run(["chattr", "-R", "-f", "-i", str(self.root)], capture_output=True, check=False)

    def read_slowly(self, *words: str) -> Ran:
        """A verb whose output goes through a pipe of one page, and is read in small pieces."""
        source, sink = os.pipe()
        _set_pipe_size(sink)
        process = subprocess.Popen(
            [forking.MNGR, *words], stdout=sink, stderr=subprocess.DEVNULL, cwd=self.repo, env=self.env
        )
        os.close(sink)
        parts = []
        while part := os.read(source, 512):
            parts.append(part)
        os.close(source)
        return Ran(process.wait(60), b"".join(parts).decode(), "")

    def read_by_nobody(self, *words: str) -> Ran:
        """A verb whose output nobody reads any more."""
        source, sink = os.pipe()
        os.close(source)
        with os.fdopen(sink, "wb") as out:
            done = subprocess.run(
                [forking.MNGR, *words], stdout=out, stderr=subprocess.PIPE, cwd=self.repo, env=self.env, check=False
            )
        return Ran(done.returncode, "", done.stderr.decode(errors="replace"))

    def close(self) -> None:
        self.make_deletable()
        super().close()


def _set_pipe_size(fd: int) -> None:
    fcntl.fcntl(fd, getattr(fcntl, "F_SETPIPE_SZ", 1031), 4096)


@functools.cache
def _forker() -> forking.Forker:
    """Of processes without a locale."""
    return forking.Forker({"PATH": os.environ["PATH"]})
