"""Lets an agent propose examples for headings that have none. What may be kept is judged here, against the program."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mngr import prompts
from mngr.actions import outcome
from mngr.e2e.shell_blocks import ScriptBlock, blocks
from mngr.errors import MngrError
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.system import files, inside
from mngr.tutorial import proposals
from mngr.tutorial.proposals import Heading, Proposal
from mngr.tutorial.sources import Sources

PROPOSALS = "proposals.json"
REFERENCE = ".mngr/task/reference.txt"


@dataclass
class FillJob:
    """`problem_of` says what is wrong with one command of the program; `prompt` replaces the packaged prompt. `good`
    are the proposals of the last look that can be kept; `rejected` those of all looks that cannot."""

    fleet: Fleet
    sources: Sources
    program: str
    headings: Sequence[Heading]
    blocks: Sequence[ScriptBlock]
    problem_of: Callable[[str], str]
    prompt: str | None
    good: Sequence[Proposal] = ()
    rejected: dict[tuple[str, str], Proposal] = field(default_factory=dict)

    def first_prompt(self) -> str:
        return prompts.render(
            "fill.md.j2",
            self.prompt,
            script=self.sources.script,
            program=self.program,
            headings=self.headings,
            reference_file=REFERENCE,
        )

    def look(self, agent: Agent) -> tuple[int, str]:
        """How many headings have no example that can be kept, and what the agent is told about it."""
        data = outcome.artifact(self.fleet.local, agent.id, PROPOSALS)
        found, problem = proposals.read(data) if data is not None else ([], "it is not there")
        judged = proposals.judge(found, self.headings, self.blocks, self.program, self.problem_of)
        bad = [one for one in judged if one.problem]
        self.good = [one for one in judged if not one.problem]
        self.rejected.update({(one.heading, one.text): one for one in bad})
        filled = {one.heading for one in self.good}
        left = [heading for heading in self.headings if heading.title not in filled]
        return len(left), prompts.render("fill_again.md.j2", problem=problem, rejected=bad, headings=left)


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
    root, script = job.sources.root, os.path.normpath(job.sources.script)
    if not os.path.isabs(script) and not script.startswith(".."):
        script = inside.resolve(root, script)
    path = os.path.realpath(os.path.join(root, script))
    text = proposals.insert(text, [(headings[one.heading], one.text) for one in kept])
    files.write_atomic(path, text.encode("utf-8", "surrogateescape"), mode=os.stat(path).st_mode & 0o7777)
