"""Lets an agent propose examples for headings that have none. What may be kept is judged here, against the program."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mngr import files, prompts
from mngr.actions.agent import Agent
from mngr.agents import launch
from mngr.e2e.shell_blocks import ScriptBlock, blocks
from mngr.errors import MngrError
from mngr.fleet.fleet import Fleet
from mngr.tutorial import proposals, talk
from mngr.tutorial.proposals import Heading, Proposal
from mngr.tutorial.sources import Sources

PROPOSALS = "proposals.json"
REFERENCE = ".mngr/task/reference.txt"


class FillJob(NamedTuple):
    """`problem_of` says what is wrong with one command of the program; `prompt` replaces the packaged prompt."""

    sources: Sources
    program: str
    headings: tuple[Heading, ...]
    blocks: tuple[ScriptBlock, ...]
    problem_of: Callable[[str], str]
    prompt: str | None = None


def first_prompt(job: FillJob) -> str:
    return prompts.render(
        "fill.md.j2",
        job.prompt,
        script=job.sources.script,
        program=job.program,
        headings=job.headings,
        reference_file=REFERENCE,
    )


def run(
    fleet: Fleet, job: FillJob, agent: Agent, *, rounds: int, timeout: float, tell: Callable[[str], None]
) -> tuple[talk.Talked, list[Proposal], list[Proposal]]:
    """Talk with an agent until there is an example that can be kept for each heading. Writes nothing. Returns the
    proposals that can be kept, and those of all rounds that cannot."""
    good: list[Proposal] = []
    rejected: dict[tuple[str, str], Proposal] = {}

    def look(agent: Agent) -> tuple[int, str]:
        nonlocal good
        found, problem = _proposed(fleet, agent)
        judged = proposals.judge(found, job.headings, job.blocks, job.program, job.problem_of)
        good = [one for one in judged if not one.problem]
        bad = [one for one in judged if one.problem]
        rejected.update({(one.heading, one.text): one for one in bad})
        filled = {one.heading for one in good}
        left = [heading for heading in job.headings if heading.title not in filled]
        return len(left), prompts.render("fill_again.md.j2", problem=problem, rejected=bad, headings=left)

    talked = talk.hold(fleet, agent, first_prompt(job), look, rounds=rounds, timeout=timeout, tell=tell)
    return talked, good, list(rejected.values())


def _proposed(fleet: Fleet, agent: Agent) -> tuple[list[Proposal], str]:
    place = launch.task_dir(agent.record, fleet.local.store.state_dir(agent.id))
    try:
        return proposals.read(fleet.local.host.read(os.path.join(place, "artifacts", PROPOSALS)))
    except OSError:
        return [], "it is not there"


def write(job: FillJob, kept: Sequence[Proposal]) -> None:
    """Put the kept examples into the script, below their headings as they are now: somebody may have edited it since
    the agent was asked. If one of them is gone or has an example, raises, and writes nothing."""
    text = job.sources.text()
    headings = {heading.title: heading for heading in proposals.empty_headings(blocks(text))}
    if gone := [one.heading for one in kept if one.heading not in headings]:
        raise MngrError(
            f"`{job.sources.script}` was changed meanwhile: it has no heading `{gone[0]}` without an example any more",
            details="\n\n".join(one.text for one in kept),
            hint="nothing was written; these are the examples",
        )
    path = os.path.realpath(os.path.join(job.sources.root, job.sources.script))
    text = proposals.insert(text, [(headings[one.heading], one.text) for one in kept])
    files.write_atomic(path, text.encode("utf-8", "surrogateescape"), mode=os.stat(path).st_mode & 0o7777)
