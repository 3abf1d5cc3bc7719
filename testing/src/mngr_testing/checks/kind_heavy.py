"""Checks that take minutes with a real program. Part of the list in `kind_checks`."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

from mngr.actions.message import clean
from mngr.errors import MngrError, TimedOut
from mngr_testing.checks.subject import Subject, expect


def twenty_at_once(subject: Subject) -> None:
    """Twenty agents start together, and each finishes the turn of its own first message."""
    texts = {subject.mark(): subject.words.say(f"first {subject.mark()}") for _ in range(20)}
    with ThreadPoolExecutor(len(texts)) as pool:
        made = list(pool.map(lambda name: subject.make(name, message=texts[name]), texts))
    for name, agent in zip(texts, made, strict=True):
        subject.arrived_once(subject.rested(agent), texts[name])
        agent.destroy(force=True)


def hundred_random_messages(subject: Subject) -> None:
    """Each message arrives once and whole, or is refused before any part of it is sent."""
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
    agent.destroy(force=True)
