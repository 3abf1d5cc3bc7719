"""What a provider is: it makes, lists, stops, snapshots and destroys hosts, and says how to reach each of them.

The whole interface to a host is `opening`: a program that runs a shell command line there with its input and output.
Everything else (our program on the host, git, files, terminals) goes through that."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Set
from typing import Any, NoReturn

from mngr.actions.site import Site
from mngr.errors import UNREACHED, MngrError, UsageError
from mngr.named_tuples import NamedTuple
from mngr.remote.channel import Opening
from mngr.system.files import make_private_dir

# States of a host. GONE is the provider's word that it does not exist any more; UNKNOWN that nobody could say.
RUNNING, STOPPED, STARTING, QUEUED, GONE = "RUNNING", "STOPPED", "STARTING", "QUEUED", "GONE"
UNKNOWN = "UNKNOWN"


class HostInfo(NamedTuple):
    """A host as its provider knows it. `ours` says that mngr made it, and may stop and destroy it. `details` are for
    people and for the provider itself: an id, an address, an image."""

    name: str
    state: str = RUNNING
    ours: bool = False
    created_at: float | None = None
    labels: Mapping[str, str] = {}
    details: Mapping[str, str] = {}


class HostRequest(NamedTuple):
    """What host to make. `image` and `snapshot` are what the provider calls them; empty is its default."""

    name: str
    image: str = ""
    snapshot: str = ""
    build_args: tuple[str, ...] = ()
    start_args: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    env: Mapping[str, str] = {}


class Unsupported(UsageError):
    """The provider has no such thing."""


class Provider:
    """The hosts of one provider. Making one touches nothing. Each verb raises MngrError when it cannot be done; what
    could not be asked is never answered as absent."""

    max_agents: int | None = None  # of each host of a pool

    def __init__(self, name: str) -> None:
        self.name = name

    def opening(self, host: str) -> Opening:
        """How to reach this host. Changes nothing; does not prove that the host exists."""
        raise self._unsupported("opening hosts")

    def hosts(self) -> list[HostInfo]:
        """The hosts that this provider knows: those of the settings, and those that mngr made."""
        return []

    def host(self, name: str) -> HostInfo:
        """One host; its state is GONE when the provider knows that it does not exist."""
        return next((host for host in self.hosts() if host.name == name), HostInfo(name, GONE))

    def explain(self, host: str, error: MngrError) -> NoReturn:
        """Raise what is wrong with a host that cannot be used: it is stopped or gone, or this error."""
        state, at = self.host(host).state, f"{host}.{self.name}"
        if state == STOPPED:
            raise MngrError(f"host `{host}` is stopped", hint=f"start it: `mngr host start {at}`", exit_code=UNREACHED)
        if state == GONE:
            hint = f"`mngr host forget {at}` forgets it and its agents"
            raise MngrError(f"provider `{self.name}` has no host `{host}`", hint=hint, exit_code=UNREACHED)
        raise error

    def pool(self) -> list[str]:
        """The hosts to choose from for a new agent (`foo@.PROVIDER`). Empty: a new host is made for it."""
        return []

    def check(self, request: HostRequest) -> None:
        """Raise when this provider cannot make such a host. Asks nobody."""
        self.require("create")

    def require(self, verb: str) -> None:
        """Raise Unsupported when this provider has no such verb: `create`, `start`, `stop`, `snapshot` or `destroy`."""
        if getattr(type(self), verb) is getattr(Provider, verb):
            raise self._unsupported(f"`{verb}` of hosts")

    def disconnect(self, host: str) -> None:
        """End connections that are kept open for the next verb. Twice is safe."""

    def create(self, request: HostRequest, progress: Callable[[str], None]) -> HostInfo:
        """Make and start a host. On failure nothing is left behind."""
        raise self._unsupported("`create` of hosts")

    def start(self, host: str) -> None:
        """Start a stopped host. Twice is safe."""
        raise self._unsupported("`start` of hosts")

    def stop(self, host: str) -> None:
        """Stop a host and keep its files. Twice is safe."""
        raise self._unsupported("`stop` of hosts")

    def destroy(self, host: str) -> None:
        """Remove a host that mngr made, with its files. Twice is safe."""
        raise self._unsupported("`destroy` of hosts")

    def sweep(self) -> list[str]:
        """Remove what destroyed hosts left on machines that other hosts share; the names of those hosts."""
        return []

    def snapshot(self, host: str, name: str) -> str:
        """Keep the files of a host as they are now; the answer is for `HostRequest.snapshot`."""
        raise self._unsupported("snapshots of hosts")

    def _unsupported(self, what: str) -> Unsupported:
        return Unsupported(
            f"provider `{self.name}` does not support {what}", hint="`mngr help providers` shows what each can do"
        )


class SettingsProvider(Provider):
    """A provider with a table of the settings, `[providers.NAME]`, which may have these keys."""

    def __init__(self, name: str, local: Site, values: Mapping[str, object], keys: Set[str]) -> None:
        super().__init__(name)
        self._local, self._values = local, values
        if unknown := sorted(values.keys() - keys - {"type"}):
            raise UsageError(
                f"`providers.{name}.{unknown[0]}` is not a setting of a provider of this type",
                hint="`mngr help providers` shows the settings of each type",
            )

    def _text(self, key: str) -> str:
        value = self._values.get(key)
        return "" if value is None else f"{value:g}" if isinstance(value, int | float) else str(value)

    def _texts(self, key: str) -> list[str]:
        value = self._values.get(key)
        return [str(item) for item in value] if isinstance(value, list | tuple) else []

    def _number(self, key: str, default: float = 0.0) -> float:
        value = self._values.get(key)
        return float(value) if isinstance(value, int | float) else default

    def _socket_dir(self, path: str, longest: int) -> str:
        """A private directory for sockets, whose paths are limited: this one, or the first place that is short enough
        for `longest` bytes."""
        if len(os.fsencode(path)) <= longest:
            make_private_dir(path)
            return path
        import hashlib

        key = hashlib.sha256(os.fsencode(path)).hexdigest()[:8]
        environ = self._local.environ
        for place in (environ.get("XDG_RUNTIME_DIR"), environ.get("TMPDIR"), "/tmp"):
            path = os.path.join(place or "", f"mngr-{os.getuid()}-{key}")
            if place and os.path.isdir(place) and len(os.fsencode(path)) <= longest:
                make_private_dir(path)
                found = os.lstat(path)
                if found.st_uid == os.getuid() and not found.st_mode & 0o077:
                    return path
        raise MngrError("there is no private directory for sockets", hint=f"look at `{path}`")


class HelperProvider(SettingsProvider):
    """A provider whose own package is in one process for all programs of the user, the helper: see `providers.pipe`.
    There is one for each set of `variables`, which say whose account or which cluster it is."""

    helper: str  # its module
    variables: str  # the beginning of their names
    connect_seconds = 60.0

    @property
    def environ(self) -> Mapping[str, str]:
        return self._local.environ

    def opening(self, host: str) -> Opening:
        from mngr.remote.channel import Opening

        argv = [sys.executable, "-P", "-m", "mngr.providers.pipe", self.helper, self._socket(), self._key(host)]
        seconds = self._number("connect_seconds", self.connect_seconds)
        opening = Opening(host, argv, self.environ, self._text("host_dir"), seconds)
        return opening._replace(recover=lambda error: self.explain(host, error))

    def _key(self, host: str) -> str:
        """What the helper calls this host."""
        return host

    def _ask(self, do: str, **details: object) -> Any:
        from mngr.providers import pipe

        return pipe.ask(self.helper, self._socket(), self.environ, do, **details)

    def _socket(self) -> str:
        import hashlib

        named = sorted(item for item in self.environ.items() if item[0].startswith(self.variables))
        key = hashlib.sha256(repr(named).encode()).hexdigest()[:12]
        directory = os.path.join(self._local.host.dir, "hosts", self.name)
        return os.path.join(self._socket_dir(directory, _LONGEST_HELPER_DIR), key)


_LONGEST_HELPER_DIR = 70  # in bytes; a socket has 107, of which 13 are its name
