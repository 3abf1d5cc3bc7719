"""`python -m mngr.programs.scripted [SCRIPT_FILE | --one-shot MESSAGE_FILE]`: a program of its own, so it reads its
arguments and exits."""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from mngr.errors import MngrError, UsageError
from mngr.programs.scripted.agent import ScriptedAgent, die_by
from mngr.programs.scripted.record import AgentLog
from mngr.programs.scripted.script import parse
from mngr.programs.scripted.terminal import ScriptedTerminal

ONE_SHOT = "--one-shot"
USAGE = f"python -m mngr.programs.scripted [SCRIPT_FILE | {ONE_SHOT} MESSAGE_FILE]"
INSIDE = "MNGR_SCRIPTED_INSIDE"
# tmux always answers, but on a busy machine not at once.
_PASTE_MODE_SECONDS = 10.0


def main(words: list[str]) -> int:
    once = words[:1] == [ONE_SHOT]
    try:
        text = _read_text(words[1:] if once else words)
        script = None if once or text is None else parse(text)
        if once and text is None:
            raise UsageError(f"`{ONE_SHOT}` needs a file with the message", hint=USAGE)
    except MngrError as error:
        sys.stderr.write(f"error: {error.message}\n" + (f"hint: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    # One that runs inside another has its variables, but is not the agent that they tell of.
    log = AgentLog("" if INSIDE in os.environ else os.environ.get("MNGR_AGENT_STATE_DIR", ""))
    os.environ[INSIDE] = "1"
    terminal = ScriptedTerminal(log.prompt)
    signal.signal(signal.SIGINT, lambda number, frame: terminal.interrupt())
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        terminal.open()
        if "TMUX" in os.environ:
            terminal.wait_for_paste_mode(_PASTE_MODE_SECONDS)
        agent = ScriptedAgent(terminal, log, os.environ)
        return agent.once(text) if once and text is not None else agent.live(script)
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


def _read_text(words: list[str]) -> str | None:
    """What the named file holds; None when none is named. Bytes that are not UTF-8 stay what they are."""
    if not words:
        return None
    if len(words) > 1 or words[0].startswith("-"):
        raise UsageError("give at most one file", hint=USAGE)
    try:
        with open(words[0], encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot read the script `{words[0]}`: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
