"""An agent for each test: the section of the tutorial, walked through once, and what goes wrong."""

import json
from collections.abc import Sequence

import pytest

from mngr.e2e import E2eSession, expect
from tests.sessions.steps import follow, git

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def till(e2e: E2eSession) -> E2eSession:
    """A plain pytest starts in half the time of one with all the plugins of our own tests."""
    e2e.env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return e2e


def verdicts(e2e: E2eSession) -> dict[str, str]:
    found = json.loads(e2e.run("mngr tmr status --format json", timeout=60).stdout)
    return {row["task"].rpartition("::")[2]: row["verdict"] for row in found["rows"]}


def test_before_any_agent_is_started(till: E2eSession) -> None:
    block = till.write_tutorial_block("""
        # a till that charges too much, and two tests, one of which says so
        cat > till.py <<'END'
        def total(prices):
            return sum(prices) + 1
        END
        cat > test_till.py <<'END'
        from till import total
        def test_nothing_costs_nothing():
            assert total([]) == 0
        def test_more_costs_more():
            assert total([3, 4]) > total([3])
        END
        git add till.py test_till.py && git commit --message 'A till'
    """)
    follow(till, block.commands)
    till.write_tutorial_block("""
        # how are the tests of this project run? without --dry-run it is written to its settings
        mngr tmr init --dry-run
    """)
    expect(till.run("mngr tmr init --dry-run", timeout=60).stdout).to_contain("python3 -m pytest")
    till.write_tutorial_block("""
        # which tests would get an agent, and what may that cost?
        mngr tmr test_till.py --dry-run
    """)
    planned = till.run("mngr tmr test_till.py --dry-run", timeout=60)
    expect(planned).to_succeed()
    expect(planned.stdout).to_contain("2 tasks, at most 2 agents")
    expect(planned.stdout).to_contain("test_till.py::test_nothing_costs_nothing")
    assert not (till.repo / ".mngr").exists() and not git(till, "status --porcelain")
    expect(till.run("mngr tmr nowhere.py --dry-run", timeout=60).stderr).to_contain("`nowhere.py` does not exist")
    expect(till.run("mngr tmr status", timeout=60).stderr).to_contain("has no runs")
    expect(till.run("mngr tmr test_till.py", timeout=60).stderr).to_contain("no agent type was named")
    (till.repo / "till.py").write_text("total = sum\n")
    expect(till.run("mngr tmr --type scripted", timeout=60).stderr).to_contain("1 uncommitted change")


def test_a_run_from_its_tests_to_its_branch(till: E2eSession) -> None:
    block = till.write_tutorial_block("""
        # a till that charges too much, and two tests, one of which says so
        cat > till.py <<'END'
        def total(prices):
            return sum(prices) + 1
        END
        cat > test_till.py <<'END'
        from till import total
        def test_nothing_costs_nothing():
            assert total([]) == 0
        def test_more_costs_more():
            assert total([3, 4]) > total([3])
        END
        git add till.py test_till.py && git commit --message 'A till'
    """)
    follow(till, block.commands)
    block = till.write_tutorial_block("""
        # what agents do follows a script here: one fixes the till, the other finds nothing to do
        cat > $HOME/till.script <<'END'
        wait
        if-message Test: .*nothing_costs <<FIX
          replace till.py <<TEXT
        sum(prices) + 1
        ====
        sum(prices)
        TEXT
          commit Charge what things cost
          outcome <<JSON
        {"schema": 1, "task": "{task}", "status": "done", "summary": "It was one too much.",
         "changes": [{"kind": "implementation", "commit": "{head}", "summary": "Charge what things cost"}]}
        JSON
        FIX
        if-message Test: .*more_costs <<LEAVE
          outcome <<JSON
        {"schema": 1, "task": "{task}", "status": "done", "changes": [], "summary": "It is good as it is."}
        JSON
        LEAVE
        END
        mngr tmr test_till.py --name till --type scripted -- $HOME/till.script
    """)
    expect(till.run(block.commands[0])).to_succeed()
    expect(till.run(block.commands[1], timeout=120)).to_succeed()
    till.write_tutorial_block("""
        # what came of each test, as measured and not as claimed
        mngr tmr status
    """)
    expect(till.run("mngr tmr status", timeout=60).stdout).to_match(
        r"(?m)^ON THE BRANCH \(1\)\n  nothing-costs\S+ +fixed +\S"
    )
    assert verdicts(till) == {"test_nothing_costs_nothing": "fixed", "test_more_costs_more": "unchanged"}
    till.write_tutorial_block("""
        # the branch that came out of it; your own is as it was
        git log --oneline main..tmr/till
    """)
    expect(till.run("git log --oneline main..tmr/till").stdout).to_match(r"^\w+ Charge what things cost\n$")
    expect((till.repo / "till.py").read_text()).to_contain("+ 1")
    till.write_tutorial_block("""
        # pages with everything: claims beside measurements, transcripts, recordings
        mngr tmr report
    """)
    report = till.run("mngr tmr report", timeout=60)
    expect(report).to_succeed()
    expect(till.repo / report.stdout.strip().rpartition("repo/")[2]).to_exist()
    look_in_the_browser(till)
    change_the_branch(till)
    go_on(till)


def look_in_the_browser(till: E2eSession) -> None:
    till.write_tutorial_block("""
        # the same in the browser while a run is under way; C-c leaves
        mngr tmr serve
    """)
    screen = till.spawn("mngr tmr serve", columns=100)
    expect(screen).to_show("http://127.0.0.1:", timeout=60)
    screen.press("C-c")
    assert screen.wait_exit(timeout=60) in (0, 130)


def change_the_branch(till: E2eSession) -> None:
    till.write_tutorial_block("""
        # a fix that you do not want leaves the branch, which is measured again
        mngr tmr review --drop nothing_costs_nothing
    """)
    expect(till.run("mngr tmr review --drop nothing_costs_nothing", timeout=90)).to_have_exit_code(3)
    till.write_tutorial_block("""
        # and comes back
        mngr tmr integrate --accept nothing_costs_nothing
    """)
    expect(till.run("mngr tmr integrate --accept nothing_costs_nothing", timeout=90)).to_succeed()
    assert git(till, "log -1 --format=%s tmr/till") == "Charge what things cost"
    expect(till.run("mngr tmr review --drop nobody", timeout=60).stderr).to_contain("has no task `nobody`")


def go_on(till: E2eSession) -> None:
    till.write_tutorial_block("""
        # talk to the agent of a test
        mngr tmr connect more_costs_more
    """)
    expect(till.run("mngr tmr connect more_costs_more", timeout=60)).to_succeed()
    till.write_tutorial_block("""
        # let it try once more
        mngr tmr retry --task more_costs_more
    """)
    expect(till.run("mngr tmr retry --task more_costs_more", timeout=120)).to_succeed()
    found = json.loads(till.run("mngr tmr status --format json", timeout=60).stdout)
    assert attempts(found["rows"]) == {"test_nothing_costs_nothing": 1, "test_more_costs_more": 2}
    block = till.write_tutorial_block("""
        # a run can be stopped, killed or cut off at any moment; it resumes where it was
        mngr tmr stop
        mngr tmr resume
    """)
    for command in block.commands:
        expect(till.run(command, timeout=90)).to_succeed()


def attempts(rows: Sequence[dict[str, object]]) -> dict[str, object]:
    return {str(row["task"]).rpartition("::")[2]: row["attempts"] for row in rows}
