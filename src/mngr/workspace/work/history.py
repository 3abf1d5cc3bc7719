"""What an agent said and what became of its task: files of its state directory, which no commit has."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from mngr.agent import recording
from mngr.agent.record import Record
from mngr.agent.store import Store
from mngr.errors import MngrError
from mngr.system.state_dir import StateDir
from mngr.workspace.work.disk import look

_TRANSCRIPT, _TASK = "transcript.jsonl", "task"
_MOST_BYTES = 1 << 28


def exists(host: StateDir, record: Record) -> bool:
    """Whether anything was said or made: a conversation, a recording of its terminal, or, of an agent in place, its
    outcome and artifacts. What happened to it (its events) is not worth keeping alone."""
    directory = Store(host).state_dir(record.id)
    parts = [recording.FILE, _TRANSCRIPT, _TASK]
    home, own = _of_program(record)
    parts += [f"{home}/{part}" for part in own[:1]]
    files = (os.path.join(directory, path) for part in parts for path in _files_below(directory, part))
    found = (look(path) for path in files if os.path.basename(path) != ".gitignore")
    return any(info is not None and info.st_size for info in found)


def kept(host: StateDir, directory: str, record: Record) -> list[str]:
    """The conversation and all else that an agent gets back when it is made again."""
    return [*conversation(host, directory, record), *_files_below(directory, recording.FILE), *results(directory)]


def results(directory: str) -> list[str]:
    """Outcome and artifacts of an agent in place. Those of others are in their work dirs."""
    return _files_below(directory, _TASK)


def conversation(host: StateDir, directory: str, record: Record) -> list[str]:
    """The files of an agent's state directory that hold what was said and what happened: ours, and those of its
    program, each by its path there. They may be gone by the time they are read."""
    found = [
        name for name in host.entries(directory) if name.endswith(".jsonl") and _is_plain(os.path.join(directory, name))
    ]
    if record.spec.one_shot:
        from mngr.programs.driver import PROMPT

        found.append(PROMPT)  # its task, which every start does again
    home, own = _of_program(record)
    return [*found, *(path for path in _files_below(directory, home) if _is_part(path, home, own))] if own else found


def _of_program(record: Record) -> tuple[str, Sequence[str]]:
    """The home of its program and what holds the conversation there. A newer mngr may have made the agent with a driver
    that is not known here: its files cannot be told from copies of logins, so none of them is kept."""
    if not record.spec.driver:
        return "", ()
    from mngr.programs import driver

    try:
        return driver.HOME, driver.find(record.spec.driver).conversation
    except MngrError:
        return driver.HOME, ()


def copy_files(host: StateDir, source: str, target: str, paths: Iterable[str]) -> None:
    """Those that are still there: a program that works tidies up its own. Of a huge file, the end."""
    for path in paths:
        if not _is_plain(os.path.join(source, path)):
            continue
        data = host.read_tail(os.path.join(source, path), _MOST_BYTES)[0]
        host.make_dir(os.path.dirname(os.path.join(target, path)))
        host.write(os.path.join(target, path), data)


def _files_below(directory: str, part: str) -> list[str]:
    """The files at and below a path. Plain files only: a link leads to what is the user's own."""
    top = os.path.join(directory, part)
    return [
        os.path.relpath(path, directory)
        for root, _, names in (*os.walk(top), (os.path.dirname(top), [], [os.path.basename(top)]))
        for name in names
        if _is_plain(path := os.path.join(root, name))
    ]


def _is_plain(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)


def _is_part(path: str, home: str, parts: Sequence[str]) -> bool:
    from fnmatch import fnmatchcase

    inside = path.removeprefix(f"{home}/")
    return any(inside.startswith(f"{part}/") or fnmatchcase(inside, part) for part in parts)
