"""Shell text into blocks and complete commands."""

import shutil
import subprocess
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mngr.e2e.shell_blocks import Block, block, blocks, normalise
from mngr.e2e.shell_commands import split
from mngr.tutorial.ran import parts
from tests.support.timing import best_of

UNHURRIED = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Each is one complete command; the text is what is left of it without comments and continued lines.
COMMANDS = {
    "plain": ("tool add a b", "tool add a b"),
    "continued": ("tool add \\\n    --to x \\\n    y", "tool add --to x y"),
    "continued inside a word": ("tool long\\\nword", "tool longword"),
    "comment behind": ("tool list # all of them", "tool list"),
    "hash inside a word": ("tool get a#b $# ${#x}", "tool get a#b $# ${#x}"),
    "here-document": ("cat > f <<EOF\nif # no comment\n  'open\nEOF", "cat > f <<EOF\nif # no comment\n  'open\nEOF"),
    "quoted delimiter": ("cat <<'E O' > f\na\\\nE O", "cat <<'E O' > f\na\\\nE O"),
    "tabs before the delimiter": ("cat <<-EOF\n\ta\n\tEOF", "cat <<-EOF\n\ta\n\tEOF"),
    "continued line before the delimiter": ("cat <<E\na\\\nE\nE", "cat <<E\na\\\nE\nE"),
    "two here-documents": ("join <<A <<B\n1\nA\n2\nB", "join <<A <<B\n1\nA\n2\nB"),
    "here-document in a substitution": ("x=$(cat <<E\na\nE\n)", "x=$(cat <<E\na\nE\n)"),
    "here-string": ("cat <<<EOF", "cat <<<EOF"),
    "double quotes": ('tool say "a\n# b\n\'c"', 'tool say "a\n# b\n\'c"'),
    "single quotes": ("tool say 'a\n\\'", "tool say 'a\n\\'"),
    "dollar quotes": ("tool say $'it\\'s\nb'", "tool say $'it\\'s\nb'"),
    "expansion with a quote": (
        "tool say \"${x:-'a}\n'}\"",
        "tool say \"${x:-'a}\n'}\"",
    ),
    "if": (
        "if true; then\n  a # b\nelif c\nthen d\nelse\n  e\nfi",
        "if true; then\na\nelif c\nthen d\nelse\ne\nfi",
    ),
    "for": ("for x in a b\ndo\n  echo if $x\ndone", "for x in a b\ndo\necho if $x\ndone"),
    "for, counting": (
        "for ((i=0; i<3; i++)); do echo $((i<<2))\ndone",
        "for ((i=0; i<3; i++)); do echo $((i<<2))\ndone",
    ),
    "while": ("while read -r l; do\n echo $l\ndone < f", "while read -r l; do\necho $l\ndone < f"),
    "until": ("until tool ok\ndo sleep 1\ndone", "until tool ok\ndo sleep 1\ndone"),
    "case": (
        "case $x in\n a|b) echo done;;\n (c) d ;;\n *) e\nesac",
        "case $x in\na|b) echo done;;\n(c) d ;;\n*) e\nesac",
    ),
    "case in a substitution": ("x=$(case a in a) b;; esac)", "x=$(case a in a) b;; esac)"),
    "braces": ("{ a\n b; }", "{ a\nb; }"),
    "parentheses": ("( cd x\n tool b )", "( cd x\ntool b )"),
    "arithmetic": ("(( x = 1 <<\n 2 ))", "(( x = 1 <<\n 2 ))"),
    "function": ("f() {\n  echo a\n}", "f() {\necho a\n}"),
    "array": ("a=(x\n y)", "a=(x\ny)"),
    "condition": ("[[ a < b && c =~ ^(x|y)$ ]]", "[[ a < b && c =~ ^(x|y)$ ]]"),
    "and": ("a && b", "a && b"),
    "and, on two lines": ("a &&\n  b ||\n  c |\n  d", "a && b || c | d"),
    "several on a line": ("cd x; tool y & wait", "cd x; tool y & wait"),
    "process substitution": ("diff <(a\nb) <(c)", "diff <(a\nb) <(c)"),
    "backquotes": ("echo `a\nb`", "echo `a\nb`"),
    "redirections": ("tool a >f 2>&1 <&- &> g", "tool a >f 2>&1 <&- &> g"),
    "keywords as words": ("echo if then { fi esac", "echo if then { fi esac"),
    "negated": ("! tool a", "! tool a"),
}


