"""What `--permissions tests` allows: commands that read, the tests, and git as far as a commit. Everything else is
denied, never asked for. Tests run what the agent wrote, so this guides an honest agent and is not a sandbox. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from mngr.agents.record import Record

# In the work dir: what only reads, and what a program calls an edit when its own tool does it.
_READING = ("ls", "cat", "head", "tail", "wc", "grep", "rg", "find", "diff", "sort", "uniq", "pwd", "echo", "printf")
_EDITING = ("mkdir", "touch", "cp", "mv")
_GIT_READING = ("status", "diff", "log", "show", "blame", "ls-files", "ls-tree", "rev-parse", "branch --show-current")
_GIT_WRITING = ("add", "commit", "restore", "rm", "mv")
_PYTEST = ("pytest", *(f"{python} -m pytest" for python in ("python", "python3", ".venv/bin/python")))
PYTEST = (*_PYTEST, ".venv/bin/pytest", "uv run pytest")
SHELL = (*_READING, *_EDITING, "true", *(f"git {verb}" for verb in (*_GIT_READING, *_GIT_WRITING)))
# Denied even where the user's own settings allow it.
NEVER = ("git push",)


class Allowed(NamedTuple):
    """`whole` are the command lines that may be run, with more words behind them; `commands` are the same as single
    commands, each of which may also be part of a longer line."""

    whole: tuple[str, ...]
    commands: tuple[str, ...]


def of(record: Record) -> Allowed:
    """An agent that was told how the tests are run may do that; any other may run pytest."""
    whole = tuple(record.allowed_commands) or PYTEST
    single = [part for command in whole for part in parts(command)]
    return Allowed(whole, tuple(dict.fromkeys([*single, *PYTEST, *SHELL])))


def parts(command: str) -> list[str]:
    """The single commands of a shell line, as they are written in it; none when it is more than a list of commands."""
    found: list[list[str]] = [[]]
    try:
        for word in _words(command):
            if word and set(word) <= set("&|;"):
                found.append([])
            elif word and set(word) <= set("()<>&|;"):
                return []
            else:
                found[-1].append(word)
    except ValueError:  # quotes that are not closed
        return []
    return [" ".join(words) for words in found if words and words[0] != "cd"]


def _words(command: str) -> Iterator[str]:
    lexer = shlex.shlex(command, posix=False, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    yield from lexer
