"""The driver of any agent program that settings describe. It reads states from the screen and pastes messages. `look`
appends each new state to the agent's events, which then say since when the state holds."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mngr.agent import events as event_log
from mngr.agent.record import Record, seconds_of
from mngr.agent.state import BLOCKED, RUNNING, STARTING, WAITING, Status
from mngr.errors import MngrError
from mngr.programs import conversation_lines, driver, kind
from mngr.programs.driver import AgentContext, Driver, LaunchCommand, ModelUsage
from mngr.system import process
from mngr.system.process import quote

SESSIONS = "sessions"
GIVEN = "was given a message"
UNCLEAR = "its screen is neither `ready` nor `busy` nor `blocked`"
# How long a program may take to show that it works on a message: before that, a `ready` screen does not count.
SETTLE_SECONDS = 1.0


class ScreenDriver(Driver):
    """Confirms no message: such a program records a prompt, if at all, only with its answer."""

    conversation = (SESSIONS,)

    def takes_prompt(self, record: Record) -> bool:
        return record.spec.one_shot or kind.FIRST_PROMPT in record.spec.rules

    def prepare(self, agent: AgentContext, *, prompted: bool) -> LaunchCommand:
        record, own = agent.record, agent.record.spec.rules
        if record.spec.permissions:
            raise MngrError(
                f"mngr does not know how to set the permissions of `{record.spec.kind}`",
                hint="give the program's own options after `--`, or in `cli_args`",
            )
        line = "{command}"
        if record.spec.one_shot:
            line = own.get(kind.ONE_SHOT, "")
            if not line:
                raise MngrError(
                    f"an agent of type `{record.spec.kind}` has no form that does one task and ends",
                    hint=f'set `agent_types.{record.spec.kind}.one_shot`, such as "{{command}} --print {{prompt}}"',
                )
        elif prompted:
            line = own[kind.FIRST_PROMPT]
        elif record.life.started_at is not None or agent.host.entries(_sessions(agent)):  # of a clone
            line = own.get(kind.RESUME, line)
        if prompted:
            _check_prompt(agent, line)
        line = driver.one_shot(agent, line).replace("{command}", record.spec.command)
        return LaunchCommand(line.replace("{home}", quote(_sessions(agent))), _write_config(agent))

    def look(self, agent: AgentContext, status: Status, events: Sequence[Mapping[str, Any]]) -> Status:
        if kind.READY not in agent.record.spec.rules:
            return status
        text, given_at = plain(agent.screen()), _given_at(events)
        state, reason = judged(agent.record.spec.rules, text, status, given_at=given_at, now=time.time())
        if (state, reason) == (status.state, status.reason):
            return status._replace(evidence=_evidence(agent))
        return _note(agent, state, reason)

    def deliver(self, agent: AgentContext, text: str) -> bool:
        _refuse(agent, text)
        return False

    def transcript(self, agent: AgentContext) -> list[dict[str, Any]]:
        return conversation_lines.transcript(_record(agent))

    def usage(self, agent: AgentContext) -> list[ModelUsage]:
        return conversation_lines.usage(_record(agent))


DRIVER = ScreenDriver()


def plain(screen: str) -> str:
    return "\n".join(line.rstrip() for line in driver.plain(screen).split("\n"))


def judged(own: Mapping[str, str], text: str, status: Status, *, given_at: float, now: float) -> tuple[str, str]:
    """State and reason by a screen. `status` is the state before; `given_at` is when the agent got a message after
    that, or 0."""
    found = {key: re.search(own[key], text, re.MULTILINE) for key in kind.PATTERNS if key in own}
    if asks := found.get(kind.BLOCKED):
        return BLOCKED, _reason(asks, text)
    if found.get(kind.BUSY):
        return RUNNING, ""
    if not found[kind.READY]:
        known = status.state in (STARTING, RUNNING)
        return (status.state, status.reason) if known else (RUNNING, UNCLEAR)
    if (status.state, status.reason) == (RUNNING, GIVEN):
        settled = now - max(status.since, given_at) >= SETTLE_SECONDS
    else:
        settled = not given_at
    return (WAITING, "") if settled else (RUNNING, GIVEN)


def _reason(found: re.Match[str], text: str) -> str:
    """The text of the first group; without a group, the line in which the match begins."""
    if found.re.groups and found[1]:
        return found[1].strip()
    start = text.rfind("\n", 0, found.start() + 1) + 1
    return text[start:].partition("\n")[0].strip() or found[0].strip()


def _given_at(events: Sequence[Mapping[str, Any]]) -> float:
    """When the terminal got a message after the last recorded state; 0 when it got none."""
    for event in reversed(events):
        if event.get("type") == "state":
            break
        if event.get("type") == "message_delivered":
            return seconds_of(str(event["timestamp"]))
    return 0.0


def _note(agent: AgentContext, state: str, reason: str) -> Status:
    event = event_log.new_event("screen", "state", state=state, reason=reason)
    try:
        agent.host.append(f"{agent.state_dir}/{event_log.FILE}", event)
    except OSError:
        pass  # the files are read-only for this user
    return Status(state, reason, time.time(), _evidence(agent))


def _evidence(agent: AgentContext) -> str:
    return f"its screen, by the rules of `agent_types.{agent.record.spec.kind}`"


def _check_prompt(agent: AgentContext, line: str) -> None:
    prompt = agent.host.read(agent.prompt_file)
    _refuse(agent, prompt.decode("utf-8", "surrogateescape"))
    if "{prompt}" in line:
        driver.check_word(prompt)


def _refuse(agent: AgentContext, text: str) -> None:
    name, pattern = agent.record.spec.kind, agent.record.spec.rules.get(kind.REFUSED)
    found = re.search(pattern, text) if pattern else None
    if found:
        raise MngrError(
            f"`{name}` would not take this as a message: `agent_types.{name}.refused` fits {found[0][:40]!r}",
            hint="put a word before it",
        )


def _sessions(agent: AgentContext) -> str:
    """The program's own directory, if its settings move it there."""
    return f"{agent.home}/{SESSIONS}"


def _write_config(agent: AgentContext) -> dict[str, str]:
    """Make the program's own directory with links to files of the user, and return the variables that name it."""
    own, home = agent.record.spec.rules, _sessions(agent)
    agent.host.make_dir(home)
    user = driver.user_home(agent.environ)
    links = [user + path[1:] if path.startswith("~/") else path for path in shlex.split(own.get(kind.HOME_LINKS, ""))]
    if links:
        script = 'home=$1; shift; for file; do [ ! -e "$file" ] || ln -sfn "$file" "$home/${file##*/}"; done'
        process.run(["sh", "-c", script, "sh", home, *links], timeout=30)
    return dict.fromkeys(shlex.split(own.get(kind.HOME_ENV, "")), home)


def _record(agent: AgentContext) -> list[dict[str, Any]]:
    """Every line of the program's own record, if settings say where it is, oldest file first."""
    import fnmatch

    pattern, home = agent.record.spec.rules.get(kind.RECORD), _sessions(agent)
    if not pattern:
        return []
    listed = process.run(["find", home, "-type", "f"], timeout=30).text.split("\n")
    names = sorted(path.removeprefix(f"{home}/") for path in listed)
    matching = [f"{SESSIONS}/{name}" for name in names if fnmatch.fnmatchcase(name, pattern)]
    return [line for name in matching for line in agent.lines(name)]
