"""What every host can do. The same verbs run on this machine and on any other through this protocol alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from mngr.process import Runner

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class Host(Runner, Protocol):
    """A place with a state directory, files and processes. Every Host is a Runner."""

    @property
    def name(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def dir(self) -> str:
        """The state directory on this host (`$MNGR_HOST_DIR`)."""

    def read(self, path: str) -> bytes:
        """Raises FileNotFoundError."""

    def read_tail(self, path: str, size: int) -> tuple[bytes, bool]: ...
    def write(self, path: str, data: bytes, mode: int = 0o600, *, durable: bool = False) -> None:
        """Replace the file whole or not at all; with `durable` it survives a power cut from the return on."""

    def append(self, path: str, value: Mapping[str, Any]) -> None: ...
    def entries(self, path: str) -> list[str]:
        """Names in a directory; an absent directory has none."""

    def make_dir(self, path: str) -> None: ...
    def remove(self, path: str) -> None:
        """Delete a file or a whole tree. Absent is fine."""

    def move(self, source: str, target: str) -> None: ...
    def locked(
        self, name: str, *, timeout: float, what: str, guards: str | None = None
    ) -> AbstractContextManager[bool]:
        """Hold one of this host's named locks. Its file is removed at the end when the path `guards` is gone."""

    def remove_lock(self, name: str) -> None:
        """Remove the file of a lock that nobody holds; one that is held stays."""

    def boot_id(self) -> str:
        """Changes with every boot; empty when the host cannot tell."""

    def reads_lines(self, tty: str) -> bool: ...
    def processes_of(self, agent_id: str, roots: Collection[int], server: int | None) -> dict[int, str]:
        """The agent's processes, by id, each with its start time: descendants of `roots`, and those that left them
        but carry the agent's id in their environment. `server` is the id of the tmux server, if there is one."""

    def signal(self, processes: Mapping[int, str], number: int) -> None:
        """Signal those that are still the same process."""

    def alive(self, processes: Mapping[int, str]) -> dict[int, str]: ...
    def myself(self) -> tuple[int, str] | None: ...
