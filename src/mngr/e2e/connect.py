"""`mngr-e2e-connect`, the connect command of tests: records an agent's terminal into the test's directory.

Run by `mngr create` and `mngr connect` in place of an attach. It starts a recorder that lives on its own, waits until
that one sees the agent's screen, and returns. The recorder looks on: it presses no key and changes no size.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import sys
from collections.abc import Callable, Mapping

from mngr.agent import recorder
from mngr.e2e import cleanup
from mngr.e2e.cast import Recording
from mngr.errors import MngrError
from mngr.secrets import named_values
from mngr.settings.layers import host_dir
from mngr.system import interrupts
from mngr.system.interrupts import Terminated, held
from mngr.system.state_dir import StateDir
from mngr.system.terminal import OnTerminal
from mngr.system.tmux import Tmux

_TICK_MILLISECONDS = 500
_READY = "ready\n"
# The first that tmux's client writes when it gives the terminal back, right before it clears the screen: an xterm's
# keys to their normal mode.
_LEAVING = "\x1b[?1l\x1b>"
_PANE = "#{window_active}#{pane_active} #{pane_pid} #{pane_tty} #{window_width} #{window_height} #{status}"


def main() -> int:
    """Exit code 1, and why on standard error, when nothing is recorded; the agent runs on in any case."""
    try:
        _start(os.environ)
    except MngrError as error:
        lines = [f"error: {error.message}", *(f"  {line}" for line in error.details.splitlines())]
        sys.stderr.write("\n".join([*lines, *([f"hint: {error.hint}"] if error.hint else [])]) + "\n")
        return 1
    return 0


def _start(environ: Mapping[str, str]) -> None:
    artifacts = environ.get("MNGR_E2E_ARTIFACTS", "")
    if not artifacts:
        hint = "`connect_command` is set to it; `mngr connect AGENT --connect-command '$MNGR_ATTACH_COMMAND'` attaches"
        outside = "mngr-e2e-connect records an agent for a test, and no test is running"
        raise MngrError(f"{outside}: `MNGR_E2E_ARTIFACTS` is not set", hint=hint)
    for name in ("MNGR_AGENT_NAME", "MNGR_SESSION_NAME", "MNGR_ATTACH_COMMAND"):
        if not environ.get(name):
            raise MngrError(f"`{name}` is not set: mngr-e2e-connect is run by `mngr create` and `mngr connect`")
    if not os.path.isdir(artifacts):
        raise MngrError(f"the test's directory `{artifacts}` does not exist")
    ours, theirs = os.pipe()
    try:
        cleanup.start_beside("connect", "record_here", environ, stdout=theirs)
    finally:
        os.close(theirs)
    with open(ours, encoding="utf-8", errors="replace") as said:
        answer = said.read()
    if answer != _READY:
        raise MngrError("the recorder did not start", details=answer)


def record_here() -> None:
    """The recorder: from the attach until it ends, or until it is told to end. Says on standard output, once, that it
    records or why it does not."""
    interrupts.install()
    try:
        watched = Watched(os.environ)
        failure = watched.record(lambda: _say(_READY))
        if failure:
            _say(failure)
    except MngrError as error:
        _say(error.message)
    except (Terminated, KeyboardInterrupt):
        pass


def _say(text: str) -> None:
    """Then the pipe is closed, since the other side reads to its end."""
    os.write(1, text.encode(errors="replace"))
    os.dup2(2, 1)


def looking_on(attach_command: str) -> str:
    """The attach command, as a client that takes no keys and has no say in the window's size."""
    before, found, after = attach_command.partition(" attach-session ")
    if not found:
        raise MngrError(f"`{attach_command}` is not an attach to a tmux session, so it cannot be recorded")
    return f"exec {before} attach-session -f read-only,ignore-size {after}"


class Watched:
    """An agent's terminal, seen through a tmux client of our own."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._env = {**environ, "TERM": "xterm-256color"}
        self._session = environ["MNGR_SESSION_NAME"]
        self._tmux = Tmux(environ, StateDir(host_dir(environ)))
        self._line = looking_on(environ["MNGR_ATTACH_COMMAND"])
        self._pane = recorder.Terminal(0, "", (0, 0))
        self._size = self._ask()
        self._seen = self._pane.look()
        secrets = recorder.read_secrets(os.path.join(environ.get("MNGR_AGENT_STATE_DIR", ""), "env"))
        secrets += named_values(environ)
        name, number = environ["MNGR_AGENT_NAME"], environ.get("MNGR_E2E_COMMAND", "")
        file = re.sub(r"[^\w.+@-]+", "-", name).strip("-.") or "recording"
        self._recording = Recording(
            os.path.join(environ["MNGR_E2E_ARTIFACTS"], f"{file}.cast"),
            kind="connect",
            title=name,
            number=int(number) if number.isdecimal() else None,
            size=self._size,
            secrets=secrets,
        )

    def record(self, ready: Callable[[], None]) -> str:
        """Until the session or its client ends. What the client said, when there never was a screen: then there is no
        recording either."""
        client: OnTerminal | None = None
        try:
            columns, rows = self._size
            client = OnTerminal(["sh", "-c", self._line], columns=columns, rows=rows, env=self._env)
            return self._read(client, ready)
        finally:
            with held():
                self._recording.close(None)
                if client is not None:
                    client.close()

    def _read(self, client: OnTerminal, ready: Callable[[], None]) -> str:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        poll = select.poll()
        poll.register(client.fd, select.POLLIN)
        said, left = "", ""
        attached = False
        while (data := client.read() if poll.poll(_TICK_MILLISECONDS) else b"") is not None:
            with held():
                self._follow(client)
                text = decoder.decode(data)
                if not attached:
                    said += text
                    attached = "\x1b[" in said
                    if attached:
                        ready()
                if not left:
                    text, left, _ = text.partition(_LEAVING)  # the last screen stays, in place of an empty one
                    self._recording.output(text)
        if not attached:
            self._recording.remove()
        return "" if attached else said.strip() or "tmux's client ended without a word"

    def _follow(self, client: OnTerminal) -> None:
        """Take the size of the agent's window when that has changed."""
        seen = self._pane.look()
        if seen != self._seen:
            self._seen, self._size = seen, self._ask()
            self._recording.resize(*self._size)
            client.resize(*self._size)

    def _ask(self) -> tuple[int, int]:
        """The size of a terminal in which tmux shows the whole window."""
        for line in self._tmux.ask_session(self._session, _PANE):
            active, pid, tty, width, height, status = line.split(" ")
            if active == "11":
                bar = int(status) if status.isdecimal() else int(status == "on")
                self._pane = recorder.Terminal(int(pid), tty, (int(width), int(height)))
                return int(width), int(height) + bar
        raise MngrError(f"the tmux session `{self._session}` does not exist")
