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
[color]
\tui = always
[merge]
\tff = only
[status]
\tshort = true
\tshowUntrackedFiles = no
\tbranch = true
[log]
\tshowSignature = true
\tdecorate = full
[core]
\tquotePath = true
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
        with (self.home / ".gitconfig").open("a") as file:
            file.write(_GIT_CONFIG.format(script=script))
        self._verbs = 0
        self._immutable: list[Path] = []

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

    def create(self, name: str, *words: str, command: str = "sleep 9999") -> dict[str, Any]:
        agent = super().create(name, *words, command=command)
        self.scroll(name)
        return agent

    def scroll(self, name: str) -> None:
        """As one turn of the mouse wheel in the agent's terminal does: its pane is in copy mode."""
        self.tmux("copy-mode", "-t", f"=mngr-{name}:0").ok()

    def watch_copy(self, work_dir: Path) -> Path:
        """As an agent may: make git run a program at each look at this copy. Returns the file which that leaves."""
        marker = self.root / "ran-by-git"
        words = ["--worktree"] if self.git("rev-parse", "--git-dir", cwd=work_dir) != ".git" else []
        if words:
            self.git("config", "extensions.worktreeConfig", "true", cwd=work_dir)
        self.git("config", *words, "core.fsmonitor", f"touch {marker}; false", cwd=work_dir)
        return marker

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
