"""What every kind of agent has to do, as one list of checks. The author of a kind runs it with pytest:

    from mngr_testing.checks.kind_checks import CHECKS, Subject

    @pytest.mark.parametrize("check", CHECKS, ids=str)
    def test_my_kind(subject: Subject, check: KindCheck) -> None:
        check.run(subject)

The subject names the checks that its kind cannot pass, with the reason; pytest shows them as skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from mngr.agent.state import BLOCKED, FAILED, RUNNING, WAITING
from mngr.errors import MngrError
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.system import process
from mngr.system.waiting import Deadline, wait_until
from mngr.transfer import usage
from mngr_testing.checks.kind_heavy import hundred_random_messages, twenty_at_once
from mngr_testing.checks.kind_lateness import lateness
from mngr_testing.checks.subject import MODEL, SCRIPTED, Subject, Words, expect

__all__ = ["CHECKS", "MODEL", "SCRIPTED", "KindCheck", "Subject", "Words"]

TRIES = 8
# How long the rate limit lasts, in seconds. The next one is tried when a limit ended before the check saw it.
LIMITS = (1, 4, 16)


class KindCheck(NamedTuple):
    """One behaviour. A `heavy` check takes minutes and belongs to the soak tests."""

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
    """The agent gets its first message once, and waits for the next one after the turn."""
    agent = subject.agent()
    subject.arrived_once(agent, subject.first)
    expect(agent.status.alive and agent.pane is not None, "the agent has a terminal")


def _arrives_whole(subject: Subject, text: str) -> None:
    agent = subject.agent()
    subject.ask(agent, text)
    subject.arrived_once(agent, text)


def message_whole(subject: Subject) -> None:
    text = """it's "quoted" `so` \\ $HOME $(id) ${x} %s {a,b} ~ # ! & | < > ; * ? [x] ^ = @ end"""
    _arrives_whole(subject, f"{subject.mark()}: {text}")


def message_of_many_lines(subject: Subject) -> None:
    _arrives_whole(subject, f"{subject.mark()} first\n\n  third, indented\n- fourth\n\n\n```\nseventh\n```\nlast")


def message_in_unicode(subject: Subject) -> None:
    _arrives_whole(subject, f"{subject.mark()} ünï 名前 🦊 👩‍🚀 e\u0301 עברית \u2028 ﷽ end")


def message_of_100_kilobytes(subject: Subject) -> None:
    lines = (f"{number:05d} {'words é ' * 12}".rstrip() for number in range(1000))
    _arrives_whole(subject, "\n".join([subject.mark(), *lines, "end"]))


def message_while_busy(subject: Subject) -> None:
    """Two messages during a turn are queued, acknowledged, and arrive in order."""
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

    def send(text: str) -> None:
        Fleet(environ=subject.fleet.local.environ, cwd=subject.fleet.local.cwd).find(agent.id).message(text)

    with ThreadPoolExecutor(len(texts)) as pool:
        list(pool.map(send, texts))
    subject.rested(agent)
    for text in texts:
        subject.arrived_once(agent, text)


def state_within_a_second(subject: Subject) -> None:
    """RUNNING and WAITING are seen at most a second after they are true, and never while they are not. A busy machine
    can delay a try, so the best of several counts."""
    agent = subject.agent()
    seen = [lateness(subject, agent)]
    while min(seen) > subject.late_seconds and len(seen) < TRIES:
        seen.append(lateness(subject, agent))
    expect(min(seen) <= subject.late_seconds, f"states were late by {', '.join(f'{late:.2f}' for late in seen)} s")


def blocked_on_permission(subject: Subject) -> None:
    """The agent asks before a guarded command, reports the question, refuses messages meanwhile, and continues after a
    yes."""
    agent = subject.agent() if subject.words is SCRIPTED else subject.rested(subject.create(permissions="ask"))
    mark = subject.mark()
    subject.send(agent, subject.words.guarded(f"echo allowed > {mark}"))
    seen = subject.until(
        agent,
        lambda seen: seen.state == BLOCKED and seen.status.reason.startswith("permission: "),
        "be BLOCKED, with a permission for the reason",
    )
    expect(not subject.file(agent, mark), "it waits for the answer")
    if agent.record.spec.driver:
        try:
            seen.message("yes, and no answer to anything")
        except MngrError as error:
            expect("BLOCKED" in error.message, f"the message is refused for that reason: {error.message}")
        else:
            raise AssertionError("a message is not taken for the answer")
    deadline = Deadline(subject.turn_seconds)
    while True:  # the dialog may be drawn a moment after the state is known, and would miss the key
        subject.allow(subject.fleet, subject.now(agent))
        if wait_until(lambda: subject.now(agent).state != BLOCKED, timeout=2):
            break
        expect(not deadline.passed, "it takes the answer")
    subject.rested(agent)
    subject.becomes(lambda: subject.file(agent, mark), lambda text: text == "allowed", "it did it when allowed")
    if agent.id != subject.agent().id:
        agent.destroy(force=True)


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
    """Whether the program gave up at a rate limit: every request has ended."""
    return agent.state == BLOCKED and subject.server is not None and all(e.ended_at for e in subject.server.log)


