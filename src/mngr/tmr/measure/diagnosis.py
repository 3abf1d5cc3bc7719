"""What the output of a failed build or of a full disk says: the line to show, and what to do. Pure."""

from __future__ import annotations

import re

_LINE_MAX = 300
_COMPILER = re.compile(
    r"""^(?:
      \S[^:]*:\d+(?::\d+)?:\s*(?:fatal\s+)?error\b.*    # gcc, clang, javac, swift
    | \S+\.go:\d+:\d+:\s.*                               # go
    | \S[^(]*\(\d+,\d+\):\s*error\b.*                    # tsc, csc
    | error(?:\[E\d+\])?:\s.*                            # rustc, cargo
    | CMake\ Error\b.*
    | \S*:\d+:\d+:\s+ERROR:.*                            # meson
    | .*undefined\ reference\ to\ .*
    | (?:E\s+)?(?:SyntaxError|IndentationError|TabError):.*
    | npm\ (?:ERR!|error)\s.*
    )$""",
    re.MULTILINE | re.VERBOSE,
)
_NO_COMPILER = re.compile(r"No CMAKE_\w+_COMPILER could be found|Unknown compiler\(s\)|linker `\w+` not found")
_MISSING = re.compile(
    r"""(?:^|:\ )[`'"‘]?([\w.+-]+)['"’]?:\ (?:command\ not\ found|not\ found|No\ such\ file\ or\ directory)\s*$""",
    re.MULTILINE | re.VERBOSE,
)
_WHERE = re.compile(r"\s*--> (\S+:\d+:\d+)$")  # rustc says it below the error
_OF_SHELL = re.compile(r"^\S*job\.sh: (?:line )?\d+: ")
_MAKE = re.compile(r"^\S*make(?:\[\d+\])?: \*\*\* .*$", re.MULTILINE)
# What a machine says without room, memory or network, or with another process in the way: no work is to blame for that.
_MACHINE = re.compile(
    r"No space left on device|\[Errno 28\]|Disk quota exceeded|\[Errno 122\]|Cannot allocate memory|\[Errno 12\]"
    r"|Too many open files|\[Errno 24\]|Read-only file system|\[Errno 30\]|Input/output error|\[Errno 5\]"
    r"|Unable to create '[^']*\.lock'|cannot lock ref|Another git process seems to be running"
    r"|Stale file handle|Temporary failure in name resolution|Could not resolve host|Network is unreachable"
)
# The same as a test says it: the error itself, and no text that somebody wrote about one.
_IN_TEST = re.compile(
    r"^E\s+(?:OSError|MemoryError|BlockingIOError|\w*\.?\w*Error): \[Errno (?:5|12|24|28|30|122)\].*", re.M
)


def error_line(log: str) -> str:
    """The line of a build's output that says what is wrong: the first error of a compiler, a program that is missing,
    make's own complaint, otherwise the last line."""
    for pattern in (_NO_COMPILER, _COMPILER, _MISSING, _MAKE):
        if found := pattern.search(log):
            start = log.rfind("\n", 0, found.start() + 1) + 1
            line, *below = log[start:].lstrip("\n").split("\n", 2)
            where = _WHERE.match(below[0]) if below and pattern is _COMPILER else None
            line = f"{where[1]}: {line}" if where else _OF_SHELL.sub("", line)
            return line.strip()[:_LINE_MAX]
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1][:_LINE_MAX] if lines else ""


def advice(line: str) -> str:
    """What to do about a build that failed at the base with this line; empty when only its log can tell."""
    if _NO_COMPILER.search(line):
        return "install a compiler"
    if found := _MISSING.search(line):
        if found[1].endswith((".h", ".hh", ".hpp")):
            return f"install the library that brings `{found[1]}`"
        return f"install `{found[1]}`, or add its directory to PATH"
    if _COMPILER.search(line):
        return "fix it, commit, and begin again"
    return ""


def of_machine(text: str) -> str:
    """The line by which the machine, and not the work, is what failed; empty when there is none."""
    found = _MACHINE.search(text)
    if found is None:
        return ""
    start = text.rfind("\n", 0, found.start()) + 1
    return text[start:].splitlines()[0].strip()[:_LINE_MAX]


def of_machine_in_test(text: str) -> str:
    """The same for what a failed test shows, which may well be about such errors."""
    found = _IN_TEST.search(text)
    return of_machine(found[0]) if found else ""
