"""What the checks run against: one kind of agent, how to talk to it, and its model server."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple, TypeVar

from mngr.actions.message import Delivery
from mngr.agent.state import ALIVE, WAITING
from mngr.errors import MngrError
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.programs import driver
from mngr.system.waiting import wait_until
from mngr_testing.model_server import ModelServer

T = TypeVar("T")


class Words(NamedTuple):
    """Messages that make an agent of the kind do something. `guarded` is a command that the agent has to ask for,
    `limited` a turn that hits the model's rate limit for this many seconds."""

    say: Callable[[str], str]
    run: Callable[[str], str]
    guarded: Callable[[str], str]
    limited: Callable[[float], str]
    use: Callable[[int, int], str]


# For programs that talk to `mngr_testing.model_server`.
MODEL = Words(
    say=lambda text: f"%% say {text}",
    run=lambda command: f"%% run {command}\n%% say ran it",
    guarded=lambda command: f"%% run {command}\n%% say ran it",
    limited=lambda seconds: f"%% status 429 times=1 retry-after={seconds:g}\n%% say after the limit",
    use=lambda read, written: f"%% usage input={read} output={written}\n%% say used",
)
# For the scripted kind.
SCRIPTED = Words(
    say=lambda text: f"say {text}",
    run=lambda command: f"run {command}\nsay ran it",
    guarded=lambda command: f"permission run it\nrun {command}",
    limited=lambda seconds: f"rate-limit {seconds:g}\nsay after the limit",
    use=lambda read, written: f"usage input={read} output={written}\nsay used",
)


def press_enter(fleet: Fleet, agent: Agent) -> None:
    """Most programs take Enter for a yes."""
    assert agent.pane is not None
    fleet.local.tmux.press(agent.pane.pane_id, "Enter")


def is_waiting(agent: Agent) -> bool:
    return agent.state == WAITING


