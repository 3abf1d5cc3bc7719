"""The verbs of `mngr host`: what hosts there are and how they are, and to stop, start, prepare, forget and destroy one.

A host whose provider cannot be asked is UNKNOWN, and is neither destroyed nor forgotten for that."""

import time
from collections.abc import Iterator, Sequence

from mngr.actions import destroy as destroying
from mngr.actions import find, gc, lifecycle
from mngr.actions.gc import FAILED, KEPT, REMOVED, WOULD, Leftover
from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.agent import state
from mngr.errors import MngrError, NotFoundError, UsageError
from mngr.fleet import kept
from mngr.fleet.hosts import DEFAULT_PROVIDER, FOR_AGENT, LOCAL, Hosts
from mngr.fleet.known_hosts import KnownHost
from mngr.named_tuples import NamedTuple
from mngr.providers import registry
from mngr.providers.provider import GONE, QUEUED, RUNNING, STOPPED, UNKNOWN, HostInfo
from mngr.system.process import checked, run
from mngr.transfer import usage

_PREPARE_SECONDS = 3600.0


class HostView(NamedTuple):
    """A host as it is now. `agents` is None when nobody could count them; `seen_at` is when it last answered;
    `made_for` is the agent or run that it ends with, empty for one that a person made or that is not ours."""

    name: str
    provider: str
    state: str
    ours: bool
    agents: int | None
    seen_at: float | None
    reason: str = ""
    made_for: str = ""


def named(hosts: Hosts, word: str, *, new: bool = False) -> KnownHost:
    """The host that `HOST`, `HOST.PROVIDER` or `@HOST.PROVIDER` means. One that nobody knows must be `new`, or name its
    provider."""
    address = hosts.address(word if "@" in word else f"@{word}")
    if address.name or address.path or address.host is None or LOCAL in (address.host, address.provider):
        raise UsageError(f"`{word}` is not another host", hint="write `HOST` or `HOST.PROVIDER`; `mngr host list`")
    if known := hosts.known_host(address.host, address.provider):
        return known
    pools = hosts.local.settings
    named = (one for one in pools.names("providers") if address.host in pools.strings(("providers", one, "hosts")))
    provider = address.provider or next(named, DEFAULT_PROVIDER if new else None)
    if provider is None:
        raise NotFoundError(f"no host `{word}` is known", hint="`mngr host list` shows all hosts")
    return KnownHost(provider, address.host)


def listing(hosts: Hosts) -> tuple[list[HostView], list[MngrError]]:
    """Every host that is known, that the settings name or that a provider of the settings has. Each is asked."""
    known = {(one.provider, one.name): one for one in hosts.known.all()}
    found, errors = _of_providers(hosts, {*(provider for provider, _ in known), *_configured(hosts)})
    keys = sorted({*known, *found})
    infos = {key: found.get(key) or HostInfo(key[1], UNKNOWN) for key in keys}
    asked = [key for key in keys if infos[key].state in (RUNNING, UNKNOWN)]
    sites = {key: hosts.site(key[1], key[0]) for key in asked}
    answers = dict(hosts.ask_each(list(sites.values()), lambda site: site.run(find.listing)))
    views = []
    for key in keys:
        host, info = known.get(key) or KnownHost(*key), infos[key]
        count = len(host.agents) if host.seen_at else None
        view = HostView(
            *(host.name, host.provider, info.state, host.ours or info.ours, count, host.seen_at or None),
            made_for=host.made_for,
        )
        answer = answers.get(sites[key]) if key in sites else None
        if isinstance(answer, MngrError):
            errors.append(answer)
            view = view._replace(state=UNKNOWN, reason=answer.message)
        elif answer is not None:
            hosts.note(sites[key], answer[0])
            view = view._replace(state=RUNNING, agents=len(answer[0]), seen_at=time.time())
        if view.agents == 0 and not view.reason and is_orphan(hosts, host):
            view = view._replace(reason="the process that made it has ended: `mngr gc` ends the host")
        views.append(view)
    return views, errors


def _configured(hosts: Hosts) -> set[str]:
    return set(hosts.local.settings.names("providers")) - {LOCAL}


def _of_providers(hosts: Hosts, names: set[str]) -> tuple[dict[tuple[str, str], HostInfo], list[MngrError]]:
    """What each provider says about its hosts; a known host that it does not have is GONE."""
    found: dict[tuple[str, str], HostInfo] = {}
    errors: list[MngrError] = []
    known = hosts.known.all()
    for name in sorted(names):
        try:
            provider = registry.find(name, hosts.local)
            infos = {info.name: info for info in provider.hosts()}
            for host in known:
                if host.provider == name and host.name not in infos:
                    infos[host.name] = _without_adopted(provider.host(host.name), host)
        except MngrError as error:
            errors.append(error)
            continue
        found.update({(name, one): info for one, info in infos.items()})
    return found, errors


def _without_adopted(info: HostInfo, host: KnownHost) -> HostInfo:
    """A provider lists only what mngr made: it cannot say that another host is gone."""
    return info if host.ours or info.state != GONE else info._replace(state=UNKNOWN)


