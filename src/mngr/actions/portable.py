"""The portable form of an agent, of saved work or of a snapshot: its entry, the files of its conversation, and refs
that git carries. The site that has it writes it, and the site that gets it reads it: no path of one means anything to
the other."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping

from mngr.actions import destroy, restore, source_cache
from mngr.actions import snapshots as taking
from mngr.actions.create import undo_create
from mngr.actions.site import Site
from mngr.agent import events, launch
from mngr.agent.launch import ENV
from mngr.agent.record import Record
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.names import is_id, is_name
from mngr.programs import repository_trust
from mngr.system import git as git_tool
from mngr.system.git import Git
from mngr.system.interrupts import held
from mngr.workspace.origin import ensure_machine_id, machine_id
from mngr.workspace.plan import MIRROR, RSYNC, WORKTREE
from mngr.workspace.work import entry as saved_entry
from mngr.workspace.work.entry import SAVED, SavedEntry
from mngr.workspace.work.git_files import is_repository

# Of a repository's git configuration, all that goes along: who commits, and how lines end.
SENT_CONFIG = ("user.name", "user.email", "core.autocrlf", "core.eol")


class Portable(NamedTuple):
    """`entry` is as the site has it that wrote this, except that its agent is portable; its refs are still to be
    fetched from there. `files` are those of the agent's state directory, by their path in it. `key` is what a cache of
    its repository is called on other machines, `config` what git is to know there."""

    entry: SavedEntry
    files: Mapping[str, bytes]
    key: str
    config: Mapping[str, str]


def pack(site: Site, agent_id: str) -> Portable:
    """An agent as it is now. `drop` removes what this made; the agent may work on meanwhile."""
    entry = taking.temporary(site, agent_id, for_others=True)
    try:
        return export(site, entry)
    except BaseException:
        with held():
            saved_entry.drop(site.host, entry)
        raise


def check_complete(site: Site, agent_id: str) -> None:
    """Raise if an agent has anything that does not go along, and that would be lost where it is removed."""
    record = site.store.read(agent_id)
    found = destroy.measure(site, record)
    if found.left_out:
        raise MngrError(
            f"`{record.name}` has ignored files that are too large to go along: {found.describe_left_out()}",
            hint="`-S saved.ignored_max_mb=N` takes them along up to N MB; remove what can be made again",
        )
    if found.lfs:
        raise MngrError(
            f"`{record.name}` has {len(found.lfs)} objects of Git LFS that no other repository has",
            hint=f"push them first: `mngr exec {record.name} 'git lfs push --all origin'`",
        )


def export(site: Site, entry: SavedEntry) -> Portable:
    """Saved work or a snapshot. It stays where it is."""
    saved_entry.check_kept(entry)
    files = _files(saved_entry.agent_dir(site.host, entry))
    agent, key = entry.agent, ""
    config: dict[str, str] = {}
    if agent is not None:
        key, config, agent = _portable(site, agent)
        if agent.workspace.transfer == WORKTREE and not entry.plain_files:
            entry = _with_refs(entry)
    return Portable(entry._replace(agent=agent), files, key, config)


def _portable(site: Site, record: Record) -> tuple[str, dict[str, str], Record]:
    machine = ensure_machine_id(site.host)
    origin = dict(record.workspace.origin) or {"machine": machine, "repo": "", "source": record.workspace.source}
    key, config = "", {}
    repo = record.workspace.repo if record.workspace.repo and is_repository(record.workspace.repo) else None
    if repo is not None:
        found = git_tool.repository(repo)
        rooms, _, name = repo.rpartition("/")
        cached = rooms == os.path.join(site.host.dir, source_cache.REPOSITORIES)
        key = name if cached else cache_key(machine, found.common_dir)
        git = Git.of_user(repo)
        config = {item: value.text for item in SENT_CONFIG if (value := git.run("config", "--get", item)).ok}
        if not record.workspace.origin:
            origin["repo"] = found.home
    if record.spec.driver in repository_trust.FILES:
        origin["trusted"] = record.spec.driver  # it was asked for before the first start
    return key, config, record.changed(origin=origin, shared_paths=())


def cache_key(machine: str, common_dir: str) -> str:
    """What the cache of a repository is called on other machines."""
    return hashlib.sha256(f"{machine}\0{common_dir}".encode(errors="surrogateescape")).hexdigest()[:16]


def _with_refs(entry: SavedEntry) -> SavedEntry:
    """A worktree shares its refs with the repository. Those that it began with go along: its base, and tags."""
    assert entry.agent is not None
    git, below = Git.of_user(entry.repo), entry.refs_below
    lines = git.must("for-each-ref", f"--merged={entry.parent}", "--format=%(refname) %(objectname)", "refs/tags")
    refs = dict(line.split(" ") for line in lines.split("\n") if line)
    base = f"refs/heads/{entry.agent.workspace.base_branch}"
    if entry.agent.workspace.base_branch and (tip := git.commit_of(base)):
        refs[base] = tip
    refs |= dict(entry.refs)
    lines = "".join(f"update {below}/{ref} {tip}\n" for ref, tip in refs.items())
    git.must("update-ref", "--stdin", input=lines.encode())
    return entry._replace(refs=tuple(sorted(refs.items())))


def reserve(site: Site, portable: Portable, room: str) -> SavedEntry:
    """Take an id here for what comes, and say where its refs are to go: `repo` and `ref` of the result. Followed by
    `complete`, or by `drop`."""
    site.host.prepare()
    entry, agent = portable.entry, portable.entry.agent
    named = is_name(entry.name) and is_id(agent.id) if agent is not None else "/" not in entry.name.lstrip(".")
    if not named:
        raise MngrError(f"`{entry.id}` is not the id of kept work")
    _check_data(entry)
    if agent is not None:
        agent = _settled(site, portable, agent)
    store = os.path.join(site.host.dir, room, "files.git")
    repo = store if entry.plain_files or agent is None or agent.workspace.repo is None else agent.workspace.repo
    taken = site.host.entries(os.path.join(site.host.dir, room, entry.name))
    wanted = saved_entry.free_name(entry.label, taken) if room != SAVED else ""
    place = saved_entry.reserve(site.host, room, entry.name, agent, wanted, for_others=True)
    if repo == store:
        saved_entry.make_store(store)
    ref = place.ref if entry.plain_files else f"{place.ref}/work"
    return entry._replace(id=place.id, repo=repo, ref=ref, agent=agent)


def _check_data(entry: SavedEntry) -> None:
    """Raise when names of refs, commits or paths are anything else: git and we act on them."""
    refs, commits = [entry.ref, entry.branch], [entry.commit, entry.parent]
    refs += [name for name, _ in entry.refs]
    commits += [tip for _, tip in (*entry.refs, *entry.archives, *entry.modules)]
    commits += filter(None, [entry.staged, entry.state])
    if entry.agent is not None:
        own = entry.agent.workspace
        refs += [own.branch, own.base_branch]
        commits += [own.base_commit] if own.base_commit is not None else []
    paths = [*entry.private, *(path for path, _ in (*entry.left_out, *entry.archives, *entry.modules))]
    wrong = [ref for ref in refs if ref is not None and (".." in ref or not _REF.fullmatch(ref))]
    wrong += [commit for commit in commits if not _COMMIT.fullmatch(commit)]
    wrong += [path for path in paths if path.startswith("/") or ".." in path.split("/") or "\0" in path]
    if wrong:
        raise MngrError(f"the kept work of `{entry.name}` names {wrong[0][:100]!r}, which it cannot have")


_REF = re.compile(r"(?!-)[^\x00-\x20\x7f~^:?*\[\\]+")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def _settled(site: Site, portable: Portable, agent: Record) -> Record:
    """The record with what this machine has in place of what the other one had."""
    origin, repo, source = dict(agent.workspace.origin), None, ""
    home = bool(origin) and origin.get("machine") == machine_id(site.host)
    config = {name: value for name, value in portable.config.items() if name in SENT_CONFIG}
    if portable.key:
        if home and is_repository(origin.get("repo", "")):
            repo = origin["repo"]
        else:
            repo = source_cache.prepare(site, portable.key, portable.entry.parent, config).repo.top
            home = False
        source = repo
    if home and os.path.isdir(origin.get("source", "")):
        source = origin["source"]
    return agent.changed(
        work_dir=site.work_dir(MIRROR, agent.name, agent.id),
        transfer=MIRROR if repo else RSYNC,
        repo=repo,
        source=source,
        origin={} if home else origin,
        shared_paths=(),
    )


def complete(site: Site, entry: SavedEntry, files: Mapping[str, bytes], *, temporary: bool = False) -> SavedEntry:
    """Its refs are here; keep the rest, so that it can be restored here. A `temporary` one is in no list, and the
    caller drops it."""
    if Git.of_user(entry.repo).commit_of(entry.commit) is None:
        raise MngrError(f"the commits of `{entry.name}` did not arrive")
    directory = saved_entry.agent_dir(site.host, entry)
    site.host.make_dir(directory)
    for path, data in files.items():
        if path.startswith("/") or ".." in path.split("/"):
            raise MngrError(f"`{path}` is not a file of an agent")
        if path == ENV:
            data = _only_variables(data)
        site.host.make_dir(os.path.dirname(os.path.join(directory, path)))
        site.host.write(os.path.join(directory, path), data)
    if not temporary:
        saved_entry.write(site.host, entry)
    return entry


def _only_variables(data: bytes) -> bytes:
    """An `env` file with nothing but variables: it is read by shells."""
    try:
        variables = launch.parse_env(data.decode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise MngrError(f"the variables of the agent are invalid: {error}") from None
    return launch.env_text(variables).encode("utf-8", "surrogateescape")


def drop(site: Site, entry: SavedEntry) -> None:
    """Forget what was packed or reserved. Twice is safe."""
    saved_entry.drop(site.host, entry)


def as_agent(site: Site, entry: SavedEntry, name: str, came_from: str) -> Record:
    """A stopped agent of what came, with its old id if that is free. On failure nothing is left of it."""
    assert entry.agent is not None
    taken_hint = f"`mngr migrate {name} NEW@HOST` gives it another name"
    record, workspace = restore.make_again(site, entry, name, taken_hint, stop_reason=f"migrated from {came_from}")
    try:
        _verify(site, entry, record)
    except BaseException:
        with held():
            undo_create(site, record.id, workspace)
        raise
    site.store.log(record.id, "migrated", came_from=came_from)
    return record


def _verify(site: Site, entry: SavedEntry, record: Record) -> None:
    """Compare what was made with what came, by keeping it once more."""
    again = taking.temporary(site, record.id, for_others=True)
    try:
        git = Git.of_user(entry.repo)
        trees = [git.must("rev-parse", f"{commit}^{{tree}}") for commit in (entry.commit, again.commit)]
        wrong = [] if trees[0] == trees[1] else ["files"]
        if not entry.plain_files and entry.parent != again.parent:
            wrong.append("commits")
        if entry.staged != again.staged:
            wrong.append("staged files")
        if sorted(path for path, _ in entry.archives) != sorted(path for path, _ in again.archives):
            wrong.append("repositories inside")
        there, here = dict(entry.refs), dict(again.refs)
        if any(here.get(ref) != tip for ref, tip in there.items() if ref != f"refs/heads/{again.branch}"):
            wrong.append("refs")
        old, new = (_files(saved_entry.agent_dir(site.host, one)) for one in (entry, again))
        if any(new.get(path) != data for path, data in old.items() if path != events.FILE):
            wrong.append("conversation")
    finally:
        with held():
            saved_entry.drop(site.host, again)
    if wrong:
        raise MngrError(f"`{record.name}` did not arrive as it was: its {', '.join(wrong)} differ")


def _files(directory: str) -> dict[str, bytes]:
    """Plain files only: a link leads to what is the user's own."""
    found = {}
    for root, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(root, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, directory)] = file.read()
    return found
