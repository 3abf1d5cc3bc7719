"""Holds a script, the citations of it and what tests really ran against each other. Pure.

Every example of the script is cited by a test, every citation is a block of the script, and every command of a cited
block was run by a test that cites it.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mngr.e2e.shell_blocks import ScriptBlock
from mngr.tutorial.citations import Citation, Found
from mngr.tutorial.ran import RecordedRuns, RecordedTest
from mngr.tutorial.ran import unrun as ran_by_none

UNCITED = "uncited"
UNKNOWN = "unknown"
NOT_RUN = "not-run"
UNFINISHED = "unfinished"
UNREADABLE = "unreadable"
STALE = "stale"


class TutorialProblem(NamedTuple):
    """One thing that is missing. `message` names the block or test and where it is; `text` is the block, the citation
    or the command; `diff` leads from the nearest block, whose id is `block`, to a citation that is none."""

    kind: str
    message: str
    file: str
    line: int
    block: str = ""
    section: str = ""
    test: str = ""
    text: str = ""
    diff: str = ""
    hint: str = ""


class Coverage(NamedTuple):
    """Of one section: its examples, how many are cited, their commands, and how many of these were run: None if there
    is no run that counts."""

    section: str
    line: int
    blocks: int
    cited: int
    commands: int
    run: int | None


class Report(NamedTuple):
    """`ran` is None if there is no run that counts: then nothing is said about what was run. `uncommitted` are files
    that were edited since the run, and not committed yet."""

    script: str
    sections: tuple[Coverage, ...]
    problems: tuple[TutorialProblem, ...]
    ran: tuple[str, ...] | None
    uncommitted: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems

    def total(self, field: str) -> int:
        return sum(getattr(section, field) or 0 for section in self.sections)


def check(script: str, blocks: Sequence[ScriptBlock], found: Found, ran: RecordedRuns | None) -> Report:
    """Everything that is missing, by kind and in the order of the files. `script` is the name that messages use."""
    cited: dict[str, list[Citation]] = {}
    for citation in found.citations:
        cited.setdefault(citation.text, []).append(citation)
    stale = ran.stale if ran else ()
    if ran and not ran.runs:
        ran = None
    tests, said = defaultdict[str, list[RecordedTest]](list), defaultdict[str, list[RecordedTest]](list)
    for test in ran.tests if ran else ():
        tests[test.name].append(test)
        for text in test.blocks:
            said[text].append(test)
    recorded = {
        block.id: [*_tests_of(cited[block.text], tests), *said.get(block.text, ())]
        for block in blocks
        if ran and block.commands and block.text in cited
    }
    unrun = {block.id: ran_by_none(block.commands, recorded[block.id]) for block in blocks if block.id in recorded}
    problems = [
        *(TutorialProblem(STALE, why, script, 1, hint="run the tests again") for why in stale),
        *(
            TutorialProblem(UNREADABLE, f"{one.file}:{one.line}: {one.message}", one.file, one.line, hint=one.hint)
            for one in found.unreadable
        ),
        *_unfinished(script, blocks),
        *(
            _problem(UNCITED, script, block, block.first_line, " is cited by no test")
            for block in blocks
            if block.kind == "example" and block.text not in cited
        ),
        *_unknown(script, blocks, found.citations),
        *(
            problem
            for block in blocks
            for problem in _not_run(
                script, block, unrun.get(block.id, ()), cited.get(block.text, ()), recorded.get(block.id)
            )
        ),
    ]
    sections = tuple(_coverage(blocks, cited, unrun if ran else None))
    return Report(script, sections, tuple(problems), ran.runs if ran else None, ran.uncommitted if ran else ())


def _tests_of(citations: Sequence[Citation], tests: dict[str, list[RecordedTest]]) -> Iterator[RecordedTest]:
    """The recorded tests behind citations. pytest may have been started in another directory of the project, and the
    check below it, so the shorter of two file names has to be the end of the longer."""
    for citation in citations:
        file = citation.file
        while file.startswith("../"):
            file = file.removeprefix("../")
        for test in tests.get(citation.test, ()):
            short, long = sorted((file, test.file), key=len)
            if long == short or long.endswith(f"/{short}"):
                yield test


def _named(block: ScriptBlock) -> str:
    lines = f"lines {block.first_line}-{block.last_line}" if block.last_line > block.first_line else "one line"
    section = f", `{block.section}`" if block.section else ""
    return f"block {block.id} ({lines}{section})"


def _problem(kind: str, script: str, block: ScriptBlock, line: int, what: str, **more: str) -> TutorialProblem:
    message = f"{script}:{line}: {_named(block)}{what}"
    return TutorialProblem(kind, message, script, line, block.id, block.section, **{"text": block.text, **more})


def _unfinished(script: str, blocks: Sequence[ScriptBlock]) -> Iterator[TutorialProblem]:
    for number, block in enumerate(blocks):
        if not block.unfinished:
            continue
        last = number == len(blocks) - 1
        why = "the end of the script" if last else f"the empty line {block.last_line + 1}"
        what = f" ends inside the {block.unfinished}, at {why}"
        hint = "close it" if last else "a block has no empty lines: close it before, or write the text another way"
        yield _problem(UNFINISHED, script, block, block.unfinished_line, what, hint=hint)


def _unknown(script: str, blocks: Sequence[ScriptBlock], citations: Sequence[Citation]) -> Iterator[TutorialProblem]:
    known = {block.text for block in blocks}
    unknown = [citation for citation in citations if citation.text not in known]
    words = [(_words(block.text), block) for block in blocks] if unknown else []
    for citation in unknown:
        place = f"{citation.file}:{citation.line}"
        near = _nearest(_words(citation.text), words)
        message, diff = f"{place}: `{citation.test}` cites a text that is not a block of {script}", ""
        if near:
            message += f"; the nearest is {script}:{near.first_line}, {_named(near)}"
            sides = (near.text.split("\n"), citation.text.split("\n"), f"{script}:{near.first_line}", place)
            diff = "\n".join(difflib.unified_diff(*sides, lineterm=""))
        yield TutorialProblem(
            UNKNOWN,
            message,
            citation.file,
            citation.line,
            block=near.id if near else "",
            section=near.section if near else "",
            test=citation.test,
            text=citation.text,
            diff=diff,
            hint=_RAW if citation.escaped else "",
        )


def _words(text: str) -> set[str]:
    return set(re.findall(r"[\w./-]+", text))


def _nearest(words: set[str], blocks: Sequence[tuple[set[str], ScriptBlock]]) -> ScriptBlock | None:
    """The block that has most words in common with a citation; None if that is less than a fifth of them."""
    shares = [len(words & others) / (len(words | others) or 1) for others, _ in blocks]
    best = max(shares, default=0)
    return blocks[shares.index(best)][1] if best >= 0.2 else None


_RAW = 'Python takes the backslashes of this text for its own: write it as r"""..."""'


def _not_run(
    script: str,
    block: ScriptBlock,
    unrun: Sequence[int],
    citing: Sequence[Citation],
    recorded: Sequence[RecordedTest] | None,
) -> Iterator[TutorialProblem]:
    for number in unrun:
        command = block.commands[number]
        tests, many = f"`{citing[0].test}` ({citing[0].file}:{citing[0].line})", len(citing) > 1
        if many:
            tests += f" and {len(citing) - 1} more"
        why = f"was never run by {tests}"
        if not recorded:
            why = f"was not run: {tests} {'are' if many else 'is'} not in the recorded run"
        elif not any(test.passed for test in recorded):
            outcomes = " and ".join(sorted({test.outcome or "killed" for test in recorded}))
            why = f"was not run by a test that passed: {tests} ended as {outcomes}"
        what = f": `{command.splitlines()[0]}` {why}"
        yield _problem(NOT_RUN, script, block, block.command_lines[number], what, test=citing[0].test, text=command)


def _coverage(
    blocks: Sequence[ScriptBlock], cited: dict[str, list[Citation]], unrun: dict[str, tuple[int, ...]] | None
) -> Iterator[Coverage]:
    """The sections in their order, those without examples included."""
    sections: list[tuple[str, int, list[ScriptBlock]]] = []
    for block in blocks:
        if block.kind == "heading" or not sections:
            sections.append((block.section, block.first_line, []))
        if block.kind == "example":
            sections[-1][2].append(block)
    for section, line, examples in sections:
        if examples or section:
            citing = sum(block.text in cited for block in examples)
            commands, run = sum(len(block.commands) for block in examples), None
            if unrun is not None:
                run = sum(len(block.commands) - len(unrun[block.id]) for block in examples if block.id in unrun)
            yield Coverage(section, line, len(examples), citing, commands, run)
