"""Section "Managing snapshots" of the tutorial."""

from mngr.e2e import E2eSession, expect
from tests.sessions.steps import agent, agents, create, follow, rest, said


def keep(e2e: E2eSession) -> None:
    """`try-1` with a draft, and a snapshot of that."""
    create(e2e, "try-1")
    expect(e2e.run("mngr exec try-1 'echo draft > draft.txt'")).to_succeed()
    expect(e2e.run("mngr snapshot create try-1 before-rewrite")).to_succeed()


def test_keep_an_agent_as_it_is(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # keep an agent as it is before something risky; it may work on meanwhile
        mngr snapshot create try-1 before-rewrite
    """)
    e2e.write_tutorial_block("""
        # which ones are there?
        mngr snapshot list
    """)
    create(e2e, "try-1")
    expect(e2e.run("mngr exec try-1 'echo draft > draft.txt'")).to_succeed()
    before = agent(e2e, "try-1")["pid"]
    result = e2e.run("mngr snapshot create try-1 before-rewrite")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("kept try-1 as before-rewrite").to_contain("1 uncommitted file")
    assert agent(e2e, "try-1")["pid"] == before, "it was not disturbed"
    expect(e2e.run("mngr snapshot list").stdout).to_match(r"^before-rewrite +try-1 ")


def test_a_name_of_a_snapshot_is_not_taken_twice(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # keep an agent as it is before something risky; it may work on meanwhile
        mngr snapshot create try-1 before-rewrite
    """)
    keep(e2e)
    result = e2e.run("mngr snapshot create try-1 before-rewrite", comment="once more")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("before-rewrite")
    expect(e2e.run("mngr snapshot list --format '{name}'").stdout).to_equal("before-rewrite\n")


def test_go_back(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # whatever happens then, go back; what that replaces is saved
        mngr exec try-1 'rm shop.py'
        mngr snapshot restore before-rewrite
    """)
    keep(e2e)
    *_, result = follow(e2e, block.commands)
    expect(result.stderr).to_contain("the replaced work is saved: `mngr saved show try-1-1`")
    expect(e2e.run("mngr exec try-1 'cat draft.txt; ls shop.py'").stdout).to_equal("draft\nshop.py\n")
    expect(e2e.run("mngr wait try-1 WAITING --timeout 60", timeout=90)).to_succeed()


def test_go_on_from_there_with_a_second_agent(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # or continue from there with a second agent
        mngr snapshot restore before-rewrite --as second-try
    """)
    keep(e2e)
    rest(e2e, "try-1")
    expect(e2e.run("mngr snapshot restore before-rewrite --as second-try")).to_succeed()
    found = agents(e2e)
    assert (found["try-1"]["state"], found["second-try"]["state"]) == ("WAITING", "STOPPED")
    assert found["try-1"]["work_dir"] != found["second-try"]["work_dir"]
    expect(e2e.run("mngr exec second-try 'cat draft.txt'").stdout).to_equal("draft\n")


def test_forget_a_snapshot(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # forget it
        mngr snapshot destroy before-rewrite
    """)
    keep(e2e)
    expect(e2e.run("mngr snapshot destroy before-rewrite")).to_succeed()
    expect(e2e.run("mngr snapshot list").stdout).to_equal("No snapshots\n")
    again = e2e.run("mngr snapshot destroy before-rewrite", comment="it is gone")
    expect(again).to_have_exit_code(1)
    expect(again.stderr).to_contain("`before-rewrite`")


def test_clone(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # a clone is a copy of an agent as it is now: commits, uncommitted files, conversation
        mngr clone add-tests other-way --no-connect
    """)
    create(e2e, "add-tests", options="--message 'say I know something.'")
    rest(e2e, "add-tests")
    expect(e2e.run("mngr exec add-tests 'echo draft > draft.txt'")).to_succeed()
    expect(e2e.run("mngr clone add-tests other-way --no-connect")).to_succeed()
    expect(e2e.run("mngr exec other-way 'cat draft.txt; git status --short'").stdout).to_equal("draft\n?? draft.txt\n")
    assert said(e2e, "other-way") == ["I know something."]
    assert agent(e2e, "other-way")["initial_branch"] == "mngr/other-way"


def test_tell_the_copy_what_to_do_differently(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # tell the copy what to do differently
        mngr clone add-tests third-way --no-connect -m 'say I try it without the cache.'
    """)
    create(e2e, "add-tests", options="--message 'say I know something.'")
    expect(e2e.run("mngr wait add-tests", timeout=90)).to_succeed()
    expect(e2e.run("mngr clone add-tests third-way --no-connect -m 'say I try it without the cache.'")).to_succeed()
    assert said(e2e, "third-way") == ["I know something.", "I try it without the cache."]
    assert said(e2e, "add-tests") == ["I know something."]
