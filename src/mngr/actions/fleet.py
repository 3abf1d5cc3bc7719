"""The fleet: where its agents are kept and how to reach them. Making one reads and touches nothing."""

import os
from collections.abc import Mapping
from functools import cached_property

from mngr import config
from mngr.agents.store import Store
from mngr.config import Settings
from mngr.hosts.local import LocalHost
from mngr.tools.tmux import Tmux


class Fleet:
    """What every verb works on: this machine's agents, for one caller's environment, directory and settings."""

    def __init__(
        self, *, environ: Mapping[str, str] | None = None, cwd: str | None = None, settings: Settings | None = None
    ) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        self.cwd = cwd or os.getcwd()
        self.host = LocalHost(config.host_dir(self.environ))
        self.store = Store(self.host)
        self.tmux = Tmux(self.host, self.environ)
        if settings is not None:
            self.__dict__["settings"] = settings

    @cached_property
    def settings(self) -> Settings:
        return config.load(host_dir=self.host.dir, cwd=self.cwd, environ=self.environ)
