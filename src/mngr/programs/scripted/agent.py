"""The agent itself: follows scripts, tells its state, talks. The same script always does the same things."""

import os
import re
import signal
from collections.abc import Callable, Mapping
from typing import NoReturn

from mngr.errors import FAILED, MngrError
from mngr.programs.scripted import commands
from mngr.programs.scripted.keys import END, INTERRUPT, shorten
from mngr.programs.scripted.record import RUNNING, AgentLog, readable, shortened
from mngr.programs.scripted.script import USAGE_KEYS, ScriptError, ScriptStep, expand, inside_json, parse
from mngr.programs.scripted.terminal import Interrupted, ScriptedTerminal
from mngr.system.files import write_atomic
from mngr.system.git import Git
from mngr.system.process import CommandFailed, quote
from mngr.system.waiting import Deadline

WAITING, BLOCKED = "WAITING", "BLOCKED"
TURN_ENDED = "turn ended"


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
    def __init__(self, terminal: ScriptedTerminal, log: AgentLog, env: Mapping[str, str]) -> None:
        self._terminal, self._log, self._env = terminal, log, env
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
            "commit": self._commit,
            "wait": lambda step: self._ask(WAITING, self._expanded(step.text), or_else="waits for a message"),
            "ask": lambda step: self._ask(BLOCKED, f"question: {self._expanded(step.text)}"),
            "permission": self._permission,
            "block": lambda step: self._ask(BLOCKED, self._expanded(step.text)),
            "rate-limit": self._rate_limit,
            "if-message": lambda step: self._follow(step.steps if re.search(step.text, self._message) else ()),
            "repeat": self._repeat,
            "usage": self._usage,
            "outcome": lambda step: self._put_result(step, "MNGR_OUTCOME_FILE", self._json(step.body)),
            "outcome-raw": lambda step: self._put_result(step, "MNGR_OUTCOME_FILE", step.body),
            "artifact": lambda step: self._put_result(step, "MNGR_ARTIFACTS_DIR", step.body),
            "exit": self._exit,
            "crash": self._crash,
            "hang": self._hang,
            "hang-ignoring-signals": self._hang,
        }

    def live(self, script: tuple[ScriptStep, ...] | None) -> int:
        """Follow the script, then every message, until told to exit; returns the exit code."""
        name = self._env.get("MNGR_AGENT_NAME", "")
        self._terminal.line(f"scripted agent {name}".rstrip() + ": send directives, or anything to hear it back")
        self._log.event("ready")
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

    def once(self, text: str) -> int:
        """Do what one message says, as far as nobody has to answer, and end; returns the exit code."""
        self._alone = True
        self._log.event("ready")
        self._log.prompt(commands.to_bytes(text), True)
        self._message = text
        try:
            reason = self._answer(text, fatal=True)
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
            self._terminal.check()
            try:
                self._deeds[step.verb](step)
            except (MngrError, OSError, ValueError) as error:
                what = f"{error.message}\n{error.details}".rstrip() if isinstance(error, MngrError) else str(error)
                raise StepFailed(f"line {step.line}: `{step.verb}`: {what}") from error

    def _receive(self, state: str, reason: str) -> str:
        """The next message. One that is there already goes on with the turn: WAITING would not be true. It is not the
        answer to a question that was asked later."""
        if self._alone:
            raise MngrError("nobody is there to answer: it was started for one message")
        got = self._terminal.take(lambda: self._log.state(state, reason), answer=state == BLOCKED)
        if got == END or (got == INTERRUPT and state == WAITING):
            raise AgentExit(0)
        if isinstance(got, str):
            raise Interrupted
        self._log.state(RUNNING)
        return got.decode(errors="surrogateescape")

    def _value(self, name: str) -> str:
        if name.startswith("head"):
            return Git.of_user(".").commit_of(name.replace("head", "HEAD")) or ""
        return self._message if name == "message" else self._env.get("MNGR_TASK", "")

    def _expanded(self, text: str) -> str:
        return expand(text, self._value)

    def _json(self, text: str) -> str:
        return expand(text, lambda name: inside_json(readable(self._value(name))))

    def _shell_command(self, text: str) -> str:
        return expand(text, lambda name: quote(self._value(name).replace("\0", "")))

    def _say(self, text: str) -> None:
        self._log.turn("assistant", text=text)
        self._terminal.line(text)

    def _think(self, step: ScriptStep) -> None:
        self._pass_time(step.number, "thinking")
        self._terminal.line(f"thought for {step.number:g} s")

    def _pass_time(self, seconds: float, doing: str) -> None:
        deadline = Deadline(seconds)
        self._terminal.status(doing)
        try:
            while not deadline.passed:
                self._terminal.check()
                deadline.pause(0.1)
        finally:
            self._terminal.status("")

    def _edit(self, step: ScriptStep, edit: Callable[[], None]) -> None:
        text = {} if step.verb == "delete" else {"text": shortened(step.body)}
        self._log.turn("tool_call", tool=step.verb, input=step.text, **text)
        edit()
        self._terminal.line(f"* {step.verb} {step.text}")

    def _run(self, step: ScriptStep) -> None:
        command = self._shell_command(step.text)
        self._log.turn("tool_call", tool="run", input=command)
        self._terminal.line(f"$ {command}")
        try:
            code, output = commands.run(command, self._terminal.write, self._terminal.check)
        except Interrupted:
            self._result("run", "interrupted", -signal.SIGINT)
            raise
        self._result("run", output, code)
        if output and not output.endswith("\n"):
            self._terminal.line("")
        if code:
            self._terminal.line(f"exit code {code}")
        if code and step.verb == "run!":
            raise StepFailed(f"line {step.line}: `{command}` ended with exit code {code}")

    def _result(self, tool: str, text: str, exit_code: int) -> None:
        self._log.turn("tool_result", tool=tool, text=shortened(text), exit_code=exit_code)

    def _spawn(self, step: ScriptStep) -> None:
        command = self._shell_command(step.text)
        self._log.turn("tool_call", tool="spawn", input=command)
        pid = commands.spawn(command)
        self._terminal.line(f"$ {command} &  (process {pid})")

    def _commit(self, step: ScriptStep) -> None:
        message = self._expanded(step.text)
        self._log.turn("tool_call", tool="commit", input=message)
        try:
            commit, output = commands.commit(message, self._env.get("MNGR_AGENT_NAME") or "scripted agent")
        except CommandFailed as failure:
            self._result("commit", failure.details, failure.result.exit_code)
            raise
        self._result("commit", output, 0)
        self._terminal.line("* commit: " + (f"{commit[:10]} {shorten(message, 100)}" if commit else output))

    def _ask(self, state: str, words: str, or_else: str = "") -> None:
        if words:
            self._say(words)
        self._message = self._receive(state, words or or_else)

    def _permission(self, step: ScriptStep) -> None:
        question = f"permission: {self._expanded(step.text)}"
        self._say(f"{question} (y/n)")
        if self._receive(BLOCKED, question).strip().lower() not in ("y", "yes"):
            raise Denied
        self._say("approved")

    def _rate_limit(self, step: ScriptStep) -> None:
        reason = f"rate limit: retry in {step.number:g} s"
        self._terminal.line(reason)
        self._log.state(BLOCKED, reason)
        self._pass_time(step.number, reason)
        self._log.state(RUNNING)

    def _repeat(self, step: ScriptStep) -> None:
        for _ in range(int(step.number)):
            self._terminal.check()
            self._follow(step.steps)

    def _usage(self, step: ScriptStep) -> None:
        *counts, cost, model = step.words
        tokens = {f"{key}_tokens": int(count) for key, count in zip(USAGE_KEYS, counts, strict=False)}
        self._log.event("usage", **tokens, cost_usd=float(cost) if cost else None, model=model)
        self._log.turn("usage", text=step.text)
        self._terminal.line(f"usage: {step.text or 'nothing'}")

    def _put_result(self, step: ScriptStep, variable: str, text: str) -> None:
        """Written to a draft and renamed: nobody reads half of it. Without a place to put it, that is said."""
        self._log.turn("tool_call", tool=step.verb, input=step.text, text=shortened(text))
        if variable not in self._env:
            self._terminal.line(f"* {step.verb}: not written, `{variable}` is not set")
            return
        path = os.path.join(self._env[variable], step.text) if step.text else self._env[variable]
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
