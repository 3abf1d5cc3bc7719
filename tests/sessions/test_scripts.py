"""Section "In scripts" of the tutorial."""

import json

from mngr.e2e import E2eSession, expect
from tests.sessions.steps import agents, create, follow, git


def test_json(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # everything that mngr prints for people, it prints as JSON too
        mngr list --format json
    """)
    create(e2e, "red")
    result = e2e.run("mngr list --format json")
    expect(result.stdout).to_be_json()
    listed = json.loads(result.stdout)
    assert [one["name"] for one in listed["agents"]] == ["red"]
    assert listed["errors"] == []


def test_an_error_is_json_too(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # everything that mngr prints for people, it prints as JSON too
        mngr list --format json
    """)
    result = e2e.run("mngr capture nobody --format json")
    expect(result).to_have_exit_code(1)
    error = json.loads(result.stdout or result.stderr)
    assert error["exit_code"] == 1
    expect(error["error"]).to_contain("`nobody`")


def test_a_form_of_yours(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # or in any form of yours
        mngr list --format '{name}\\t{state}\\t{initial_branch}'
    """)
    create(e2e, "red")
    expect(e2e.run("mngr wait red WAITING --timeout 60", timeout=90)).to_succeed()
    result = e2e.run("mngr list --format '{name}\\t{state}\\t{initial_branch}'")
    expect(result.stdout).to_equal("red\tWAITING\tmngr/red\n")


def test_a_form_with_a_field_that_does_not_exist(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # or in any form of yours
        mngr list --format '{name}\\t{state}\\t{initial_branch}'
    """)
    create(e2e, "red")
    result = e2e.run("mngr list --format '{nam}'")
    expect(result).to_have_exit_code(2)
    expect(result.stderr).to_contain("`name`")


def test_ids_go_from_one_verb_to_the_next(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # names and ids go from one verb to the next
        mngr list --label team=web --ids | mngr stop -
    """)
    create(e2e, "cart", "shelf", options="--label team=web --command 'sleep 600'")
    create(e2e, "other", options="--command 'sleep 600'")
    expect(e2e.run("mngr list --label team=web --ids | mngr stop -")).to_succeed()
    states = {name: one["state"] for name, one in agents(e2e).items()}
    assert states == {"cart": "STOPPED", "shelf": "STOPPED", "other": "RUNNING"}


def test_exit_codes(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # exit codes tell what happened: 4 is a time that was over
        mngr create slow --no-connect --command 'sleep 600'
        mngr wait slow DONE --timeout 0.2 || echo "exit code $?"
    """)
    *_, waited = follow(e2e, block.commands)
    expect(waited.stdout).to_equal("exit code 4\n")
    assert agents(e2e)["slow"]["state"] == "RUNNING"


def test_three_agents_one_branch(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # three agents, one branch: start them, let them work, merge what they made
        mngr create part --count 3 --no-connect --message 'run echo done > $MNGR_AGENT_NAME.txt
        commit Write a part'
        mngr wait part-1 part-2 part-3
        for name in part-1 part-2 part-3; do
          mngr merge "$name" || break
        done
    """)
    follow(e2e, block.commands)
    for name in ("part-1", "part-2", "part-3"):
        expect(e2e.repo / f"{name}.txt").to_have_content("done\n")
    assert git(e2e, "log --format=%s main").count("Write a part") == 3
    assert git(e2e, "status --short") == ""
