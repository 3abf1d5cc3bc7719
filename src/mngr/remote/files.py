"""Files between this machine and another: by rsync through the host's own connection, or as a tar archive in the
channel where a host has no rsync."""

from __future__ import annotations

import io
import os
import tarfile
from typing import TYPE_CHECKING

from mngr.actions.site import Site
from mngr.errors import MngrError
from mngr.system import process
from mngr.system.process import checked, find_program

if TYPE_CHECKING:
    from mngr.remote.site import RemoteSite

SECONDS = 3600.0
_LONGEST_ARCHIVE = 200 << 20
# Protects the arguments from the shell of the host.
_RSYNC = ("rsync", "-a", "--protect-args")
# A host is not trusted: it makes no devices or sockets here, and no files of others or with special permissions.
_PLAIN = ("--no-devices", "--no-specials", "--no-owner", "--no-group", "--chmod=u-s,g-s,o-t")


def fetch(site: RemoteSite, path: str, target: str, *, tree: bool) -> None:
    """Copy a file or directory of the host to `target`, which does not exist yet."""
    if not site.run(has_rsync):
        _unpack(site.run(packed, path), target, tree=tree)
        return
    there, slash = site.rsync_path(path + ("/" if tree else "")), "/" if tree else ""
    result = process.run([*_RSYNC, *_PLAIN, there.path, target + slash], timeout=SECONDS, env=there.env)
    with site.carrying():
        checked(result, f"the files could not be copied from `{site.name}`")


def send(site: RemoteSite, source: str, path: str, *, tree: bool) -> None:
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


def has_rsync(site: Site) -> bool:
    return find_program("rsync") is not None


def packed(site: Site, path: str) -> bytes:
    """A file or directory of this site as a tar archive."""
    return archived(path)


def archived(path: str) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=3) as archive:
        archive.add(path, "files")
        if target.tell() > _LONGEST_ARCHIVE:
            raise MngrError(f"`{path}` is too large to copy without rsync", hint="install `rsync` on the host")
    return target.getvalue()


def unpack(site: Site, data: bytes, path: str, *, tree: bool) -> None:
    """Put the files of an archive at a path of this site, in place of what is there."""
    site.host.remove(path)
    _unpack(data, path, tree=tree)


def _unpack(data: bytes, target: str, *, tree: bool) -> None:
    """What comes from a host is not trusted: nothing is written outside of `target`, no device or owner is made."""
    room = f"{target}.{os.urandom(4).hex()}.draft"
    os.mkdir(room, 0o700)
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(room, filter="data")
        os.rename(os.path.join(room, "files"), target)
    except (tarfile.TarError, OSError) as error:
        raise MngrError(f"the files for `{target}` could not be unpacked: {error}") from None
    finally:
        from mngr.system.files import remove_tree

        remove_tree(room)
