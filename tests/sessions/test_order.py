"""Section "Putting them in order" of the tutorial."""

from pathlib import Path

from mngr.e2e import E2eSession, expect
from tests.sessions.steps import agent, agents, create, follow


def test_stop_and_start(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # stop one; its work stays, and it can continue later
        mngr stop fix-login
        mngr start fix-login
    """)
    create(e2e, "fix-login")
    expect(e2e.run("mngr exec fix-login 'echo draft > draft.txt'")).to_succeed()
    stop, start = block.commands
    expect(e2e.run(stop)).to_succeed()
    assert agent(e2e, "fix-login")["state"] == "STOPPED"
    expect(e2e.run("tmux -L mngr has-session -t =mngr-fix-login")).to_fail()
    expect(e2e.run(start)).to_succeed()
    expect(e2e.run("mngr wait fix-login WAITING --timeout 60", timeout=90)).to_succeed()
    expect(e2e.run("mngr exec fix-login 'cat draft.txt'").stdout).to_equal("draft\n")


def test_time_to_finish(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # give them ten seconds to finish what they do
        mngr stop web worker --graceful
    """)
    polite = 'trap "echo bye > bye.txt; exit 0" TERM; touch ready; while :; do sleep 0.1; done'
    create(e2e, "web", options=f"--command '{polite}'")
    create(e2e, "worker", options="--command 'sleep 600'")
    expect(e2e.run("mngr exec web 'until [ -e ready ]; do sleep 0.05; done'")).to_succeed()
    expect(e2e.run("mngr stop web worker --graceful")).to_succeed()
    assert {one["state"] for one in agents(e2e).values()} == {"STOPPED"}
    expect(e2e.run("mngr exec web 'cat bye.txt'").stdout).to_equal("bye\n")


def test_start_all_that_are_stopped(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # run everything again that is stopped, for instance after a restart of the machine
        mngr start --include 'state == "STOPPED"'
    """)
    create(e2e, "web", "worker", options="--command 'sleep 600'")
    expect(e2e.run("tmux -L mngr kill-server", comment="a machine that restarts")).to_succeed()
    expect(e2e.run("mngr stop worker")).to_succeed()
    (result,) = follow(e2e, block.commands)
    expect(result.stdout).to_contain("started worker")
    assert agents(e2e)["worker"]["state"] == "RUNNING"


def test_put_away_and_fetch_back(e2e: E2eSession) -> None:
    away = e2e.write_tutorial_block("""
        # put one away: stopped, hidden from the list, and complete
        mngr archive hotfix
        mngr list --archived
    """)
    e2e.write_tutorial_block("""
        # and fetch it back
        mngr archive hotfix --undo
    """)
    create(e2e, "hotfix")
    _, listed = follow(e2e, away.commands)
    expect(listed.stdout).to_match(r"^hotfix +STOPPED")
    assert agents(e2e) == {}
    expect(e2e.run("mngr archive hotfix --undo")).to_succeed()
    assert agent(e2e, "hotfix")["state"] == "STOPPED"


def test_a_better_name(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # a better name
        mngr rename second-try plan-b
    """)
    create(e2e, "second-try")
    before = agent(e2e, "second-try")["id"]
    expect(e2e.run("mngr rename second-try plan-b")).to_succeed()
    assert {name: one["id"] for name, one in agents(e2e).items()} == {"plan-b": before}
    expect(e2e.run("tmux -L mngr has-session -t =mngr-plan-b")).to_succeed()


def test_a_name_that_is_taken_is_refused(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # a better name
        mngr rename second-try plan-b
    """)
    create(e2e, "second-try", "plan-b")
    result = e2e.run("mngr rename second-try plan-b")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("`plan-b`")
    assert sorted(agents(e2e)) == ["plan-b", "second-try"]


def test_labels_come_and_go(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # labels come and go
        mngr label plan-b team=web urgent=yes
        mngr label plan-b --remove urgent
    """)
    create(e2e, "plan-b")
    give, take = block.commands
    expect(e2e.run(give)).to_succeed()
    assert agent(e2e, "plan-b")["labels"] == {
        "team": "web",
        "urgent": "yes",
        "project": agent(e2e, "plan-b")["project"],
    }
    expect(e2e.run(take)).to_succeed()
    assert agent(e2e, "plan-b")["labels"] == {"team": "web", "project": agent(e2e, "plan-b")["project"]}


