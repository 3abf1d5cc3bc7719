"""`python -m mngr.agents.kinds.scripted [SCRIPT_FILE]`: a program of its own, so it reads its arguments and exits."""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from mngr.agents.kinds.scripted.agent import Agent, die_by
from mngr.agents.kinds.scripted.interrupts import Interrupts
from mngr.agents.kinds.scripted.record import Log
from mngr.agents.kinds.scripted.script import Step, parse
from mngr.agents.kinds.scripted.terminal import Terminal
from mngr.errors import MngrError, UsageError

_SETTLE_SECONDS = 0.5


def main(words: list[str]) -> int:
    try:
        script = _read_script(words)
    except MngrError as error:
        sys.stderr.write(f"error: {error.message}\n" + (f"hint: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    interrupts = Interrupts()

    def complain(text: str) -> None:
        terminal.line(text)

    log = Log(os.environ.get("MNGR_AGENT_STATE_DIR", ""), complain)
    terminal = Terminal(log.prompt, interrupts)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    interrupts.listen()
    try:
        terminal.open()
        if "TMUX" in os.environ:
            terminal.settle(_SETTLE_SECONDS)
        return Agent(terminal, log, interrupts, os.environ).live(script)
    except _Signalled as signalled:
        terminal.close()
        die_by(signalled.number)
    finally:
        terminal.close()


class _Signalled(BaseException):
    """Told to end. Raised where we are, so that a running command is ended on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = signal.Signals(number)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise _Signalled(number)


def _read_script(words: list[str]) -> tuple[Step, ...] | None:
    """The steps; None when no file is named. Bytes that are not UTF-8 stay what they are."""
    if not words:
        return None
    if len(words) > 1 or words[0].startswith("-"):
        raise UsageError("give at most one script file", hint="python -m mngr.agents.kinds.scripted [SCRIPT_FILE]")
    try:
        with open(words[0], encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read()
    except OSError as error:
        raise UsageError(f"cannot read the script `{words[0]}`: {error.strerror}") from error
    return parse(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
