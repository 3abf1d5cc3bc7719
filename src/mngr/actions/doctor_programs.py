"""The part of `doctor` about agent programs: is each one installed, of a version that works, and logged in?"""

from __future__ import annotations

import os

from mngr import parallel
from mngr.actions.doctor import NOTE, OK, UNKNOWN, WARN, Check
from mngr.actions.site import Site
from mngr.agents.kinds import driver, versions
from mngr.agents.kinds.driver import AgentProgram
from mngr.agents.kinds.kind import KNOWN_AGENTS
from mngr.errors import MngrError
from mngr.process import find_program


def installed(site: Site) -> dict[str, str]:
    """Where each program is that is there: on PATH, or where settings say. Settings that cannot be read say nothing
    here: another check tells of them."""
    found = {}
    for name in KNOWN_AGENTS:
        try:
            said = site.settings.in_force.table(("agent_types", name)).get("command")
        except MngrError:
            said = None
        words = str(said.value).split() if said is not None else [name]
        if words and (path := find_program(os.path.expanduser(words[0]))):
            found[name] = path
    return found


def examine(site: Site, paths: dict[str, str]) -> list[Check]:
    """A check for each program, all asked at the same time: some take seconds to tell their version."""
    checks, raised = parallel.each(lambda name: _look(site, name, paths.get(name)), KNOWN_AGENTS)
    if raised is not None:
        raise raised
    return [check for check in checks if check is not None]


def _look(site: Site, name: str, path: str | None) -> Check:
    found = driver.find(name)
    if path is None:
        return missing(found.program)
    try:
        login = found.login({**site.environ, **_variables(site, name)})
    except (MngrError, OSError, ValueError) as error:
        return Check(name, UNKNOWN, f"whether you are logged in cannot be read: {error}")
    return judge(found.program, path, versions.ask(path), login)


def _variables(site: Site, name: str) -> dict[str, str]:
    """Those that the settings give to agents of this type: a key may be among them."""
    return {key: str(said.value) for key, said in site.settings.in_force.table(("agent_types", name, "env")).items()}


def missing(program: AgentProgram) -> Check:
    return Check(program.name, NOTE, "not installed", f"if you want it: `{program.install}`")


def judge(program: AgentProgram, path: str, version: str, login: str) -> Check:
    """What keeps it from working comes first, then what is only worth knowing."""
    name = program.name
    if not version:
        hint = f"look: `{path} --version`; {program.tried} is known to work: `{program.install}`"
        return Check(name, WARN, f"{path} does not tell its version", hint)
    if why := versions.unusable(program, version):
        return Check(name, WARN, f"{version} {why}", f"{program.tried} is known to work: `{program.install}`")
    if not login:
        return Check(name, WARN, f"{version}, but you are not logged in", f"run `{name}` once and log in")
    if versions.numbers(version) > versions.numbers(program.tried):
        found = f"{version}, newer than {program.tried}, the last that was tried; login: {login}"
        return Check(name, NOTE, found, f"if it behaves oddly, {program.tried} is known to work")
    return Check(name, OK, f"{version}; login: {login}")