def test_limits_from_the_start(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # none that runs for ever: stop it after half an hour without output, or after eight hours in any case
        mngr create night --no-connect --idle-timeout 30m --timeout 8h
    """)
    expect(e2e.run("mngr create night --no-connect --idle-timeout 30m --timeout 8h")).to_succeed()
    limits = agent(e2e, "night")["limits"]
    assert (limits["idle_seconds"], limits["run_seconds"]) == (1800, 28800)


def test_an_agent_at_its_limit_is_stopped(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # none that runs for ever: stop it after half an hour without output, or after eight hours in any case
        mngr create night --no-connect --idle-timeout 30m --timeout 8h
    """)
    create(e2e, "night", options="--timeout 1s --command 'sleep 600'")
    expect(e2e.run("mngr wait night STOPPED --timeout 60", timeout=90)).to_succeed()
    expect(agent(e2e, "night")["state_reason"]).to_contain("limit")


def test_limits_can_be_changed(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # limits can be changed at any time
        mngr limit night --idle-timeout 2h --timeout off
        mngr limit night
    """)
    create(e2e, "night", options="--timeout 8h")
    *_, shown = follow(e2e, block.commands)
    expect(shown.stdout).to_contain("idle for 2 h")
    limits = agent(e2e, "night")["limits"]
    assert (limits["idle_seconds"], limits["run_seconds"]) == (7200, None)


def test_clean_up_those_that_are_done(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # which of those that are done could go? And which of them hold work?
        mngr cleanup --destroy --state DONE --dry-run
    """)
    e2e.write_tutorial_block("""
        # let them go
        mngr cleanup --destroy --state DONE --yes
    """)
    create(e2e, "build", options="--command true")
    create(e2e, "server", options="--command 'sleep 600'")
    expect(e2e.run("mngr wait build DONE --timeout 60", timeout=90)).to_succeed()
    look = e2e.run("mngr cleanup --destroy --state DONE --dry-run")
    expect(look.stdout).to_equal("would destroy build\n")
    assert sorted(agents(e2e)) == ["build", "server"]
    expect(e2e.run("mngr cleanup --destroy --state DONE --yes")).to_succeed()
    assert sorted(agents(e2e)) == ["server"]


def test_clean_up_spares_work_and_needs_a_yes(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # let them go
        mngr cleanup --destroy --state DONE --yes
    """)
    create(e2e, "build", options="--command 'echo 1 > result.txt'")
    expect(e2e.run("mngr wait build DONE --timeout 60", timeout=90)).to_succeed()
    unasked = e2e.run("mngr cleanup --destroy --state DONE")
    expect(unasked).to_have_exit_code(5)
    refused = e2e.run("mngr cleanup --destroy --state DONE --yes")
    expect(refused).to_fail()
    expect(refused.stderr).to_contain("1 uncommitted file")
    assert sorted(agents(e2e)) == ["build"]


def test_what_was_left_behind_is_removed(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # broken-off commands and deleted directories leave things behind: look, then remove
        mngr gc --dry-run
        mngr gc
    """)
    create(e2e, "hello")
    e2e.note("a work dir that somebody copied by hand")
    original = Path(agent(e2e, "hello")["work_dir"])
    expect(e2e.run("mngr destroy hello")).to_succeed()
    original.mkdir()
    (original / "notes.txt").write_text("left behind\n")
    look, remove = follow(e2e, block.commands)
    expect(look.stdout).to_contain(original.name)
    expect(remove.stdout).to_contain(original.name)
    expect(original).not_to_exist()
    expect(e2e.run("mngr saved list").stdout).to_contain("hello")


def test_nothing_is_left_over_after_ordinary_work(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # broken-off commands and deleted directories leave things behind: look, then remove
        mngr gc --dry-run
        mngr gc
    """)
    create(e2e, "hello")
    expect(e2e.run("mngr exec hello 'git commit --quiet --allow-empty -m Work'")).to_succeed()
    expect(e2e.run("mngr merge hello && mngr destroy hello")).to_succeed()
    for result in follow(e2e, block.commands):
        expect(result.stdout).to_equal("Nothing to remove\n")


def test_forget_what_was_saved_long_ago(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # forget work that was saved long ago
        mngr gc --saved --older-than 30d
    """)
    create(e2e, "hello")
    expect(e2e.run("mngr exec hello 'echo x > x.txt'; mngr destroy hello --force")).to_succeed()
    expect(e2e.run("mngr gc --saved --older-than 30d")).to_succeed()
    expect(e2e.run("mngr saved list").stdout).to_contain("hello-1")
    expect(e2e.run("mngr gc --saved --older-than 0s", comment="everything, for good")).to_succeed()
    expect(e2e.run("mngr saved list").stdout).not_to_contain("hello-1")


def test_saved_work_is_not_forgotten_without_an_age(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # forget work that was saved long ago
        mngr gc --saved --older-than 30d
    """)
    result = e2e.run("mngr gc --saved")
    expect(result).to_have_exit_code(2)
    expect(result.stderr).to_contain("--older-than")
