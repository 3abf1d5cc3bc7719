"""Run a command where an agent works: in its work dir, with its variables. The agent's own process is not involved."""

import os
import select
from collections.abc import Iterator

from mngr.actions.site import Site
from mngr.agent import launch
from mngr.errors import MngrError, TimedOut
from mngr.system import process
from mngr.system.process import Result, run_attached

_TERM, _KILL = 15, 9


def execute(site: Site, agent_id: str, command: str, *, timeout: float, cwd: str | None = None) -> Result:
    """Run to the end and return the result, whatever its exit code. Past the deadline it is killed."""
    argv, env = prepare(site, agent_id, command, cwd)
    return process.run(argv, timeout=timeout, env=env)


def attached(site: Site, agent_id: str, command: str, *, timeout: float, cwd: str | None = None) -> int:
    """Run on our own terminal; the exit code. Past the deadline it is ended with all that it started, and TimedOut
    raised."""
    argv, env = prepare(site, agent_id, command, cwd, attached=True)
    try:
        return run_attached(argv, env=env, timeout=timeout, end=lambda pid: _end(site, pid))
    except TimedOut:
        raise TimedOut(f"`{command}` did not end within {timeout:g} s") from None


def streamed(
    site: Site, agent_id: str, command: str, *, timeout: float, cwd: str | None = None
) -> Iterator[tuple[str, bytes]]:
    """What it writes, as it comes: `out` and `err` with some bytes; last `exit` with the exit code. When the caller
    stops asking, or past the deadline, it is ended with all that it started."""
    argv, env = prepare(site, agent_id, command, cwd)
    from mngr.system.waiting import Deadline

    deadline = Deadline(timeout)
    (out, theirs_out), (err, theirs_err) = os.pipe(), os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        pid = process.start(argv, cwd="/", env=env, descriptors=(nothing, theirs_out, theirs_err))
    finally:
        for fd in (nothing, theirs_out, theirs_err):
            os.close(fd)
    code: int | None = None
    try:
        names = {out: "out", err: "err"}
        poll = select.poll()
        for fd in names:
            poll.register(fd, select.POLLIN)
        while names:
            ready = poll.poll(deadline.left(0.5) * 1000)
            for fd, _ in ready:
                data = os.read(fd, 1 << 16)
                if data:
                    yield names[fd], data
                else:
                    poll.unregister(fd)
                    del names[fd]
            if deadline.passed:
                raise TimedOut(f"`{command}` did not end within {timeout:g} s")
            if not ready and code is None:
                code = _ended(pid)
            if not ready and code is not None:
                break  # something in the background keeps the pipe
        while code is None and not deadline.passed:
            code = _ended(pid)
            deadline.pause(0.01)
        if code is None:
            raise TimedOut(f"`{command}` did not end within {timeout:g} s")
        yield "exit", str(code).encode()
    finally:
        os.close(out)
        os.close(err)
        if code is None:
            _end(site, pid)
            os.waitpid(pid, 0)


def _ended(pid: int) -> int | None:
    """The exit code of a child that has ended."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _end(site: Site, pid: int) -> None:
    """Ask a process and its descendants to end, then kill them. They are in our own process group, so a signal to
    the group would end us too."""
    from mngr.system.process_table import descendants
    from mngr.system.waiting import wait_until

    found: dict[int, str] = {}
    for number in (_TERM, _KILL):
        found.update(descendants(pid))
        site.host.signal(found, number)
        if wait_until(lambda: not site.host.alive(found), timeout=2.0):
            return


def prepare(
    site: Site, agent_id: str, command: str, cwd: str | None = None, *, attached: bool = False
) -> tuple[list[str], dict[str, str]]:
    """The argument list and environment of such a command. It is `attached` when it gets our own terminal."""
    record = site.store.read(agent_id)
    directory = os.path.join(record.workspace.work_dir, cwd) if cwd else record.workspace.work_dir
    if not os.path.isdir(directory):
        raise MngrError(f"the directory `{directory}` of `{record.name}` does not exist")
    state_dir = site.store.state_dir(record.id)
    own = launch.identity(record, state_dir, site.host.dir)
    if record.spec.sandbox:
        from mngr.actions.agent_process import write_sandbox
        from mngr.agent import sandbox

        if sandbox.ARGUMENTS not in site.host.entries(state_dir):
            write_sandbox(site, record)
        words = sandbox.words_for(state_dir, directory, command, attached=attached)
        return words, {**sandbox.inherited(record.spec.driver, site.environ), **own}
    env = {**launch.inherited(site.environ), **own}
    script = 'cd "$0" || exit; [ -f "$1" ] && . "$1"; exec sh -c "$2"'
    return ["sh", "-c", script, directory, os.path.join(state_dir, "env"), command], env
