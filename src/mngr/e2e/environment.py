"""The world of one test: home, repository, programs, temporary files and a tmux server, all below one directory."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from mngr.e2e import artifacts, cleanup, replay
from mngr.system import files, process, tree_removal

# Variables of the outside that would reach into the test: other fleets, repositories, terminals, runs of pytest.
_FOREIGN = ("TMUX", "MNGR_", "GIT_", "XDG_", "PYTEST_")
_FOREIGN_NAMES = frozenset(
    {
        *("COLUMNS", "LINES", "BASH_ENV", "ENV", "PWD", "OLDPWD", "CDPATH", "PROMPT_COMMAND"),
        *("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PY_COLORS", "COLORTERM"),
    }
)
_GIT_SECONDS = 60
_SHORT = 20  # characters of a path


def short_place() -> str | None:
    """The directory for temporary files, or `/tmp` where that one has a long path, as on macOS: sockets of tmux need
    short ones."""
    usual = len(tempfile.gettempdir()) <= _SHORT
    return None if usual or not os.access("/tmp", os.W_OK | os.X_OK) else "/tmp"


class Environment:
    """Made whole, or not at all. `clean` ends what runs in it and removes it."""

    def __init__(self, environ: Mapping[str, str], watch: Callable[[str], None] | None = None) -> None:
        """`watch` is told of the directory before anything runs in it."""
        self.root = Path(os.path.realpath(tempfile.mkdtemp(prefix="e2e-", dir=short_place())))
        self.home = self.root / "home"
        self.repo = self.root / "repo"
        self.bin = self.root / "bin"
        self.temp = self.root / "tmp"
        self.tmux = self.root / "t"
        try:
            if watch is not None:
                watch(str(self.root))
            for path in (self.home, self.repo, self.bin, self.temp, self.tmux):
                path.mkdir(mode=0o700)
            self.env = self._variables(environ)
            (self.home / ".gitconfig").write_text(_GIT_CONFIG)
            replay.repository(str(self.root), self._make_repository)
        except BaseException:
            tree_removal.remove_tree(str(self.root))
            raise

    @property
    def settings(self) -> Path:
        return self.home / ".mngr" / "settings.toml"

    def clean(self) -> None:
        self.end()
        tree_removal.remove_tree(str(self.root))

    def end(self) -> None:
        if not replay.replaying():
            cleanup.end(lambda: cleanup.of_environment(str(self.root)))

    def write_remove_script(self, directory: str) -> None:
        """Say in the test's artifacts where the environment is, and how to remove it."""
        artifacts.write_json(os.path.join(directory, artifacts.ENVIRONMENT_FILE), {"root": str(self.root)})
        script = cleanup.remove_script(str(self.root)).encode()
        files.write_atomic(os.path.join(directory, artifacts.REMOVE_SCRIPT), script, mode=0o755)

    def _variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        foreign = {name for name in environ if name in _FOREIGN_NAMES or name.startswith(_FOREIGN)}
        path = [str(self.bin), os.path.dirname(sys.executable), environ.get("PATH") or os.defpath]
        return {
            **{name: environ[name] for name in environ.keys() - foreign},
            "HOME": str(self.home),
            "TMPDIR": str(self.temp),
            "TMUX_TMPDIR": str(self.tmux),
            "MNGR_HOST_DIR": str(self.home / ".mngr"),
            "PATH": ":".join(path),
            "TERM": "xterm-256color",
            "LANG": _LOCALE,
            "LC_ALL": _LOCALE,
        }

    def _make_repository(self) -> None:
        (self.repo / "README.md").write_text("# A repository for one test\n")
        for words in (["init", "--quiet", "--template="], ["add", "README.md"], ["commit", "--quiet", "-m", "Begin"]):
            process.checked(process.run(["git", *words], timeout=_GIT_SECONDS, cwd=str(self.repo), env=self.env))


_LOCALE = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"
_GIT_CONFIG = """\
[user]
\tname = Test User
\temail = test@example.com
[init]
\tdefaultBranch = main
[commit]
\tgpgSign = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
