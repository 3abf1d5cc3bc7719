"""The checks of a kind that take minutes with a real program. Part of the list in `kind_checks`."""

from __future__ import annotations

import random
import threading

from mngr.actions.agent import Agent
from mngr.actions.message import clean
from mngr.checks.subject import Subject, expect
from mngr.errors import MngrError, TimedOut


def twenty_at_once(subject: Subject) -> None:
    """All begin with their own message, and come to rest with it."""
    texts = {subject.mark(): subject.words.say(f"first {subject.mark()}") for _ in range(20)}
    made: dict[str, Agent] = {}

    def make(name: str) -> None:
        made[name] = subject.make(name, message=texts[name])

    threads = [threading.Thread(target=make, args=(name,)) for name in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(set(made) == set(texts), f"all were made: {len(made)}")
    for name, agent in made.items():
        subject.arrived_once(subject.rested(agent), texts[name])
        subject.fleet.destroy(agent, force=True)


def hundred_random_messages(subject: Subject) -> None:
    """Each arrives once and whole, or is refused before anything of it is sent."""
    chances = random.Random(11)
    alphabet = "abc XYZ 0123 \t\n\"'`\\$#@!/%&|<>~^*?;:,.()[]{}=+-_ éüß 名前 עברית 🦊 \u2028"
    agent = subject.rested(subject.create())
    for _ in range(100):
        length = int(10 ** chances.uniform(0, 4.7))
        text = chances.choice(["", "/", "!", "#", "@", "-", " "]) + "".join(chances.choices(alphabet, k=length))
        before = subject.prompts(agent)
        try:
            subject.ask(agent, text)
        except MngrError as error:
            expect(not isinstance(error, TimedOut), f"{text[:80]!r} is taken or refused: {error}")
            expect(subject.prompts(agent) == before, f"nothing of {text[:80]!r} was sent")
            continue
        wanted = [*before, subject.expected(agent, clean(text))]
        subject.becomes(lambda: subject.prompts(agent), lambda got: got == wanted, f"{text[:80]!r} came once")  # noqa: B023
    subject.fleet.destroy(agent, force=True)
