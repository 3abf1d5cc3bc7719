"""Prepare a work dir before its agent runs: uploaded files, then the user's own commands. On failure the caller removes
the work dir."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from mngr.actions import execute
from mngr.actions.agent_process import write_sandbox
from mngr.actions.site import Site
from mngr.agent.record import Record
from mngr.errors import MngrError, UsageError
from mngr.secrets import mask
from mngr.system import inside, process
from mngr.workspace.plan import NONE
from mngr.workspace.workspace import copy_into

SECONDS = 3600.0


def parse_upload(text: str) -> tuple[str, str]:
    """`LOCAL:REMOTE` taken apart. REMOTE is below the work dir; an agent on this machine must not replace files that
    are not its own."""
    local, colon, remote = text.rpartition(":")
    if not colon or not local or not remote:
        raise UsageError(f"{text!r} is not `LOCAL:REMOTE`", hint="for example `--upload-file .env:.env`")
    if not os.path.exists(local):
        raise UsageError(f"`--upload-file {text}`: `{local}` does not exist")
    path = os.path.normpath(remote)
    first, *_ = path.split("/")
    if os.path.isabs(path) or first in ("..", "~", ".") or ".git" in path.lower().split("/"):
        raise UsageError(
            f"`--upload-file {text}`: `{remote}` is not a path below the agent's work dir",
            hint=f"for example `--upload-file {local}:{os.path.basename(local)}`",
        )
    return os.path.abspath(local), path


def packed(uploads: Sequence[tuple[str, str]]) -> tuple[bytes, tuple[tuple[str, str], ...]]:
    """The files of these uploads as a tar archive, and the uploads with their names in it."""
    import tarfile

    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for number, (source, _) in enumerate(uploads):
            archive.add(source, str(number))
    return target.getvalue(), tuple((str(number), path) for number, (_, path) in enumerate(uploads))


@contextmanager
def unpacked(site: Site, record: Record, archive: bytes) -> Iterator[str]:
    """A directory with the files of an archive from `packed`, for as long as they are copied from there. Without an
    archive the root: uploads name files of this machine."""
    if not archive:
        yield "/"
        return
    import tarfile

    directory = os.path.join(site.store.state_dir(record.id), "carried")
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as found:
            found.extractall(directory)
        yield directory
    finally:
        site.host.remove(directory)


def upload(record: Record, uploads: Sequence[tuple[str, str]]) -> None:
    """Copy files into the work dir. In place, where they would be the user's own, none is replaced."""
    root = record.workspace.work_dir
    for source, path in uploads:
        above, name = os.path.split(path)
        place = os.path.join(inside.resolve(root, above), name)
        found = inside.facts(root, place)
        if found is not None and (record.workspace.transfer == NONE or not stat.S_ISREG(found.st_mode)):
            raise MngrError(f"`{path}` exists in the work dir already and is not replaced")
        copy_into(source, root, place)


def run(site: Site, record: Record, commands: Sequence[str], secrets: Iterable[str]) -> None:
    """Run shell command lines in the work dir, with the agent's variables, one after another until one fails."""
    if record.spec.sandbox and commands:
        write_sandbox(site, record, started=False)
    for command in commands:
        argv, env = execute.prepare(site, record.id, f"exec 2>&1\n{command}")
        result = process.run(argv, timeout=SECONDS, env=env)
        if not result.ok:
            raise MngrError(
                f"`{mask(command, secrets)}` failed in the work dir of `{record.name}` (exit code {result.exit_code}), "
                "so the agent was not made",
                details=mask(result.stdout.decode(errors="replace"), secrets),
                hint="run it in a copy of the code to see why",
            )
