"""Is this machine ready, and is anything left over? Checks as data. Looks only: changes and removes nothing."""

from __future__ import annotations

import fcntl
import os
import re
import sys
from collections.abc import Callable
from typing import NamedTuple

from mngr import process
from mngr.actions import find, leftovers
from mngr.actions.leftovers import MarkedSession
from mngr.actions.site import Site
from mngr.agents import state
from mngr.agents.kinds.kind import KNOWN_AGENTS
from mngr.agents.record import CorruptRecord
from mngr.errors import MngrError
from mngr.process import INSTALL_HINTS, find_program, join
from mngr.tools import bubblewrap

OK, NOTE, WARN, FAIL, UNKNOWN = "ok", "note", "warn", "fail", "unknown"
OLDEST_PYTHON = (3, 11)
OLDEST_TMUX = (3, 2)
OLDEST_GIT = (2, 31)  # `rev-parse --path-format`
PREVIEW_GIT = (2, 38)  # `merge-tree --write-tree`
LEAST_FREE_BYTES = 1_000_000_000
_SECONDS = 10.0


class Check(NamedTuple):
    """What was looked at and what was found. `items` names each thing that `found` counts."""

    name: str
    status: str
    found: str
    hint: str = ""
    items: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        return {**self._asdict(), "items": list(self.items)}


def examine(site: Site, read_settings: Callable[[], object]) -> list[Check]:
    """All checks, in the order in which a person would fix things. Never raises for what it finds. `read_settings`
    raises for settings that are wrong, and returns those that are not trusted."""
    from mngr.actions import doctor_programs

    ours, directory = _state_directory(site)
    agents = doctor_programs.installed(site)
    return [
        python_version(tuple(sys.version_info[:3])),
        *_programs(),
        directory,
        _writable(site, ours),
        _disk(site.host.dir),
        _settings(read_settings),
        *_agents(site, ours),
        coding_agents(list(agents)),
        *doctor_programs.examine(site, agents),
    ]


def examine_host(site: Site) -> Check:
    """How the machine of this site is, as one check whose items are what is wrong or worth knowing."""
    from mngr.actions import doctor_programs

    programs = doctor_programs.installed(site)
    version = ".".join(map(str, sys.version_info[:3]))
    needed = [*_programs(), _disk(site.host.dir)]
    known = [check for check in doctor_programs.examine(site, programs) if check.name in programs]
    found = [f"python {version}", *(f"{check.name} {check.found}" for check in needed), ", ".join(programs)]
    wrong = [check for check in (*needed, *known) if check.status not in (OK, NOTE)]
    items = tuple(f"{check.name}: {check.found}" for check in (*wrong, *(one for one in known if one not in wrong)))
    return Check("", WARN if wrong else OK, ", ".join(filter(None, found)), items=items)


def python_version(version: tuple[int, ...]) -> Check:
    text = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        return Check("python", FAIL, f"{text} is too old", f"install Python {_dotted(OLDEST_PYTHON)} or later")
    return Check("python", OK, text)


def tmux_version(text: str) -> Check:
    """From what `tmux -V` prints: `tmux 3.3a`, `tmux next-3.5`, `tmux master`."""
    version = parse_version(text)
    if version is None:
        return Check("tmux", UNKNOWN, f"`tmux -V` says {text!r}", f"{_dotted(OLDEST_TMUX)} or later is needed")
    if version < OLDEST_TMUX:
        hint = f"{_dotted(OLDEST_TMUX)} or later is needed; {INSTALL_HINTS['tmux']}"
        return Check("tmux", FAIL, f"{text.removeprefix('tmux ')} is too old", hint)
    return Check("tmux", OK, text.removeprefix("tmux "))


def git_version(text: str) -> Check:
    """From what `git --version` prints: `git version 2.39.5 (Apple Git-154)`."""
    version, shown = parse_version(text), text.removeprefix("git version ")
    if version is None:
        return Check("git", UNKNOWN, f"`git --version` says {text!r}", f"{_dotted(OLDEST_GIT)} or later is needed")
    if version < OLDEST_GIT:
        hint = f"{_dotted(OLDEST_GIT)} or later is needed; {INSTALL_HINTS['git']}"
        return Check("git", FAIL, f"{shown} is too old", hint)
    if version < PREVIEW_GIT:
        hint = f"{_dotted(PREVIEW_GIT)} or later tells conflicts before a merge; {INSTALL_HINTS['git']}"
        return Check("git", WARN, f"{shown} works, but cannot preview conflicts", hint)
    return Check("git", OK, shown)


