"""Files in a tar archive, which travels in the channel where a host has no rsync."""

from __future__ import annotations

import io
import os
import tarfile

from mngr.actions.site import Site
from mngr.errors import MngrError
from mngr.system.process import find_program


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
    unpack_archive(data, path, tree=tree)


def unpack_archive(data: bytes, target: str, *, tree: bool) -> None:
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
        from mngr.system.tree_removal import remove_tree

        remove_tree(room)


_LONGEST_ARCHIVE = 200 << 20
