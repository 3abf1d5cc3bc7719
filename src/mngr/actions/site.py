"""A site: one machine's agents, as one caller sees them. Making one reads and touches nothing.

Every function of `actions/` that takes a `site` first and plain data otherwise is a verb. Callers that are not on the
agent's own machine use `run`, the one door through which a verb can go to another machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

from mngr.agent.record import Record
from mngr.agent.store import Store
from mngr.named_tuples import NamedTuple
from mngr.settings import layers as config
from mngr.settings.layers import Settings
from mngr.system.state_dir import StateDir
from mngr.system.tmux import Pane, Tmux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec, TypeVar

    from mngr.programs.driver import AgentContext

    P = ParamSpec("P")
    T = TypeVar("T")


class RemotePath(NamedTuple):
    """A directory of a site as git or rsync on the caller's machine names it, and the variables they need for that."""

    path: str
    env: Mapping[str, str]


class Site:
    """This machine: its files and processes, its records of agents, its tmux server, and the caller's environment,
    directory and settings."""

    name = "local"
    provider = "local"
    clock_skew = 0.0  # how much the site's clock is ahead of the caller's, in seconds

    def __init__(
        self, *, environ: Mapping[str, str] | None = None, cwd: str | None = None, settings: Settings | None = None
    ) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        self.cwd = cwd or os.getcwd()
        self.host = StateDir(config.host_dir(self.environ))
        self.store = Store(self.host)
        self.tmux = Tmux(self.environ, self.host)
        if settings is not None:
            self.__dict__["settings"] = settings

    @cached_property
    def settings(self) -> Settings:
        """All settings that hold in this directory."""
        return config.load(host_dir=self.host.dir, cwd=self.cwd, environ=self.environ)

    @property
    def local(self) -> Site:
        """The site of the caller's own machine, with the user's repositories and files."""
        return self

    @property
    def is_local(self) -> bool:
        return self.local is self

    def run(self, verb: Callable[Concatenate[Site, P], T], *args: P.args, **options: P.kwargs) -> T:
        """Run a verb on this site. `verb` is a module-level function of `actions/`; its arguments and its result are
        plain data (ids, text, numbers, bytes, records), so that another machine's site can send them."""
        return verb(self, *args, **options)

    def close(self) -> None:
        """End the connection to another machine. Agents keep running; the next verb opens a new one."""

    @contextmanager
    def carrying(self) -> Iterator[None]:
        """While a program carries something to this site or from it: when it fails because the connection is lost, the
        error says so, since then another try is worth it."""
        yield

    def git_path(self, directory: str) -> RemotePath:
        """A repository of this site, for git on the caller's machine."""
        return RemotePath(directory, {})

    def rsync_path(self, path: str) -> RemotePath:
        """A path of this site, for rsync on the caller's machine."""
        return RemotePath(path, {})

    def terminal_argv(self, argv: Sequence[str]) -> list[str]:
        """What to run on the caller's machine so that this program of the site gets its terminal."""
        return list(argv)

    def path(self, text: str) -> str:
        """A path that somebody typed, as an absolute one. `~` is what a shell here makes of it: none has seen that in
        `NAME:~/dir`, nor in one that was typed for this machine on another."""
        home = self.environ.get("HOME")
        if home and (text == "~" or text.startswith("~/")):
            text = home + text[1:]
        return os.path.abspath(os.path.join(self.cwd, os.path.expanduser(text)))

    def session(self, name: str) -> str:
        """What the tmux session of an agent is called."""
        return self.settings.text("tmux.session_prefix", "mngr-") + name

    def work_dir(self, transfer: str, name: str, agent_id: str) -> str:
        """Where the copy of the code is of an agent that names no other place."""
        room = "worktrees" if transfer == "git-worktree" else "clones"
        return os.path.join(self.host.dir, room, f"{name}-{agent_id[6:14]}")

    def place(self, record: Record, pane: Pane | None = None) -> AgentContext:
        """An agent as the driver of its program sees it."""
        from mngr.programs.driver import AgentContext

        def screen() -> str:
            return self.tmux.capture(pane, escapes=True) if pane is not None else ""

        return AgentContext(self.host, record, self.store.state_dir(record.id), self.environ, screen)