def parse_version(text: str) -> tuple[int, int] | None:
    """The first `NUMBER.NUMBER` in a text."""
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def disk_space(free_bytes: int, path: str) -> Check:
    shown = f"{free_bytes / 1e9:.1f} GB free" if free_bytes >= 1e9 else f"{free_bytes / 1e6:.0f} MB free"
    if free_bytes < LEAST_FREE_BYTES:
        return Check("disk", WARN, f"only {shown} at {path}", f"free some: `df -h {join([path])}` shows the disk")
    return Check("disk", OK, shown)


def coding_agents(installed: list[str]) -> Check:
    if not installed:
        hint = "`mngr demo` and `mngr create NAME --command 'CMD'` work without one"
        return Check("coding agents", WARN, f"none of {', '.join(KNOWN_AGENTS)} is installed", hint)
    return Check("coding agents", OK, ", ".join(installed))


def _programs() -> list[Check]:
    checks = []
    for program, words, judge in (("tmux", "-V", tmux_version), ("git", "--version", git_version)):
        try:
            result = process.run([program, words], timeout=_SECONDS)
        except MngrError as error:
            checks.append(Check(program, FAIL, error.message, error.hint))
            continue
        if result.ok:
            checks.append(judge(result.text.split("\n")[0]))
        else:
            said = f"`{program} {words}` failed: {result.error_text or result.text}"
            checks.append(Check(program, FAIL, said, INSTALL_HINTS[program]))
    if find_program("rsync"):
        checks.append(Check("rsync", OK, "installed"))
    else:
        hint = f"needed for `--transfer rsync` and to pull or push files; {INSTALL_HINTS['rsync']}"
        checks.append(Check("rsync", WARN, "not installed", hint))
    return [*checks, _sandbox()]


def _sandbox() -> Check:
    try:
        bubblewrap.check()
    except MngrError as error:
        return Check("sandbox", NOTE, f"`--sandbox` does not work: {error.message}", error.hint, _lines(error.details))
    return Check("sandbox", OK, "`--sandbox` works")


def _state_directory(site: Site) -> tuple[bool | None, Check]:
    """Whether it is ours: True, False when there is none yet, None when it is not or cannot be read."""
    path, name = site.host.dir, "state directory"
    try:
        ours = site.host.is_ours()
        mode = os.stat(path).st_mode & 0o777 if os.path.isdir(path) else 0o700
    except MngrError as error:
        return None, Check(name, FAIL, error.message, error.hint)
    except OSError as error:
        return None, Check(name, FAIL, f"`{path}` cannot be read: {error.strerror}", f"`ls -ld {join([path])}`")
    if os.path.islink(path) and not os.path.exists(path):
        return None, Check(name, FAIL, f"{path} is a link to nothing: `{os.readlink(path)}`", f"`rm {join([path])}`")
    if mode & 0o077:
        return ours, Check(name, WARN, f"{path} is open to other users ({mode:04o})", f"`chmod 700 {join([path])}`")
    if mode & 0o700 != 0o700:
        return ours, Check(name, FAIL, f"{path} is closed to you ({mode:04o})", f"`chmod 700 {join([path])}`")
    return ours, Check(name, OK, path if ours else f"{path} (unused before the first `mngr create`)")


def _writable(site: Site, ours: bool | None) -> Check:
    name, path = "writing and locking", _existing(site.host.dir)
    if ours is None:
        return Check(name, UNKNOWN, "not looked at, since the state directory is not ours")
    if not os.path.isdir(path) or not os.access(path, os.W_OK | os.X_OK):
        return Check(name, FAIL, f"{path} cannot be written", f"check owner and disk: `ls -ld {join([path])}`")
    try:
        _try_lock(os.path.join(site.host.dir, "format") if ours else path)
    except OSError as error:
        hint = "choose a directory on a local disk: `export MNGR_HOST_DIR=DIR`"
        return Check(name, FAIL, f"{path} cannot be locked: {error.strerror}", hint)
    return Check(name, OK, "both work" if ours else f"both work in {path}")


