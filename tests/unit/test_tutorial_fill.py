"""Examples that an agent proposes: read, judged and put into the script."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mngr.cli.tutorial_agents import parse_problem
from mngr.e2e.shell_blocks import blocks
from mngr.system.process import Result
from mngr.tutorial import proposals
from mngr.tutorial.program import ProgramHelp, guess, problem
from mngr.tutorial.proposals import Heading, Proposal, empty_headings, insert, judge, read, simple_commands

SCRIPT = """#!/bin/sh

# ====
# Chapter
# ====

# Adding

tool add x

# Removing

# Words about removing, in a sentence.

# Listing
"""


def test_headings_without_an_example() -> None:
    assert empty_headings(blocks(SCRIPT)) == [Heading("Removing", 11, 13), Heading("Listing", 15, 15)]


def test_a_chapter_that_is_empty_itself_counts() -> None:
    assert [one.title for one in empty_headings(blocks("## A\n\n## B\n\ntool x\n\n## C\n"))] == ["A", "C"]
    assert empty_headings(blocks("#####\n# A\n#####\n\n# B\n\ntool x\n")) == []


def test_examples_go_below_their_heading() -> None:
    removing, listing = empty_headings(blocks(SCRIPT))
    kept = [(listing, "tool list"), (removing, "# take it\ntool rm x"), (removing, "tool rm y")]
    text = insert(SCRIPT, kept)
    assert (
        text == SCRIPT.replace("a sentence.\n", "a sentence.\n\n# take it\ntool rm x\n\ntool rm y\n") + "\ntool list\n"
    )
    assert empty_headings(blocks(text)) == []


@pytest.mark.parametrize(
    "script", ["# A", "# A\n", "# A\n\n# B\n\ntool\n", "# A\r\n\r\n# B\r\n\r\ntool\r\n", "# A\r\n"]
)
def test_the_line_ends_of_the_script_stay(script: str) -> None:
    (heading,) = empty_headings(blocks(script))
    text = insert(script, [(heading, "tool a\n")])
    assert [block.text for block in blocks(text)][:2] == ["# A", "tool a"]
    assert ("\r\n" in script) == ("\r\n" in text)
    assert text.replace("\r\n", "").count("\n") == (0 if "\r\n" in script else text.count("\n"))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(["# A", "# B", "tool x", "", "", "## C", "# words."])), st.text("ab c\n#"))
def test_inserting_changes_nothing_else(lines: list[str], text: str) -> None:
    script = "\n".join(lines)
    found = empty_headings(blocks(script))
    added = [block.text for block in blocks(text)]
    if found and added:
        after = blocks(insert(script, [(found[-1], one) for one in added]))
        before = [block.text for block in blocks(script)]
        rest = [block.text for block in after]
        for one in added:
            rest.remove(one)
        assert rest == before


def test_commands_inside_lists_pipes_and_compounds() -> None:
    text = (
        "A=1 tool one --x 'a b' > f 2>&1 && cd y; tool two | grep z\n"
        "for i in 1 2; do tool three; done\n"
        "x=$(tool four) # tool no\n"
        "cat <<EOF | tool five\ntool no\nEOF\n"
        "if tool six; then ! tool seven; fi\n"
    )
    own = [words for words in simple_commands(text) if words[0] == "tool"]
    assert own == [
        ["tool", "one", "--x", "a b"],
        ["tool", "two"],
        ["tool", "three"],
        ["tool", "four"],
        ["tool", "five"],
        ["tool", "six"],
        ["tool", "seven"],
    ]


def judged(*texts: str, heading: str = "Listing") -> list[tuple[str, str]]:
    found = judge(
        [Proposal(heading, text) for text in texts],
        empty_headings(blocks(SCRIPT)),
        blocks(SCRIPT),
        "tool",
        lambda command: "bad" if "--bad" in command else "",
    )
    return [(one.problem, one.kind) for one in found]


def test_what_cannot_be_kept_says_why() -> None:
    assert judged(
        "tool list", "tool list --bad", "echo x", "tool add x", "tool 'open", "# only words", "tool list"
    ) == [
        ("", ""),
        ("bad", proposals.INTERFACE),
        ("it has no command of `tool`", proposals.MALFORMED),
        ("the tutorial has this block already", proposals.MALFORMED),
        ("it ends inside the quote `'`", proposals.MALFORMED),
        ("it has no command of `tool`", proposals.MALFORMED),
        ("the tutorial has this block already", proposals.MALFORMED),
    ]
    assert judged("tool list '\x1b[2J'") == [("it holds control characters", proposals.MALFORMED)]
    assert judged("tool list", heading=" # LISTING ") == [("", "")]
    assert judged("tool list", heading="Adding")[0][1] == proposals.MALFORMED


@pytest.mark.parametrize("data", [b"", b"{", b"[[[", b"3", b'{"proposals": {}}', b"\xff", b"[" * 100_000])
def test_a_file_that_cannot_be_read_says_why(data: bytes) -> None:
    found, why = read(data)
    assert found == [] and why


def test_proposals_are_read_block_by_block() -> None:
    rows = [{"heading": "A ", "text": "tool a\n\ntool b\n"}, {"heading": "B"}, "text", {"heading": "C", "text": ""}]
    found, why = read(json.dumps({"schema": 1, "proposals": rows}).encode())
    assert why == ""
    assert found[:2] == [Proposal("A", "tool a"), Proposal("A", "tool b")]
    assert [bool(one.problem) for one in found[2:]] == [True, True, False]


HELPS = {
    (): "Usage: tool [--quiet] COMMAND ...\n\nCommands:\n  add     Add one\n  list    Show them\n\n  -q, --quiet\n",
    ("add",): "Usage: tool add [OPTIONS] NAME\n\n  -n, --number N   how many\n  --[no-]wait\n  name  the name\n",
    ("list",): "Usage: tool list [-l] [-a]\n",
}


def run_helpful(argv, *, timeout, cwd=None, env=None) -> Result:
    """Run a program that only tells its help."""
    assert argv[-1] == "--help"
    words = tuple(argv[1:-1])
    known = words in HELPS
    return Result(tuple(argv), 0 if known else 2, HELPS.get(words, "").encode(), b"" if known else b"no such verb")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("tool add x", ""),
        ("tool add x -n 3 --no-wait", ""),
        ("tool add x --number=3 --wait", ""),
        ("tool add x -n3 -q", ""),
        ("tool add -- --anything", ""),
        ("tool add -5", ""),
        ("tool list -la", ""),
        ("tool", ""),
        ("tool --quiet list", ""),
        ("tool frob", "`tool` has no verb `frob`"),
        ("tool add x --count 3", "`tool add` has no option `--count`"),
        ("tool list --number", "`tool list` has no option `--number`"),
        ("tool list -z", "`tool list` has no option `-z`"),
    ],
)
def test_commands_held_against_the_help(command: str, expected: str) -> None:
    assert problem(ProgramHelp("tool", {}, ".", run_helpful), command.split()) == expected


def test_the_reference_is_the_help_of_all_verbs() -> None:
    text = ProgramHelp("tool", {}, ".", run_helpful).reference()
    assert text.startswith("$ tool --help\nUsage: tool [--quiet]")
    assert "$ tool add --help\nUsage: tool add" in text and "$ tool list --help" in text


def test_the_program_of_a_tutorial_is_what_it_runs_most() -> None:
    commands = [
        "cd x",
        "cd y",
        "cd z",
        "tmux ls",
        "tmux new",
        "no-such-program a",
        "no-such-program b",
        "no-such-program c",
    ]
    assert guess(commands) == "tmux"
    assert guess(["echo x"]) is None


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mngr list --format json", ""),
        ("mngr snapshot create fix-login before", ""),
        ("mngr create x --no-connect -- --anything", ""),
        ("mngr --help", ""),
        ("mngr list --help", ""),
        ("mngr frobnicate", "`mngr` has no verb `frobnicate`"),
        ("mngr list --colour", "--colour"),
        ("mngr snapshot restore", "NAME"),
        ("mngr create --count many", "--count"),
        ("mngr --loud list", "`--loud`"),
        ("mngr -q --format json list --running", ""),
        ("mngr --format json list --colour", "--colour"),
        ("mngr -V", "`-V`"),
    ],
)
def test_our_own_commands_are_parsed_and_not_run(command: str, expected: str) -> None:
    found = parse_problem(command)
    assert expected in found and bool(expected) == bool(found)
