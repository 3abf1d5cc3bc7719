"""Section "Starting agents" of the tutorial."""

from mngr.e2e import E2eSession, expect
from tests.sessions.steps import agent, agents, create, follow, said


def write_editor(e2e: E2eSession, text: str) -> None:
    """What `$EDITOR` runs: a person who types this and leaves."""
    editor = e2e.bin / "type-it"
    editor.write_text(f"#!/bin/sh\nprintf '%s' '{text}' > \"$1\"\n")
    editor.chmod(0o755)
    e2e.env["EDITOR"] = e2e.env["VISUAL"] = "type-it"


def test_an_agent_in_the_background(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # stay where you are: the agent works in the background
        mngr create fix-login --no-connect
    """)
    result = e2e.run("mngr create fix-login --no-connect")
    expect(result).to_succeed()
    expect(result.output).to_equal("created fix-login on branch mngr/fix-login\n")
    assert agent(e2e, "fix-login")["session"] == "mngr-fix-login"
    assert list(e2e.artifacts.glob("*.cast")) == [], "nobody was connected"


def test_a_name_that_tmux_or_git_would_mangle_is_refused(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # stay where you are: the agent works in the background
        mngr create fix-login --no-connect
    """)
    result = e2e.run("mngr create fix.login --no-connect")
    expect(result).to_have_exit_code(2)
    expect(result.stderr).to_contain("fix.login")
    assert agents(e2e) == {}


def test_a_first_message(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # give it something to do from the start
        mngr create add-tests --no-connect --message 'say I will look at the tests first.'
    """)
    expect(e2e.run("mngr create add-tests --no-connect --message 'say I will look at the tests first.'")).to_succeed()
    assert said(e2e, "add-tests") == ["I will look at the tests first."]


def test_a_first_message_from_a_file(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # a longer message comes from a file
        cat > ~/prompt.md <<'END'
        say First I read the code.
        think 0.1
        say Then I change it.
        END
        mngr create rewrite --no-connect --message-file ~/prompt.md
    """)
    follow(e2e, block.commands)
    assert said(e2e, "rewrite") == ["First I read the code.", "Then I change it."]


def test_a_message_file_that_is_missing_makes_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # a longer message comes from a file
        cat > ~/prompt.md <<'END'
        say First I read the code.
        think 0.1
        say Then I change it.
        END
        mngr create rewrite --no-connect --message-file ~/prompt.md
    """)
    result = e2e.run("mngr create rewrite --no-connect --message-file ~/prompt.md", comment="without the file")
    expect(result).to_fail()
    expect(result.stderr).to_contain("prompt.md")
    assert agents(e2e) == {}


def test_a_first_message_written_in_an_editor(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # or write it in your editor
        mngr create essay --no-connect --edit-message
    """)
    write_editor(e2e, "say Once upon a time.")
    screen = e2e.spawn("mngr create essay --no-connect --edit-message")
    assert screen.wait_exit(60) == 0
    expect(screen).to_show("created essay")
    assert said(e2e, "essay") == ["Once upon a time."]


def test_an_empty_message_makes_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # or write it in your editor
        mngr create essay --no-connect --edit-message
    """)
    write_editor(e2e, "")
    screen = e2e.spawn("mngr create essay --no-connect --edit-message")
    expect(screen).to_show("the message is empty", timeout=60)
    assert screen.wait_exit(60) == 1
    assert agents(e2e) == {}


def test_any_command_line(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # an agent can be any command line
        mngr create build --no-connect --command 'echo building; sleep 1; echo built'
    """)
    expect(e2e.run("mngr create build --no-connect --command 'echo building; sleep 1; echo built'")).to_succeed()
    expect(e2e.run("mngr wait build DONE --timeout 60", timeout=90)).to_succeed()
    expect(e2e.run("mngr capture build").stdout).to_match(r"building\s+built")
    assert agent(e2e, "build")["exit_code"] == 0


def test_a_command_that_fails_is_failed_with_its_code(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # an agent can be any command line
        mngr create build --no-connect --command 'echo building; sleep 1; echo built'
    """)
    create(e2e, "build", options="--command 'echo no compiler >&2; exit 3'")
    expect(e2e.run("mngr wait build FAILED --timeout 60", timeout=90)).to_succeed()
    failed = agent(e2e, "build")
    assert (failed["state"], failed["exit_code"]) == ("FAILED", 3)


def test_any_program_with_its_arguments(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # or any program, with its exact arguments; without a name it gets a generated one
        mngr create --no-connect --type command -- sleep 600
    """)
    result = e2e.run("mngr create --no-connect --type command -- sleep 600")
    expect(result).to_succeed()
    (made,) = agents(e2e).values()
    expect(result.stdout).to_contain(f"created {made['name']} on branch mngr/{made['name']}")
    assert (made["command"], made["state"]) == ("sleep 600", "RUNNING")


