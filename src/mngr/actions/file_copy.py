"""Files of an agent's work dir: which there are, and copies of others. What would be written over is saved first."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mngr.actions.site import Site
from mngr.agent import launch
from mngr.agent.record import Record
from mngr.errors import UsageError
from mngr.named_tuples import NamedTuple
from mngr.system import inside, process
from mngr.system.process import CommandFailed, checked
from mngr.workspace.work import save as saved_work
from mngr.workspace.work.entry import SavedEntry

SECONDS = 3600.0
_GIT = ".[gG][iI][tT]"  # for rsync: on some file systems each of these is the git directory


class Copied(NamedTuple):
    name: str
    source: str
    target: str
    files: tuple[str, ...]
    saved: SavedEntry | None
    repositories: tuple[str, ...] = ()  # git directories at the target, which stay as they are


class AgentPath(NamedTuple):
    """A path at an agent, which has no link in it: `root` is the directory that it is below, `tree` says that it is a
    directory, `whole` that it is the work dir itself."""

    name: str
    root: str
    path: str
    exists: bool
    tree: bool
    whole: bool


def look(site: Site, agent_id: str, path: str | None) -> AgentPath:
    """A path of the agent's work dir, or without one what it put into `$MNGR_ARTIFACTS_DIR`. Raise if it leads out of
    the work dir."""
    record = site.store.read(agent_id)
    if path is None:
        root, task = launch.task_place(record, site.store.state_dir(agent_id))
        relative = f"{task}/artifacts"
    else:
        root, relative = record.workspace.work_dir, below(record, path)
    found = inside.facts(root, relative)
    full = os.path.normpath(os.path.join(root, relative))
    tree = found is not None and stat.S_ISDIR(found.st_mode)
    return AgentPath(record.name, root, full, found is not None, tree, relative == ".")


def receive(site: Site, agent_id: str, full: str, path: str, *, dry_run: bool = False) -> Copied:
    """Copy a file or directory of the agent's own machine into its work dir."""
    record = site.store.read(agent_id)
    target = below(record, path)
    if path.endswith("/") and not os.path.isdir(full):
        target = os.path.join(target, os.path.basename(full))
    return copy(site, record.name, given(full), (record.workspace.work_dir, target), dry_run)


def below(record: Record, path: str) -> str:
    """A path of the work dir, relative to it and without links, except that it may be one to a file. Raise for one that
    leads out."""
    root = record.workspace.work_dir
    full = os.path.normpath(os.path.join(root, path))
    if path == "~" or path.startswith("~/"):
        raise UsageError(
            f"`{path}` is not inside the work dir of `{record.name}`", hint="paths begin there: `foo:data`"
        )
    if full != root and not full.startswith(root.rstrip("/") + "/"):
        raise UsageError(f"`{path}` is not inside the work dir of `{record.name}`")
    above, name = os.path.split(os.path.relpath(full, root))
    relative = os.path.normpath(os.path.join(inside.resolve(root, above), name))
    return inside.resolve(root, relative) if os.path.isdir(os.path.join(root, relative)) else relative


def given(path: str) -> tuple[str, str]:
    """A path that the user named, as `copy` takes it: wherever it leads, if that is a directory."""
    return (path, ".") if os.path.isdir(path) else os.path.split(path)


def copy(site: Site, name: str, source: tuple[str, str], target: tuple[str, str], dry_run: bool) -> Copied:
    """Copy a file or directory; both are a directory and a path below it. What is written over is saved first, as work
    of the agent `name`. No link is followed: one where a directory goes is replaced, one on the way is an error. The
    git directory of a repository at the target stays as it is: git would run what the settings of another one name."""
    process.require_program("rsync")
    tree = _is_directory(source)
    if not tree and _is_directory(target):
        target = (target[0], os.path.normpath(os.path.join(target[1], os.path.basename(source[1]))))
    from_, to = (os.path.normpath(os.path.join(*place)) for place in (source, target))
    root = to if tree else os.path.dirname(to)
    fresh = inside.facts(*target) is None  # nothing can be written over
    if fresh and tree and not dry_run:
        made = _copied(source, target, tree)
        return Copied(name, from_, to, tuple(path for path in made if not path.endswith("/")), None)
    slash = "/" if tree else ""
    with _as_path(source, tree) as path:
        changed = _changes([*_words(path), "--dry-run", path + slash, _probe(to) + slash])
    names = changed if tree else tuple(os.path.basename(to) for _ in changed)
    inner = list(dict.fromkeys(filter(None, map(_git_directory, names)))) if tree else []
    repositories = tuple(path for path in inner if os.path.lexists(os.path.join(root, path)))
    names = tuple(path for path in names if _git_directory(path) not in repositories)
    over = list(dict.fromkeys(filter(None, (_taken(root, path.removesuffix("/")) for path in names))))
    written = tuple(path for path in names if not path.endswith("/"))
    if dry_run or not names:
        return Copied(name, from_, to, written, None, repositories)
    entry = saved_work.save_files(site.host, name, root, over, "a copy over existing files") if over else None
    new = [word for path in inner if path not in repositories for word in ("--include", f"/{_pattern(path)}")]
    _copied(source, target, tree, [*new, "--exclude", _GIT] if tree else ())
    return Copied(name, from_, to, written, entry, repositories)