@pytest.mark.parametrize(("written", "expected"), COMMANDS.values(), ids=COMMANDS.keys())
def test_a_complete_command_is_one(written: str, expected: str) -> None:
    found = split(f"before\n{written}\nafter")
    assert [command.text for command in found.commands] == ["before", expected, "after"]
    assert [command.line for command in found.commands] == [1, 2, 3 + written.count("\n")]
    assert found.unfinished is None


@UNHURRIED
@given(st.lists(st.sampled_from(sorted(COMMANDS)), max_size=8), st.sampled_from(["\n", "\n\n", "\n# a 'note\n"]))
def test_commands_in_a_row_are_found_again(names: list[str], between: str) -> None:
    text = between.join(COMMANDS[name][0] for name in names)
    assert [command.text for command in split(text).commands] == [COMMANDS[name][1] for name in names]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash reads the same texts")
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_bash_agrees_that_it_is_complete(name: str) -> None:
    for text in COMMANDS[name]:
        done = subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, timeout=60, check=False)
        assert done.returncode == 0 and done.stderr == b"", done.stderr


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("a\ncat <<EOF\nb", "here-document `EOF`", 2),
        ("cat <<EOF", "here-document `EOF`", 1),
        ("a\necho 'b\nc", "quote `'`", 2),
        ('echo "b', 'quote `"`', 1),
        ("if a\nthen b", "`if`", 1),
        ("x=$(a\nb", "`$(`", 1),
        ('echo "$(a \'b"', 'quote `"`', 1),
        ("f() {\n a", "`{`", 1),
        ("(a", "`(`", 1),
        ("echo ${x", "`${`", 1),
        ("echo `a", "backquote", 1),
    ],
)
def test_what_is_left_open_is_named_with_its_line(text: str, what: str, line: int) -> None:
    assert split(text).unfinished == (what, line)


def comparable(text: str) -> list[str]:
    return [command.text for command in split(text).commands]


def test_equal_but_for_blanks_comments_and_continued_lines() -> None:
    assert comparable("tool  add\t\\\n   x # why") == comparable("tool add x")
    assert comparable("a &&\n   b") == comparable("a && b")
    assert comparable("if a; then\n    b\nfi") == comparable("if a; then\n  b\n\nfi")
    assert comparable("tool 'a  b'") != comparable("tool 'a b'")
    assert comparable("cat <<E\na  b\nE") != comparable("cat <<E\na b\nE")


@pytest.mark.parametrize(
    ("text", "always", "after_success"),
    [
        ("cd x && tool  y", ["cd x"], ["cd x", "tool y"]),
        ("cd x; tool y", ["cd x", "tool y"], ["cd x", "tool y"]),
        ("a || b", ["a"], ["a"]),
        ("a && b; c", ["a", "c"], ["a", "c"]),
        ("a | b", ["a | b"], ["a | b"]),
        ("(a; b)", ["(a; b)"], ["(a; b)"]),
        ("a &", ["a"], ["a"]),
    ],
)
def test_parts_of_a_list_that_must_have_run(text: str, always: list[str], after_success: list[str]) -> None:
    (command,) = split(text).commands
    assert (parts(command, good=False), parts(command, good=True)) == (always, after_success)


def test_a_block_is_compared_without_its_indentation() -> None:
    cited = block("\n        # say hello\r\n        tool hello   \n            --loud\n    ")
    assert cited == Block("# say hello\ntool hello\n    --loud", ("tool hello", "--loud"))
    assert block("\t\ta\n\t\t\tb").text == "a\n\tb"
    assert block("") == Block("", ())