def test_a_dry_run_makes_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # see first what would be created
        mngr create big-rewrite --dry-run
    """)
    result = e2e.run("mngr create big-rewrite --dry-run")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("would create big-rewrite").to_contain("branch mngr/big-rewrite")
    assert agents(e2e) == {}
    expect(e2e.run("git branch --list 'mngr/*'").stdout).to_be_empty()


def test_three_at_once(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # three at once: try-1, try-2 and try-3
        mngr create try --count 3 --no-connect
    """)
    expect(e2e.run("mngr create try --count 3 --no-connect", timeout=60)).to_succeed()
    made = agents(e2e)
    assert sorted(made) == ["try-1", "try-2", "try-3"]
    assert len({one["work_dir"] for one in made.values()}) == 3


def test_a_name_that_is_taken_does_not_keep_the_others_from_being_made(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # three at once: try-1, try-2 and try-3
        mngr create try --count 3 --no-connect
    """)
    create(e2e, "try-2")
    before = agent(e2e, "try-2")["id"]
    result = e2e.run("mngr create try --count 3 --no-connect", comment="with one that is there already", timeout=60)
    expect(result).to_have_exit_code(3)
    expect(result.stderr).to_contain("`try-2` exists already")
    assert sorted(agents(e2e)) == ["try-1", "try-2", "try-3"]
    assert agent(e2e, "try-2")["id"] == before


def test_one_for_each_line(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # or one for each line of a list
        printf '%s\\n' red green blue | mngr create - --no-connect
    """)
    expect(e2e.run("printf '%s\\n' red green blue | mngr create - --no-connect", timeout=60)).to_succeed()
    assert sorted(agents(e2e)) == ["blue", "green", "red"]


def test_reuse_takes_the_one_that_is_there(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # in a script it may be there already: then it is used, and started if need be
        mngr create fix-login --reuse --no-connect
    """)
    made = e2e.run("mngr create fix-login --reuse --no-connect", comment="not there yet")
    expect(made.stdout).to_contain("created fix-login")
    before = agent(e2e, "fix-login")["id"]
    expect(e2e.run("mngr stop fix-login")).to_succeed()
    expect(e2e.run("mngr create fix-login --reuse --no-connect", comment="there, but stopped")).to_succeed()
    expect(e2e.run("mngr wait fix-login WAITING --timeout 60", timeout=90)).to_succeed()
    assert agent(e2e, "fix-login")["id"] == before


def test_variables(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # give it variables: new ones, and some of yours
        export GREETING=hello
        mngr create web --no-connect --env PORT=8080 --pass-env GREETING --command 'echo "$GREETING on $PORT"; sleep 60'
    """)
    expect(e2e.run("\n".join(block.commands))).to_succeed()
    expect(lambda: e2e.run("mngr capture web").stdout).to_contain("hello on 8080", timeout=60)
    expect(e2e.run("mngr stop web && mngr start web", comment="it is kept for later starts")).to_succeed()
    expect(e2e.run("mngr exec web 'echo $GREETING'").stdout).to_equal("hello\n")


def test_a_variable_that_you_do_not_have_is_skipped_with_a_warning(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # give it variables: new ones, and some of yours
        export GREETING=hello
        mngr create web --no-connect --env PORT=8080 --pass-env GREETING --command 'echo "$GREETING on $PORT"; sleep 60'
    """)
    result = e2e.run(block.commands[-1], comment="before it is set")
    expect(result).to_succeed()
    expect(result.stderr).to_contain("warning: `--pass-env GREETING` is skipped: the variable is not set")


def test_a_file_of_variables(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # a file of variables keeps the command short
        printf 'REGION=eu\\nDEBUG=1\\n' > ~/web.env
        mngr create worker --no-connect --env-file ~/web.env --command 'echo "region $REGION"; sleep 600'
    """)
    follow(e2e, block.commands)
    expect(e2e.run("mngr exec worker 'echo $REGION $DEBUG'").stdout).to_equal("eu 1\n")
    expect(lambda: e2e.run("mngr capture worker").stdout).to_contain("region eu", timeout=60)


def test_labels_and_a_project(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # labels and a project help to find it again
        mngr create cart --no-connect --label team=web --label urgent=yes --project checkout
    """)
    expect(e2e.run("mngr create cart --no-connect --label team=web --label urgent=yes --project checkout")).to_succeed()
    made = agent(e2e, "cart")
    assert (made["labels"], made["project"]) == ({"team": "web", "urgent": "yes", "project": "checkout"}, "checkout")


def test_more_windows_beside_it(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # open more windows beside it: a server, a log, whatever you like to look at
        mngr create dev --no-connect -w clock='while date; do sleep 1; done' -w shell='sh'
    """)
    follow(e2e, block.commands)
    windows = e2e.run("tmux -L mngr list-windows -t =mngr-dev -F '#{window_index} #{window_name}'")
    expect(windows.stdout).to_match(r"^1 clock$").to_match(r"^2 shell$")
    expect(lambda: e2e.run("tmux -L mngr capture-pane -p -t =mngr-dev:clock").stdout).to_match(
        r"\d\d:\d\d:\d\d", timeout=60
    )
