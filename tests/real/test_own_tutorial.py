"""Our own tutorial passes its check, and the check cannot be fooled: seen on a copy of the tutorial and of its tests,
with the record of a run in which every command was given to a shell once."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mngr.cli import catalog
from mngr.e2e import artifacts
from mngr.e2e.shell_blocks import ScriptBlock, blocks
from mngr.e2e.transcript import Transcript
from tests.support.user import Ran, User

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "tutorial.sh"
EXAMPLES = [block for block in blocks(TUTORIAL.read_text()) if block.kind == "example"]
LATER = {"tmr"}  # verbs that get their section in the tutorial when they are finished


def example_with(command: str) -> ScriptBlock:
    (found,) = (block for block in EXAMPLES if command in block.commands)
    return found


class Copy(NamedTuple):
    """The tutorial, its tests, and a recorded run, where a test may change them."""

    user: User
    directory: Path

    def record(self, was_run: Callable[[str], bool] = lambda command: True) -> None:
        """The artifacts of a run in which one test for each example ran its commands."""
        details = {"started_at": 0.0, "ended_at": 1.0, "root": str(self.directory), "args": [], "exit_status": 0}
        run, lock = artifacts.open_run(
            str(self.directory / ".mngr" / "e2e"), "run", run_id="1", details=lambda: details
        )
        for number, block in enumerate(EXAMPLES):
            test = {"node_id": f"tests/sessions/test_all.py::test_{number}", "started_at": 0.5}
            directory = artifacts.start_test(run, test)
            (Path(directory) / artifacts.block_name(1)).write_text(f"{block.text}\n")
            transcript = Transcript(directory)
            for count, command in enumerate(filter(was_run, block.commands), 1):
                transcript.command(count, command, None, str(self.directory))
                transcript.exit(count, 0, 0.1, False)
            transcript.close()
            artifacts.write_json(os.path.join(directory, artifacts.RESULT_FILE), {"outcome": "passed"})
        artifacts.end_run(run, run_id="1", ended_at=1.0, exit_status=0)
        os.close(lock)

    def check(self, *words: str) -> Ran:
        return self.user.mngr("tutorial", "check", "--tests", "tests/sessions", *words, cwd=self.directory)

    def edit(self, path: str, old: str, new: str) -> None:
        file = self.directory / path
        text = file.read_text()
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path}"
        file.write_text(text.replace(old, new))


@pytest.fixture
def copy(user: User) -> Copy:
    directory = user.root / "copy"
    # Other tests write what Python makes of these files at the same time.
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests" / "sessions", directory / "tests" / "sessions", ignore=ignored)
    shutil.copy(TUTORIAL, directory / "tutorial.sh")
    made = Copy(user, directory)
    made.record()
    return made


def problems(ran: Ran) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ran.failed().json["problems"]
    return found


def test_the_tutorial_is_a_tour_of_every_verb() -> None:
    assert len(EXAMPLES) >= 60
    text = "\n".join(command for block in EXAMPLES for command in block.commands)
    verbs = set(re.findall(r"\bmngr(?: -S \S+)? ([a-z0-9]+)", text))
    named = {found.name for word in verbs if (found := catalog.find(word))}
    assert {entry.name for entry in catalog.VERBS} - named - LATER == set()
    sections = [block.section for block in EXAMPLES]
    assert all(sections) and len(set(sections)) >= 8


def test_every_example_is_cited_and_run(copy: Copy) -> None:
    found = copy.check("--format", "json").ok().json
    commands = sum(len(block.commands) for block in EXAMPLES)
    assert (found["blocks"], found["cited"]) == (len(EXAMPLES), len(EXAMPLES))
    assert (found["commands"], found["commands_run"]) == (commands, commands)


def test_a_citation_that_is_removed_is_missed(copy: Copy) -> None:
    block = example_with("mngr help states")
    copy.edit("tests/sessions/test_getting_started.py", "# and so do the ideas behind them", "# something else")
    printed = copy.check().failed().stdout
    where = rf"tutorial\.sh:{block.first_line}: block {block.id} \(lines {block.first_line}-{block.last_line}, `.*`\)"
    assert re.search(rf"^{where} is cited by no test$", printed, re.MULTILINE), printed
    kinds = [problem["kind"] for problem in problems(copy.check("--format", "json"))]
    assert kinds == ["uncited", "unknown"], "and the citation that was changed is none of a block"


def test_a_block_that_is_edited_is_missed(copy: Copy) -> None:
    block = example_with("mngr help states")
    copy.edit("tutorial.sh", "mngr help states", "mngr help filters")
    uncited, unknown = problems(copy.check("--format", "json"))
    assert uncited["message"].startswith(f"tutorial.sh:{block.first_line}: block ")
    assert "is cited by no test" in uncited["message"]
    assert unknown["message"].startswith("tests/sessions/test_getting_started.py:")
    assert "`test_topics_are_explained`" in unknown["message"]
    assert "-mngr help filters" in unknown["diff"] and "+mngr help states" in unknown["diff"]


def test_a_cited_command_that_is_not_run_is_missed(copy: Copy) -> None:
    block = example_with("mngr help states")
    shutil.rmtree(copy.directory / ".mngr")
    copy.record(lambda command: command != "mngr help states")
    (problem,) = problems(copy.check("--format", "json"))
    line = block.command_lines[block.commands.index("mngr help states")]
    assert problem["message"].startswith(f"tutorial.sh:{line}: block {block.id} ")
    assert "`mngr help states` was never run by `test_topics_are_explained`" in problem["message"]


def test_without_a_recorded_run_nothing_is_said_to_have_been_run(copy: Copy) -> None:
    shutil.rmtree(copy.directory / ".mngr")
    ran = copy.check()
    assert "not checked" in ran.stdout + ran.stderr
    assert copy.check("--format", "json").json["commands_run"] is None
