"""Tutorial section: other machines. `box` is a real sshd whose users have a home of their own."""

from collections.abc import Iterator

import pytest

from mngr.e2e import E2eSession, expect
from tests.sessions.steps import agent, create, follow, rest, said
from tests.support.sshd import Sshd
from tests.support.user import User


@pytest.fixture(autouse=True)
def box(e2e: E2eSession) -> Iterator[None]:
    far = User()
    try:
        with Sshd(far) as server:
            e2e.env.update(server.client.env(e2e.env))
            yield
    finally:
        far.close()


def test_create_an_agent_on_another_machine(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # start an agent on another machine; nothing has to be installed there but Python, tmux and git
        mngr create far-away@box --no-connect
    """)
    (created,) = follow(e2e, block.commands)
    expect(created.stdout).to_contain("created far-away at box")
    assert agent(e2e, "far-away")["host"]["name"] == "box"
    rest(e2e, "far-away")


def test_everything_works_as_it_does_here(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # it is in the same list, and everything works as it does here
        mngr list
        mngr message far-away -m 'write far.txt <<END
        hello from far away
        END
        commit Say hello'
        mngr wait far-away WAITING
        mngr merge far-away
    """)
    expect(e2e.run("mngr create far-away@box --no-connect", timeout=60)).to_succeed()
    listed, *_, merged = follow(e2e, block.commands)
    expect(listed.stdout).to_contain("far-away  box")
    expect(merged.stdout).to_contain("merged 1 commit of far-away")
    expect(e2e.repo / "far.txt").to_have_content("hello from far away\n")


def test_move_an_agent_there_and_home_again(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # move an agent of this machine there, with its conversation, and home again
        mngr migrate add-tests @box
        mngr migrate add-tests @local
    """)
    create(e2e, "add-tests", options="--message 'say I know something.'")
    rest(e2e, "add-tests")
    expect(e2e.run("mngr exec add-tests 'echo draft > draft.txt'")).to_succeed()
    expect(e2e.run(block.commands[0], timeout=120)).to_succeed()
    assert agent(e2e, "add-tests")["host"]["name"] == "box"
    assert said(e2e, "add-tests") == ["I know something."]
    expect(e2e.run(block.commands[1], timeout=120)).to_succeed()
    assert agent(e2e, "add-tests")["host"]["name"] == "local"
    expect(e2e.run("mngr exec add-tests 'cat draft.txt'").stdout).to_equal("draft\n")
    assert said(e2e, "add-tests") == ["I know something."]


def test_which_machines_are_known(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # which machines are known, and what runs there
        mngr host list
    """)
    expect(e2e.run("mngr host list").stdout).to_contain("No other hosts")
    expect(e2e.run("mngr create far-away@box --no-connect", timeout=60)).to_succeed()
    expect(e2e.run("mngr host list").stdout).to_match(r"box +ssh +RUNNING +1")
