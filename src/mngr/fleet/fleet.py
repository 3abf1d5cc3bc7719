"""The fleet: every agent of this user, and the verbs that concern more than one. Making one reads and touches nothing.

The command line, scripts and the pipeline all come in here; an agent's own verbs are methods of `Agent`. Every verb
raises `MngrError` (see `mngr.errors`) when it cannot be done.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from mngr.actions.site import Site
from mngr.errors import MngrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mngr.actions.gc import Leftover
    from mngr.actions.snapshots import Restored
    from mngr.actions.view import AgentView
    from mngr.fleet.agent import Agent, Listing
    from mngr.fleet.hosts import Hosts
    from mngr.fleet.kept import KeptListing
    from mngr.settings.layers import Settings
    from mngr.transfer.usage import UsageReport


class Fleet:
    """The sites that this machine knows, as seen by one caller: its environment, its directory, its settings."""

    def __init__(
        self, *, environ: Mapping[str, str] | None = None, cwd: str | None = None, settings: Settings | None = None
    ) -> None:
        self.local = Site(environ=environ, cwd=cwd, settings=settings)

    @cached_property
    def hosts(self) -> Hosts:
        """The machines that agents run on, and how to reach them."""
        from mngr.fleet.hosts import Hosts

        return Hosts(self.local)

    @property
    def alone(self) -> bool:
        """Whether no other machine is known, so that nothing of other machines is needed."""
        records = os.walk(os.path.join(self.local.host.dir, "hosts"), onerror=_unless_missing)
        return not any(name.endswith(".json") for _, _, names in records for name in names)

    def close(self) -> None:
        """End all connections to other hosts. Agents keep running; the next verb opens a new connection."""
        if "hosts" in self.__dict__:
            self.hosts.close()

    def list(self, only: Collection[str] | None = None) -> Listing:
        """Every agent with its state, or those with these ids; what could not be read is in `errors`. The agents of a
        host that does not answer in time are UNKNOWN, as they were last seen."""
        from mngr.actions import find
        from mngr.fleet.agent import Agent, Listing

        answers: Sequence[tuple[Site, tuple[list[AgentView], list[MngrError]] | MngrError]]
        if self.alone:
            answers = [(self.local, self.local.run(find.listing, only))]
        else:
            answers = self.hosts.ask_each(self.hosts.sites(), lambda site: site.run(find.listing, only))
        found = Listing([], [])
        for site, answer in answers:
            if isinstance(answer, MngrError):
                found.errors.append(answer)
                views = [view for view in self.hosts.last_seen(site, answer) if only is None or view.id in only]
            else:
                views, errors = answer
                found.errors.extend(errors)
                if only is None and not errors and not site.is_local:
                    self.hosts.note(site, views)
            found.agents.extend(Agent(site, view.record, view) for view in views)
        return found

    def find(self, word: str) -> Agent:
        """The agent with this name, id or address."""
        return self.find_many([word])[0]

    def find_path(self, word: str) -> tuple[Agent, str | None]:
        """The agent that `AGENT[:PATH]` names, and the path."""
        agent, colon, path = word.partition(":")
        return self.find(agent), path if colon else None

    def find_many(self, words: Sequence[str]) -> Sequence[Agent]:
        """Agents by name, id or address, each once, in the order given. All must exist."""
        if self.alone and not any("@" in word for word in words):
            from mngr.actions import find
            from mngr.fleet.agent import Agent

            return [Agent(self.local, record) for record in self.local.run(find.records, words)]
        from mngr.fleet import search

        return search.find_many(self.hosts, words)

    def create(
        self,
        name: str,
        *,
        type: str | None = None,
        command: str | None = None,
        args: Sequence[str] = (),
        message: str | None = None,
        **more: Any,
    ) -> Agent:
        """Make and start an agent; `name` may be an address such as `foo@box`. `command` is a shell command line, or
        `type` an agent type with its `args`. `more` are the other fields of `mngr.actions.create.CreateRequest`:
        source, transfer, branch, env, labels, ... On failure nothing is left behind; when only the message could not be
        delivered, the agent runs."""
        from mngr.providers.provider import HostRequest

        address = self.hosts.address(name)
        bare = address.name or ""
        site = self.hosts.place(address.host, address.provider, HostRequest(bare))
        options = {"type": type, "command": command, "args": args, "prompt": message, **more}
        with self.hosts.occupied(site):
            (agent,) = self._created(site, {bare: options})
            if isinstance(agent, MngrError):
                raise agent
        if message is not None:
            agent.first_message(message)
        return agent

    def create_many(
        self, names: Sequence[str] | Mapping[str, Mapping[str, Any]], **options: Any
    ) -> Sequence[Agent | MngrError]:
        """Make and start several agents, in parallel: agents that differ in their names only, or for each name the
        options that it has beside the common ones. The options are those of `create`, without a message. Return for
        each, in order, the agent, or why it was not made; the others stay."""
        own = names if isinstance(names, Mapping) else {name: {} for name in names}
        return self._created(self.local, {name: {**options, **own[name]} for name in own})

    def _created(self, site: Site, options: Mapping[str, Mapping[str, Any]]) -> Sequence[Agent | MngrError]:
        from mngr.fleet.agent import Agent
        from mngr.transfer import create

        made = create.create(site, create.requests_for(self.local, options))
        return [one if isinstance(one, MngrError) else Agent(site, one) for one in made]

    def usage(
        self, agents: Sequence[str | Agent] | None = None, *, by: str = "agent", since: float | None = None
    ) -> UsageReport:
        """Tokens and money of these agents, or of all, those that were destroyed included: by agent, project, day,
        model or type. `since` is a point in time."""
        from mngr.actions import usage
        from mngr.transfer import usage as report

        ids = _by_site(self._agents(agents)) if agents is not None else None
        sites = [*ids] if ids is not None else self.hosts.sites()
        answers = self.hosts.ask_each(sites, lambda site: site.run(usage.collected, ids[site] if ids else None))
        parts = [usage.CollectedUsage([], [], [a]) if isinstance(a, MngrError) else a for _, a in answers]
        return report.report(parts, self.local.settings, by=by, since=since, named=agents is not None)

    def gc(self, *, dry_run: bool = False, saved_before: float | None = None) -> Iterator[Leftover]:
        """Remove what interrupted work left behind, after saving what exists only there: each as it is found."""
        from mngr.fleet import host_verbs

        return host_verbs.collect(self.hosts, dry_run=dry_run, saved_before=saved_before)

    def wait(
        self,
        agents: Sequence[str | Agent],
        states: Collection[str] = (),
        *,
        any_of: bool = False,
        timeout: float | None = None,
    ) -> Sequence[Agent]:
        """Block until all (or any) are in one of the states; without states, until they stop working."""
        from mngr.actions import wait
        from mngr.fleet import watch

        groups = _by_site(self._agents(agents))
        return watch.until(groups, states or wait.RESTING, any_of=any_of, timeout=timeout) if groups else []

    def watch(self) -> Iterator[Listing]:
        """The listing now and after every change, for ever."""
        from mngr.fleet import watch

        return watch.listings(self.hosts)

    def saved(self) -> KeptListing:
        """Saved work of all machines, oldest first; what could not be read or reached is named beside it."""
        from mngr.actions import restore
        from mngr.fleet import kept

        return kept.everywhere(self, restore.survey)

    def restore_saved(self, entry: str, *, name: str | None = None, branch: str | None = None) -> Agent:
        """Bring saved work back as a stopped agent with its work dir as it was, on its machine or at `[NAME]@HOST`."""
        from mngr.actions import restore
        from mngr.fleet import kept

        return kept.restore_saved(self, kept.find(self, entry, restore.find), name, branch)

    def snapshots(self, agent: str | Agent | None = None) -> KeptListing:
        """All snapshots of all machines, or those of one agent, oldest first; what could not be read or reached is
        named beside them."""
        from mngr.actions import snapshots
        from mngr.fleet import kept

        listing = kept.everywhere(self, snapshots.survey)
        if agent is None:
            return listing
        (found,) = self._agents([agent])
        theirs = [one for one in listing.entries if snapshots.belongs(one.entry, found.id)]
        return listing._replace(entries=theirs)

    def restore_snapshot(self, snapshot: str, *, name: str | None = None) -> Restored:
        """Bring its agent back to a snapshot (`NAME` or `AGENT/NAME`, `@HOST` says where); what that replaces is saved.
        With another name, or when the agent is gone, a stopped agent is made of it, perhaps at `[NAME]@HOST`."""
        from mngr.actions import snapshots
        from mngr.fleet import kept

        return kept.restore_snapshot(self, kept.find(self, snapshot, snapshots.one), name)

    def _agents(self, agents: Sequence[str | Agent]) -> Sequence[Agent]:
        return [self.find(agent) if isinstance(agent, str) else agent for agent in agents]


def _unless_missing(error: OSError) -> None:
    """Raise for a directory that is there and cannot be read."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):  # the local site names a file in its place
        raise error


def _by_site(agents: Sequence[Agent]) -> dict[Site, list[str]]:
    """The ids of the agents."""
    groups: dict[Site, list[str]] = {}
    for agent in agents:
        groups.setdefault(agent.site, []).append(agent.id)
    return groups
