"""This machine as a host: its state directory, files, locks and processes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, suppress
from functools import cached_property

from mngr.errors import MngrError
from mngr.system import files, process

FORMAT = "mngr state, format 1\n"
FORMAT_FILE = "format"
_ROOMS = ("agents", "locks", "worktrees", "clones", "saved", "snapshots", "machines")
# What a person or we may have put there before the first agent; anything else is another program's.
_NEUTRAL = frozenset(
    {
        *("settings.toml", "settings.toml.lock", "trusted", "crashes", "plugins.json", "programs.json", ".DS_Store"),
        *("hosts", "lib"),
    }
)


class StateDir:
    """The machine we run on. Making one touches nothing; the state directory appears with the first change."""

    name = "local"
    provider = "local"
    read = staticmethod(files.read_plain)
    read_from = staticmethod(files.read_from)
    read_tail = staticmethod(files.read_tail)
    write = staticmethod(files.write_atomic)
    append = staticmethod(files.append_line)
    make_dir = staticmethod(files.make_private_dir)
    move = staticmethod(os.rename)

    @staticmethod
    def remove(path: str) -> None:
        """Delete a file or a whole tree. Absent is fine."""
        from mngr.system.tree_removal import remove_tree

        remove_tree(path)

    def __init__(self, directory: str) -> None:
        self.dir = directory

    def is_ours(self) -> bool:
        """Whether the state directory exists in our format. One of another program is refused, never touched."""
        found = self._format()
        foreign = [] if found else sorted(name for name in self.entries(self.dir) if not self._is_neutral(name))
        if foreign and not (found := self._format()):  # looked at twice: another mngr may be preparing it right now
            raise _not_ours(self.dir, f"it holds `{foreign[0]}` but not our format marker")
        if found not in ("", FORMAT):
            raise _not_ours(self.dir, f"its format marker reads {found[:60]!r}")
        return bool(found)

    def prepare(self) -> None:
        """Make the state directory ours. Twice is safe, also at the same time: the marker comes last."""
        ours = self.is_ours()
        if "\n" in self.dir:
            raise MngrError(
                f"the path of the state directory has a newline: {self.dir!r}",
                hint="give it another place: `export MNGR_HOST_DIR=~/.mngr-fleet`",
            )
        for name in ("", *_ROOMS):
            path = os.path.join(self.dir, name)
            if not os.path.isdir(path):
                files.make_private_dir(path)
        if not ours:
            os.chmod(self.dir, 0o700)
            files.write_atomic(os.path.join(self.dir, FORMAT_FILE), FORMAT.encode())
        if not os.path.lexists(self.machine_file):
            files.make_file(self.machine_file)

    def _format(self) -> str:
        try:
            with open(os.path.join(self.dir, FORMAT_FILE), encoding="utf-8", errors="replace") as file:
                return file.read(200) or "nothing"
        except FileNotFoundError:
            return ""
        except NotADirectoryError:
            raise _not_ours(self.dir, "it is not a directory") from None

    def _is_neutral(self, name: str) -> bool:
        """A person's settings, our crash files, a room made ahead of the marker: nothing of another program."""
        return (
            name in _NEUTRAL
            or name.endswith(".draft")
            or (name in _ROOMS and not self.entries(os.path.join(self.dir, name)))
        )

    def entries(self, path: str) -> list[str]:
        try:
            return os.listdir(path)
        except FileNotFoundError:
            return []

    def locked(
        self, name: str, *, timeout: float, what: str, guards: str | None = None
    ) -> AbstractContextManager[bool]:
        return files.locked(os.path.join(self.dir, "locks", name), timeout=timeout, what=what, guards=guards)

    def remove_lock(self, name: str) -> None:
        files.remove_lock(os.path.join(self.dir, "locks", name))

    @cached_property
    def machine(self) -> str:
        """What this machine is called in records and among `machines/`: its name, and the beginning of its own id. A
        home directory may be on several machines, which can have one id (copied disks) or one name."""
        name = re.sub(r"[^\w.-]", "_", os.uname().nodename).lstrip(".")[:64]
        own = files.content("/etc/machine-id")[:8].decode("ascii", "replace")
        return f"{name}-{own}" if own.isalnum() else name

    @property
    def machine_file(self) -> str:
        """Where the tmux socket of this machine is noted, from the first start of an agent on it. Empty before."""
        return os.path.join(self.dir, "machines", self.machine)

    def is_elsewhere(self, machine: str, boot_id: str) -> bool:
        """Whether what was started on `machine`, at its boot `boot_id`, may run on another machine with this state
        directory, where it cannot be seen from here. False once the file of that machine was removed."""
        ours = self.boot_id()
        if not machine or not boot_id or boot_id == ours or machine == self.machine:
            return False
        if not os.path.lexists(os.path.join(self.dir, "machines", machine)):
            return False
        of_same_kernel = boot_id.rpartition("-")[0] == ours.rpartition("-")[0]  # another container
        # A disk is mounted by one machine at a time: then it was this one, before it restarted.
        return of_same_kernel or os.major(os.stat(self.dir).st_dev) == 0

    def here(self) -> dict[str, str]:
        """Where a process that we start now runs, as records have it."""
        return {"machine": self.machine, "boot_id": self.boot_id()}

    def boot_id(self) -> str:
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                kernel = file.read().strip()
            return f"{kernel}-{_started_at_1()}"
        except OSError:
            result = (
                process.run(["sysctl", "-n", "kern.bootsessionuuid"], timeout=5) if sys.platform == "darwin" else None
            )
            return result.text if result and result.ok else ""

    def reads_lines(self, tty: str) -> bool:
        """Whether the program on this terminal reads it line by line (canonical mode)."""
        import termios

        fd = os.open(tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            return bool(termios.tcgetattr(fd)[3] & termios.ICANON)
        finally:
            os.close(fd)

    def unread(self, tty: str) -> int:
        """How many bytes of the input of this terminal its program has not read; 0 when the terminal is gone."""
        import select

        try:
            fd = os.open(tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            return 0
        try:
            if not select.select([fd], [], [], 0)[0]:
                return 0
            import fcntl
            import termios

            return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)
        except OSError:
            return 0
        finally:
            os.close(fd)

    def processes_of(self, agent_id: str, roots: Collection[int], server: int | None) -> dict[int, str]:
        from mngr.system import process_table as processes

        return processes.of_agent(agent_id, roots, server)

    def signal(self, found: Mapping[int, str], number: int) -> None:
        for pid in self.alive(found):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def myself(self) -> tuple[int, str] | None:
        """This process, in the form that `alive` takes."""
        from mngr.system import process_table as processes

        return processes.identify(os.getpid())

    def alive(self, found: Mapping[int, str]) -> dict[int, str]:
        from mngr.system import process_table as processes

        return processes.still_alive(found)


def _started_at_1() -> str:
    """When the first process began. A container has one of its own, and shares the kernel of its machine."""
    try:
        with open("/proc/1/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode("ascii")
    except (OSError, IndexError):
        return ""


def _not_ours(directory: str, why: str) -> MngrError:
    return MngrError(
        f"`{directory}` was written by another program or another version of mngr: {why}",
        hint="it was left as it is; give this mngr a place of its own: `export MNGR_HOST_DIR=~/.mngr-fleet`",
    )
