"""Drives any agent program that settings describe: its states are read from its screen, messages are pasted. Whoever
looks writes a state that is new to the agent's events, so that they tell since when it holds."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping, Sequence

from mngr.agents import events as event_log
from mngr.agents.kinds import conversation_lines, driver, rules
from mngr.agents.kinds.driver import Launch, Place, Program, Spent, Wording
from mngr.agents.record import Record, seconds_of
from mngr.agents.state import BLOCKED, RUNNING, STARTING, WAITING, Status
from mngr.errors import MngrError
from mngr.files import read_lines
from mngr.process import quote
from mngr.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

SESSIONS = "sessions"
GIVEN = "was given a message"
UNCLEAR = "its screen is neither `ready` nor `busy` nor `blocked`"
# A program needs a moment to show that it works on a message: so long a screen that is `ready` is not believed.
SETTLE_SECONDS = 1.0


class Screen:
    program = Program(name="", install="", oldest="", tried="")
    ready_seconds = 60.0
    dialogs: Sequence[tuple[str, str]] = ()
    conversation: Sequence[str] = (SESSIONS,)

    def takes_prompt(self, record: Record) -> bool:
        return record.one_shot or rules.FIRST_PROMPT in record.rules

    def prepare(self, place: Place, *, prompted: bool) -> Launch:
        record, own = place.record, place.record.rules
        if record.permissions:
            raise MngrError(
                f"mngr does not know how to set the permissions of `{record.kind}`",
                hint="give the program's own options after `--`, or in `cli_args`",
            )
        line = "{command}"
        if record.one_shot:
            line = own.get(rules.ONE_SHOT, "")
            if not line:
                raise MngrError(
                    f"an agent of type `{record.kind}` has no form that does one task and ends",
                    hint=f'set `agent_types.{record.kind}.one_shot`, such as "{{command}} --print {{prompt}}"',
                )
        elif prompted:
            line = own[rules.FIRST_PROMPT]
        elif record.started_at is not None or place.host.entries(_sessions(place)):  # what a clone took along
            line = own.get(rules.RESUME, line)
        if prompted:
            _check_prompt(place, line)
        line = driver.one_shot(place, line).replace("{command}", record.command)
        return Launch(line.replace("{home}", quote(_sessions(place))), _furnish(place))

    def look(self, place: Place, status: Status, events: Sequence[Mapping[str, Any]]) -> Status:
        if rules.READY not in place.record.rules:
            return status
        text, given_at = plain(place.screen()), _given_at(events)
        state, reason = judged(place.record.rules, text, status, given_at=given_at, now=time.time())
        if (state, reason) == (status.state, status.reason):
            return status._replace(evidence=_evidence(place))
        return _note(place, state, reason)

    def wording(self, text: str) -> Wording:
        return Wording(text, text)

    def mark(self, place: Place) -> object:
        return None

    def received(self, place: Place, mark: object) -> list[str] | None:
        """Such a program's own record, if it keeps one, has a prompt only when it is answered: too late to tell."""
        return None

    def occupied(self, screen: str) -> str:
        return ""

    def deliver(self, place: Place, text: str) -> bool:
        _refuse(place, text)
        return False

    def transcript(self, place: Place) -> list[dict[str, Any]]:
        return conversation_lines.transcript(_record(place)) if rules.RECORD in place.record.rules else []

    def usage(self, place: Place) -> list[Spent]:
        return conversation_lines.usage(_record(place)) if rules.RECORD in place.record.rules else []

    def login(self, environ: Mapping[str, str]) -> str:
        return ""


DRIVER = Screen()


def plain(screen: str) -> str:
    return "\n".join(line.rstrip() for line in driver.plain(screen).split("\n"))


