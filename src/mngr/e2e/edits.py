"""One change each of what the commands of a test did: exit code, lines, numbers, words, files. Pure.

A test that checks something fails with such an edit; an edit that no test notices is something nobody checks.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mngr.e2e.replay import Answer, CommandRecord, Segment
from mngr.e2e.trees import Change, Node

CAP = 300
_TOKEN = re.compile(r"(?P<number>\d+(?:\.\d+)*)|(?P<word>[^\W\d_][\w-]*)")
_ADDED = "zzz added by mngr 917"
_TEXT_MAX = 100_000
_FILES_MAX = 40  # that one command left
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SHOWN = 60


class Edit(NamedTuple):
    """`command` is the place of its answer in the record; `id` says which edit of this answer it is, the same in every
    run with the same output; `text` is for a person. `path` is empty for what is not about a file."""

    command: int
    id: str
    text: str
    kind: str
    stream: str = ""
    path: str = ""
    start: int = 0
    end: int = 0
    new: str = ""


def edits(record: CommandRecord, cap: int = CAP) -> list[Edit]:
    """All of them, or as many as the cap allows: those of exit codes, then the first of each command, the second, and
    so on, so that none drowns in the files of another. The order within a command is the same whatever else a test
    runs. In the order of the commands."""
    found = list(_all(record))
    if len(found) <= cap:
        return found
    found.sort(key=lambda edit: (edit.kind != "exit code", _rank(record.answers[edit.command].command, edit.id)))
    turns: list[tuple[int, int, Edit]] = []
    taken: dict[int, int] = {}
    for at, edit in enumerate(found):
        if edit.kind != "exit code":
            taken[edit.command] = taken.get(edit.command, 0) + 1
        turns.append((0 if edit.kind == "exit code" else taken[edit.command], at, edit))
    return sorted(edit for _, _, edit in sorted(turns)[:cap])


def edited(record: CommandRecord, edit: Edit) -> CommandRecord:
    """The record with this edit."""
    answer = record.answers[edit.command]
    if edit.kind == "exit code":
        new = answer._replace(exit_code=int(edit.new))
    elif edit.kind == "streams":
        other = {"stdout": "stderr", "stderr": "stdout"}
        new = answer._replace(segments=tuple((other[stream], text) for stream, text in answer.segments))
    elif edit.path:
        new = answer._replace(changes=tuple(_edited_changes(answer.changes, edit)))
    else:
        new = answer._replace(segments=spliced(answer.segments, edit.stream, edit.start, edit.end, edit.new))
    answers = (*record.answers[: edit.command], new, *record.answers[edit.command + 1 :])
    return record._replace(answers=answers)


def digest(answer: Answer) -> str:
    """The same for answers that differ only in numbers; empty without output."""
    if not answer.segments:
        return ""
    text = f"{answer.exit_code}\0{answer.text('stdout')}\0{answer.text('stderr')}"
    return hashlib.sha256(re.sub(r"\d+", "0", text).encode(errors="replace")).hexdigest()[:12]


def _rank(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()


def _all(record: CommandRecord) -> Iterator[Edit]:
    for command, answer in enumerate(record.answers):
        for code, what in _exit_codes(answer.exit_code):
            text = f"exit code {answer.exit_code} → {code}"
            yield Edit(command, f"exit code {what}", text, "exit code", new=str(code))
        if answer.segments:
            yield Edit(command, "streams swapped", "standard output ↔ standard error", "streams")
        for stream in ("stdout", "stderr"):
            for edit in _of_text(answer.text(stream), stream):
                yield edit._replace(command=command, stream=stream)
        yield from _of_files(command, answer.changes)


def _exit_codes(code: int) -> list[tuple[int, str]]:
    return [(1, "flipped")] if code == 0 else [(0, "flipped"), (code + 1 if code < 255 else 1, "changed")]


def _of_files(command: int, changes: Sequence[Change]) -> Iterator[Edit]:
    """Not of repositories of git, nor of what is not text."""
    ours = [change for change in changes if ".git" not in change.path.split("/")][:_FILES_MAX]
    for change in ours:
        where = f"file {change.path}" if change.root == 0 else f"file <{change.root}>/{change.path}"
        path = f"{change.root}:{change.path}"
        if change.node is None:
            yield Edit(command, f"{where}: not removed", f"{where} not removed", "file", path=path)
            continue
        yield Edit(command, f"{where}: missing", f"{where} missing", "file", path=path)
        data = change.node.data
        if data and len(data) <= _TEXT_MAX and not _NOT_TEXT.search(data):
            for edit in _of_text(data.decode(errors="surrogateescape"), where):
                yield edit._replace(command=command, kind="content", path=path)


def _of_text(text: str, where: str) -> Iterator[Edit]:
    """Edits of a text, each one as a range of it that is replaced."""
    lines = text[:_TEXT_MAX].splitlines(keepends=True)
    start = 0
    for number, line in enumerate(lines, 1):
        end = start + len(line)

        def made(kind: str, text: str, start: int, end: int, new: str, at: object = number) -> Edit:
            return Edit(0, f"{where} {kind} {at}", f"{where}: {text}", "text", start=start, end=end, new=new)

        if line.strip():
            yield made("line dropped", f"line {number} dropped: {_short(line)}", start, end, "")
        if number < len(lines) and (after := lines[number]).strip() != line.strip():
            pair = after if after.endswith("\n") else after + "\n"
            first = line if after.endswith("\n") else line.rstrip("\n")
            yield made(
                "lines swapped", f"lines {number} and {number + 1} swapped", start, end + len(after), pair + first
            )
        for place, token in enumerate(_TOKEN.finditer(line), 1):
            for kind, new in _changed(token):
                what = f"{token.group()} → {new} in line {number}"
                span = (start + token.start(), start + token.end())
                yield made(kind, what, *span, new, at=f"{number}.{place}")
        start = end
    added = f"{_ADDED}\n" if not text or text.endswith("\n") else f"\n{_ADDED}"
    yield Edit(0, f"{where} line added", f"{where}: a line added", "text", start=len(text), end=len(text), new=added)


def _changed(token: re.Match[str]) -> Iterator[tuple[str, str]]:
    """New texts for a number or word, none of which contains the old one."""
    old = token.group()
    if token.group("word"):
        yield "word changed", "".join(map(_next_letter, old))
        return
    yield "number changed", "".join(str((int(c) + 1) % 10) if c.isdecimal() else c for c in old)
    if sum(c.isdecimal() for c in old) > 1 and old[-1].isdecimal():
        yield "last digit changed", old[:-1] + str((int(old[-1]) + 1) % 10)


def _next_letter(c: str) -> str:
    for first, last in (("a", "z"), ("A", "Z")):
        if first <= c <= last:
            return first if c == last else chr(ord(c) + 1)
    return c if c.isascii() else "x"


def spliced(segments: Sequence[Segment], stream: str, start: int, end: int, new: str) -> tuple[Segment, ...]:
    """The segments with this range of one stream replaced; the other stream stays where it was."""
    found: list[Segment] = []
    at = 0
    for name, text in segments:
        if name == stream:
            low, high = max(start - at, 0), max(end - at, 0)
            at += len(text)
            if start < at:
                text, new = text[:low] + new + text[high:], ""
        found.append((name, text))
    return tuple((name, text) for name, text in (*found, (stream, new)) if text)


def _edited_changes(changes: Sequence[Change], edit: Edit) -> Iterator[Change]:
    root, _, path = edit.path.partition(":")
    for change in changes:
        if (str(change.root), change.path) != (root, path):
            # What is in a directory that is missing is missing too.
            inside = edit.kind == "file" and str(change.root) == root and change.path.startswith(f"{path}/")
            if not inside:
                yield change
        elif edit.kind == "content" and change.node is not None and change.node.data is not None:
            text = change.node.data.decode(errors="surrogateescape")
            text = text[: edit.start] + edit.new + text[edit.end :]
            yield change._replace(node=Node(change.node.mode, text.encode(errors="surrogateescape")))


def _short(line: str) -> str:
    line = line.strip()
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
