"""Is this machine ready? Checks as data. Looks only: changes and removes nothing; `gc` looks for leftovers."""

from __future__ import annotations

import fcntl
import os
import platform
import re
from collections.abc import Callable

from mngr.actions import leftovers
from mngr.actions.site import Site
from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.programs import driver, versions
from mngr.programs.driver import AgentProgram
from mngr.programs.kind import KNOWN_AGENTS
from mngr.system import bubblewrap, parallel, process
from mngr.system.process import INSTALL_HINTS, find_program, join

OK, NOTE, WARN, FAIL, UNKNOWN = "ok", "note", "warn", "fail", "unknown"
LEAST_FREE_BYTES = 1_000_000_000
_SECONDS = 10.0
# How each program is asked for its version, the oldest that works (git: `rev-parse --path-format`), and the oldest
# that can do everything (git: `merge-tree --write-tree`).
_NEEDED = {"tmux": ("-V", (3, 2), (3, 2)), "git": ("--version", (2, 31), (2, 38))}


class Check(NamedTuple):
    """What was looked at and what was found. `items` names each thing that `found` counts."""

    name: str
    status: str
    found: str
    hint: str = ""
    items: tuple[str, ...] = ()


def examine(site: Site, read_settings: Callable[[], object]) -> list[Check]:
    """All checks, in the order in which a person would fix things. Never raises for what it finds. `read_settings`
    raises for settings that are wrong, and returns those that are not trusted."""
    ours, directory = _state_directory(site)
    agents = _installed(site)
    return [
        Check("python", OK, platform.python_version()),
        *_programs(),
        directory,
        _disk(site.host.dir),
        _settings(read_settings),
        _records(site, ours),
        _tmux_server(site),
        coding_agents(list(agents)),
        *_agent_programs(site, agents),
    ]


def examine_host(site: Site) -> Check:
    """How the machine of this site is, as one check whose items are what is wrong or worth knowing."""
    agents = _installed(site)
    needed = [*_programs(), _disk(site.host.dir)]
    known = [check for check in _agent_programs(site, agents) if check.name in agents]
    wrong = [check for check in (*needed, *known) if check.status not in (OK, NOTE)]
    found = [f"python {platform.python_version()}", *(f"{check.name} {check.found}" for check in needed)]
    items = tuple(f"{check.name}: {check.found}" for check in dict.fromkeys((*wrong, *known)))
    return Check("", WARN if wrong else OK, ", ".join([*found, *agents]), items=items)


def _failed(name: str, error: MngrError, *, status: str = FAIL, hint: str = "") -> Check:
    details = tuple(error.details.split("\n")) if error.details else ()
    return Check(name, status, error.message, hint or error.hint, details)


def version_check(program: str, text: str) -> Check:
    """From what the program prints: `tmux 3.3a`, `tmux next-3.5`, `git version 2.39.5 (Apple Git-154)`."""
    flag, oldest, newest = _NEEDED[program]
    found = re.search(r"(\d+)\.(\d+)\S*", text)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    hint = f"{_dotted(oldest)} or later is needed; {INSTALL_HINTS[program]}"
    if found is None:
        return Check(program, UNKNOWN, f"`{program} {flag}` says {text!r}", hint)
    if version < oldest:
        return Check(program, FAIL, f"{found[0]} is too old", hint)
    if version < newest:
        hint = f"{_dotted(newest)} or later tells conflicts before a merge; {INSTALL_HINTS[program]}"
        return Check(program, WARN, f"{found[0]} works, but cannot preview conflicts", hint)
    return Check(program, OK, found[0])


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
    for program, (flag, *_) in _NEEDED.items():
        try:
            result = process.run([program, flag], timeout=_SECONDS)
        except MngrError as error:
            checks.append(_failed(program, error))
            continue
        if result.ok:
            checks.append(version_check(program, result.text.split("\n")[0]))
        else:
            said = f"`{program} {flag}` failed: {result.error_text or result.text}"
            checks.append(Check(program, FAIL, said, INSTALL_HINTS[program]))
    if find_program("rsync"):
        checks.append(Check("rsync", OK, "installed"))
    else:
        hint = f"needed for `--transfer rsync` and to pull or push files; {INSTALL_HINTS['rsync']}"
        checks.append(Check("rsync", WARN, "not installed", hint))
    try:
        bubblewrap.check()
        checks.append(Check("sandbox", OK, "`--sandbox` works"))
    except MngrError as error:
        checks.append(_failed("sandbox", error, status=NOTE))
    return checks


