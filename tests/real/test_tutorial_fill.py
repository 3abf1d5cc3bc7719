"""`mngr tutorial fill`: an agent proposes, the real program is asked, a person keeps or drops."""

import json
from pathlib import Path

import pytest

from tests.support.greeter import add_greeter, document
from tests.support.terminals import on_a_terminal
from tests.support.user import Ran, User

pytestmark = pytest.mark.timeout(300)

TUTORIAL = """#!/bin/sh

# Saying hello

greet hello

# Being loud

# Saying good bye
"""
LOUD = {"heading": "Being loud", "text": "# with more voice\ngreet hello --loud"}
SHORT = {"heading": "Being loud", "text": "greet hello -ln Ada"}
BYE = {"heading": "Saying good bye", "text": "greet bye --soon"}
WHISPER = {"heading": "Saying good bye", "text": "greet bye --quietly"}
DONE = 'outcome <<END\n{"schema": 1, "status": "done"}\nEND'
SHOUT = {"heading": "Being loud", "text": "greet shout"}


@pytest.fixture
def greeter(user: User) -> User:
    add_greeter(user, TUTORIAL)
    return user


def agent(user: User, *rounds: list[dict[str, str]] | str) -> str:
    """A script that writes these files of proposals, one in each round."""
    lines = []
    for number, found in enumerate(rounds):
        text = found if isinstance(found, str) else json.dumps({"schema": 1, "proposals": found})
        told = f"run echo {{message}} > $MNGR_ARTIFACTS_DIR/told-{number}"
        lines.append(f"wait\n{told}\nartifact proposals.json <<END\n{text}\nEND\n{DONE}")
    path = user.root / "agent.script"
    path.write_text("\n".join([*lines, "wait\n"]))
    return str(path)


def fill(user: User, path: str, *words: str, exit_code: int = 0) -> Ran:
    done = user.mngr("tutorial", "fill", "--type", "scripted", *words, "--", path, timeout=250)
    assert done.exit_code == exit_code, done.stdout + done.stderr
    return done


def test_proposals_that_the_program_knows_are_kept(greeter: User) -> None:
    path = agent(greeter, "{", [WHISPER, SHOUT], [LOUD, BYE])
    found = document(fill(greeter, path, "--yes", "--format", "json"))
    assert found["program"] == "greet" and found["validated_by"] == "the help of `greet`"
    assert [turn["missing"] for turn in found["rounds"]] == [2, 2, 0]
    assert [(row["kind"], row["problem"]) for row in found["rejected"]] == [
        ("interface", "`greet bye` has no option `--quietly`"),
        ("interface", "`greet` has no verb `shout`"),
    ]
    assert [row["text"] for row in found["kept"]] == [LOUD["text"], BYE["text"]] and found["unfilled"] == []
    text = (greeter.repo / "tutorial.sh").read_text()
    assert text == TUTORIAL.replace("# Being loud\n", f"# Being loud\n\n{LOUD['text']}\n") + f"\n{BYE['text']}\n"
    told = greeter.work_dir("fill-tutorial-examples-1") / ".mngr" / "task" / "artifacts"
    prompt = (told / "told-0").read_text()
    assert "- Being loud (line 7)" in prompt and ".mngr/task/reference.txt" in prompt
    reference = (told.parent / "reference.txt").read_text()
    assert "$ greet hello --help" in reference and "with more voice" in reference
    assert "could not be used: it is not valid JSON" in (told / "told-1").read_text()
    assert "`greet` has no verb `shout`" in (told / "told-2").read_text()
    assert greeter.mngr("tutorial", "fill").ok().stdout == "every heading of tutorial.sh has an example\n"


def test_a_person_keeps_or_drops_one_by_one(greeter: User) -> None:
    path = agent(greeter, [LOUD, SHORT, BYE, SHOUT])
    words = ("tutorial", "fill", "--type", "scripted", "--", path)
    done = on_a_terminal(greeter, *words, typed="y\nn\ny\n")
    assert done.exit_code == 0, done.stdout
    assert (
        "1 of 3, under `Being loud`:\n\n    # with more voice\n    greet hello --loud\n\nKeep it? [y/N]" in done.stdout
    )
    assert "kept 2 examples in tutorial.sh, dropped 1; validated by the help of `greet`" in done.stdout
    assert "interface problems" in done.stdout and "Being loud: `greet` has no verb `shout`" in done.stdout
    text = (greeter.repo / "tutorial.sh").read_text()
    assert LOUD["text"] in text and BYE["text"] in text and SHORT["text"] not in text