def _try_lock(path: str) -> None:
    """Take and give back a shared lock, on something that no verb ever locks."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        pass  # someone holds one, so locks work
    finally:
        os.close(fd)


def _disk(path: str) -> Check:
    place = _existing(path)
    try:
        disk = os.statvfs(place)
    except OSError as error:
        return Check("disk", UNKNOWN, f"free space at {place} cannot be read: {error.strerror}")
    return disk_space(disk.f_bavail * disk.f_frsize, place)


def _settings(read_settings: Callable[[], object]) -> Check:
    try:
        untrusted = read_settings()
    except MngrError as error:
        hint = error.hint or "`mngr config path` shows the files"
        return Check("settings", FAIL, error.message, hint, _lines(error.details))
    except OSError as error:
        return Check("settings", FAIL, f"cannot be read: {error.strerror}", "`mngr config path` shows the files")
    if untrusted:
        hint = "if you know who wrote them: `mngr config trust` shows them and asks"
        return Check(
            "settings", NOTE, "readable; some of this project are not in force, since you have not trusted them", hint
        )
    return Check("settings", OK, "readable")


def _agents(site: Site, ours: bool | None) -> list[Check]:
    """Records, sessions and work dirs, held against each other."""
    # In this order an agent that is made meanwhile is in none of the first two, and never looks like a leftover.
    sessions, server = _sessions(site)
    places = leftovers.places(site) if ours else []
    if ours is None:
        return _unknown(site, sessions, server, "not looked at, since the state directory is not ours")
    try:
        records, corrupt = site.store.records()
    except OSError as error:
        return _unknown(site, sessions, server, f"records cannot be read: {error}")
    known = leftovers.recorded_ids(site)
    used = {os.path.realpath(record.work_dir) for record in records}
    return [
        _readable(len(records), corrupt),
        server,
        _gone(site, ours, sessions),
        _strays(site, sessions, known),
        _leftovers([path for path in leftovers.unknown_places(places, known) if os.path.realpath(path) not in used]),
    ]


def _unknown(site: Site, sessions: list[MarkedSession] | None, server: Check, why: str) -> list[Check]:
    """The same checks when records are not known: only what tmux says can be judged."""
    records, gone, places = (Check(name, UNKNOWN, why) for name in ("agent records", "sessions of agents", "work dirs"))
    return [records, server, gone, _strays(site, sessions, set()), places]


def _sessions(site: Site) -> tuple[list[MarkedSession] | None, Check]:
    """Every session that carries our mark; None when tmux did not answer."""
    if find_program("tmux") is None:
        return None, Check("tmux server", UNKNOWN, "not asked, since tmux is missing")
    try:
        sessions = leftovers.sessions(site)
    except MngrError as error:
        hint = error.hint or "see what it says: `tmux -L mngr ls`"
        if "File name too long" in error.details:
            hint = "its socket needs a shorter directory: `export TMUX_TMPDIR=/tmp`"
        return None, Check("tmux server", FAIL, error.message, hint, _lines(error.details))
    found = f"answers, with {len(sessions)} of our sessions" if sessions else "runs no session of ours"
    return sessions, Check("tmux server", OK, found)


def _readable(count: int, corrupt: list[CorruptRecord]) -> Check:
    if corrupt:
        messages = tuple(error.message for error in corrupt)
        return Check("agent records", FAIL, f"{len(corrupt)} cannot be read", corrupt[0].hint, messages)
    return Check("agent records", OK, f"{count} readable" if count else "no agents")


def _gone(site: Site, ours: bool, sessions: list[MarkedSession] | None) -> Check:
    name = "sessions of agents"
    if sessions is None:
        return Check(name, UNKNOWN, "not known without an answer of tmux")
    try:
        agents = find.listing(site)[0] if ours else []
    except (MngrError, OSError) as error:
        return Check(name, UNKNOWN, f"agents cannot be listed: {error}")
    gone = [
        agent
        for agent in agents
        if agent.state == state.FAILED and agent.pane is None
        if agent.status.exit_code is None and agent.status.signal is None
    ]
    if not gone:
        return Check(name, OK, "none is gone")
    first = gone[0].name
    hint = f"`mngr start {first}` runs it again, `mngr destroy {first}` removes it; its files are as they were"
    return Check(name, WARN, f"{len(gone)} gone", hint, tuple(f"{agent.name}: {agent.status.reason}" for agent in gone))


def _strays(site: Site, sessions: list[MarkedSession] | None, known: set[str]) -> Check:
    """Sessions of agents that no record knows, here or in another state directory on the same tmux server."""
    name = "stray sessions"
    if sessions is None:
        return Check(name, UNKNOWN, "not known without an answer of tmux")
    try:
        strays = leftovers.stray_sessions(site, sessions, known)
    except MngrError as error:
        return Check(name, UNKNOWN, error.message)
    if not strays:
        return Check(name, OK, "none")
    target = f"-t {join([f'={strays[0].name}'])}"
    hint = f"look: `tmux -L mngr attach -r {target}`, then end it: `tmux -L mngr kill-session {target}`"
    if leftovers.is_of(site, strays[0]):
        hint += "; or `mngr gc`"
    return Check(name, WARN, f"{len(strays)} that no record knows", hint, tuple(stray.name for stray in strays))


def _leftovers(paths: list[str]) -> Check:
    left = [path for path in paths if os.path.lexists(path)]  # one being destroyed is gone by now
    if not left:
        return Check("work dirs", OK, "none is left over")
    first = join([left[0]])
    hint = f"look: `git -C {first} status`; `mngr gc` saves what is only there and removes them"
    return Check("work dirs", WARN, f"{len(left)} that no record knows", hint, tuple(left))


def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.split("\n")) if text else ()


def _existing(path: str) -> str:
    """The path, or the nearest directory above it that exists."""
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