def state_of(hosts: Hosts, host: KnownHost) -> HostInfo:
    return _without_adopted(hosts.provider(host.provider).host(host.name), host)


def stop(hosts: Hosts, host: KnownHost) -> list[str]:
    """Stop the agents of a host as `mngr stop` does, then the host. Returns the names of those agents."""
    hosts.provider(host.provider).require("stop")
    stopped = []
    if state_of(hosts, host).state in (RUNNING, UNKNOWN):
        site = hosts.site(host.name, host.provider)
        views, errors = site.run(find.listing)
        for error in errors:
            raise error
        for view in views:
            if view.status.alive:
                site.run(lifecycle.stop, view.id)
                stopped.append(view.name)
        hosts.note(site, site.run(find.listing)[0] if stopped else views)
    hosts.disconnect(host.provider, host.name)
    hosts.provider(host.provider).stop(host.name)
    return stopped


def prepare(hosts: Hosts, host: KnownHost, command: str | None) -> int:
    """Connect, install what is missing where that is allowed, put our program there, and run a command there. The host
    is known from then on. Returns the number of agents on it."""
    site = hosts.site(host.name, host.provider)
    views, _ = site.run(find.listing)
    if hosts.known.get(host.provider, host.name) is None:
        hosts.local.host.prepare()
        hosts.known.remember(host)
    hosts.note(site, views)
    if command is not None:
        opening = hosts.provider(host.provider).opening(host.name)
        result = run([*opening.argv, command], timeout=_PREPARE_SECONDS, env=opening.env, cwd="/")
        checked(result, f"the command failed on `{host.name}`")
    return len(views)


def forget(hosts: Hosts, host: KnownHost) -> None:
    """Forget a host and end the connections to it. The host itself, and the agents on it, are left alone."""
    if hosts.known.get(host.provider, host.name) is None:
        raise NotFoundError(f"no host `{host.name}` is known", hint="`mngr host list` shows all hosts")
    hosts.disconnect(host.provider, host.name)
    hosts.known.forget(host.provider, host.name)


def check_destroy(hosts: Hosts, host: KnownHost, *, force: bool, discard: bool = False) -> list[AgentView] | None:
    """Raise when the host is not ours, cannot be asked, or holds work that is found only there. Returns its
    agents, or None when it does not run."""
    at = f"{host.name}.{host.provider}"
    info = state_of(hosts, host)
    if info.state in (GONE, QUEUED):
        return None
    if not (host.ours or info.ours):
        raise MngrError(f"mngr did not create `{host.name}`", hint=f"`mngr host forget {at}` leaves the host alone")
    if info.state == STOPPED:
        if discard:
            return None
        raise MngrError(
            f"`{host.name}` is stopped, so nobody can see whether work is found only there",
            hint=f"`mngr host start {at}` first, or lose what is there: `mngr host destroy {at} --discard-work`",
        )
    site = hosts.site(host.name, host.provider)
    views, errors = site.run(find.listing)
    if errors:
        raise errors[0]
    if not (discard or force) and (work := site.run(destroying.with_work)):
        raise destroying.HasWork(
            f"`{host.name}` has work that is found nowhere else",
            details="\n".join(work.values()),
            hint=f"`mngr pull` or `mngr merge` it first, or save it on this machine: `mngr host destroy {at} --force`",
        )
    alive = [view.name for view in views if view.status.alive or view.state == UNKNOWN]
    if alive and not force:
        raise MngrError(
            f"agents run on `{host.name}`: {', '.join(alive)}", hint=f"`mngr host destroy {at} --force` ends them"
        )
    return views


def destroy(hosts: Hosts, host: KnownHost, *, force: bool, discard: bool = False) -> list[str]:
    """Destroy a host that mngr made, with its files, after what is found only there has come to this machine: returns
    the ids it has here. When that fails, the host stays. Twice is safe."""
    views = check_destroy(hosts, host, force=force, discard=discard)
    brought: list[str] = []
    if views is not None:
        site = hosts.site(host.name, host.provider)
        for view in views:
            if view.status.alive:
                site.run(lifecycle.stop, view.id)
            usage.record_usage(site, view.record)
        brought = [] if discard else kept.bring_home(site)
    hosts.destroy(host)
    return brought


def destroy_unused(hosts: Hosts, site: Site) -> tuple[KnownHost, list[str]] | None:
    """Destroy a host that was made for an agent and has none any more, after its saved work has come to this machine.
    None when there is nothing to destroy."""
    known = None if site.is_local else hosts.known.get(site.provider, site.name)
    if known is None or not known.ours or not known.made_for.startswith(FOR_AGENT):
        return None
    views, errors = site.run(find.listing)
    if views or errors:
        return None
    hosts.provider(site.provider).require("destroy")
    return known, destroy(hosts, known, force=False)


