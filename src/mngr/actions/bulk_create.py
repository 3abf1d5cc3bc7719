"""Create many agents with one command: `create` in a pool of threads, with one look at the repository for all.

An agent that fails is removed and the others stay. An interrupt removes the agents that have not started yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mngr import parallel
from mngr.actions import create
from mngr.actions.create import CreateRequest
from mngr.actions.site import Site
from mngr.agents.record import Record
from mngr.errors import MngrError
from mngr.files import disk_error
from mngr.interrupts import held
from mngr.tools.git import Git
from mngr.workspaces.plan import RSYNC
from mngr.workspaces.workspace import unclean_commit


def create_many_on(
    site: Site, requests: Sequence[CreateRequest], progress: Callable[[int], None] = lambda done: None
) -> list[Record | MngrError]:
    """`create_many` on this site or another machine's, with code of the caller's machine."""
    return site.run(create_many, site.send_source(requests), progress)


def create_many(
    site: Site, requests: Sequence[CreateRequest], progress: Callable[[int], None] = lambda done: None
) -> list[Record | MngrError]:
    """Create and start agents of the same source, transfer and branch. Returns for each request, in order, its record
    or the error. `progress` is called with the number of agents that are done."""
    if requests[0].plan is None:
        requests = create.with_plans(site, requests)
    else:
        requests = create.arrived(site, requests)
    site.host.prepare()
    requests = with_unclean(requests)
    results: dict[str, Record | MngrError] = {}
    begun: set[str] = set()

    def make(one: CreateRequest) -> Record | MngrError:
        begun.add(one.agent_id)
        record = results[one.agent_id]
        try:
            return record if isinstance(record, MngrError) else create.make(site, one, record)
        except MngrError as error:
            return error
        except OSError as error:
            if known := disk_error(error):
                return known
            raise

    def seen(at: int, result: Record | MngrError) -> None:
        results[requests[at].agent_id] = result
        done.append(at)
        progress(len(done))

    done: list[int] = []
    try:
        results.update(zip((one.agent_id for one in requests), create.reserve(site, requests), strict=True))
        _, raised = parallel.each(make, requests, seen)
        if raised is not None:
            raise raised
    except BaseException:
        with held():
            for one in requests:
                if one.agent_id not in begun:
                    site.store.forget(one.agent_id)
        raise
    return [results[one.agent_id] for one in requests]


def with_unclean(requests: Sequence[CreateRequest]) -> list[CreateRequest]:
    """With the uncommitted changes of the source as one commit for all agents. A plain copy has the changes anyway."""
    planned = requests[0].planned
    if not planned.include_unclean or planned.transfer == RSYNC:
        return list(requests)
    start = unclean_commit(Git(planned.source), planned)
    return [one._replace(plan=one.planned._replace(start=start, include_unclean=False)) for one in requests]


def create_each(site: Site, wishes: Mapping[str, Mapping[str, Any]]) -> list[Record | MngrError]:
    """Create agents with arguments of their own, those of the same source, transfer and branch together."""
    groups: dict[object, list[CreateRequest]] = {}
    made: dict[str, Record | MngrError] = {}
    for name, wish in wishes.items():
        try:
            request = create.request_for(site, name, **wish)
        except MngrError as error:
            made[name] = error
            continue
        groups.setdefault((request.source, request.transfer, request.branch, request.unclean), []).append(request)
    for group in groups.values():
        names = [request.name for request in group]
        try:
            made.update(zip(names, create_many_on(site, group), strict=True))
        except MngrError as error:
            made.update(dict.fromkeys(names, error))
    return [made[name] for name in wishes]