def judged(own: Mapping[str, str], text: str, status: Status, *, given_at: float, now: float) -> tuple[str, str]:
    """State and reason by a screen, after what was known before. `given_at` is when it got a message since then; 0 when
    it did not."""
    found = {key: re.search(own[key], text, re.MULTILINE) for key in rules.PATTERNS if key in own}
    if asks := found.get(rules.BLOCKED):
        return BLOCKED, _reason(asks, text)
    if found.get(rules.BUSY):
        return RUNNING, ""
    if not found[rules.READY]:
        known = status.state in (STARTING, RUNNING)
        return (status.state, status.reason) if known else (RUNNING, UNCLEAR)
    if (status.state, status.reason) == (RUNNING, GIVEN):
        settled = now - max(status.since, given_at) >= SETTLE_SECONDS
    else:
        settled = not given_at
    return (WAITING, "") if settled else (RUNNING, GIVEN)


def _reason(found: re.Match[str], text: str) -> str:
    """What the first group holds; without one, the line in which the match begins."""
    if found.re.groups and found[1]:
        return found[1].strip()
    start = text.rfind("\n", 0, found.start() + 1) + 1
    return text[start:].partition("\n")[0].strip() or found[0].strip()


def _given_at(events: Sequence[Mapping[str, Any]]) -> float:
    """When a message went to its terminal after the last state that is noted; 0 when none did."""
    for event in reversed(events):
        if event.get("type") == "state":
            break
        if event.get("type") == "message_delivered":
            return seconds_of(str(event["timestamp"]))
    return 0.0


def _note(place: Place, state: str, reason: str) -> Status:
    event = event_log.new_event("screen", "state", state=state, reason=reason)
    try:
        place.host.append(f"{place.state_dir}/{event_log.FILE}", event)
    except OSError:
        pass  # who can only read is told the same
    return Status(state, reason, time.time(), _evidence(place))


def _evidence(place: Place) -> str:
    return f"its screen, by the rules of `agent_types.{place.record.kind}`"


def _check_prompt(place: Place, line: str) -> None:
    prompt = place.host.read(place.prompt_file)
    _refuse(place, prompt.decode("utf-8", "surrogateescape"))
    if "{prompt}" in line:
        driver.check_word(prompt)


def _refuse(place: Place, text: str) -> None:
    pattern = place.record.rules.get(rules.REFUSED)
    found = re.search(pattern, text) if pattern else None
    if found:
        raise MngrError(
            f"`{place.record.kind}` would not take this as a message: `agent_types.{place.record.kind}.refused` "
            f"fits {found[0][:40]!r}",
            hint="put a word before it",
        )


def _sessions(place: Place) -> str:
    """Where the program keeps what it keeps, if settings tell it to keep it there."""
    return f"{place.home}/{SESSIONS}"


def _furnish(place: Place) -> dict[str, str]:
    """Make the program's own directory, link what it needs of the user's into it, and say which variables name it."""
    own, home = place.record.rules, _sessions(place)
    place.host.make_dir(home)
    user = driver.user_home(place.environ)
    links = [user + path[1:] if path.startswith("~/") else path for path in shlex.split(own.get(rules.HOME_LINKS, ""))]
    if links:
        script = 'home=$1; shift; for file; do [ ! -e "$file" ] || ln -sfn "$file" "$home/${file##*/}"; done'
        place.host.run(["sh", "-c", script, "sh", home, *links], timeout=30)
    return dict.fromkeys(shlex.split(own.get(rules.HOME_ENV, "")), home)


def _record(place: Place) -> list[dict[str, Any]]:
    """Every line of the program's own record, oldest file first."""
    import fnmatch

    home = _sessions(place)
    listed = place.host.run(["find", home, "-type", "f"], timeout=30).text.split("\n")
    pattern = place.record.rules[rules.RECORD]
    found = []
    for path in sorted(path for path in listed if fnmatch.fnmatchcase(path.removeprefix(f"{home}/"), pattern)):
        try:
            found += read_lines(place.host.read(path))
        except FileNotFoundError:
            continue
    return found
