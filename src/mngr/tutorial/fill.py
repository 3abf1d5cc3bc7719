"""Lets an agent propose examples for headings that have none. What may be kept is judged here, against the program."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mngr import files, process, prompts
from mngr.actions.agent import Agent
from mngr.agents import launch
from mngr.e2e.shell_blocks import ScriptBlock, blocks
from mngr.errors import MngrError
from mngr.fleet.fleet import Fleet
from mngr.process import quote
from mngr.tutorial import proposals, talk
from mngr.tutorial.proposals import Heading, Proposal
from mngr.tutorial.sources import Sources

PROPOSALS = "proposals.json"
REFERENCE = ".mngr/task/reference.txt"
_SECONDS = 60.0


class FillJob(NamedTuple):
    """`problem_of` says what is wrong with one command of the program; `prompt` replaces the packaged prompt."""

    sources: Sources
    program: str
    reference: str
    headings: tuple[Heading, ...]
    blocks: tuple[ScriptBlock, ...]
    problem_of: Callable[[str], str]
    prompt: str | None = None


class Proposed(NamedTuple):
    """`rejected` are those of all rounds; `unfilled` the headings for which nothing can be kept."""

    good: tuple[Proposal, ...]
    rejected: tuple[Proposal, ...]
    unfilled: tuple[Heading, ...]


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
    fleet: Fleet, job: FillJob, wish: talk.AgentRequest, *, rounds: int, timeout: float, tell: Callable[[str], None]
) -> tuple[talk.Talked, Proposed]:
    """Talk with an agent until there is an example that can be kept for each heading. Writes nothing."""
    good: list[Proposal] = []
    rejected: dict[tuple[str, str], Proposal] = {}

    def verdict(agent: Agent) -> talk.TurnVerdict:
        nonlocal good
        data = _file(fleet, agent)
        found, problem = proposals.read(data) if data is not None else ([], "it is not there")
        judged = proposals.judge(found, job.headings, job.blocks, job.program, job.problem_of)
        good = [one for one in judged if not one.problem]
        bad = [one for one in judged if one.problem]
        rejected.update({(one.heading, one.text): one for one in bad})
        left = _unfilled(job, good)
        again = prompts.render("fill_again.md.j2", problem=problem, rejected=bad, headings=left)
        return talk.TurnVerdict(len(left), again)

    with tempfile.NamedTemporaryFile() as reference:
        reference.write(job.reference.encode("utf-8", "replace"))
        reference.flush()
        wish = wish._replace(uploads=((reference.name, REFERENCE),))
        talked = talk.hold(fleet, wish, first_prompt(job), verdict, rounds=rounds, timeout=timeout, tell=tell)
    return talked, Proposed(tuple(good), tuple(rejected.values()), tuple(_unfilled(job, good)))


def _unfilled(job: FillJob, good: Sequence[Proposal]) -> list[Heading]:
    filled = {one.heading for one in good}
    return [heading for heading in job.headings if heading.title not in filled]


def _file(fleet: Fleet, agent: Agent) -> bytes | None:
    place = launch.task_dir(agent.record, fleet.local.store.state_dir(agent.id))
    try:
        return fleet.local.host.read(os.path.join(place, "artifacts", PROPOSALS))
    except OSError:
        return None


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


def by_command(template: str, cwd: str) -> Callable[[str], str]:
    """A judge that asks a shell command, in which `{}` stands for the example's command as one word."""

    def problem_of(command: str) -> str:
        line = template.replace("{}", quote(command))
        done = process.run(["sh", "-c", line], timeout=_SECONDS, cwd=cwd)
        if done.ok:
            return ""
        said = (done.error_text or done.text).strip().split("\n")
        return said[-1] if said[-1] else f"`{template}` ended with exit code {done.exit_code}"

    return problem_of
