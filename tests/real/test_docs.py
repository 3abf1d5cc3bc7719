"""The README and the guides tell the truth: examples run, settings are accepted, links lead somewhere.

In a block marked `console`, `$ ` begins a command, `> ` continues it, and all commands of a file run in order in one
user's repository called `shop`. A command ends with 0, or with N where it ends in `# exit N`. The other lines are what
it prints, in that order: `...` stands for anything, and numbers, hashes and runs of blanks may differ. Blocks marked
otherwise (`sh`, `text`) are not run.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.user import User

ROOT = Path(__file__).parents[2]
GUIDES = ("e2e", "scripting", "snapshots", "ten-agents", "tutorial")
EXAMPLES = ("README.md", *(f"docs/guides/{name}.md" for name in GUIDES))
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])


class Block(NamedTuple):
    kind: str
    line: int
    lines: list[str]


class Example(NamedTuple):
    line: int
    command: str
    exit_code: int
    shown: list[str]


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a Markdown text."""
    current: Block | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("```"):
            if current is not None:
                current.lines.append(line)
        elif current is None:
            current = Block(line[3:].strip(), number, [])
        else:
            yield current
            current = None
    assert current is None, f"the block of line {current.line} has no end"


def examples(text: str) -> list[Example]:
    found: list[Example] = []
    for block in blocks(text):
        if block.kind != "console":
            continue
        assert block.lines and block.lines[0].startswith("$ "), f"line {block.line}: begins without a command"
        for number, line in enumerate(block.lines, block.line + 1):
            if line.startswith("$ "):
                code = re.search(r"\s+# exit (\d+)$", line)
                command = line[2 : code.start()] if code else line[2:]
                found.append(Example(number, command, int(code[1]) if code else 0, []))
            elif line.startswith("> ") and not found[-1].shown:
                found[-1] = found[-1]._replace(command=f"{found[-1].command}\n{line[2:]}")
            else:
                found[-1].shown.append(line)
    return found


def plain(line: str) -> str:
    """The line without what differs from one run to the next."""
    line = re.sub(r"\b[0-9a-f]{7,}\b", "HASH", line.strip())
    return re.sub(r"\s+", " ", re.sub(r"\d+", "N", line))


def first_missing(shown: list[str], printed: str) -> str | None:
    """The first line of an example that the output does not have, after the lines before it."""
    left = iter([plain(line) for line in printed.splitlines()])
    for line in shown:
        pattern = ".*".join(map(re.escape, plain(line).split("...")))
        if line.strip() and not any(re.fullmatch(pattern, other) for other in left):
            return line
    return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", EXAMPLES)
def test_every_example_runs_and_prints_what_the_page_shows(page: str, user: User) -> None:
    user.repo = user.repo.rename(user.root / "shop")
    found = examples((ROOT / page).read_text())
    assert found
    for example in found:
        command = ["bash", "-o", "pipefail", "-c", f"exec 2>&1\n{example.command}"]
        done = user.run(command, timeout=300)
        where = f"{page}:{example.line}: `{example.command}`"
        assert done.exit_code == example.exit_code, f"{where} exited with {done.exit_code}\n{done.stdout}"
        missing = first_missing(example.shown, done.stdout)
        assert missing is None, f"{where} does not print\n{missing}\nbut\n{done.stdout}"
    assert user.agents() == [], "the last example leaves no agent"


@pytest.mark.parametrize("page", EXAMPLES)
def test_settings_on_a_page_are_accepted(page: str, user: User) -> None:
    for block in blocks((ROOT / page).read_text()):
        if block.kind == "toml":
            user.host_dir.mkdir(exist_ok=True)
            (user.host_dir / "settings.toml").write_text("\n".join(block.lines))
            user.mngr("config", "list").ok()


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    targets = [target for target in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in target]
    missing = [target for target in targets if not (ROOT / page).parent.joinpath(target).exists()]
    assert missing == []


def test_an_example_that_is_not_true_is_found() -> None:
    text = "```console\n$ a <<E\n> b\n> E    # not a code\none 12 s\n...\n$ false    # exit 1\n```\n```sh\n$ no\n```\n"
    first, second = examples(text)
    assert first == Example(2, "a <<E\nb\nE    # not a code", 0, ["one 12 s", "..."])
    assert second == Example(7, "false", 1, [])
    assert first_missing(["one  12 s", "three ..."], "zero\none 3 s\ntwo\nthree 4") is None
    assert first_missing(["two", "one"], "one\ntwo\n") == "one"


@pytest.mark.timeout(300)
def test_the_verbs_of_the_readmes_table_run(user: User) -> None:
    table = (ROOT / "README.md").read_text().partition("## And more")[2].partition("\n## ")[0]
    commands = [
        text for text in re.findall(r"`([^`]+)`", table) if text.startswith("mngr ") and text != "mngr completion bash"
    ]
    assert len(commands) >= 10, commands
    (user.repo / "try.sh").write_text("#!/bin/sh\nexec sleep 99\n")
    (user.repo / "try.sh").chmod(0o755)
    user.git("add", ".")
    user.git("commit", "-q", "-m", "try")
    user.mngr("create", "fix-login", "--type", "scripted", "--no-connect").ok()
    user.mngr("create", "old", "--type", "scripted", "--record", "--no-connect").ok()
    user.env["MNGR_AGENT_NAME"] = "fix-login"
    user.env["MNGR__COMMANDS__CREATE__TYPE"] = "scripted"
    for number, command in enumerate(commands):
        name = f"new-{number}" if command.startswith("mngr create") else "old"
        done = user.run(["sh", "-c", command.replace("NAME", name)], timeout=120)
        assert done.exit_code == 0, f"{command}\n{done.stdout}{done.stderr}"
