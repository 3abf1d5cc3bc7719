"""Files between this machine and another: by rsync through the host's own connection, or as a tar archive in the
channel where a host has no rsync."""

from __future__ import annotations

from mngr.actions.archives import archived, has_rsync, packed, unpack, unpack_archive
from mngr.actions.site import Site
from mngr.system import process
from mngr.system.process import checked

SECONDS = 3600.0
# Protects the arguments from the shell of the host.
_RSYNC = ("rsync", "-a", "--protect-args")
# A host is not trusted: it makes no devices or sockets here, and no files of others or with special permissions.
_PLAIN = ("--no-devices", "--no-specials", "--no-owner", "--no-group", "--chmod=u-s,g-s,o-t")


def fetch(site: Site, path: str, target: str, *, tree: bool) -> None:
    """Copy a file or directory of the host to `target`, which does not exist yet."""
    if not site.run(has_rsync):
        unpack_archive(site.run(packed, path), target, tree=tree)
        return
    there, slash = site.rsync_path(path + ("/" if tree else "")), "/" if tree else ""
    result = process.run([*_RSYNC, *_PLAIN, there.path, target + slash], timeout=SECONDS, env=there.env)
    with site.carrying():
        checked(result, f"the files could not be copied from `{site.name}`")


def send(site: Site, source: str, path: str, *, tree: bool) -> None:
    """Copy a file or directory of this machine to a path on the host. A directory there becomes the same as here."""
    if not site.run(has_rsync):
        site.run(unpack, archived(source), path, tree=tree)
        return
    slash = "/" if tree else ""
    there = site.rsync_path(path + slash)
    words = [*_RSYNC, *(["--delete"] if tree else []), source.rstrip("/") + slash, there.path]
    result = process.run(words, timeout=SECONDS, env=there.env)
    with site.carrying():
        checked(result, f"the files could not be sent to `{site.name}`")
