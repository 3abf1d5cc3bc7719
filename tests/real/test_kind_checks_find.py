"""The list of checks finds a kind that does not do what it should: each of these has one thing wrong."""

import itertools
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mngr.agent.state import RUNNING, WAITING
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr_testing.checks import kind_checks
from mngr_testing.checks.kind_checks import CHECKS, SCRIPTED, Subject, Words
from tests.support.user import User

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "plugins.md"
Prompts = Callable[[Agent], list[str]]


class Odd(Subject):
    """Sees agents through `seen_as`, and does not wait long for what is `in_vain`."""

    seen_as: Callable[[Agent], Agent] = staticmethod(lambda agent: agent)
    in_vain = ""

    def now(self, agent: Agent | str) -> Agent:
        return self.seen_as(super().now(agent))

    def until(self, agent: Agent, is_so: Callable[[Agent], object], what: str) -> Agent:
        self.turn_seconds = 2.0 if self.in_vain and self.in_vain in what else 60.0
        return super().until(agent, is_so, what)


def seen_as(agent: Agent, state: str) -> Agent:
    status = agent.status._replace(state=state)
    return Agent(agent.site, agent.record, agent.view._replace(status=status))


def subject(user: User, *, words: Words = SCRIPTED, prompts: Prompts | None = None, nested: str = "") -> Odd:
    """The scripted kind, which passes all checks. It writes down what is true at once."""
    fleet = Fleet(environ=user.env, cwd=str(user.repo))

    def create(name: str, **more: Any) -> Agent:
        return fleet.create(name, type="scripted", **more)

    return Odd(fleet, create, words, own_prompts=prompts, nested=nested, fact_seconds=0.3)


def told(agent: Agent) -> list[str]:
    """What the agent was told, in full, from its transcript."""
    return [entry["text"] for entry in agent.transcript().entries if entry["role"] == "user"]


def fails(check: str, kind: Subject) -> str:
    (found,) = (one for one in CHECKS if one.name == check)
    with pytest.raises(AssertionError) as caught:
        found.run(kind)
    return str(caught.value)


def test_a_message_that_comes_twice(user: User) -> None:
    assert "once, whole, and in order" in fails("message_whole", subject(user, prompts=lambda agent: told(agent) * 2))


def test_a_message_that_is_cut(user: User) -> None:
    kind = subject(user, prompts=lambda agent: [text[:4095] for text in told(agent)])
    assert "once, whole, and in order" in fails("message_of_100_kilobytes", kind)


def test_messages_in_the_wrong_order(user: User) -> None:
    assert "in order" in fails("message_while_busy", subject(user, prompts=lambda agent: told(agent)[::-1]))


def test_a_conversation_that_is_forgotten(user: User) -> None:
    kind = subject(user, prompts=lambda agent: told(agent)[-1:])
    kind.ask(kind.agent(), "remember this")
    assert "what was said before" in fails("resumes_after_stop", kind)


def test_a_program_inside_that_reports_as_the_agent(user: User) -> None:
    (user.root / "inside").write_text("say inside")
    run = f"{sys.executable} -m mngr.programs.scripted --one-shot {user.root}/inside"
    assert "its own messages only" in fails(
        "nested_program_does_not_disturb", subject(user, nested=f"env -u MNGR_SCRIPTED_INSIDE {run}")
    )


def test_tokens_that_are_not_counted(user: User) -> None:
    words = SCRIPTED._replace(use=lambda read, written: f"usage input={read + 1} output={written}")
    assert "12345 and 678 more" in fails("usage_is_counted", subject(user, words=words))


def test_a_command_that_is_run_without_asking(user: User) -> None:
    words = SCRIPTED._replace(guarded=lambda command: f"run {command}")
    kind = subject(user, words=words)
    kind.make = lambda name, permissions="", **more: kind.fleet.create(name, type="scripted", **more)
    kind.in_vain = "be BLOCKED"
    assert "be BLOCKED" in fails("blocked_on_permission", kind)


def test_a_crash_that_nobody_sees(user: User) -> None:
    kind = subject(user)
    agent = kind.agent()
    kind.seen_as = lambda now: agent
    kind.in_vain = "end"
    assert "for the agent to end" in fails("crash_is_seen", kind)


def test_a_state_that_is_not_seen(user: User) -> None:
    kind = subject(user)
    agent = kind.agent()
    kind.seen_as = lambda now: agent
    assert "was never seen RUNNING" in fails("state_within_a_second", kind)


def test_a_state_that_comes_late(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a turn is not seen by a look that began a second and a half after it."""
    monkeypatch.setattr(kind_checks, "TRIES", 2)
    kind = subject(user)
    kind.agent()
    missed = [2]

    def late(now: Agent) -> Agent:
        if now.state == RUNNING:
            missed[0] = 0
        elif missed[0] < 2:  # the second one began when the first had ended
            missed[0] += time.time() - now.status.since > 1.5
            return seen_as(now, RUNNING)
        return now

    kind.seen_as = late
    assert "states were late by" in fails("state_within_a_second", kind)


def test_a_state_that_flickers(user: User) -> None:
    kind = subject(user)
    kind.agent()
    looks = itertools.count()

    def flickering(now: Agent) -> Agent:
        odd = now.state == RUNNING and next(looks) % 5 == 4
        return seen_as(now, WAITING) if odd else now

    kind.seen_as = flickering
    assert "yet was seen as" in fails("state_within_a_second", kind)


def test_what_a_kind_lacks_is_skipped_with_the_reason(user: User) -> None:
    kind = subject(user)
    kind.lacks["starts"] = "it never does"
    with pytest.raises(pytest.skip.Exception, match="starts: it never does"):
        CHECKS[0].run(kind)


@pytest.mark.timeout(300)
def test_the_guide_shows_how_to_run_them(user: User, tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(import os\n.*?)^```", GUIDE.read_text(), flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "test_mine.py").write_text(code)
    done = user.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(tmp_path)],
        env={"MNGR__AGENT_TYPES__MINE__PARENT_TYPE": "scripted"},
        timeout=280,
    )
    cheap = [check for check in CHECKS if not check.heavy]
    assert f"{len(cheap) - 2} passed, 2 skipped" in done.ok().stdout
