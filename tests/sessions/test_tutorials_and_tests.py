"""Section "Tutorials and tests" of the tutorial."""

import re
import urllib.request
from pathlib import Path

from mngr.e2e import E2eSession, expect
from tests.sessions.steps import agents, create, follow, git

TUTORIAL = """
# who is there?
mngr list
"""
TEST = f"""
from mngr.e2e import expect
def test_list(e2e):
    e2e.write_tutorial_block({TUTORIAL!r})
    expect(e2e.run("mngr list").stdout).to_contain("No agents found")
"""


def write_tour(e2e: E2eSession, test: str = TEST) -> None:
    """A tutorial and its test, in the directory of the session."""
    (e2e.repo / "tutorial.sh").write_text(TUTORIAL.lstrip())
    (e2e.repo / "test_tour.py").write_text(test)


def test_a_tutorial_and_its_test(e2e: E2eSession) -> None:
    tutorial = e2e.write_tutorial_block("""
        # a tutorial is a shell script; what stands between its empty lines is an example
        cat > tutorial.sh <<'END'
        # who is there?
        mngr list
        END
        mngr tutorial blocks
    """)
    test = e2e.write_tutorial_block('''
        # a test cites an example, runs it and says what it expects; `pip install 'mngr[e2e]'` brings what it needs
        cat > test_tour.py <<'END'
        from mngr.e2e import expect
        def test_list(e2e):
            e2e.write_tutorial_block("""
            # who is there?
            mngr list
            """)
            expect(e2e.run("mngr list").stdout).to_contain("No agents found")
        END
        pytest test_tour.py
    ''')
    check = e2e.write_tutorial_block("""
        # is every example cited by a test, and was it really run?
        mngr tutorial check --tests test_tour.py
    """)
    _, blocks = follow(e2e, tutorial.commands)
    expect(blocks.stdout).to_match(r" 1-2 +example .*mngr list$")
    _, tested = follow(e2e, test.commands)
    expect(tested.stdout).to_contain("1 passed")
    (transcript,) = (e2e.repo / ".mngr" / "e2e").glob("*/tests/*/transcript.txt")
    expect(transcript).to_have_content("$ mngr list\nNo agents found\n")
    (checked,) = follow(e2e, check.commands)
    expect(checked.stdout).to_contain("ok: 1 of 1 example cited, 1 of 1 command run")


def test_an_example_that_nobody_cites_is_named(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # is every example cited by a test, and was it really run?
        mngr tutorial check --tests test_tour.py
    """)
    write_tour(e2e, "def test_nothing():\n    pass\n")
    result = e2e.run("mngr tutorial check --tests test_tour.py")
    expect(result).to_have_exit_code(1)
    expect(result.stdout).to_match(r"^tutorial\.sh:1: block [0-9a-f]+ .*is cited by no test$")


def test_an_example_that_was_never_run_is_named(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # is every example cited by a test, and was it really run?
        mngr tutorial check --tests test_tour.py
    """)
    write_tour(e2e, TEST.replace('e2e.run("mngr list").stdout', '"No agents found"'))
    expect(e2e.run("pytest test_tour.py", comment="passes, and runs nothing", timeout=60)).to_succeed()
    result = e2e.run("mngr tutorial check --tests test_tour.py")
    expect(result).to_have_exit_code(1)
    expect(result.stdout).to_match(r"^tutorial\.sh:2: block .*`mngr list` was never run by `test_list`")


