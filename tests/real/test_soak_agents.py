"""Real agent programs for long: a thousand messages of any text, and twenty of them at once."""

import os
import random
import time

import pytest

from mngr.actions.message import clean
from mngr.agent.record import seconds_of
from mngr.errors import MngrError, TimedOut
from mngr.programs import driver
from mngr_testing.model_server import ModelServer
from tests.support.kinds import WITH_MODEL
from tests.support.timing import best_of
from tests.support.user import User, wait_for

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

MESSAGES = int(os.environ.get("MNGR_SOAK_MESSAGES", "1000"))
OF_ONE_CONVERSATION = 25
FIRST = ["", "", "", "!", "/", "#", "@", "-", " ", "\t", "&", "?", "$", "exit", "/help", "!ls ", "@README.md "]
ALPHABET = (
    "abcdefghijklm nopqrstuvwxyz XYZ 0123456789 \t\n\"'`\\$#@!/%&|<>~^*?;:,.()[]{}=+-_ éüß 名前 עברית 🦊 👩\u200d💻 "
)


def some_text(chances: random.Random) -> str:
    length = int(10 ** chances.uniform(0, 4.699))
    return chances.choice(FIRST) + "".join(chances.choices(ALPHABET, k=length))


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_a_thousand_messages_of_any_text(user: User, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is recorded by the program once, in the form that its driver says, or refused before anything is sent."""
    chances = random.Random(kind)
    refused: list[str] = []
    with ModelServer() as server:
        subject = WITH_MODEL[kind](user, server, "git-worktree")
        monkeypatch.setenv("PATH", user.env["PATH"])
        fleet, known = subject.fleet, driver.find(kind)
        for _ in range(MESSAGES // OF_ONE_CONVERSATION):
            agent = subject.rested(subject.create())
            wanted = []
            for _ in range(OF_ONE_CONVERSATION):
                text = some_text(chances)
                try:
                    delivery = agent.message(text)
                except MngrError as error:
                    if isinstance(error, TimedOut):
                        pytest.fail(f"{error.message}: {text[:200]!r}\n{agent.capture()}")
                    refused.append(error.message)
                    continue
                assert delivery.acknowledged is True
                wanted.append(known.wording(clean(text)).recorded)
                subject.rested(agent)
            assert known.received(fleet.local.place(agent.record)) == wanted
            agent.destroy(force=True)
    assert len(refused) < MESSAGES / 5, set(refused)


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_twenty_at_once_tell_their_states_to_the_second(user: User, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What each agent's events say is held against the log of the model that it talked to."""
    with ModelServer() as server:
        subject = WITH_MODEL[kind](user, server, "git-worktree")
        monkeypatch.setenv("PATH", user.env["PATH"])
        fleet = subject.fleet
        names = [f"many-{number}" for number in range(20)]
        args = server.args(kind)
        fleet.create_many(names, type=kind, args=args, permissions="bypass")
        fleet.wait(names, ["WAITING"], timeout=300)
        for name in names:
            fleet.find(name).message(f"%% think 4\n%% say I am {name}")
        fleet.wait(names, ["WAITING"], timeout=300)
        asked = {entry.user_text.rpartition(" ")[2]: entry for entry in server.log if not entry.side}
        for name in names:
            turns = [event for event in fleet.find(name).events() if event["type"] == "state"]
            running, waiting = turns[-2:]
            entry = asked[name]
            assert (running["state"], waiting["state"]) == ("RUNNING", "WAITING"), turns
            assert entry.ended_at is not None
            assert seconds_of(running["timestamp"]) <= entry.arrived_at + 1
            assert 0 <= seconds_of(waiting["timestamp"]) - entry.ended_at < 3, name
            assert [event["type"] for event in fleet.find(name).events()].count("message_acknowledged") == 1


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_from_command_to_acknowledgement_in_under_a_second_of_ours(
    user: User, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program's own time is that from its launch to its own note of the prompt."""
    with ModelServer() as server:
        subject = WITH_MODEL[kind](user, server, "git-worktree")
        monkeypatch.setenv("PATH", user.env["PATH"])
        args = server.args(kind)

        def ours(number: int) -> float:
            name = f"quick-{number}"
            words = ["create", name, kind, "--no-connect", "--permissions", "bypass", "--message", "hello"]
            begun = time.time()
            user.mngr(*words, *(["--", *args] if args else [])).ok()
            whole = time.time() - begun
            wait_for(lambda: subject.fleet.find(name).state == "WAITING", "its turn to end", 60)
            moments = [
                (event["type"], event.get("state"), event["timestamp"]) for event in subject.fleet.find(name).events()
            ]
            started = next(seconds_of(at) for kind, _, at in moments if kind == "started")
            told = (
                seconds_of(at) for kind, state, at in moments if kind == "message_acknowledged" or state == "RUNNING"
            )
            return whole - (min(told) - started)

        best_of(5, 1.0, ours)