def collect(
    hosts: Hosts, *, dry_run: bool, saved_before: float | None = None, only: Sequence[str] = ()
) -> Iterator[Leftover]:
    """The leftovers of this machine and of every known host, each told as it is found. A host that cannot be reached
    is told and does not stop the rest."""
    known = hosts.known.all()
    elsewhere = sorted(name for host in known for name in host.names)
    if not only or LOCAL in only:
        yield from hosts.local.run(gc.collect, dry_run=dry_run, saved_before=saved_before, elsewhere=elsewhere)
    for host in known:
        if only and host.provider not in only:
            continue
        try:
            if state_of(hosts, host).state in (RUNNING, UNKNOWN):
                site = hosts.site(host.name, host.provider)
                for item in site.run(gc.collect, dry_run=dry_run, saved_before=saved_before):
                    yield item._replace(host=host.name)
        except MngrError as error:
            yield Leftover("host", f"{host.name}.{host.provider}", action=KEPT, note=error.message)


def leftovers(hosts: Hosts, *, dry_run: bool, only: Sequence[str] = ()) -> Iterator[Leftover]:
    """Hosts that carry our mark and that nobody knows, hosts whose maker was killed before they were of use, and known
    hosts that are gone. One that nobody knows and on which there are agents is made known again."""
    names = set(only) - {LOCAL} if only else {*_configured(hosts), *(one.provider for one in hosts.known.all())}
    found, errors = _of_providers(hosts, names)
    for error in errors:
        yield Leftover("host", "of a provider that cannot be asked", action=KEPT, note=error.message)
    for provider in sorted(names) if not dry_run else ():
        try:
            for name in hosts.provider(provider).sweep():
                note = "it was destroyed while out of reach"
                yield Leftover("host", f"{name}.{provider}", action=REMOVED, note=note)
        except MngrError:
            continue  # a provider that cannot be asked has nothing removed
    known = {(one.provider, one.name): one for one in hosts.known.all()}
    for (provider, name), info in sorted(found.items()):
        host = known.get((provider, name))
        if host is None and info.ours:
            yield _unowned(hosts, KnownHost(provider, name, ours=True), info, dry_run)
        elif host is not None and info.state == GONE:
            agents = ", ".join(sorted(str(agent.get("record", {}).get("name")) for agent in host.agents))
            if not dry_run:
                hosts.known.forget(provider, name)
            note = "it is gone" + (f", with {agents}" if agents else "")
            yield Leftover("host", f"{name}.{provider}", action=WOULD if dry_run else REMOVED, note=note)
        elif host is not None and is_orphan(hosts, host) and (item := _orphan(hosts, host, info, dry_run)):
            yield item


def is_orphan(hosts: Hosts, host: KnownHost) -> bool:
    """Whether it was made for an agent or a run by a process that is not there any more."""
    if not host.ours or not host.made_for or host.maker is None:
        return False
    return not hosts.local.host.alive(dict([host.maker]))


def _orphan(hosts: Hosts, host: KnownHost, info: HostInfo, dry_run: bool) -> Leftover | None:
    """A host that was made for something that will not end it. That of an agent which is there is in use; at that of a
    run, agents that still work are left alone. What is found only there is saved here first."""
    at = f"{host.name}.{host.provider}"
    why = f"made for {host.made_for}, by a process that has ended"
    try:
        if info.state == STOPPED:
            return Leftover(
                "host", at, action=KEPT, note=f"{why}; it is {info.state}: `mngr host start {at}` to look into it"
            )
        if info.state != QUEUED:
            views, errors = hosts.site(host.name, host.provider).run(find.listing)
            if host.made_for.startswith(FOR_AGENT) and views:
                return None
            working = [view.name for view in views if view.state in (state.RUNNING, state.STARTING)]
            for problem in [*(error.message for error in errors), *(f"`{name}` still works there" for name in working)]:
                return Leftover("host", at, action=KEPT, note=f"{why}; {problem}")
        if not dry_run:
            destroy(hosts, host, force=True)
        return Leftover("host", at, action=WOULD if dry_run else REMOVED, note=why)
    except MngrError as error:
        return Leftover("host", at, action=FAILED, note=f"{why}; {error.message}")


def _unowned(hosts: Hosts, host: KnownHost, info: HostInfo, dry_run: bool) -> Leftover:
    at = f"{host.name}.{host.provider}"
    try:
        if info.state != RUNNING:
            return Leftover("host", at, action=KEPT, note=f"it is {info.state}: `mngr host start {at}` to look into it")
        site = hosts.site(host.name, host.provider)
        views, errors = site.run(find.listing)
        for error in errors:
            return Leftover("host", at, action=KEPT, note=error.message)
        if views:
            if not dry_run:
                hosts.known.remember(host)
                hosts.note(site, views)
            names = ", ".join(view.name for view in views)
            return Leftover("host", at, action=KEPT, note=f"agents are there, so it is known again: {names}")
        if not dry_run:
            kept.bring_home(site)
            hosts.destroy(host)
        return Leftover("host", at, action=WOULD if dry_run else REMOVED, note="nobody knows it")
    except MngrError as error:
        return Leftover("host", at, action=FAILED, note=error.message)
