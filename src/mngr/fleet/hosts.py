"""The machines of a fleet: which there are, how to reach them, and asking many of them at once."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from mngr.actions import find
from mngr.actions.site import Site
from mngr.errors import UNREACHED, MngrError, NotFoundError, UsageError
from mngr.fleet.known_hosts import KnownHost, KnownHosts
from mngr.names import Address, parse_address
from mngr.system.interrupts import check, held
from mngr.system.waiting import Deadline

if TYPE_CHECKING:
    from mngr.actions.view import AgentView
    from mngr.providers.provider import HostInfo, HostRequest, Provider
    from mngr.remote.channel import Opening
    from mngr.remote.site import RemoteSite

T = TypeVar("T")
LOCAL = "local"
DEFAULT_PROVIDER = "ssh"
ANSWER_SECONDS = 15.0
_LONGEST = 40  # of the name of an agent, in that of its host: clouds and kernels take 63 characters
# The beginnings of what a host is made for. It is destroyed with the last agent, or at the end of the run.
FOR_AGENT, FOR_RUN = "agent ", "run "


class Hosts:
    """This machine, and the other hosts that are known or named. A connection is opened at the first use of a site and
    shared by all that ask for the same host."""

    def __init__(self, local: Site) -> None:
        self.local = local
        self.known = KnownHosts(local.host)
        self._sites: dict[tuple[str, str], RemoteSite] = {}
        self._made: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            sites, self._sites = self._sites, {}
        for site in sites.values():
            site.hang_up()
        for site in sites.values():
            site.close()

    def sites(self) -> list[Site]:
        """This machine and every known host."""
        return [self.local, *(self._remote(host.name, host.provider) for host in self.known.all())]

    def site(self, host: str, provider: str | None = None) -> Site:
        """The site of a host. Without a provider: a known host of this name, else one that ssh can reach."""
        if provider is None:
            if host == LOCAL:
                return self.local
            known = self.known_host(host)
            provider = known.provider if known else DEFAULT_PROVIDER
        if provider == LOCAL:
            if host != LOCAL:
                raise UsageError(f"provider `local` has no host `{host}`", hint="this machine is `local`")
            return self.local
        self.provider(provider)
        return self._remote(host, provider)

    def known_host(self, name: str, provider: str | None = None) -> KnownHost | None:
        """The known host of this name. Raises when several providers have one."""
        found = [one for one in self.known.all() if one.name == name and provider in (None, one.provider)]
        if len(found) > 1:
            hint = "say which: " + ", ".join(f"`{one.name}.{one.provider}`" for one in found)
            raise UsageError(f"several hosts are called `{name}`", hint=hint)
        return found[0] if found else None

    def _remote(self, host: str, provider: str) -> RemoteSite:
        """The site of a known host. That its provider is not there any more is an error of each verb on it."""
        from mngr.remote.site import RemoteSite

        def opening() -> Opening:
            return self.provider(provider).opening(host)

        with self._lock:
            return self._sites.setdefault((provider, host), RemoteSite(host, provider, opening, self.local))

    def provider(self, name: str) -> Provider:
        from mngr.providers import registry

        return registry.find(name, self.local)

    def address(self, text: str) -> Address:
        """An address of which the provider, if it names one, exists."""
        if "@" not in text:
            return parse_address(text)
        from mngr.providers import registry

        return parse_address(text, registry.names(self.local.settings))

    def place(
        self,
        host: str | None,
        provider: str | None,
        request: HostRequest,
        progress: Callable[[str], None] = lambda text: None,
    ) -> Site:
        """The site for a new agent: this machine, a named host, or a host that the provider chooses or makes."""
        if host is not None:
            return self.site(host, provider)
        if provider in (None, LOCAL):
            return self.local
        assert provider is not None
        chosen = self.provider(provider)
        if pool := chosen.pool():
            return self._least_loaded(chosen, pool)
        short = request.name[:_LONGEST].rstrip("-._")
        named = request._replace(name=f"{short}-{os.urandom(3).hex()}")
        info = self.create(provider, named, progress, made_for=FOR_AGENT + request.name)
        return self.site(info.name, provider)

    def create(
        self, provider: str, request: HostRequest, progress: Callable[[str], None], made_for: str = ""
    ) -> HostInfo:
        """Make a host of this name and remember it, with what it is made for and by which process, before it is there:
        `mngr gc` finds one whose maker was killed. On failure nothing is left behind; what could not be removed stays
        known."""
        maker = self.provider(provider)
        maker.check(request)
        if self.known.get(provider, request.name) is not None:
            raise UsageError(f"there is a host `{request.name}.{provider}` already", hint="`mngr host list` shows it")
        self.local.host.prepare()
        lease = KnownHost(provider, request.name, ours=True, made_for=made_for, maker=self.local.host.myself())
        self.known.remember(lease)
        try:
            info = maker.create(request, progress)
        except BaseException as error:
            answered = isinstance(error, MngrError) and error.exit_code != UNREACHED
            with held():
                if _is_gone(maker, request.name, unless_known=answered):  # else `mngr gc` ends it
                    self.known.forget(provider, request.name)
            raise
        self.known.remember(lease._replace(details=dict(info.details)))
        self._made.add((provider, info.name))
        return info

    def _least_loaded(self, provider: Provider, pool: Sequence[str]) -> Site:
        """The host of a pool on which the fewest agents run, among those that answer."""
        answers = self.ask_each([self.site(name, provider.name) for name in pool], lambda site: site.run(find.listing))
        errors = [answer for _, answer in answers if isinstance(answer, MngrError)]
        if len(errors) == len(answers):
            raise errors[0]
        load = [
            (sum(view.status.alive for view in answer[0]), site)
            for site, answer in answers
            if not isinstance(answer, MngrError)
        ]
        count, site = min(load, key=lambda pair: pair[0])
        if provider.max_agents is not None and count >= provider.max_agents:
            raise MngrError(
                f"every host of `{provider.name}` that answers runs {count} agents already",
                hint=f"`mngr list` shows them; `providers.{provider.name}.max_agents` is the limit",
            )
        return site

    def take_over(self, provider: str, name: str, made_for: str) -> None:
        """From now on this process is the maker of a host that another made for the same. Twice is safe."""
        known = self.known.get(provider, name)
        if known is not None and known.ours and known.made_for == made_for:
            self.known.remember(known._replace(maker=self.local.host.myself()))

    def _remember(self, provider: str, info: HostInfo) -> KnownHost:
        self.local.host.prepare()
        known = KnownHost(provider, info.name, details=dict(info.details))
        self.known.remember(known)
        return known

    @contextmanager
    def occupied(self, site: Site) -> Iterator[None]:
        """While an agent is made there: the host is known from now on. If that fails, a host that says that it has no
        agent is forgotten, and destroyed if this process made it for the agent. One that does not answer stays."""
        if site.is_local:
            yield
            return
        known = self.known.get(site.provider, site.name)
        new = known is None
        if known is None:
            known = self._remember(site.provider, self.provider(site.provider).host(site.name))
        made = (site.provider, site.name) in self._made
        try:
            yield
        except BaseException as error:
            if new or (made and not known.agents):
                with held():
                    self._leave_unused(site, known, error, made=made)
            raise
        with suppress(MngrError):  # the agent is there; the next `list` notes it
            self.note(site, site.run(find.listing)[0])

    def _leave_unused(self, site: Site, known: KnownHost, error: BaseException, *, made: bool) -> None:
        if self._remote(site.name, site.provider).requests:  # else it was never asked for anything
            ((_, answer),) = self.ask_each([site], lambda site: site.run(find.listing))
            if isinstance(answer, MngrError):
                if isinstance(error, MngrError) and not error.hint:
                    error.hint = "`mngr list` shows what is there, once it answers again"
                return
            if any(answer):
                self.note(site, answer[0])
                return
        if made:
            with suppress(MngrError):  # `mngr gc` finds it; the error that led here is the one to report
                self.destroy(known)
        else:
            self.known.forget(site.provider, site.name)

    def destroy(self, known: KnownHost) -> None:
        """Destroy a host that mngr made, and forget it. The caller has seen to what is on it."""
        self.disconnect(known.provider, known.name)
        self.provider(known.provider).destroy(known.name)
        self.known.forget(known.provider, known.name)

    def disconnect(self, provider: str, name: str) -> None:
        """End all connections to a host. Twice is safe."""
        with self._lock:
            site = self._sites.pop((provider, name), None)
        if site is not None:
            site.close()
        self.provider(provider).disconnect(name)

    def ask_each(self, sites: Sequence[Site], call: Callable[[Site], T]) -> list[tuple[Site, T | MngrError]]:
        """What each site answers to a call, in order. A host that does not answer within its time is an error, and does
        not delay the others for longer than that. An error of this machine is raised."""
        if len(sites) == 1 and sites[0].is_local:
            return [(sites[0], call(sites[0]))]
        answers: SimpleQueue[tuple[int, T | MngrError]] = SimpleQueue()

        def ask(at: int, site: Site) -> None:
            try:
                answers.put((at, call(site)))
            except MngrError as error:
                answers.put((at, _naming(site, error)))
            except Exception as error:  # noqa: BLE001 (a thread has nobody else to tell)
                answers.put((at, MngrError(f"`{site.name}`: {type(error).__name__}: {error}")))

        seconds = self.local.settings.number("hosts.answer_seconds", ANSWER_SECONDS)
        deadline = Deadline(seconds)
        found: dict[int, T | MngrError] = {}
        far = [(at, site) for at, site in enumerate(sites) if not site.is_local]
        for at, site in far:
            threading.Thread(target=ask, args=(at, site), daemon=True, name=f"ask {site.name}").start()
        for at, site in enumerate(sites):
            if site.is_local:
                found[at] = call(site)
        while len(found) < len(sites) and not deadline.passed:
            check()
            try:
                at, answer = answers.get(timeout=max(0.001, deadline.left(0.2)))
            except Empty:
                continue
            found[at] = answer
        for at, site in far:
            late = MngrError(f"`{site.name}` did not answer within {seconds:g} s", exit_code=UNREACHED)
            found.setdefault(at, late)
        return [(site, found[at]) for at, site in enumerate(sites)]

    def note(self, site: Site, views: Sequence[AgentView]) -> None:
        """Keep what a host answered, for the time when it does not."""
        if site.is_local:
            return
        known = self.known.get(site.provider, site.name)
        if known is not None:
            self.known.seen(known, views, site.clock_skew)

    def last_seen(self, site: Site, error: MngrError) -> list[AgentView]:
        """The agents of a host that does not answer, with the reason for that."""
        known = self.known.get(site.provider, site.name)
        if known is None:
            return []
        site.clock_skew = known.clock_skew
        return known.views(time.time(), error.message)


def _is_gone(provider: Provider, name: str, *, unless_known: bool) -> bool:
    """Whether a host is not there; `unless_known` is what counts when nobody can say."""
    from mngr.providers.provider import GONE, UNKNOWN

    try:
        state = provider.host(name).state
    except MngrError:
        state = UNKNOWN
    return state == GONE or (state == UNKNOWN and unless_known)


def _naming(site: Site, error: MngrError) -> MngrError:
    """The error of a host, with its name: what was asked of a provider may have failed."""
    if f"`{site.name}" not in error.message and not isinstance(error, NotFoundError):
        error.message = f"`{site.name}`: {error.message}"
        error.args = (error.message,)
    return error
