"""Lets an agent propose examples for headings that have none. What may be kept is judged here, against the program."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mngr import prompts
from mngr.e2e.shell_blocks import blocks
from mngr.errors import MngrError
from mngr.json_values import plain
from mngr.mapreduce.run import Run
from mngr.mapreduce.state import Attempt, TaskState
from mngr.system import files, inside
from mngr.tutorial import proposals
from mngr.tutorial.proposals import Heading, Proposal
from mngr.tutorial.sources import Sources
from mngr.tutorial_runs.run import Look, TutorialRecipe, TutorialRequest

PROPOSALS = "artifacts/proposals.json"
REFERENCE = ".mngr/task/reference.txt"
REFERENCE_FILE = "reference.txt"  # in the directory of the run
_MOST_BYTES = 10_000_000


def first_prompt(sources: Sources, program: str, headings: Sequence[Heading], own: str | None) -> str:
    return prompts.render(
        "fill.md.j2", own, script=sources.script, program=program, headings=headings, reference_file=REFERENCE
    )


class FillRecipe(TutorialRecipe):
    """`problem_of` says what is wrong with one command of the program, whose name `asked` has."""

    def __init__(self, run: Run, request: TutorialRequest, problem_of: Callable[[str], str]) -> None:
        super().__init__(run, request)
        self._program, self._problem_of = str(request.asked["program"]), problem_of
        self._blocks = request.sources.blocks()
        self._headings = proposals.empty_headings(self._blocks)
        self.allowed = (f"{self._program} help",)
        self.uploads = ((os.path.join(run.directory, REFERENCE_FILE), REFERENCE),)

    def look(self, task: TaskState, attempt: Attempt, collected: Mapping[str, Any]) -> Look:
        data = inside.read(self.place(task, attempt), PROPOSALS, _MOST_BYTES)
        found, problem = proposals.read(data) if data is not None else ([], "it is not there")
        judged = proposals.judge(found, self._headings, self._blocks, self._program, self._problem_of)
        bad, good = ([one for one in judged if bool(one.problem) == wrong] for wrong in (True, False))
        filled = {one.heading for one in good}
        left = [heading for heading in self._headings if heading.title not in filled]
        told = prompts.render("fill_again.md.j2", problem=problem, rejected=bad, headings=left)
        return Look(len(left), told if left else "", plain({"good": good, "rejected": bad}))


def write(sources: Sources, kept: Sequence[Proposal]) -> None:
    """Put the kept examples into the script, below their headings as they are now: somebody may have edited it since
    the agent was asked. If one of them is gone or has an example, raises, and writes nothing."""
    text = sources.text()
    headings = {heading.title: heading for heading in proposals.empty_headings(blocks(text))}
    if gone := [one.heading for one in kept if one.heading not in headings]:
        raise MngrError(
            f"`{sources.script}` was changed meanwhile: it has no heading `{gone[0]}` without an example any more",
            details="\n\n".join(one.text for one in kept),
            hint="nothing was written; these are the examples",
        )
    root, script = sources.root, os.path.normpath(sources.script)
    if not os.path.isabs(script) and not script.startswith(".."):
        script = inside.resolve(root, script)
    path = os.path.realpath(os.path.join(root, script))
    text = proposals.insert(text, [(headings[one.heading], one.text) for one in kept])
    files.write_atomic(path, text.encode("utf-8", "surrogateescape"), mode=os.stat(path).st_mode & 0o7777)
