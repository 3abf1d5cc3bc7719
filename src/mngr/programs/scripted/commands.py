"""What the agent does in its work directory: commands, edits of files, commits. What cannot be done as written changes
nothing."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress

from mngr.errors import MngrError
from mngr.system import process
from mngr.system.git import Git
from mngr.system.process import CommandFailed, checked
from mngr.system.waiting import Deadline, wait_until

_KEPT = 100_000
_LOOK_EVERY = 0.02
_SECONDS_TO_END = 2.0


def run(command: str, show: Callable[[bytes], None], check: Callable[[], None]) -> tuple[int, str]:
    """The exit code and the (end of the) output of `sh -c`, which is shown as it comes. It goes through a file, so that
    a child it leaves behind cannot hold us. What `check` raises now and then ends the whole process group."""
    import tempfile

    with tempfile.TemporaryFile() as output, open(os.devnull, "rb") as nothing:
        sink, shown, status = output.fileno(), 0, None
        words = ["sh", "-c", command]
        pid = process.start(words, cwd=".", env=process.environment(), descriptors=(nothing.fileno(), sink, sink))
        try:
            while status is None:
                check()
                ended, code = os.waitpid(pid, os.WNOHANG)
                status = os.waitstatus_to_exitcode(code) if ended else None
                while data := os.pread(sink, 65536, shown):
                    show(data)
                    shown += len(data)
                if status is None:
                    Deadline(_LOOK_EVERY).pause(_LOOK_EVERY)
        except BaseException:
            if status is None:
                _end(pid)
            raise
        start = max(0, shown - _KEPT)
        note = f"({start} bytes left out)\n" if start else ""
        return status, note + os.pread(sink, _KEPT, start).decode(errors="replace")


def _end(pid: int) -> None:
    """Ask the group to end, then kill what is left of it."""
    os.killpg(pid, signal.SIGTERM)
    ended = wait_until(lambda: os.waitpid(pid, os.WNOHANG)[0], timeout=_SECONDS_TO_END)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if not ended:
        os.waitpid(pid, 0)


def spawn(command: str) -> int:
    """Start it in a session of its own, without our terminal, and return its process id at once."""
    started = process.run(["sh", "-c", 'sh -c "$1" </dev/null >/dev/null 2>&1 & echo $!', "sh", command], timeout=10)
    return int(checked(started).text)


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


def commit(message: str, author: str) -> tuple[str, str]:
    """Commit everything, and return the commit and git's words; the commit is empty when there was
    nothing to commit. A refusal is told in git's words. Uses the author's name only where git knows nobody."""
    git = Git.of_user(".")
    git.must("add", "-A", doing="git cannot add the changes")
    if git.ok("diff", "--cached", "--quiet"):
        return "", "nothing to commit"
    known = git.ok("var", "GIT_AUTHOR_IDENT") and git.ok("var", "GIT_COMMITTER_IDENT")
    identity = [] if known else ["-c", f"user.name={author}", "-c", "user.email=scripted@mngr.invalid"]
    result = git.run(*identity, "commit", "-F", "-", input=to_bytes(message))
    if not result.ok:
        raise CommandFailed(result, "git refused to commit")
    return git.must("rev-parse", "HEAD"), result.text
