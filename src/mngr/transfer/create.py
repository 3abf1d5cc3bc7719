"""Create agents on this machine or another, with code of the caller's machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mngr.actions import create as far
from mngr.actions.create import CreateRequest
from mngr.actions.site import Site
from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.programs import kind
from mngr.workspace.plan import MIRROR, WORKTREE
from mngr.workspace.workspace import refuse_taken_branch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def create(
    site: Site, requests: Sequence[CreateRequest | MngrError], progress: Callable[[int], None] = lambda done: None
) -> list[Record | MngrError]:
    """Create and start agents. Those of the same source, transfer and branch are made together, in parallel, with one
    look at the repository. Return for each request, in order, its record, or why it was not made: then nothing of it is
    left, and the others stay. A request that is an error already stays that error."""
    groups: dict[object, list[int]] = {}
    for at, request in enumerate(requests):
        if not isinstance(request, MngrError):
            shared = request.source, request.transfer, request.branch, request.unclean
            groups.setdefault((*shared, request.sandbox, request.shared_objects), []).append(at)
    results: dict[int, Record | MngrError] = {at: one for at, one in enumerate(requests) if isinstance(one, MngrError)}
    for group in groups.values():
        some = [one for at in group if not isinstance(one := requests[at], MngrError)]
        try:
            if not site.is_local:
                from mngr.transfer import given, source

                some = given.noted(site.local.host, source.send(site, some))
            results.update(zip(group, site.run(far.create, some, progress), strict=True))
        except MngrError as error:
            results.update(dict.fromkeys(group, error))
    return [results[at] for at in range(len(requests))]


def plan(site: Site, request: CreateRequest) -> CreateRequest:
    """The request with its plan. Raise what stands in the way of `create`; nothing is made."""
    (request,) = far.plan_requests(site.local, [request], WORKTREE if site.is_local else MIRROR)
    site.run(far.check, [request])
    if site.is_local:
        refuse_taken_branch(request.planned)
        far.choose_work_dir(site, request)
    return request


def request_for(
    site: Site,
    name: str,
    *,
    type: str | None = None,
    command: str | None = None,
    args: Sequence[str] = (),
    **more: Any,
) -> CreateRequest:
    """A request for an agent that runs a shell `command`, or an agent `type` with `args`."""
    chosen = "command" if command is not None else type or kind.default_name(site.settings)
    rest = (command,) if command is not None else tuple(args)
    return CreateRequest(name=name, kind=kind.resolve(chosen, site.settings), rest=rest, **more)


def requests_for(site: Site, options: Mapping[str, Mapping[str, Any]]) -> list[CreateRequest | MngrError]:
    """For each name the request with these options of `Fleet.create`, or what is wrong with them."""

    def request(name: str, some: Mapping[str, Any]) -> CreateRequest | MngrError:
        try:
            return request_for(site, name, **some)
        except MngrError as error:
            return error

    return [request(name, some) for name, some in options.items()]
