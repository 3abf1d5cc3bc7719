"""The real pool of hosts over simulated ones: it makes them, places agents on them, and finds out that one is lost.

A lost host never comes back, with all that is on it. Hosts answer one after the other, without threads; their events
come as those of agents on this machine do, so the threads that follow them exist and hear nothing."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bench.simulated_fleet import Host, SimulatedSite
from mngr.actions import create, find, wait
from mngr.actions.site import Site
from mngr.errors import MngrError
from mngr.fleet.agent import Agent
from mngr.fleet.hosts import Hosts
from mngr.mapreduce.host_pool import HostPool, HostRules
from mngr.mapreduce.run import Run
from mngr.providers.provider import GONE, RUNNING, HostInfo, HostRequest, Provider
from mngr.transfer.create import request_for

_ASK_SECONDS = 0.1
_ASK_SECONDS_PER_HOST = 0.00015


class SimulatedProvider(Provider):
    def __init__(self, whole: SimulatedSite) -> None:
        super().__init__("simulated")
        self._whole = whole
        self.made: dict[str, Host] = {}

    def create(self, request: HostRequest, progress: Callable[[str], None]) -> HostInfo:
        self.made[request.name] = host = Host(request.name)
        self._whole.hosts.append(host)
        return self.host(request.name)

    def host(self, name: str) -> HostInfo:
        return HostInfo(name, RUNNING if name in self.made and self.made[name].up else GONE, ours=True)

    def destroy(self, host: str) -> None:
        self.made.pop(host, None)


class SimulatedHostSite(Site):
    provider = "simulated"

    def __init__(self, whole: SimulatedSite, host: Host, over: threading.Event) -> None:
        super().__init__(environ=whole.environ, cwd=whole.cwd, settings=whole.settings)
        self.name, self._whole, self._host, self._over = host.name, whole, host, over

    @property
    def local(self) -> Site:
        return self._whole

    def run(self, verb: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if verb is wait.changed_agents:
            return self._silence()
        if not self._host.up:
            raise MngrError(f"`{self.name}` did not answer within 10 s")
        if verb is create.create:
            return self._whole.create_on(self._host, *args)
        if verb is find.listing and not any(args):
            args = (list(self._host.agents),)
        return self._whole.run(verb, *args, **options)

    def _silence(self) -> Iterator[list[str]]:
        self._over.wait()
        yield []


class SimulatedHosts(Hosts):
    def __init__(self, whole: SimulatedSite) -> None:
        super().__init__(whole)
        self._whole, self._provider = whole, SimulatedProvider(whole)
        self._own: dict[str, SimulatedHostSite] = {}
        self._over = threading.Event()

    def provider(self, name: str) -> Provider:
        return self._provider

    def site(self, host: str, provider: str | None = None) -> Site:
        if host not in self._own:
            self._own[host] = SimulatedHostSite(self._whole, self._provider.made[host], self._over)
        return self._own[host]

    def ask_each(self, sites: Sequence[Site], call: Callable[[Site], Any]) -> list[tuple[Site, Any]]:
        self._whole.clock.spend(_ASK_SECONDS + _ASK_SECONDS_PER_HOST * len(sites))
        return [(site, _answer(call, site)) for site in sites]

    def close(self) -> None:
        self._over.set()


def _answer(call: Callable[[Site], Any], site: Site) -> Any:
    try:
        return call(site)
    except MngrError as error:
        return error


class SimulatedPool(HostPool):
    """Sends no code to its hosts."""

    def __init__(self, run: Run, hosts: SimulatedHosts, count: int, per_host: int) -> None:
        super().__init__(run, hosts, HostRules("simulated", per_host, count))

    def _create_on(self, host: str, options: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Agent | MngrError]]:
        site = self.site(host)
        try:
            requests = [request_for(site, name, **some) for name, some in options.items()]
            results = site.run(create.create, requests)
        except MngrError as error:
            results = [error] * len(options)
            self.answers(host)
        made = [one if isinstance(one, MngrError) else Agent(site, one) for one in results]
        self.note_agents(host)
        return list(zip(options, made, strict=True))
