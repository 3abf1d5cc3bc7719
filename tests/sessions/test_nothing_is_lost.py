"""Section "Nothing is lost" of the tutorial."""

from mngr.e2e import E2eSession, expect
from tests.sessions.steps import agent, agents, create, follow, git, rest


def lose(e2e: E2eSession) -> None:
    """`try-2` with an idea of its own, destroyed: its work is kept as `try-2-1`."""
    create(e2e, "try-2")
    expect(e2e.run("mngr exec try-2 'echo \"half an idea\" > idea.txt'")).to_succeed()
    expect(e2e.run("mngr destroy try-2 --force")).to_succeed()


def test_what_would_be_saved(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # an agent with work that exists nowhere else is destroyed only with --force; this shows what would be saved
        mngr exec try-2 'echo "half an idea" > idea.txt'
        mngr destroy try-2 --force --dry-run
    """)
    create(e2e, "try-2")
    *_, result = follow(e2e, block.commands)
    expect(result.stdout).to_contain("would destroy try-2").to_contain("1 uncommitted file")
    rest(e2e, "try-2")


def test_without_force_it_stays(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # an agent with work that exists nowhere else is destroyed only with --force; this shows what would be saved
        mngr exec try-2 'echo "half an idea" > idea.txt'
        mngr destroy try-2 --force --dry-run
    """)
    create(e2e, "try-2")
    expect(e2e.run(block.commands[0])).to_succeed()
    for command in ("mngr destroy try-2", "mngr destroy try-2 --dry-run"):
        result = e2e.run(command)
        expect(result).to_have_exit_code(1)
        expect(result.stderr).to_contain("1 uncommitted file").to_contain("--force")
    expect(e2e.run("mngr exec try-2 'cat idea.txt'").stdout).to_equal("half an idea\n")


def test_destroy_saves_first(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # then it goes, and its work is safe
        mngr destroy try-2 --force
    """)
    create(e2e, "try-2")
    expect(e2e.run("mngr exec try-2 'echo \"half an idea\" > idea.txt'")).to_succeed()
    result = e2e.run("mngr destroy try-2 --force")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("its work is saved: `mngr saved restore try-2-1`")
    assert agents(e2e) == {}
    assert git(e2e, "for-each-ref --format='%(refname)' refs/mngr/saved/try-2") != ""
    assert git(e2e, "worktree list --porcelain").count("worktree ") == 1


def test_what_is_kept(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # what is kept, and what is in it?
        mngr saved list
        mngr saved show try-2-1 --patch
    """)
    lose(e2e)
    kept, shown = follow(e2e, block.commands)
    expect(kept.stdout).to_match(r"^try-2-1 +.*destroy")
    expect(shown.stdout).to_contain("+half an idea")


def test_have_it_all_back(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # have it all back: a stopped agent, as it was
        mngr saved restore try-2-1
    """)
    lose(e2e)
    expect(e2e.run("mngr saved restore try-2-1")).to_succeed()
    back = agent(e2e, "try-2")
    assert (back["state"], back["initial_branch"]) == ("STOPPED", "mngr/try-2")
    expect(e2e.run("mngr exec try-2 'cat idea.txt; git status --short'").stdout).to_equal("half an idea\n?? idea.txt\n")
    expect(e2e.run("mngr start try-2 && mngr wait try-2 WAITING --timeout 60", timeout=90)).to_succeed()


def test_what_was_never_saved_cannot_come_back(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # have it all back: a stopped agent, as it was
        mngr saved restore try-2-1
    """)
    result = e2e.run("mngr saved restore try-2-1")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("`try-2-1`").to_contain("mngr saved list")


def test_its_files_alone(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # or its files alone, in a directory of your choice
        mngr saved restore try-2-1 --to ~/recovered
    """)
    lose(e2e)
    expect(e2e.run("mngr saved restore try-2-1 --to ~/recovered")).to_succeed()
    expect(e2e.home / "recovered" / "idea.txt").to_have_content("half an idea\n")
    assert agents(e2e) == {}
