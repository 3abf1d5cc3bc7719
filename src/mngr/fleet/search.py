"""Find agents by name, id or address, wherever they are. One of this machine costs no other host a question."""

from collections.abc import Sequence

from mngr.actions import find
from mngr.actions.site import Site
from mngr.errors import MngrError, NotFoundError, UsageError
from mngr.fleet.agent import Agent
from mngr.fleet.hosts import Hosts
from mngr.names import is_id, suggest


def find_many(hosts: Hosts, words: Sequence[str]) -> list[Agent]:
    """The agents, each once, in the order given. Raises when one does not exist, or when a name has several."""
    chosen: dict[str, Agent] = {}
    for word in words:
        agent = _one(hosts, word)
        chosen[agent.id] = agent
    return list(chosen.values())


def _one(hosts: Hosts, word: str) -> Agent:
    address = None if is_id(word) else hosts.address(word)
    key = word if address is None else address.name
    if key is None:
        raise UsageError(f"`{word}` does not name an agent", hint="`mngr list` shows the names")
    if address is not None and (address.host is not None or address.provider is not None):
        return _on(hosts, key, address.host, address.provider)
    likely = [hosts.site(host.name, host.provider) for host in hosts.known.all() if key in host.names]
    found: list[Agent] = []
    unreadable = None
    try:
        found = [Agent(hosts.local, record) for record in hosts.local.run(find.records, [key])]
    except NotFoundError as error:
        unreadable = error if error.details else None
    found += _asked(hosts, likely, key)
    if not found:
        others = [site for site in hosts.sites() if not site.is_local and site not in likely]
        found = _asked(hosts, others, key)
    if len(found) > 1:
        raise UsageError(
            f"several agents are called `{key}`",
            hint="say which: " + ", ".join(f"`{key}@{agent.site.name}`" for agent in found),
        )
    if not found:
        raise unreadable or _missing(hosts, key)
    return found[0]


def _missing(hosts: Hosts, key: str) -> NotFoundError:
    known = hosts.known.all()
    names = {name for host in known for name in host.names if not is_id(name)}
    names |= {view.name for view in hosts.local.run(find.listing)[0]}
    where = f"`{known[0].name}`" if len(known) == 1 else f"the {len(known)} other hosts"
    hint = suggest(key, sorted(names), "name") if names else "`mngr create NAME` makes one"
    return NotFoundError(f"no agent named `{key}` on `local` or {where}", hint=hint or "`mngr list` shows all")


def _on(hosts: Hosts, key: str, host: str | None, provider: str | None) -> Agent:
    if host is not None:
        site = hosts.site(host, provider)
        return Agent(site, site.run(find.records, [key])[0])
    sites = [site for site in hosts.sites() if site.provider == provider]
    found = _asked(hosts, sites, key)
    if len(found) != 1:
        raise NotFoundError(f"no agent named `{key}` on a host of provider `{provider}`", hint="`mngr list` shows all")
    return found[0]


def _asked(hosts: Hosts, sites: Sequence[Site], key: str) -> list[Agent]:
    """The agents of this name or id on these hosts. When none has it, a host that did not answer is an error: the agent
    may be there."""
    found: list[Agent] = []
    unreached: MngrError | None = None
    for site, answer in hosts.ask_each(sites, lambda site: site.run(find.records, [key])):
        if isinstance(answer, MngrError):
            unreached = unreached or (None if isinstance(answer, NotFoundError) else answer)
        else:
            found += [Agent(site, record) for record in answer if key in (record.name, record.id)]
    if unreached is not None and not found:
        raise unreached if any(key in host.names for host in hosts.known.all()) else _unseen(hosts, key, unreached)
    return found


def _unseen(hosts: Hosts, key: str, unreached: MngrError) -> MngrError:
    """A name that nothing known has, beside a host that did not answer: both are said."""
    missing = _missing(hosts, key)
    text = f"no agent named `{key}` was found, and not every host answered: {unreached.message}"
    return MngrError(text, hint=missing.hint, details=unreached.details, exit_code=unreached.exit_code)
