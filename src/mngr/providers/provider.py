"""What a provider is: it makes, lists, stops, snapshots and destroys hosts, and says how to reach each of them.

The whole interface to a host is `opening`: a program that runs a shell command line there with its input and output.
Everything else (our program on the host, git, files, terminals) goes through that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from mngr.errors import UNREACHED, MngrError, UsageError

if TYPE_CHECKING:
    from mngr.remote.channel import Opening

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
