"""What every kind of agent has to do, as one list. The author of a kind runs it with pytest:

    from mngr.checks.kind_checks import CHECKS, Subject

    @pytest.mark.parametrize("check", CHECKS, ids=str)
    def test_my_kind(subject: Subject, check: Check) -> None:
        check.run(subject)

A behaviour that the kind does not have is declared by the subject, with the reason, and shown as skipped with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from mngr.actions import usage
from mngr.actions.agent import Agent
from mngr.actions.fleet import Fleet
from mngr.agents.state import BLOCKED, FAILED, RUNNING, WAITING
from mngr.checks.kind_heavy import hundred_random_messages, twenty_at_once
from mngr.checks.kind_lateness import lateness
from mngr.checks.subject import MODEL, SCRIPTED, Subject, Words, expect
from mngr.errors import MngrError
from mngr.waiting import Deadline, wait_until

__all__ = ["CHECKS", "MODEL", "SCRIPTED", "Check", "Subject", "Words"]

TRIES = 8
# How long a rate limit lasts, in seconds: one that is over before it could be seen is tried again with the next.
LIMITS = (1, 4, 16)


class Check(NamedTuple):
    """One behaviour. A `heavy` one takes minutes and belongs into a soak."""

    name: str
    do: Callable[[Subject], None]
    heavy: bool = False

    def run(self, subject: Subject) -> None:
        """Fails with AssertionError; skips what the kind lacks."""
        if self.name in subject.lacks:
            import pytest

            pytest.skip(f"{self.name}: {subject.lacks[self.name]}")
        self.do(subject)

    def __str__(self) -> str:
        return self.name


def starts(subject: Subject) -> None:
    """It begins with its first message, which it got once, and is ready for the next one at the end of the turn."""
    agent = subject.agent()
    subject.arrived_once(agent, subject.first)
    expect(agent.status.alive and agent.pane is not None, "it has a terminal")


def message_whole(subject: Subject) -> None:
    agent = subject.agent()
    text = (
        f"""{subject.mark()}: it's "quoted" `so` \\ $HOME $(id) ${{x}} %s {{a,b}} ~ # ! & | < > ; * ? [x] ^ = @ end"""
    )
    subject.ask(agent, text)
    subject.arrived_once(agent, text)


def message_of_many_lines(subject: Subject) -> None:
    agent = subject.agent()
    text = f"{subject.mark()} first\n\n  third, indented\n- fourth\n\n\n```\nseventh\n```\nlast"
    subject.ask(agent, text)
    subject.arrived_once(agent, text)


def message_in_unicode(subject: Subject) -> None:
    agent = subject.agent()
    text = f"{subject.mark()} ünï 名前 🦊 👩‍🚀 e\u0301 עברית \u2028 ﷽ end"
    subject.ask(agent, text)
    subject.arrived_once(agent, text)


def message_of_100_kilobytes(subject: Subject) -> None:
    agent = subject.agent()
    text = subject.mark() + "".join(f"\n{number:05d} " + "words é " * 12 for number in range(1000)) + "\nend"
    expect(len(text.encode()) > 100_000, "the text is that long")
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    subject.ask(agent, text)
    subject.arrived_once(agent, text)


def message_while_busy(subject: Subject) -> None:
    """Two messages in the middle of a turn are queued, acknowledged, and come in order."""
    agent = subject.agent()
    mark = subject.mark()
    texts = [f"{subject.mark()} the one\nof two lines", f"{subject.mark()} the other"]
    subject.send(agent, subject.words.run(f"echo began > {mark}; {subject.hold(mark)}"))
    subject.until(agent, lambda seen: subject.file(seen, mark), "work")
    for text in texts:
        subject.send(agent, text)
    subject.release(agent, mark)
    subject.rested(agent)
    subject.arrived_once(agent, *texts)