@dataclass
class Subject:
    """One kind of agent. `make(name, **more)` creates an agent; `more` are options of `Fleet.create`: a message,
    permissions, one_shot. `lacks` names the checks that the kind cannot pass, each with the reason. `own_prompts` reads
    the prompts that an agent received, where its driver cannot. `nested` is a shell command that runs the same program
    inside an agent and has it say `inside`. A turn, or a start, may take `turn_seconds`; its facts are on disk within
    another `fact_seconds`. A state may be `late_seconds` late."""

    fleet: Fleet
    make: Callable[..., Agent]
    words: Words
    _: KW_ONLY
    server: ModelServer | None = None
    lacks: dict[str, str] = field(default_factory=dict)
    allow: Callable[[Fleet, Agent], None] = press_enter
    own_prompts: Callable[[Agent], list[str]] | None = None
    nested: str = ""
    rests: Callable[[Agent], object] = is_waiting
    acknowledges: bool = True
    turn_seconds: float = 60.0
    fact_seconds: float = 30.0
    late_seconds: float = 1.0

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._mark = os.urandom(3).hex()
        self._shared = ""
        self._failure = ""
        self.first = self.words.say(f"first {self.mark()}")

    def mark(self) -> str:
        """A word that occurs nowhere else."""
        return f"m{self._mark}n{next(self._numbers)}"

    def agent(self) -> Agent:
        """The agent that most checks share, waiting for a message. Created on first use, and started again if it
        ended."""
        if self._failure:
            raise AssertionError(f"no agent: {self._failure}")
        try:
            if not self._shared:
                self._shared = self.create(message=self.first).id
            found = self.now(self._shared)
            if found.state not in ALIVE:
                found.start()
            return self.rested(found)
        except (MngrError, AssertionError) as failure:
            self._failure = str(failure)
            raise

    def create(self, **more: object) -> Agent:
        return self.make(self.mark(), **more)

    def now(self, agent: Agent | str) -> Agent:
        return (self.fleet.find(agent) if isinstance(agent, str) else agent).now()

    def ask(self, agent: Agent, text: str) -> Delivery:
        """Send a message, and wait for the end of the turn."""
        sent = self.send(agent, text)
        self.rested(agent)
        return sent

    def send(self, agent: Agent, text: str) -> Delivery:
        sent = self.now(agent).message(text)
        expect(
            sent.acknowledged is (True if self.acknowledges else None),
            f"the message was acknowledged: {sent.acknowledged}",
        )
        return sent

    def rested(self, agent: Agent) -> Agent:
        return self.until(agent, self.rests, "come to rest")

    def until(self, agent: Agent, is_so: Callable[[Agent], object], what: str) -> Agent:
        """Wait until `is_so` and return the agent. Fails with the state and the screen."""

        def seen() -> Agent | None:
            now = self.now(agent)
            return now if is_so(now) else None

        found = wait_until(seen, timeout=self.turn_seconds, every=0.03)
        if found is None:
            now = self.now(agent)
            screen = now.capture() if now.pane is not None else ""
            raise AssertionError(
                f"waited {self.turn_seconds:g} s for the agent to {what}: it is {now.state} ({now.status.reason})\n"
                f"{screen}"
            )
        return found

    def becomes(
        self, check: Callable[[], T], is_so: Callable[[T], object], what: str, seconds: float | None = None
    ) -> T:
        """Wait until the value that `check` reads is so, and return it."""
        value = check()

        def again() -> bool:
            nonlocal value
            value = check()
            return bool(is_so(value))

        expect(
            wait_until(again, timeout=self.fact_seconds if seconds is None else seconds, every=0.05),
            f"{what}; it is {_short(value)}",
        )
        return value

    def prompts(self, agent: Agent) -> list[str]:
        """The prompts that the program itself recorded."""
        if self.own_prompts is not None:
            return self.own_prompts(agent)
        known = driver.of(agent.record)
        found = known.received(self.fleet.local.place(agent.record)) if known is not None else None
        if found is not None:
            return found
        return [str(entry["text"]) for entry in agent.transcript().entries if entry["role"] == "user"]

    def expected(self, agent: Agent, text: str) -> str:
        """This text as `prompts` returns it."""
        known = driver.of(agent.record)
        if self.own_prompts is not None or known is None:
            return text
        found = known.received(self.fleet.local.place(agent.record))
        return text if found is None else known.wording(text).recorded

    def arrived_once(self, agent: Agent, *texts: str) -> None:
        """The program has each of them in its record, and its model was asked about the last one."""
        wanted = [self.expected(agent, text) for text in texts]
        self.becomes(
            lambda: [text for text in self.prompts(agent) if text in wanted],
            lambda got: got == wanted,
            f"each message is there once, whole, and in order: {[text[:80] for text in wanted]}",
        )
        if self.server is not None:
            server, last = self.server, wanted[-1]
            self.becomes(
                lambda: [entry.user_text for entry in server.log if not entry.side],
                lambda heard: any(last.strip() in text for text in heard),
                f"the model got {last[:80]!r} as it was sent",
            )
            self.rested(agent)

    def file(self, agent: Agent, name: str) -> str:
        """What a file in the agent's work dir holds; empty when the file is missing."""
        try:
            return self.fleet.local.host.read(os.path.join(agent.record.workspace.work_dir, name)).decode().strip()
        except FileNotFoundError:
            return ""

    def hold(self, mark: str) -> str:
        """A command that runs until `release`, so that the check sees the agent at work."""
        return f"until [ -e {mark}.go ]; do sleep 0.1; done"

    def release(self, agent: Agent, mark: str) -> None:
        self.fleet.local.host.write(os.path.join(agent.record.workspace.work_dir, f"{mark}.go"), b"")

    def close(self) -> None:
        """Destroy every agent of the fleet."""
        for agent in self.fleet.list().agents:
            agent.destroy(force=True)


def expect(is_so: object, text: str) -> None:
    if not is_so:
        raise AssertionError(text)


def _short(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_short, value))}]"
    text = repr(value)
    return text if len(text) < 200 else f"{text[:150]}... ({len(text)} characters)"