def test_without_a_terminal_nothing_is_kept_and_no_agent_is_paid_for(greeter: User) -> None:
    done = fill(greeter, agent(greeter, [LOUD, BYE]), exit_code=5)
    assert "cannot ask which examples to keep" in done.stderr and "mngr tutorial fill --yes" in done.stderr
    assert (greeter.repo / "tutorial.sh").read_text() == TUTORIAL and greeter.agents() == []


def test_a_tutorial_edited_meanwhile_gets_examples_where_its_headings_are_now(greeter: User) -> None:
    script = greeter.repo / "tutorial.sh"
    edited = TUTORIAL.replace("greet hello\n", "greet hello\n\n# and to Ada\ngreet hello --name Ada\n")
    (greeter.root / "edited").write_text(edited)
    path = agent(greeter, [LOUD, BYE])
    text = Path(path).read_text()
    Path(path).write_text(text.replace("artifact ", f"run cp {greeter.root / 'edited'} {script}\nartifact ", 1))
    fill(greeter, path, "--yes")
    expected = edited.replace("# Being loud\n", f"# Being loud\n\n{LOUD['text']}\n") + f"\n{BYE['text']}\n"
    assert script.read_text() == expected
    greeter.mngr("destroy", "fill-tutorial-examples-1", "--force").ok()
    greeter.git("checkout", "tutorial.sh")
    (greeter.root / "edited").write_text(edited.replace("# Being loud", "# Being heard"))
    done = fill(greeter, path, "--yes", exit_code=1)
    assert (
        "has no heading `Being loud` without an example any more" in done.stderr
        and LOUD["text"].split("\n")[1] in done.stderr
    )
    assert script.read_text() == edited.replace("# Being loud", "# Being heard")


def test_a_heading_that_stays_empty_is_said(greeter: User) -> None:
    done = fill(greeter, agent(greeter, [LOUD], []), "--yes", "--rounds", "1", exit_code=1)
    assert "still without an example: Saying good bye" in done.stdout
    assert LOUD["text"] in (greeter.repo / "tutorial.sh").read_text()


def test_for_mngr_its_own_parser_judges(greeter: User) -> None:
    (greeter.repo / "tutorial.sh").write_text("# Listing\n")
    greeter.git("commit", "-qam", "Another tutorial")
    rows = [{"heading": "Listing", "text": text} for text in ("mngr list --shiny", "mngr list --format json")]
    words = ("--yes", "--program", "mngr", "--reference", "echo 'mngr lists'", "--format", "json")
    found = document(fill(greeter, agent(greeter, rows), *words))
    assert found["validated_by"] == "the parser of mngr"
    assert [row["text"] for row in found["kept"]] == ["mngr list --format json"]
    assert "--shiny" in found["rejected"][0]["problem"]


def test_a_dry_run_prints_the_prompt_and_the_headings(greeter: User) -> None:
    reference = greeter.root / "reference.txt"
    reference.write_text("\x1b[1mgreet\x1b[0m does it all\n")
    found = document(
        greeter.mngr("tutorial", "fill", "--dry-run", "--reference", str(reference), "--format", "json").ok()
    )
    assert found["headings"] == ["Being loud", "Saying good bye"]
    assert ".mngr/task/reference.txt" in found["prompt"]
    assert "tutorial.sh:7: Being loud" in greeter.mngr("tutorial", "fill", "--dry-run").ok().stdout
    assert "failed as a command" in greeter.mngr("tutorial", "fill", "--reference", "exit 3").failed().stderr
    assert greeter.agents() == []


def test_a_program_that_is_not_there_is_told_before_an_agent_is_made(greeter: User) -> None:
    (greeter.repo / "reference.txt").write_text("greet hello\n")
    words = ("--program", "nogreet", "--reference", "reference.txt", "--include-unclean")
    done = fill(greeter, agent(greeter, [LOUD]), *words, exit_code=1)
    assert "nogreet" in done.stderr
    assert greeter.agents() == []


def test_a_tutorial_without_commands_needs_a_program(greeter: User) -> None:
    (greeter.repo / "tutorial.sh").write_text("# Listing\n")
    assert "--program NAME" in greeter.mngr("tutorial", "fill", "--dry-run").failed(2).stderr
    assert "not installed" in greeter.mngr("tutorial", "fill", "--dry-run", "--program", "no-such").failed().stderr
