"""Section "Settings" of the tutorial."""

import re

from mngr.e2e import E2eSession, expect
from tests.sessions.steps import agent, create, follow, git


def test_all_values_with_their_sources(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # all values, each with its source; a mistake is found, and the nearest good key named
        mngr config list
    """)
    result = e2e.run("mngr config list")
    expect(result).to_succeed()
    expect(result.stdout).to_match(r'^commands\.create\.type +"scripted" +~/\.mngr/settings\.toml$')
    expect(result.stdout).to_match(r'^tmux\.session_prefix +"mngr-" +default$')


def test_a_mistake_is_found(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # all values, each with its source; a mistake is found, and the nearest good key named
        mngr config list
    """)
    e2e.write_settings("[commands.create]\nconect = false\n")
    result = e2e.run("mngr config list")
    expect(result).to_fail()
    expect(result.output).to_contain("settings.toml").to_contain("conect").to_contain("`connect`")


def test_a_default_for_an_option(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # any option of a verb can have a default; `--scope user` sets it for all your projects
        mngr config set --scope user commands.create.connect false
        mngr config get commands.create.connect
    """)
    *_, got = follow(e2e, block.commands)
    expect(got.stdout).to_equal("false\n")
    expect(e2e.run("mngr create hello", comment="is not connected now")).to_succeed()
    assert list(e2e.artifacts.glob("*.cast")) == []


def test_a_value_of_the_wrong_type_is_refused(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # any option of a verb can have a default; `--scope user` sets it for all your projects
        mngr config set --scope user commands.create.connect false
        mngr config get commands.create.connect
    """)
    result = e2e.run("mngr config set commands.create.connect perhaps")
    expect(result).to_fail()
    expect(result.stderr).to_contain("commands.create.connect")
    expect(e2e.run("mngr config get commands.create.connect")).to_fail()


def test_settings_of_a_project(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # for everybody in this project; git takes it along
        mngr config set commands.create.project shop
    """)
    e2e.write_tutorial_block("""
        # who sets a value, and who wins?
        mngr config explain commands.create.project
    """)
    e2e.write_tutorial_block("""
        # without it again
        mngr config unset commands.create.project
    """)
    expect(e2e.run("mngr config set --scope user commands.create.project mine", comment="the user's own")).to_succeed()
    expect(e2e.run("mngr config set commands.create.project shop")).to_succeed()
    assert git(e2e, "status --short --untracked-files=all") == "?? .mngr/settings.toml"
    explained = e2e.run("mngr config explain commands.create.project")
    expect(explained.stdout).to_match(r'^\.mngr/settings\.toml +"shop" +wins$').to_contain('"mine"')
    expect(e2e.run("mngr config unset commands.create.project")).to_succeed()
    expect(e2e.run("mngr config get commands.create.project").stdout).to_equal("mine\n")


def test_for_one_command_only(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # for one command only
        mngr -S commands.create.project=other create quick --no-connect
    """)
    expect(e2e.run("mngr -S commands.create.project=other create quick --no-connect")).to_succeed()
    create(e2e, "next")
    assert agent(e2e, "quick")["project"] == "other"
    assert agent(e2e, "next")["project"] != "other"


def test_the_price_of_a_model(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # the price of a model that nobody knows, in USD per million tokens
        mngr config set --scope user prices.house-model.input 3
        mngr config set --scope user prices.house-model.output 15
    """)
    create(e2e, "hello", options="--message 'usage input=1000000 output=100000 model=house-model'")
    expect(e2e.run("mngr wait hello --timeout 60", timeout=90)).to_succeed()
    expect(e2e.run("mngr usage hello").stdout).to_match(r"^hello .* unknown +1$")
    follow(e2e, block.commands)
    expect(e2e.run("mngr usage hello").stdout).to_match(r"^hello .* \$4\.50$")
    expect(e2e.run("mngr config set prices.house-model.inptu 3")).to_fail()


def test_in_an_editor(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # in your editor, checked when you leave it
        mngr config edit
    """)
    editor = e2e.bin / "type-it"
    editor.write_text("#!/bin/sh\nprintf '\\n[tmux]\\nhistory_lines = 9000\\n' >> \"$1\"\n")
    editor.chmod(0o755)
    e2e.env["EDITOR"] = e2e.env["VISUAL"] = "type-it"
    screen = e2e.spawn("mngr config edit")
    assert screen.wait_exit(60) == 0
    expect(e2e.run("mngr config get tmux.history_lines").stdout).to_equal("9000\n")


