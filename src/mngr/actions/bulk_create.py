"""Create many agents with one command: `create` in a pool of threads, with one look at the repository for all.

An agent that fails is removed and the others stay. An interrupt removes the agents that have not started yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mngr.actions import create
from mngr.actions.create import CreateRequest
from mngr.actions.site import Site
from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.system import parallel
from mngr.system.files import disk_error
from mngr.system.git import Git
from mngr.system.interrupts import held
from mngr.workspace.plan import RSYNC
from mngr.workspace.workspace import unclean_commit


def create_many(
    site: Site, requests: Sequence[CreateRequest], progress: Callable[[int], None] = lambda done: None
) -> list[Record | MngrError]:
    """Create and start agents of the same source, transfer and branch. Returns for each request, in order, its record
    or the error. `progress` is called with the number of agents that are done."""
    requests = with_unclean(create.planned_here(site, requests))
    begun: set[str] = set()
    done: list[int] = []

    def make(pair: tuple[CreateRequest, Record | MngrError]) -> Record | MngrError:
        request, reserved = pair
        begun.add(request.agent_id)
        try:
            return reserved if isinstance(reserved, MngrError) else create.make(site, request, reserved)
        except MngrError as error:
            return error
        except OSError as error:
            if known := disk_error(error):
                return known
            raise

    def seen(at: int, result: Record | MngrError) -> None:
        done.append(at)
        progress(len(done))

    try:
        reserved = create.reserve(site, requests)
        results, raised = parallel.each(make, list(zip(requests, reserved, strict=True)), seen)
        if raised is not None:
            raise raised
    except BaseException:
        with held():
            for one in requests:
                if one.agent_id not in begun:
                    site.store.forget(one.agent_id)
        raise
    return [result for result in results if result is not None]


def with_unclean(requests: Sequence[CreateRequest]) -> list[CreateRequest]:
    """With the uncommitted changes of the source as one commit for all agents. A plain copy has the changes anyway."""
    planned = requests[0].planned
    if not planned.include_unclean or planned.transfer == RSYNC:
        return list(requests)
    start = unclean_commit(Git.of_user(planned.source), planned)
    return [one._replace(plan=one.planned._replace(start=start, include_unclean=False)) for one in requests]
