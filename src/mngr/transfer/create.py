"""Create agents on this machine or another, with code of the caller's machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mngr.actions import bulk_create, create
from mngr.actions.create import CreateRequest
from mngr.actions.site import Site
from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.workspace.plan import MIRROR, WORKTREE
from mngr.workspace.workspace import refuse_taken_branch


def preview(site: Site, request: CreateRequest) -> CreateRequest:
    """The request with its plan. Raises what `create_on` would raise before it makes anything."""
    (request,) = create.with_plans(site.near, [request], WORKTREE if site.is_near else MIRROR)
    site.run(create.check, [request])
    if site.is_near:
        refuse_taken_branch(request.planned)
        create.choose_work_dir(site, request)
    return request


def create_on(site: Site, request: CreateRequest) -> Record:
    """Create and start an agent on this site or another machine's, with code of the caller's machine. Returns when its
    process runs. On any failure, Ctrl-C included, no agent is left."""
    return site.run(create.create, _sent(site, [request])[0])


def create_many_on(
    site: Site, requests: Sequence[CreateRequest], progress: Callable[[int], None] = lambda done: None
) -> list[Record | MngrError]:
    """`create_many` on this site or another machine's, with code of the caller's machine."""
    return site.run(bulk_create.create_many, _sent(site, requests), progress)


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


def _sent(site: Site, requests: Sequence[CreateRequest]) -> list[CreateRequest]:
    """The requests, with the code they begin with on the site where they will run."""
    if site.is_near:
        return list(requests)
    from mngr.transfer import source

    return source.send(site, requests)
