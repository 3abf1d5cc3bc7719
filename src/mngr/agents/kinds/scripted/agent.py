"""The agent itself: follows scripts, tells its state, talks. The same script always does the same things."""

import os
import re
import signal
from collections.abc import Callable, Mapping
from typing import NoReturn

from mngr.agents.kinds.scripted import commands
from mngr.agents.kinds.scripted.interrupts import Interrupted, Interrupts
from mngr.agents.kinds.scripted.keys import END, INTERRUPT, shorten
from mngr.agents.kinds.scripted.record import RUNNING, AgentLog, readable
from mngr.agents.kinds.scripted.script import ScriptError, ScriptStep, expand, inside_json, parse
from mngr.agents.kinds.scripted.terminal import ScriptedTerminal
from mngr.errors import FAILED, MngrError
from mngr.files import write_atomic
from mngr.process import CommandFailed, quote
from mngr.tools.git import Git
from mngr.waiting import Deadline

WAITING, BLOCKED = "WAITING", "BLOCKED"
TURN_ENDED = "turn ended"
_FRAMES = "|/-\\"


class AgentExit(Exception):
    """The agent is to exit."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Denied(Exception):
    """A permission was asked for and not given."""


class StepFailed(Exception):
    """A step could not be done as written; the rest of the script is not done."""


class ScriptedAgent:
    def __init__(
        self, terminal: ScriptedTerminal, log: AgentLog, interrupts: Interrupts, env: Mapping[str, str]
    ) -> None:
        self._terminal = terminal
        self._log = log
        self._interrupts = interrupts
        self._env = env
        self._message = ""
        self._alone = False
        self._deeds: dict[str, Callable[[ScriptStep], None]] = {
            "say": lambda step: self._say(self._expanded(step.text)),
            "think": self._think,
            "title": lambda step: terminal.title(self._expanded(step.text)),
            "write": lambda step: self._edit(step, lambda: commands.put(step.text, step.body)),
            "append": lambda step: self._edit(step, lambda: commands.put(step.text, step.body, append=True)),
            "replace": lambda step: self._edit(step, lambda: commands.replace(step.text, *step.words)),
            "delete": lambda step: self._edit(step, lambda: os.unlink(step.text)),
            "run": self._run,
            "run!": self._run,
            "spawn": self._spawn,
            "flood": self._flood,
            "commit": lambda step: self._commit(step, step.text, ()),
            "commit-only": lambda step: self._commit(step, step.body, step.words),
            "wait": self._wait,
            "ask": self._ask,
            "permission": self._permission,
            "block": self._block,
            "rate-limit": self._rate_limit,
            "if-message": self._if_message,
            "repeat": self._repeat,
            "usage": self._usage,
            "outcome": lambda step: self._outcome(step, self._json(step.body)),
            "outcome-raw": lambda step: self._outcome(step, step.body),
            "artifact": self._artifact,
            "exit": self._exit,
            "crash": self._crash,
            "hang": self._hang,
            "hang-ignoring-signals": self._hang,
        }

    def live(self, script: tuple[ScriptStep, ...] | None) -> int:
        """Follow the script, then every message, until told to exit; returns the exit code."""
        name = self._env.get("MNGR_AGENT_NAME", "")
        self._terminal.line(f"scripted agent {name}".rstrip() + ": send directives, or anything to hear it back")
        self._log.ready()
        reason = "started"
        try:
            if script is not None:
                self._log.state(RUNNING)
                reason = self._turn(script, fatal=True)
            while True:
                self._message = self._receive(WAITING, reason)
                reason = self._answer(self._message)
        except AgentExit as ended:
            return ended.code

    def once(self, data: bytes) -> int:
        """Do what one message says, as far as nobody has to answer, and end; returns the exit code."""
        self._alone = True
        self._log.ready()
        self._log.prompt(data, True)
        self._message = data.decode(errors="surrogateescape")
        try:
            reason = self._answer(self._message, fatal=True)
        except AgentExit as ended:
            return ended.code
        return 0 if reason == TURN_ENDED else FAILED

    def _answer(self, text: str, *, fatal: bool = False) -> str:
        # A terminal sends a person's paste with carriage returns for newlines.
        lines = text if "\n" in text else text.replace("\r", "\n")
        try:
            script = parse(lines)
        except ScriptError:
            script = ()
        if script:
            return self._turn(script, fatal=fatal)
        self._say(f"you said: {shorten(text, 200)}")
        return TURN_ENDED

    def _turn(self, script: tuple[ScriptStep, ...], *, fatal: bool) -> str:
        """Follow the script to its end and return why the agent waits now. A `fatal` failure ends the agent."""
        try:
            self._follow(script)
        except Interrupted:
            self._terminal.line("interrupted")
            return "interrupted"
        except Denied:
            self._say("denied")
            return "denied"
        except StepFailed as failure:
            self._say(f"script failed: {failure}")
            if fatal:
                raise AgentExit(FAILED) from None
            return f"script failed: {shorten(str(failure), 200)}"
        return TURN_ENDED

    def _follow(self, script: tuple[ScriptStep, ...]) -> None:
        for step in script:
            self._interrupts.check()
            try:
                self._deeds[step.verb](step)
            except (MngrError, OSError, ValueError) as error:
                what = f"{error.message}\n{error.details}".rstrip() if isinstance(error, MngrError) else str(error)
                raise StepFailed(f"line {step.line}: `{step.verb}`: {what}") from error

    def _receive(self, state: str, reason: str) -> str:
        """The next message. One that is there already goes on with the turn: WAITING would not be true."""
        if self._alone:
            raise MngrError("nobody is there to answer: it was started for one message")
        if state == BLOCKED and self._terminal.has_message:
            self._log.state(state, reason)
        got = self._terminal.take(lambda: self._log.state(state, reason))
        if got == END or (got == INTERRUPT and state == WAITING):
            raise AgentExit(0)
        if isinstance(got, str):
            raise Interrupted
        self._log.state(RUNNING)
        return got.text

    def _value(self, name: str) -> str:
        if name.startswith("head"):
            return Git(".").commit_of(name.replace("head", "HEAD")) or ""
        return self._message if name == "message" else self._env.get("MNGR_TASK", "")

    def _expanded(self, text: str) -> str:
        return expand(text, self._value)

    def _json(self, text: str) -> str:
        return expand(text, lambda name: inside_json(readable(self._value(name))))

    def _shell_command(self, text: str) -> str:
        return expand(text, lambda name: quote(self._value(name).replace("\0", "")))

    def _say(self, text: str) -> None:
        self._log.turn("assistant", text)
        self._terminal.line(text)

    def _think(self, step: ScriptStep) -> None:
        self._pass_time(step.number, "thinking")
        self._terminal.line(f"thought for {step.number:g} s")

    def _pass_time(self, seconds: float, doing: str) -> None:
        deadline = Deadline(seconds)
        frame = 0
        try:
            with self._interrupts.allowed():
                while not deadline.passed:
                    self._terminal.status(f"{_FRAMES[frame % len(_FRAMES)]} {doing}")
                    deadline.pause(0.1)
                    frame += 1
        finally:
            self._terminal.status("")

    def _edit(self, step: ScriptStep, edit: Callable[[], None]) -> None:
        text = None if step.verb == "delete" else step.body
        self._log.tool_call(step.verb, step.text, text)
        edit()
        self._terminal.line(f"* {step.verb} {step.text}")

    def _run(self, step: ScriptStep) -> None:
        command = self._shell_command(step.text)
        self._log.tool_call("run", command)
        self._terminal.line(f"$ {command}")
        try:
            with self._interrupts.allowed():
                code, output = commands.run(command, self._terminal.write)
        except Interrupted:
            self._log.tool_result("run", "interrupted", -signal.SIGINT)
            raise
        self._log.tool_result("run", output, code)
        if output and not output.endswith("\n"):
            self._terminal.line("")
        if code:
            self._terminal.line(f"exit code {code}")
        if code and step.verb == "run!":
            raise StepFailed(f"line {step.line}: `{command}` ended with exit code {code}")

    def _spawn(self, step: ScriptStep) -> None:
        command = self._shell_command(step.text)
        self._log.tool_call("spawn", command)
        pid = commands.spawn(command)
        self._terminal.line(f"$ {command} &  (process {pid})")

    def _flood(self, step: ScriptStep) -> None:
        total = int(step.number)
        with self._interrupts.allowed():
            for start in range(1, total + 1, 500):
                rows = range(start, min(start + 500, total + 1))
                self._terminal.write("".join(f"flood {row} of {total}\n" for row in rows))

    def _commit(self, step: ScriptStep, message: str, paths: tuple[str, ...]) -> None:
        message = self._expanded(message)
        self._log.tool_call(step.verb, message)
        author = self._env.get("MNGR_AGENT_NAME") or "scripted agent"
        try:
            made = commands.commit(message, author, paths)
        except CommandFailed as failure:
            self._log.tool_result(step.verb, failure.details, failure.result.exit_code)
            raise
        self._log.tool_result(step.verb, made.output, 0)
        shown = f"{made.sha[:10]} {shorten(message, 100)}" if made.sha else made.output
        self._terminal.line(f"* {step.verb}: {shown}")

    def _wait(self, step: ScriptStep) -> None:
        asked = self._expanded(step.text)
        if asked:
            self._say(asked)
        self._message = self._receive(WAITING, asked or "waits for a message")

    def _ask(self, step: ScriptStep) -> None:
        question = self._expanded(step.text)
        self._say(f"question: {question}")
        self._message = self._receive(BLOCKED, f"question: {question}")

    def _permission(self, step: ScriptStep) -> None:
        wish = self._expanded(step.text)
        self._say(f"permission: {wish} (y/n)")
        answer = self._receive(BLOCKED, f"permission: {wish}")
        if answer.strip().lower() not in ("y", "yes"):
            raise Denied
        self._say("approved")

    def _block(self, step: ScriptStep) -> None:
        reason = self._expanded(step.text)
        self._say(reason)
        self._message = self._receive(BLOCKED, reason)

    def _rate_limit(self, step: ScriptStep) -> None:
        reason = f"rate limit: retry in {step.number:g} s"
        self._terminal.line(reason)
        self._log.state(BLOCKED, reason)
        self._pass_time(step.number, reason)
        self._log.state(RUNNING)

    def _if_message(self, step: ScriptStep) -> None:
        if re.search(step.text, self._message):
            self._follow(step.steps)

    def _repeat(self, step: ScriptStep) -> None:
        for _ in range(int(step.number)):
            self._interrupts.check()
            self._follow(step.steps)

    def _usage(self, step: ScriptStep) -> None:
        *counts, cost, model = step.words
        self._log.usage(step.text, [int(count) for count in counts], float(cost) if cost else None, model)
        self._terminal.line(f"usage: {step.text or 'nothing'}")

    def _outcome(self, step: ScriptStep, text: str) -> None:
        self._put_result(step, self._env.get("MNGR_OUTCOME_FILE", ""), "MNGR_OUTCOME_FILE", text)

    def _artifact(self, step: ScriptStep) -> None:
        folder = self._env.get("MNGR_ARTIFACTS_DIR", "")
        self._put_result(step, folder and os.path.join(folder, step.text), "MNGR_ARTIFACTS_DIR", step.body)

    def _put_result(self, step: ScriptStep, path: str, variable: str, text: str) -> None:
        """Written to a draft and renamed: nobody reads half of it. Without a place to put it, that is said."""
        self._log.tool_call(step.verb, step.text, text)
        if not path:
            self._terminal.line(f"* {step.verb}: not written, `{variable}` is not set")
            return
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        write_atomic(path, commands.to_bytes(text))
        self._terminal.line(f"* {step.verb} {step.text}".rstrip())

    def _exit(self, step: ScriptStep) -> NoReturn:
        raise AgentExit(int(step.number))

    def _crash(self, step: ScriptStep) -> NoReturn:
        self._terminal.close()
        if step.words:
            die_by(signal.Signals[f"SIG{step.words[0]}"])
        os._exit(int(step.number))

    def _hang(self, step: ScriptStep) -> NoReturn:
        if step.verb == "hang-ignoring-signals":
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
        self._terminal.stop_reading()
        while True:
            Deadline(None).pause(3600)


def die_by(number: signal.Signals) -> NoReturn:
    """End as a program does that knows nothing of this signal, without leaving a core file."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    Deadline(10).pause(10)
    os._exit(128 + number)