def two_senders_at_once(subject: Subject) -> None:
    agent = subject.agent()
    texts = [subject.words.say(subject.mark() + " x" * 2000) for _ in range(2)]
    failures: list[BaseException] = []

    def send(text: str) -> None:
        try:
            Fleet(environ=subject.fleet.environ, cwd=subject.fleet.cwd).message(agent, text)
        except BaseException as error:  # noqa: BLE001 (told by the main thread)
            failures.append(error)

    threads = [threading.Thread(target=send, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not failures, f"both could send: {failures}")
    subject.rested(agent)
    for text in texts:
        subject.arrived_once(agent, text)


def state_within_a_second(subject: Subject) -> None:
    """RUNNING and WAITING are seen at most a second after they are true, and never while they are not. What other
    programs do can make a try late, and never early."""
    agent = subject.agent()
    seen = [lateness(subject, agent)]
    while min(seen) > subject.late_seconds and len(seen) < TRIES:
        seen.append(lateness(subject, agent))
    expect(min(seen) <= subject.late_seconds, f"states were late by {', '.join(f'{late:.2f}' for late in seen)} s")


def blocked_on_permission(subject: Subject) -> None:
    """It asks before it does what it may not do, says so, takes no message for the answer, and goes on when allowed."""
    agent = subject.agent() if subject.words is SCRIPTED else subject.rested(subject.create(permissions="ask"))
    mark = subject.mark()
    subject.send(agent, subject.words.guarded(f"echo allowed > {mark}"))
    seen = subject.until(
        agent,
        lambda seen: seen.state == BLOCKED and seen.status.reason.startswith("permission: "),
        "be BLOCKED, with a permission for the reason",
    )
    expect(not subject.file(agent, mark), "it waits for the answer")
    if agent.record.driver:
        try:
            subject.fleet.message(seen, "yes, and no answer to anything")
        except MngrError as error:
            expect("BLOCKED" in error.message, f"the message is refused for that reason: {error.message}")
        else:
            raise AssertionError("a message is not taken for the answer")
    deadline = Deadline(subject.turn_seconds)
    while True:  # a dialog may be drawn a moment after the state tells of it, and would miss the key
        subject.allow(subject.fleet, subject.now(agent))
        if wait_until(lambda: subject.now(agent).state != BLOCKED, timeout=2):
            break
        expect(not deadline.passed, "it takes the answer")
    subject.rested(agent)
    subject.becomes(lambda: subject.file(agent, mark), lambda text: text == "allowed", "it did it when allowed")
    if agent.id != subject.agent().id:
        subject.fleet.destroy(agent, force=True)


def rate_limit_is_seen(subject: Subject) -> None:
    agent = subject.agent()
    for seconds in LIMITS:
        subject.send(agent, subject.words.limited(seconds))
        seen = subject.until(agent, lambda seen: _is_limited(seen) or seen.state == WAITING, "be BLOCKED, or go on")
        if _is_limited(seen):
            break
    else:
        raise AssertionError(f"it was never seen BLOCKED for its rate limit, not even in {LIMITS[-1]} s")
    subject.until(agent, lambda seen: seen.state == WAITING or ended_turn(subject, seen), "go on")
    text = subject.words.say(subject.mark())
    subject.ask(agent, text)
    subject.arrived_once(agent, text)


def _is_limited(agent: Agent) -> bool:
    return agent.state == BLOCKED and agent.status.reason.startswith("rate limit")


def ended_turn(subject: Subject, agent: Agent) -> bool:
    """Whether a program that gives up at a rate limit did so: nothing of its turn is left to come."""
    return agent.state == BLOCKED and subject.server is not None and all(e.ended for e in subject.server.log)


def crash_is_seen(subject: Subject) -> None:
    """A program that is killed is FAILED with how it ended; started again, it goes on with the conversation."""
    agent = subject.agent()
    before = subject.prompts(agent)
    assert agent.pane is not None
    host, pane = subject.fleet.host, agent.pane
    processes = host.processes_of(agent.id, [pane.pid], pane.server)
    host.signal({pid: start for pid, start in processes.items() if pid != pane.pid}, 9)
    seen = subject.until(agent, lambda seen: not seen.status.alive, "end")
    expect(seen.state == FAILED, f"it failed: {seen.state}")
    expect((seen.status.exit_code, seen.status.signal) == (137, 9), f"it was killed: {seen.status}")
    if resumes_after_stop.__name__ not in subject.lacks:
        _goes_on(subject, agent, before)


def resumes_after_stop(subject: Subject) -> None:
    agent = subject.agent()
    before = subject.prompts(agent)
    subject.fleet.stop(agent)
    _goes_on(subject, agent, before)


def resumes_after_the_tmux_server_was_killed(subject: Subject) -> None:
    """In the middle of a turn."""
    agent = subject.agent()
    mark = subject.mark()
    subject.send(agent, subject.words.run(f"echo began > {mark}; sleep 60"))
    subject.until(agent, lambda seen: subject.file(seen, mark), "work")
    before = subject.prompts(agent)
    tmux = subject.fleet.tmux.argv("kill-server")
    subject.fleet.host.run(tmux, timeout=60, env={**subject.fleet.environ})
    subject.until(agent, lambda seen: not seen.status.alive, "end with its terminal")
    _goes_on(subject, agent, before)


def _goes_on(subject: Subject, agent: Agent, before: list[str]) -> None:
    """Started again, it waits for a message, and has all of its conversation."""
    subject.fleet.start(subject.now(agent))
    subject.rested(agent)
    text = subject.words.say(f"again {subject.mark()}")
    subject.ask(agent, text)
    subject.arrived_once(agent, text)
    expect(subject.prompts(agent)[: len(before)] == before, "it still has what was said before")


def transcript_is_complete(subject: Subject) -> None:
    agent = subject.agent()
    mark = subject.mark()
    text = subject.words.run(f"echo out-{mark}-put")
    subject.ask(agent, text)

    def entries() -> list[dict[str, str]]:
        found = [dict(entry) for entry in subject.fleet.transcript(agent)]
        start = next((n for n, entry in enumerate(found) if mark in entry["text"] and entry["role"] == "user"), 0)
        return found[start:]

    wanted = ["user", "tool_call", "tool_result", "assistant"]
    found = subject.becomes(
        entries, lambda found: [entry["role"] for entry in found][:4] == wanted, f"the transcript has {wanted}"
    )
    expect(f"echo out-{mark}-put" in str(found[1]["input"]), f"what the tool was told: {found[1]}")
    expect(f"out-{mark}-put" in found[2]["text"], f"what the tool said: {found[2]}")
    expect("ran it" in found[3]["text"], f"what the agent said: {found[3]}")
    times = [entry["timestamp"] for entry in subject.fleet.transcript(agent)]
    expect(all(times) and times == sorted(times), "every entry has its time, oldest first")


def usage_is_counted(subject: Subject) -> None:
    """To the token, as the model reported it."""
    agent = subject.agent()

    def used() -> tuple[int, int]:
        total = usage.total(subject.fleet, agent.id)
        return total.input_tokens, total.output_tokens

    before, reported = used(), _reported(subject)
    subject.ask(agent, subject.words.use(12_345, 678))
    subject.becomes(used, lambda now: now == (before[0] + 12_345, before[1] + 678), f"12345 and 678 more than {before}")
    if subject.server is not None:
        after = _reported(subject)
        expect(
            (after[0] - reported[0], after[1] - reported[1]) == (12_345, 678),
            f"the model reported no other turn: {reported}, {after}",
        )


def _reported(subject: Subject) -> tuple[int, int]:
    if subject.server is None:
        return 0, 0
    turns = subject.server.usage().turns
    return turns.input, turns.output


def stop_leaves_no_process(subject: Subject) -> None:
    agent = subject.agent()
    mark = subject.mark()
    subject.send(agent, subject.words.run(f"sh -c 'echo $$ > {mark}; exec sleep 300'"))
    number = subject.becomes(lambda: subject.file(agent, mark), bool, "the command runs", subject.turn_seconds)
    expect(int(number) in subject.fleet.host.processes_of(agent.id, (), None), "what it started is known to be its own")
    subject.fleet.stop(agent)
    left = subject.fleet.host.processes_of(agent.id, (), None)
    expect(not left, f"no process is left: {left}")


def nested_program_does_not_disturb(subject: Subject) -> None:
    """The same program inside the agent leaves its state, its conversation and its usage alone."""
    agent = subject.agent()
    before, mark = subject.prompts(agent), subject.mark()
    text = subject.words.run(f"{subject.nested} > {mark}.out 2>&1; echo $? > {mark}; {subject.hold(mark)}")
    subject.send(agent, text)
    subject.until(agent, lambda seen: seen.state == RUNNING, "work")
    while not subject.file(agent, mark):
        seen = subject.now(agent)
        expect(seen.state == RUNNING, f"it works while the other runs: {seen.state} ({seen.status.reason})")
        Deadline(None).pause(0.05)
    subject.release(agent, mark)
    subject.rested(agent)
    expect(subject.file(agent, mark) == "0", f"the other program ran: {subject.file(agent, f'{mark}.out')}")
    wanted = [*before, subject.expected(agent, text)]
    subject.becomes(lambda: subject.prompts(agent), lambda got: got == wanted, "it has its own messages only")
    said = [entry["text"] for entry in subject.fleet.transcript(agent) if entry["role"] == "assistant"]
    expect("inside" not in said, f"its transcript has only its own words: {said}")


def one_task_and_ends(subject: Subject) -> None:
    mark = subject.mark()
    text = subject.words.run(f"echo done > {mark}")
    agent = subject.create(message=text, one_shot=True)
    seen = subject.until(agent, lambda seen: not seen.status.alive, "end")
    expect(seen.state == "DONE" and seen.status.exit_code == 0, f"it is done: {seen.status}")
    expect(subject.file(agent, mark) == "done", "it did its task")
    roles = [entry["role"] for entry in subject.fleet.transcript(agent)]
    expect(roles[:1] == ["user"] and "assistant" in roles, f"its transcript is kept: {roles}")
    subject.fleet.destroy(agent, force=True)


_CHEAP = (
    starts,
    message_whole,
    message_of_many_lines,
    message_in_unicode,
    message_of_100_kilobytes,
    message_while_busy,
    two_senders_at_once,
    state_within_a_second,
    transcript_is_complete,
    usage_is_counted,
    nested_program_does_not_disturb,
    rate_limit_is_seen,
    resumes_after_stop,
    crash_is_seen,
    resumes_after_the_tmux_server_was_killed,
    blocked_on_permission,
    one_task_and_ends,
    stop_leaves_no_process,
)
CHECKS = (
    *(Check(do.__name__, do) for do in _CHEAP),
    *(Check(do.__name__, do, heavy=True) for do in (twenty_at_once, hundred_random_messages)),
)