def crash_is_seen(subject: Subject) -> None:
    """A killed program is FAILED with its exit code and signal; started again, it resumes its conversation."""
    agent = subject.agent()
    before = subject.prompts(agent)
    assert agent.pane is not None
    host, pane = subject.fleet.local.host, agent.pane
    processes = host.processes_of(agent.id, [pane.pid], pane.server)
    host.signal({pid: start for pid, start in processes.items() if pid != pane.pid}, 9)
    seen = subject.until(agent, lambda seen: not seen.status.alive, "end")
    expect(seen.state == FAILED, f"it failed: {seen.state}")
    expect((seen.status.exit_code, seen.status.signal) == (137, 9), f"it was killed: {seen.status}")
    if resumes_after_stop.__name__ not in subject.lacks:
        _resumes(subject, agent, before)


def resumes_after_stop(subject: Subject) -> None:
    agent = subject.agent()
    before = subject.prompts(agent)
    agent.stop()
    _resumes(subject, agent, before)


def resumes_after_the_tmux_server_was_killed(subject: Subject) -> None:
    """In the middle of a turn."""
    agent = subject.agent()
    mark = subject.mark()
    subject.send(agent, subject.words.run(f"echo began > {mark}; sleep 60"))
    subject.until(agent, lambda seen: subject.file(seen, mark), "work")
    before = subject.prompts(agent)
    tmux = subject.fleet.local.tmux.argv("kill-server")
    process.run(tmux, timeout=60, env={**subject.fleet.local.environ})
    subject.until(agent, lambda seen: not seen.status.alive, "end with its terminal")
    _resumes(subject, agent, before)


def _resumes(subject: Subject, agent: Agent, before: list[str]) -> None:
    """Started again, the agent waits for a message and has its whole conversation."""
    subject.now(agent).start()
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
        found = [dict(entry) for entry in agent.transcript().entries]
        start = next((n for n, entry in enumerate(found) if mark in entry["text"] and entry["role"] == "user"), 0)
        return found[start:]

    wanted = ["user", "tool_call", "tool_result", "assistant"]
    found = subject.becomes(
        entries, lambda found: [entry["role"] for entry in found][:4] == wanted, f"the transcript has {wanted}"
    )
    expect(f"echo out-{mark}-put" in str(found[1]["input"]), f"what the tool was told: {found[1]}")
    expect(f"out-{mark}-put" in found[2]["text"], f"what the tool said: {found[2]}")
    expect("ran it" in found[3]["text"], f"what the agent said: {found[3]}")
    times = [entry["timestamp"] for entry in agent.transcript().entries]
    expect(all(times) and times == sorted(times), "every entry has its time, oldest first")


def usage_is_counted(subject: Subject) -> None:
    """Usage is what the model reported, to the token."""
    agent = subject.agent()

    def used() -> tuple[int, int]:
        total = usage.total(subject.fleet.local, agent.id)
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
    expect(
        int(number) in subject.fleet.local.host.processes_of(agent.id, (), None),
        "what it started is known to be its own",
    )
    agent.stop()
    left = subject.fleet.local.host.processes_of(agent.id, (), None)
    expect(not left, f"no process is left: {left}")


def nested_program_does_not_disturb(subject: Subject) -> None:
    """The same program, run inside the agent, does not change the agent's state, conversation or usage."""
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
    said = [entry["text"] for entry in agent.transcript().entries if entry["role"] == "assistant"]
    expect("inside" not in said, f"its transcript has only its own words: {said}")


def one_task_and_ends(subject: Subject) -> None:
    mark = subject.mark()
    text = subject.words.run(f"echo done > {mark}")
    agent = subject.create(message=text, one_shot=True)
    seen = subject.until(agent, lambda seen: not seen.status.alive, "end")
    expect(seen.state == "DONE" and seen.status.exit_code == 0, f"it is done: {seen.status}")
    expect(subject.file(agent, mark) == "done", "it did its task")
    roles = [entry["role"] for entry in agent.transcript().entries]
    expect(roles[:1] == ["user"] and "assistant" in roles, f"its transcript is kept: {roles}")
    agent.destroy(force=True)


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
    *(KindCheck(do.__name__, do) for do in _CHEAP),
    *(KindCheck(do.__name__, do, heavy=True) for do in (twenty_at_once, hundred_random_messages)),
)