def test_a_mistake_in_the_editor_is_told(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # in your editor, checked when you leave it
        mngr config edit
    """)
    editor = e2e.bin / "type-it"
    editor.write_text("#!/bin/sh\nprintf '\\n[tmux]\\nhistory_line = 9000\\n' >> \"$1\"\n")
    editor.chmod(0o755)
    e2e.env["EDITOR"] = e2e.env["VISUAL"] = "type-it"
    screen = e2e.spawn("mngr config edit")
    expect(screen).to_show("history_lines", timeout=60)
    assert screen.wait_exit(60) == 2


def test_a_template(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # options that go together are a template
        cat >> ~/.mngr/settings.toml <<'END'
        [create_templates.review]
        transfer = "git-mirror"
        label = ["task=review"]
        END
        mngr create look-at-it --no-connect --template review
    """)
    follow(e2e, block.commands)
    made = agent(e2e, "look-at-it")
    assert (made["transfer"], made["labels"]) == ("git-mirror", {"task": "review", "project": made["project"]})


def test_a_template_that_does_not_exist_is_answered_with_the_nearest(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # options that go together are a template
        cat >> ~/.mngr/settings.toml <<'END'
        [create_templates.review]
        transfer = "git-mirror"
        label = ["task=review"]
        END
        mngr create look-at-it --no-connect --template review
    """)
    expect(e2e.run(block.commands[0])).to_succeed()
    result = e2e.run("mngr create look-at-it --no-connect --template reviews")
    expect(result).to_have_exit_code(2)
    expect(result.stderr).to_contain("`review`")


def test_a_type_of_your_own(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # a program that you start often becomes a type of its own
        mngr config set --scope user agent_types.ticker.command 'while date; do sleep 1; done'
        mngr create tick ticker --no-connect
    """)
    follow(e2e, block.commands)
    made = agent(e2e, "tick")
    assert (made["type"], made["state"]) == ("ticker", "RUNNING")
    expect(lambda: e2e.run("mngr capture tick").stdout).to_match(r"\d\d:\d\d:\d\d", timeout=60)


def test_plugins(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # plugins bring more types and verbs; this is what is installed
        mngr plugin list
    """)
    expect(e2e.run("mngr plugin list").stdout).to_equal("No plugins found\n")
    notes = e2e.home / "site" / "hello-1.0.dist-info"
    notes.mkdir(parents=True)
    (notes / "METADATA").write_text("Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n")
    (notes / "entry_points.txt").write_text("[mngr]\nhello = hello_plugin\n")
    (notes.parent / "hello_plugin.py").write_text("")
    e2e.env["PYTHONPATH"] = str(notes.parent)
    result = e2e.run("mngr plugin list", comment="after `pip install hello`")
    expect(result.stdout).to_match(r"^hello +1\.0")


def test_completion(e2e: E2eSession) -> None:
    block = e2e.write_tutorial_block("""
        # complete verbs, options and the names of your agents with the Tab key
        eval "$(mngr completion bash)"
    """)
    create(e2e, "fix-login")
    screen = e2e.spawn("bash --norc --noprofile -i")
    expect(screen).to_show("bash-", timeout=60)
    screen.type(block.commands[0])
    screen.press("Enter")
    expect(screen).to_show(re.compile(r"bash\)\"\s+bash-"), timeout=60)
    screen.type("mngr capture fix")
    screen.press("Tab")
    expect(screen).to_show("mngr capture fix-login", timeout=60)
    screen.press("C-u")
    screen.type("exit")
    screen.press("Enter")
    assert screen.wait_exit(60) == 0


def test_completion_is_a_script_for_the_shell(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # complete verbs, options and the names of your agents with the Tab key
        eval "$(mngr completion bash)"
    """)
    result = e2e.run('eval "$(mngr completion bash)"\ncomplete -p mngr')
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"complete .* mngr$")
    expect(e2e.run("mngr completion tcsh")).to_have_exit_code(2)