def _state_directory(site: Site) -> tuple[bool | None, Check]:
    """Whether it is ours: True, False when there is none yet, None when it is not or cannot be read."""
    path, name = site.host.dir, "state directory"
    quoted = join([path])
    try:
        ours = site.host.is_ours()
        mode = os.stat(path).st_mode & 0o777 if os.path.isdir(path) else 0o700
    except MngrError as error:
        return None, _failed(name, error)
    except OSError as error:
        return None, Check(name, FAIL, f"`{path}` cannot be read: {error.strerror}", f"`ls -ld {quoted}`")
    if os.path.islink(path) and not os.path.exists(path):
        return None, Check(name, FAIL, f"{path} is a link to nothing: `{os.readlink(path)}`", f"`rm {quoted}`")
    place = _existing(path)
    if not os.path.isdir(place) or not os.access(place, os.W_OK | os.X_OK):
        return ours, Check(name, FAIL, f"{place} cannot be written", f"check owner and disk: `ls -ld {join([place])}`")
    try:
        _try_lock(os.path.join(path, "format") if ours else place)
    except OSError as error:
        hint = "choose a directory on a local disk: `export MNGR_HOST_DIR=DIR`"
        return ours, Check(name, FAIL, f"{place} cannot be locked: {error.strerror}", hint)
    if mode & 0o077:
        return ours, Check(name, WARN, f"{path} is open to other users ({mode:04o})", f"`chmod 700 {quoted}`")
    return ours, Check(name, OK, path if ours else f"{path} (unused before the first `mngr create`)")


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
        return _failed("settings", error, hint=error.hint or "`mngr config path` shows the files")
    except OSError as error:
        return Check("settings", FAIL, f"cannot be read: {error.strerror}", "`mngr config path` shows the files")
    if untrusted:
        hint = "if you know who wrote them: `mngr config trust` shows them and asks"
        found = "readable; some of this project are not in force, since you have not trusted them"
        return Check("settings", NOTE, found, hint)
    return Check("settings", OK, "readable")


def _records(site: Site, ours: bool | None) -> Check:
    if ours is None:
        return Check("agent records", UNKNOWN, "not looked at, since the state directory is not ours")
    try:
        records, corrupt = site.store.records()
    except OSError as error:
        return Check("agent records", UNKNOWN, f"records cannot be read: {error}")
    if corrupt:
        messages = tuple(error.message for error in corrupt)
        return Check("agent records", FAIL, f"{len(corrupt)} cannot be read", corrupt[0].hint, messages)
    return Check("agent records", OK, f"{len(records)} readable" if records else "no agents")


def _tmux_server(site: Site) -> Check:
    if find_program("tmux") is None:
        return Check("tmux server", UNKNOWN, "not asked, since tmux is missing")
    try:
        sessions = leftovers.sessions(site)
    except MngrError as error:
        hint = error.hint or f"see what it says: `{join(site.tmux.argv('ls'))}`"
        if "File name too long" in error.details:
            hint = "its socket needs a shorter directory: `export TMUX_TMPDIR=/tmp`"
        return _failed("tmux server", error, hint=hint)
    found = f"answers, with {len(sessions)} of our sessions" if sessions else "runs no session of ours"
    return Check("tmux server", OK, found)


def _installed(site: Site) -> dict[str, str]:
    """Where each agent program is that is there: on PATH, or where settings say. Settings that cannot be read say
    nothing here: another check tells of them."""
    found = {}
    for name in KNOWN_AGENTS:
        try:
            said = site.settings.trusted_only.text(("agent_types", name, "command"), name)
        except MngrError:
            said = name
        if path := find_program(os.path.expanduser((said.split() or [""])[0])):
            found[name] = path
    return found


def _agent_programs(site: Site, paths: dict[str, str]) -> list[Check]:
    """A check for each program, all asked at the same time: some take seconds to tell their version."""
    checks, raised = parallel.each(lambda name: _agent_program(site, name, paths.get(name)), KNOWN_AGENTS)
    if raised is not None:
        raise raised
    return [check for check in checks if check is not None]


def _agent_program(site: Site, name: str, path: str | None) -> Check:
    """Is it installed, of a version that works, and logged in?"""
    found = driver.find(name)
    if path is None:
        return Check(name, NOTE, "not installed", f"if you want it: `{found.program.install}`")
    try:
        given = site.settings.trusted_only.table(("agent_types", name, "env"))  # a key may be among them
        login = found.login({**site.environ, **{key: str(said.value) for key, said in given.items()}})
    except (MngrError, OSError, ValueError) as error:
        return Check(name, UNKNOWN, f"whether you are logged in cannot be read: {error}")
    return judge(found.program, path, versions.ask(path), login)


def judge(program: AgentProgram, path: str, version: str, login: str) -> Check:
    """What keeps it from working comes first, then what is only worth knowing."""
    name, works = program.name, f"{program.tried} is known to work"
    if not version:
        hint = f"look: `{path} --version`; {works}: `{program.install}`"
        return Check(name, WARN, f"{path} does not tell its version", hint)
    if why := versions.unusable(program, version):
        return Check(name, WARN, f"{version} {why}", f"{works}: `{program.install}`")
    if not login:
        return Check(name, WARN, f"{version}, but you are not logged in", f"run `{name}` once and log in")
    if versions.numbers(version) > versions.numbers(program.tried):
        found = f"{version}, newer than {program.tried}, the last that was tried; login: {login}"
        return Check(name, NOTE, found, f"if it behaves oddly, {works}")
    return Check(name, OK, f"{version}; login: {login}")


def _existing(path: str) -> str:
    """The path, or the nearest directory above it that exists."""
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
