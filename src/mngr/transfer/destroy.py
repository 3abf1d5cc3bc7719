"""Remove an agent of any machine for good, after everything that exists only there has been saved."""

from __future__ import annotations

from mngr.actions import destroy as far
from mngr.actions import removal
from mngr.actions.destroy import Destroyed
from mngr.actions.site import Site
from mngr.agent.record import Record
from mngr.transfer import given, usage
from mngr.workspace.origin import machine_id


def destroy(
    site: Site, record: Record, *, force: bool = False, remove_branch: bool = False, discard: bool = False
) -> Destroyed:
    """Remove an agent of this site or of another machine's. What the agent used is noted on the caller's machine, which
    knows the prices; the refs that `pull` made here go."""
    if site.is_local:
        return far.destroy(site, record.id, force=force, remove_branch=remove_branch, discard=discard)
    usage.record_usage(site, record)
    done = site.run(far.destroy, record.id, force=force, remove_branch=remove_branch, discard=discard, settled=True)
    repo = record.workspace.origin.get("repo", "")
    if record.workspace.origin.get("machine") == machine_id(site.local.host) and not discard:
        removal.forget_pulled(record.changed(repo=repo))
    if done.entry is None:
        given.forget(site.local.host, record.id)
    return done