def test_what_an_agent_would_be_told(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # a coding agent can bring the tests in line with the tutorial; with --dry-run you see what it would be told
        mngr tutorial sync --tests test_tour.py --dry-run
    """)
    fill = e2e.write_tutorial_block("""
        # or write the examples below a heading that has none
        printf '\\n# Managing snapshots\\n' >> tutorial.sh
        mngr tutorial fill --reference 'mngr help snapshot' --dry-run
    """)
    write_tour(e2e, "def test_nothing():\n    pass\n")
    before = git(e2e, "status --short")
    sync = e2e.run("mngr tutorial sync --tests test_tour.py --dry-run", timeout=60)
    expect(sync).to_succeed()
    expect(sync.stdout).to_match(r"tutorial\.sh:1: block .* is cited by no test").to_contain("write_tutorial_block")
    *_, filled = follow(e2e, fill.commands)
    expect(filled.stdout).to_match(r"^- Managing snapshots \(line 4\)$").to_contain("Usage: mngr snapshot")
    assert agents(e2e) == {}
    assert git(e2e, "status --short") == before


def test_a_tutorial_in_order_needs_no_agent(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # a coding agent can bring the tests in line with the tutorial; with --dry-run you see what it would be told
        mngr tutorial sync --tests test_tour.py --dry-run
    """)
    write_tour(e2e)
    result = e2e.run("mngr tutorial sync --tests test_tour.py --no-artifacts --dry-run", timeout=60)
    expect(result).to_succeed()
    expect(result.output).not_to_contain("the prompt:")


def test_a_skill_for_coding_agents(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # agents that know skills learn to do it by themselves
        mngr tutorial install-skill
    """)
    expect(e2e.run("mngr tutorial install-skill")).to_succeed()
    for place in (".claude", ".agents"):
        skill = e2e.repo / place / "skills" / "sync-tutorial-to-e2e-tests" / "SKILL.md"
        expect(skill).to_have_content(re.compile("mngr tutorial check"))
    expect(e2e.run("mngr tutorial install-skill", comment="twice is safe")).to_succeed()


def test_a_skill_that_was_changed_is_not_replaced(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # agents that know skills learn to do it by themselves
        mngr tutorial install-skill
    """)
    expect(e2e.run("mngr tutorial install-skill")).to_succeed()
    skill = e2e.repo / ".claude" / "skills" / "sync-tutorial-to-e2e-tests" / "SKILL.md"
    skill.write_text("mine\n")
    result = e2e.run("mngr tutorial install-skill")
    expect(result).to_fail()
    expect(result.stderr).to_contain("--force")
    expect(skill).to_have_content("mine\n")


def test_pages_that_open_from_disk(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # see what the tests did, command by command, on pages that open from disk
        mngr e2e report
    """)
    write_tour(e2e)
    expect(e2e.run("pytest test_tour.py", timeout=60)).to_succeed()
    result = e2e.run("mngr e2e report")
    expect(result).to_succeed()
    index = e2e.repo / Path(result.stdout.strip())
    expect(index).to_exist()
    assert "test_list" in "".join(path.read_text() for path in index.parent.rglob("*.js"))


def test_there_are_no_pages_without_a_run(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # see what the tests did, command by command, on pages that open from disk
        mngr e2e report
    """)
    result = e2e.run("mngr e2e report")
    expect(result).to_fail()
    expect(result.stderr).to_contain(".mngr/e2e")


def test_pages_live_in_the_browser(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # or live in the browser, while they run; C-c leaves
        mngr e2e serve
    """)
    screen = e2e.spawn("mngr e2e serve", columns=120)
    expect(screen).to_show(re.compile(r"http://127\.0\.0\.1:\d+/"), timeout=60)
    (url,) = (word for word in screen.text.split() if word.startswith("http://"))
    with urllib.request.urlopen(url, timeout=60) as page:
        assert b"<html" in page.read()
    screen.press("C-c")
    assert screen.wait_exit(60) == 0


def test_the_end(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # the end: everything goes, and what was not merged is saved
        mngr destroy --all --force
    """)
    create(e2e, "red", "green")
    expect(e2e.run("mngr exec green 'echo grass > green.txt'")).to_succeed()
    result = e2e.run("mngr destroy --all --force")
    expect(result).to_succeed()
    assert agents(e2e) == {}
    expect(result.stdout).to_contain("mngr saved restore green-1").not_to_contain("red-1")
    assert git(e2e, "branch --format='%(refname:short)'") == "main"
    expect(e2e.run("mngr saved restore green-1 --to ~/back && cat ~/back/green.txt").stdout).to_contain("grass")
