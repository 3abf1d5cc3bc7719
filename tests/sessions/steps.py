"""Steps that many sessions share, all through the product itself: what they do is in the transcript."""

import json
from collections.abc import Iterable
from typing import Any

from mngr.e2e import E2eSession, Ran, expect


def follow(e2e: E2eSession, commands: Iterable[str]) -> list[Ran]:
    """Run the commands of a block one by one, as they are; each must succeed."""
    done = []
    for command in commands:
        done.append(e2e.run(command, timeout=90))
        expect(done[-1]).to_succeed()
    return done


def create(e2e: E2eSession, *names: str, options: str = "") -> None:
    """Scripted agents, or others with `options`. They may still be starting; a message waits for that, and so does
    `rest`."""
    words = " ".join(f"--name {name}" for name in names)
    command = f"mngr create {words} --no-connect {options}".rstrip()
    expect(e2e.run(command, comment="what is there", timeout=60)).to_succeed()


def rest(e2e: E2eSession, *names: str) -> None:
    """Until they wait for messages."""
    expect(e2e.run(f"mngr wait {' '.join(names)} WAITING --timeout 60", timeout=90)).to_succeed()


def agents(e2e: E2eSession, options: str = "") -> dict[str, dict[str, Any]]:
    """All agents by name, as `mngr list` tells them."""
    listed = e2e.run(f"mngr list --format json {options}".rstrip())
    expect(listed).to_succeed()
    return {agent["name"]: agent for agent in json.loads(listed.stdout)["agents"]}


def agent(e2e: E2eSession, name: str) -> dict[str, Any]:
    found = agents(e2e)
    assert name in found, f"no agent {name} among {sorted(found)}"
    return found[name]


def said(e2e: E2eSession, name: str) -> list[str]:
    """What the agent said so far, oldest first, when its turn is over."""
    expect(e2e.run(f"mngr wait {name} --timeout 60", timeout=90)).to_succeed()
    printed = e2e.run(f"mngr transcript {name} --role assistant --format jsonl")
    expect(printed).to_succeed()
    return [json.loads(line)["text"] for line in printed.stdout.splitlines()]


def git(e2e: E2eSession, words: str) -> str:
    done = e2e.run(f"git {words}")
    expect(done).to_succeed()
    return str(done.stdout).rstrip("\n")