def _is_directory(place: tuple[str, str]) -> bool:
    """Whether it is one. Raise if it is a link to one, which is not followed."""
    found = inside.facts(*place)
    if found is not None and stat.S_ISLNK(found.st_mode) and os.path.isdir(os.path.join(*place)):
        with inside.directory(*place):
            pass
    return found is not None and stat.S_ISDIR(found.st_mode)


def _words(source: str) -> list[str]:
    own = f"{source}/.mngr"
    ours = "/.mngr" if os.path.isdir(own) and os.listdir(own) == ["task"] else "/.mngr/task"
    return ["rsync", "-a", "--checksum", "--exclude", "/.git", "--exclude", ours, "--out-format=%n"]


@contextmanager
def _as_path(place: tuple[str, str], tree: bool, *, make: bool = False) -> Iterator[str]:
    """The path for rsync of a directory, or of a file in its directory, that stays the same whatever is moved."""
    root, path = place
    above, name = (path, "") if tree else os.path.split(path)
    with inside.directory(root, above, make=0o777 if make else None) as fd:
        yield os.path.join(inside.for_programs(fd, os.path.join(root, above)), name).rstrip("/")


def _copied(
    source: tuple[str, str], target: tuple[str, str], tree: bool, options: Sequence[str] = ()
) -> tuple[str, ...]:
    with _as_path(source, tree) as from_, _as_path(target, tree, make=True) as to:
        slash = "/" if tree else ""
        try:
            return _changes([*_words(from_), *options, from_ + slash, to + slash], "the files could not be copied")
        except CommandFailed as error:
            for path, place in ((from_, source), (to, target)):
                error.details = error.details.replace(path, os.path.normpath(os.path.join(*place)))
            raise


def _changes(words: list[str], failed: str = "the files could not be compared") -> tuple[str, ...]:
    """What a copy writes, or would write, directories with a slash at their end, as rsync itself tells, which writes
    odd bytes of names as `\\#012`."""
    result = checked(process.run(words, timeout=SECONDS), failed)
    lines = [line for line in result.stdout.split(b"\n") if line and line != b"./"]
    return tuple(
        os.fsdecode(re.sub(rb"\\#([0-7]{3})", lambda found: bytes([int(found[1], 8)]), line)) for line in lines
    )


def _probe(path: str) -> str:
    """The path, or the first part of it that does not exist: rsync compares with one missing level, not with two."""
    while not os.path.isdir(os.path.dirname(path)):
        path = os.path.dirname(path)
    return path


def _pattern(path: str) -> str:
    """A path for rsync, which reads backslashes only where there is a wildcard."""
    return re.sub(r"([\\*?[])", r"\\\1", path) if re.search(r"[*?[]", path) else path


def _git_directory(path: str) -> str:
    """The `.git` that a path is or is in; empty if it is in none."""
    found = re.match(r"((?:.*?/)?\.git)(?:/|\Z)", path, re.IGNORECASE | re.DOTALL)
    return found[1] if found else ""


def _taken(root: str, path: str) -> str:
    """What is there that a file or directory at this path would replace: it, or a link or file above it, or nothing."""
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        above = "/".join(parts[:count])
        full = os.path.join(root, above)
        if os.path.islink(full) or (os.path.lexists(full) and not os.path.isdir(full)):
            return above
    return ""
