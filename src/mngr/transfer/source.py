"""Bring the code of new agents to their host: commits by `git push` into a cache there, files by rsync, uploads in the
request itself. The user's repository is only read."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from mngr.actions import create, portable, provision, source_cache
from mngr.errors import MngrError, UsageError
from mngr.programs import repository_trust
from mngr.system.git import Git
from mngr.system.interrupts import held
from mngr.system.process import checked
from mngr.transfer import rsync
from mngr.workspace.origin import ensure_machine_id
from mngr.workspace.plan import MIRROR, NONE, Plan
from mngr.workspace.workspace import extra_path

if TYPE_CHECKING:
    from mngr.actions.create import CreateRequest
    from mngr.actions.site import Site

_PUSH_TRIES = 5


def send(site: Site, requests: Sequence[CreateRequest]) -> list[CreateRequest]:
    """The requests, planned with what is on the host then. One round trip when the host has the commit already, and a
    `git push` when it has not."""
    if requests[0].transfer == NONE:
        return [_in_place(request) for request in requests]
    local = site.local
    requests = create.plan_requests(local, requests, MIRROR)
    if requests[0].planned.submodules:
        raise MngrError(
            f"`{requests[0].planned.source}` has submodules, and they cannot be sent to `{site.name}`",
            hint="work on this machine, or get them there: `--transfer none` with a checkout on that host",
        )
    local.host.prepare()
    machine = ensure_machine_id(local.host)
    requests = create.commit_uncommitted(requests)
    plan = requests[0].planned
    origin = {"machine": machine, "repo": plan.repo.home if plan.repo else "", "source": plan.source}
    origin["trusted"] = " ".join(_trusted(local, {request.kind.driver for request in requests}, plan))
    if plan.repo is not None:
        cache = _send_commits(site, machine, plan)
        there = [one.planned._replace(source=cache.repo.top, repo=cache.repo) for one in requests]
    else:
        there = [one.planned._replace(source=_send_files(site, plan.source, one.agent_id)) for one in requests]
    return [
        _carrying(request, plan.source)._replace(plan=planned, origin=origin)
        for request, planned in zip(requests, there, strict=True)
    ]


def _trusted(local: Site, programs: Collection[str], plan: Plan) -> list[str]:
    """The programs that may obey the files that the repository has for them. Raises when the user has not said so."""
    found = sorted(program for program in programs if program in repository_trust.FILES)
    for program in found:
        source = plan.repo.home if plan.repo else plan.source
        repository_trust.check(program, local.host.dir, local.environ, plan.source, source)
    return found


def _in_place(request: CreateRequest) -> CreateRequest:
    if request.target is None:
        raise UsageError(
            "`--transfer none` on another machine needs a directory there",
            hint=f"`mngr create {request.name}@HOST:DIRECTORY --transfer none`",
        )
    return request._replace(source=request.target, target=None)


def _send_commits(site: Site, machine: str, plan: Plan) -> source_cache.Cache:
    """The cache on the host, with the plan's start, the branch it began at, and the tags it holds."""
    assert plan.repo is not None and plan.start is not None
    here = Git.of_user(plan.source)
    config = {key: found.text for key in portable.SENT_CONFIG if (found := here.run("config", "--get", key)).ok}
    key = portable.cache_key(machine, plan.repo.common_dir)
    cache = site.run(source_cache.prepare, key, plan.start, config)
    if cache.has:
        return cache
    refs = [f"{plan.start}:refs/mngr/start/{plan.start}"]
    if plan.base_branch and here.has_branch(plan.base_branch):
        refs.append(f"+refs/heads/{plan.base_branch}:refs/heads/{plan.base_branch}")
    tags = here.must("for-each-ref", f"--merged={plan.start}", "--format=%(refname)", "refs/tags").split("\n")
    there = site.git_path(cache.repo.top)
    words = ["push", "-q", "--force", "--no-verify", "--no-signed", there.path, *refs]
    words += [f"+{tag}:{tag}" for tag in tags if tag]
    result = here.run(*words, env=there.env)
    for _ in range(_PUSH_TRIES):
        if b"cannot lock ref" not in result.stderr:
            break
        # Another `create` of the same repository sends the same at this moment, and one of them is refused.
        if site.run(source_cache.prepare, key, plan.start, config).has:
            return cache
        result = here.run(*words, env=there.env)
    with site.carrying():
        checked(result, f"the code could not be sent to `{site.name}`")
    return cache


def _send_files(site: Site, source: str, agent_id: str) -> str:
    directory = site.run(source_cache.files_place, agent_id)
    try:
        rsync.send(site, source, directory, tree=True)
    except BaseException:
        with held(), suppress(MngrError):  # the error that led here is the one to tell
            site.run(source_cache.forget_files, agent_id)
        raise
    return directory


def _carrying(request: CreateRequest, source: str) -> CreateRequest:
    """The request with its files in it: uploads, and the ignored files that every copy of the code needs."""
    paths = [extra_path(source, path) for path in request.extra_paths]
    extra = tuple((os.path.join(source, path), path) for path in paths)
    project = request.project or request.labels.get("project") or os.path.basename(source.rstrip("/"))
    uploads = (*request.uploads, *extra)
    carried, names = provision.packed(uploads) if uploads else (b"", ())
    return request._replace(project=project, carried=carried, uploads=names, extra_paths={})
