"""What a value can be, for completion: agents, types, templates, states, saved work, keys. Found by what help calls the
value, so that a new verb with an AGENT is completed without a word here. Reads files only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from mngr.cli import catalog, plugin_verbs
from mngr.cli.parser import completion
from mngr.cli.parser.completion import FILES, FOLDERS, Candidate
from mngr.errors import MngrError
from mngr.settings.layers import host_dir

if TYPE_CHECKING:
    from mngr.agent.record import Record
    from mngr.settings.layers import Settings
    from mngr.system.state_dir import StateDir


def of(command: str, dest: str, called: str, typed: Sequence[str]) -> Iterable[Candidate]:
    """`command` is the verb with its part (`saved restore`), `called` the value's name in help, `typed` the positional
    arguments before it."""
    verb = command.partition(" ")[0]
    if dest in _BY_NAME:
        return _BY_NAME[dest]()
    if command in ("snapshot restore", "snapshot destroy") and dest != "new_name":
        return [*snapshots(), *(agents() if called == "AGENT" else ())]
    if called in ("ID", "KEY"):
        return {"saved ID": saved, "config KEY": settings}.get(f"{verb} {called}", list)()
    if called == "VERB|TOPIC":
        return _helped(typed)
    words = _words(called)
    found: list[Candidate] = []
    if "AGENT" in words or called == "OLD":
        found += [(name, text) for name, text in agents() if name not in typed]
    if "STATE" in words and (typed or "AGENT" not in words):
        found += states()
    found += types() if "TYPE" in words else ()
    found += plugins() if "PLUGIN" in words else ()
    if words & {"DIR", "FOLDER"}:
        found.append((FOLDERS, ""))
    elif words & {"FILE", "SOURCE", "DEST"}:
        found.append((FILES, ""))
    return found


def agents() -> Iterator[Candidate]:
    for record in _records():
        yield record.name, f"{record.spec.kind}, {record.spec.project}"


def types() -> list[Candidate]:
    from mngr.programs import kind as kinds
    from mngr.system.process import find_program

    settings = _settings()
    own = settings.names("agent_types") if settings else []
    added = kinds.of_plugins(settings) if settings else {}
    programs = filter(find_program, kinds.KNOWN_AGENTS)
    return [(name, "") for name in dict.fromkeys((*kinds.BUILTIN, *own, *added, *programs))]


def templates() -> list[Candidate]:
    settings = _settings()
    return [(name, "") for name in settings.names("create_templates")] if settings else []


def states() -> list[Candidate]:
    from mngr.agent.state import STATES

    return [(state, "") for state in STATES]


def saved() -> list[Candidate]:
    from mngr.workspace.work.entry import SAVED, survey

    return [(entry.id, f"work of {entry.name}, {entry.reason}") for entry in survey(_host(), SAVED)[0]]


def snapshots() -> list[Candidate]:
    from mngr.workspace.work.entry import SNAPSHOTS, survey

    return [(entry.label, f"of {entry.name}, {entry.saved_at}") for entry in survey(_host(), SNAPSHOTS)[0]]


def plugins() -> list[Candidate]:
    from mngr import installed

    return [(plugin.name, f"{plugin.package} {plugin.version}") for plugin in installed.plugins()]


def formats() -> list[Candidate]:
    return [("human", "a table or lines"), ("json", "one document"), ("jsonl", "one object a line")]


def settings() -> list[Candidate]:
    """Keys with a fixed name, and those that are set."""
    from mngr.settings.schema import SCHEMA

    tables = {section: inner for section, inner in SCHEMA.items() if isinstance(inner, dict)}
    fixed = [f"{section}.{name}" for section, inner in tables.items() for name in inner if name != "*"]
    known = _settings()
    return [(key, "") for key in sorted({*fixed, *(known.flat() if known else ())})]


def projects() -> list[Candidate]:
    return [(record.spec.project, "") for record in _records()]


def labels() -> list[Candidate]:
    return [(f"{name}={value}", "") for record in _records() for name, value in record.spec.labels.items()]


_BY_NAME: dict[str, Callable[[], Iterable[Candidate]]] = {
    "format": formats,
    "setting": settings,
    "template": templates,
    "project": projects,
    "label": labels,
}


def _helped(typed: Sequence[str]) -> Iterable[Candidate]:
    from mngr.cli.dispatch import command_parser

    if not typed:
        return [*completion.verbs(), *catalog.TOPICS]
    entry = plugin_verbs.find(typed[0], os.environ, warn=plugin_verbs.silent)
    parts = command_parser(entry).subcommands if entry and len(typed) == 1 else {}
    return [(name, part.summary) for name, part in parts.items()]


def _words(called: str) -> set[str]:
    """`AGENT... [STATE...]` -> AGENT, STATE. What follows a colon is a part of the same word."""
    plain = "".join(c if c.isalpha() or c == ":" else " " for c in called)
    return {word.partition(":")[0] for word in plain.replace(" :", ":").split()}


def _host() -> StateDir:
    from mngr.system.state_dir import StateDir

    return StateDir(host_dir(os.environ))


def _records() -> list[Record]:
    """The agents of this machine, and those that other hosts had when they last answered."""
    from mngr.agent.store import Store

    host = _host()
    found = Store(host).records()[0]
    if host.entries(os.path.join(host.dir, "hosts")):
        from mngr.fleet.known_hosts import KnownHosts

        found += [view.record for known in KnownHosts(host).all() for view in known.views(0.0, "")]
    return found


def _settings() -> Settings | None:
    try:
        return plugin_verbs.settings(os.environ)
    except (MngrError, OSError):
        return None
