"""What the agent does in its work directory: commands, edits of files, commits. What cannot be done as written changes
nothing."""

import os
import threading
from collections.abc import Callable
from typing import NamedTuple

from mngr import process
from mngr.errors import MngrError
from mngr.process import CommandFailed, checked
from mngr.tools.git import Git

SECONDS = 7 * 24 * 3600.0
_KEPT = 100_000
_LOOK_EVERY = 0.03


def run(command: str, show: Callable[[bytes], None]) -> tuple[int, str]:
    """The exit code and the (end of the) output of `sh -c`, which is shown as it comes. It goes through a file, so that
    a child it leaves behind cannot hold us. An exception ends the whole process group."""
    import tempfile

    sink, path = tempfile.mkstemp(prefix="mngr-run-")
    ended = threading.Event()
    follower = threading.Thread(target=_follow, args=(sink, ended, show), daemon=True)
    follower.start()
    try:
        outer = 'exec >"$1" 2>&1; rm -f "$1"; exec sh -c "$2"'
        result = process.run(["sh", "-c", outer, "sh", path, command], timeout=SECONDS)
        ended.set()
        follower.join()
        return result.exit_code, _end_of(sink)
    finally:
        ended.set()
        follower.join()
        os.close(sink)
        if os.path.exists(path):
            os.unlink(path)  # the command was ended before it could


def spawn(command: str) -> int:
    """Start it in a session of its own, without our terminal, and return its process id at once."""
    started = process.run(["sh", "-c", 'sh -c "$1" </dev/null >/dev/null 2>&1 & echo $!', "sh", command], timeout=10)
    return int(checked(started).text)


def _follow(source: int, ended: threading.Event, show: Callable[[bytes], None]) -> None:
    """Show what is written until the command has ended; what a child left behind writes later is not its output."""
    shown = 0
    while True:
        last = ended.wait(_LOOK_EVERY)
        size = os.fstat(source).st_size
        while shown < size:
            data = os.pread(source, min(65536, size - shown), shown)
            if not data:
                break  # the command has cut its own output short
            show(data)
            shown += len(data)
        if last:
            return


def _end_of(source: int) -> str:
    size = os.fstat(source).st_size
    start = max(0, size - _KEPT)
    note = f"({start} bytes left out)\n" if start else ""
    return note + os.pread(source, _KEPT, start).decode(errors="replace")


def put(path: str, text: str, *, append: bool = False) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "ab" if append else "wb") as file:
        file.write(to_bytes(text))


def replace(path: str, old: str, new: str) -> None:
    with open(path, "rb") as file:
        data = file.read()
    count = data.count(to_bytes(old))
    if count != 1:
        raise MngrError(f"the old text occurs {count} times in `{path}`, not once", details=old)
    with open(path, "wb") as file:
        file.write(data.replace(to_bytes(old), to_bytes(new)))


def to_bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


class Commit(NamedTuple):
    """`sha` is empty when there was nothing to commit."""

    sha: str
    output: str


def commit(message: str, author: str, paths: tuple[str, ...] = ()) -> Commit:
    """Commit everything, or only these paths; a refusal is told in git's words. Uses the author's name only where git
    knows nobody."""
    git = Git(".")
    only = ["--", *paths] if paths else []
    git.must("add", "-A", *only, doing="git cannot add the changes")
    if git.ok("diff", "--cached", "--quiet", *only):
        return Commit("", "nothing to commit")
    known = git.ok("var", "GIT_AUTHOR_IDENT") and git.ok("var", "GIT_COMMITTER_IDENT")
    identity = [] if known else ["-c", f"user.name={author}", "-c", "user.email=scripted@mngr.invalid"]
    result = git.run(*identity, "commit", "-F", "-", *only, input=to_bytes(message))
    if not result.ok:
        raise CommandFailed(result, "git refused to commit")
    return Commit(git.must("rev-parse", "HEAD"), result.text)