def test_blocks_are_runs_of_lines_that_are_not_empty() -> None:
    found = blocks("#!/bin/sh\nset -e\n\n# Starting\n\n# hello\ntool a\n \t\ntool b\ntool c")
    assert [(one.first_line, one.last_line) for one in found] == [(1, 2), (4, 4), (6, 7), (9, 10)]
    assert [one.kind for one in found] == ["preamble", "heading", "example", "example"]
    assert [one.section for one in found] == ["", "Starting", "Starting", "Starting"]
    assert found[3].commands == ("tool b", "tool c")
    assert found[3].command_lines == (9, 10)


def test_the_id_of_a_block_is_that_of_its_text() -> None:
    first, second = blocks("tool a\n\n    tool a  \r\n"), blocks("# x\n\ntool a")
    assert {first[0].id, first[1].id, second[1].id} == {first[0].id}
    assert first[0].id != second[0].id


def test_real_commands_beside_the_shebang_need_a_test() -> None:
    assert blocks("#!/bin/sh\ntool a\n")[0].kind == "example"
    assert blocks("#!/bin/sh\n# words.\n")[0].kind == "preamble"
    assert blocks("#!/bin/sh\n\nset -eu\nshopt -s nullglob\n")[1].kind == "preamble"
    assert blocks("#!/bin/sh\n\ntool a\n\nset -eu\n")[2].kind == "example"


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("# Managing snapshots", "Managing snapshots"),
        ("## Managing snapshots ##\n# and more words.", "Managing snapshots"),
        ("########\n# MANAGING\n#  words of it\n########", "MANAGING"),
        ("# -----\n# Managing", "Managing"),
        ("# === Managing", "=== Managing"),
        ("# This is a sentence.", ""),
        ("# or see the others--list, and more!", ""),
        ("# two lines\n# of prose", ""),
        ("#", ""),
        ("# ----", ""),
    ],
)
def test_headings(text: str, heading: str) -> None:
    (found,) = blocks(text)
    assert (found.section, found.kind) == (heading, "heading" if heading else "text")


def test_an_empty_line_ends_a_block_even_inside_a_here_document() -> None:
    first, second = blocks("a\n\ncat <<EOF\nx\n\ny\nEOF\n")[1:]
    assert (first.unfinished, first.unfinished_line) == ("here-document `EOF`", 3)
    assert second.commands == ("y", "EOF")


WORDS = [*"ab \t\n\r\\'\"`$(){}[];&|<>#=!-", "EOF", "<<", "if ", "case ", " in ", "esac", "$((", "«", "\n\n"]
SHELL = st.lists(st.sampled_from(WORDS)).map("".join)


@UNHURRIED
@given(SHELL)
def test_no_text_is_refused_and_no_line_is_lost(text: str) -> None:
    found = blocks(text)
    lines = [line.strip(" \t\r") for line in text.split("\n") if line.strip(" \t\r")]
    assert [line.strip(" \t\r") for one in found for line in one.text.split("\n")] == lines
    for one in found:
        assert block(one.text).text == one.text
        assert tuple(one.commands) == block(one.text).commands
        assert all(one.first_line <= line <= one.last_line for line in one.command_lines)


@UNHURRIED
@given(st.text())
def test_normalising_twice_is_normalising_once(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_nesting_has_no_end() -> None:
    for piece in ("$(", '"$(', "${", "((", "{ ", "if ", "case x in (", "`"):
        assert split(piece * 3000).commands


def test_ten_thousand_blocks() -> None:
    text = "\n\n".join(
        f"# number {n}\ntool create a-{n} --message \"do {n}\" \\\n    --label a=b\ntool list | grep {n} && echo '{n}'"
        for n in range(10_000)
    )

    def measure(_: int) -> float:
        started = time.process_time()
        assert len(blocks(text)) == 10_000
        return time.process_time() - started

    best_of(3, 4, measure)  # 0.8 on an idle machine
