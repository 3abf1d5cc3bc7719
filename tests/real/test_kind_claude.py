"""Claude Code itself, with a scripted model: what the driver promises, several facts for each agent that is started."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.errors import MngrError, Undecided
from mngr.fleet.fleet import Fleet
from mngr.programs.claude import text as claude_text
from mngr.programs.claude.driver import DRIVER
from mngr.system.waiting import wait_until
from mngr.transfer import usage
from mngr_testing.model_server import ModelServer
from tests.support.program_world import TURN_SECONDS, ProgramWorld
from tests.support.programs import program
from tests.support.user import User, wait_for

pytestmark = pytest.mark.timeout(300)
program("claude")  # without it, none of this
WORK = "python3 -c 'import time; time.sleep({seconds})'"  # a plain `sleep` it refuses to run


class World(ProgramWorld):
    """A user with Claude Code installed, whose model is the scripted one."""

    def __init__(self, user: User, server: ModelServer) -> None:
        super().__init__("claude", user, server)

    def waits_for_its_limit(self, name: str, text: str, reason: str) -> None:
        """It is seen only while it lasts: a longer one, when one was over too soon."""
        for seconds in (3, 12, 48):
            self.fleet.find(name).message(text.format(seconds=seconds))
            seen = self.until(
                name,
                lambda agent: agent.state in ("WAITING", "BLOCKED") or agent.status.reason.startswith(reason),
                f"be {reason}",
            )
            if seen.status.reason.startswith(reason):
                return
            if seen.state == "BLOCKED":
                self.clear(name)
        raise AssertionError(f"it was never seen as `{reason}`, the last time in {seconds} s")

    def clear(self, name: str) -> None:
        """Begin another conversation, as a person does."""
        hooks = self.home(name) / "hooks.jsonl"
        before = hooks.read_text().count('"hook": "SessionStart"')

        def begun() -> bool:
            self.press(name, "Enter")
            return bool(wait_until(lambda: hooks.read_text().count('"hook": "SessionStart"') > before, timeout=3))

        self.press(name, "/clear")
        self.shows(name, "/clear")
        wait_for(begun, "a new conversation", TURN_SECONDS)
        self.until(name, lambda agent: agent.state != "RUNNING", "have cleared it")

    def received(self, name: str) -> list[str]:
        return DRIVER.received(self.fleet.local.place(self.fleet.find(name).record))


@pytest.fixture
def world(user: User, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with ModelServer() as server:
        made = World(user, server)
        monkeypatch.setenv("PATH", user.env["PATH"])
        yield made


def test_usage_is_that_of_the_model_with_tools_retries_caches_and_sub_agents(world: World) -> None:
    first = "%% run echo out-put\n%% usage input=1000 output=20 cache_read=600 cache_write=50\n%% say hello"
    world.create("a", first)
    world.rests("a")
    helper = {"description": "help", "prompt": "%% run echo helped\n%% say helper", "subagent_type": "general-purpose"}
    world.ask("a", f"%% status 529 times=1\n%% tool Agent {json.dumps(helper)}\n%% say all done")
    world.says("a", ("assistant", "all done"))
    turns = world.server.usage().turns

    def counted() -> bool:
        spent = DRIVER.usage(world.fleet.local.place(world.fleet.find("a").record))
        total = [sum(one[field] for one in spent) for field in range(2, 6)]  # type: ignore[misc]
        return total == [turns.input, turns.output, turns.cache_read, turns.cache_write]

    wait_for(counted, f"the usage to be {turns}", TURN_SECONDS)
    texts = [text for role, text in world.said("a") if role == "assistant"]
    assert texts[0] == "hello" and "helper" not in texts
    assert DRIVER.usage(world.fleet.local.place(world.fleet.find("a").record))[1].cache_write_tokens == 50


def test_an_interrupt_leaves_it_waiting_and_its_input_box_is_cleared(world: World) -> None:
    world.create("a")
    world.rests("a")
    world.fleet.find("a").message("%% think 300")
    world.until("a", lambda agent: agent.state == "RUNNING", "think")
    world.server.wait_for(lambda entry: entry.user_text == "%% think 300" and not entry.side, TURN_SECONDS)
    world.press("a", "Escape")
    world.rests("a")
    place = world.fleet.local.place(world.fleet.find("a").record, world.fleet.find("a").pane)
    wait_for(lambda: DRIVER.occupied(place.screen()) == "%% think 300", "the text to be back in the input box")
    world.ask("a", "%% say after")
    world.says("a", ("user", "%% say after"), ("assistant", "after"))
    assert world.received("a") == ["%% think 300", "%% say after"]
    wait_for(lambda: DRIVER.occupied(place.screen()) == "", "an empty input box")


def test_what_it_would_take_for_a_command_reaches_its_model(world: World) -> None:
    world.create("a", "/clear")
    world.rests("a")
    texts = [
        "!touch shell",
        "exit",
        " /help",
        "/usr/lib is there",
        "ends with \\",
        "@README.md",
        "# x",
        "tab\there",
        "?",
    ]
    for text in texts:
        world.ask("a", text)
    wanted = [DRIVER.wording(text).recorded for text in ["/clear", *texts]]
    assert world.received("a") == wanted
    wait_for(
        lambda: [text for role, text in world.said("a") if role == "user"] == wanted, "all in its record", TURN_SECONDS
    )
    assert wanted[0] == f"{claude_text.PLAIN}/clear"
    heard = "\n".join(entry.user_text for entry in world.server.log)
    assert all(text in heard for text in wanted)
    assert not Path(world.fleet.find("a").record.workspace.work_dir, "shell").exists()
    altered = [
        event.get("altered", "") for event in world.fleet.find("a").events() if event["type"] == "message_queued"
    ]
    assert [bool(text) for text in altered] == [True, True, True, True, *[False] * 6]


def test_it_asks_and_goes_on_when_answered(world: World) -> None:
    command = "echo allowed > asked; until [ -e go ]; do sleep 0.1; done"
    world.create("a", f"%% run {command}\n%% say went on", permissions="ask")
    assert world.blocks("a", "permission: ").status.reason == f"permission: Bash: {command}"
    asked = Path(world.fleet.find("a").record.workspace.work_dir, "asked")
    assert not asked.exists()
    world.answer("a", "Enter", "Do you want to proceed?")
    wait_for(asked.exists, "the command to be run", TURN_SECONDS)
    assert world.fleet.find("a").state == "RUNNING"
    asked.with_name("go").touch()
    world.rests("a")
    options = [{"label": word, "description": word} for word in ("red", "blue")]
    question = {"question": "Which colour?", "header": "Colour", "multiSelect": False, "options": options}
    world.fleet.find("a").message(f"%% tool AskUserQuestion {json.dumps({'questions': [question]})}\n%% say chosen")
    assert world.blocks("a", "question: Which").status.reason == "question: Which colour?"
    with pytest.raises(MngrError, match="BLOCKED"):
        world.fleet.find("a").message("no answer")
    world.answer("a", "Escape", "Enter to select")
    world.rests_well("a")


def test_a_message_in_its_queue_is_not_the_answer_and_a_narrow_terminal_changes_nothing(world: World) -> None:
    world.create("a", permissions="ask")
    world.rests("a")
    world.resize("a", 20)
    world.fleet.find("a").message("%% think 4\n%% run touch asked\n%% say a sentence that is wider than the terminal")
    world.fleet.find("a").message("y")  # noted while it thinks
    world.blocks("a", "permission: Bash: touch asked")
    with pytest.raises(MngrError, match="BLOCKED"):
        world.fleet.find("a").message("no answer")
    asked = Path(world.fleet.find("a").record.workspace.work_dir, "asked")
    assert world.fleet.find("a").state == "BLOCKED" and not asked.exists()
    world.press("a", "Enter")
    wait_for(asked.exists, "the command to be run", TURN_SECONDS)
    world.rests("a")
    assert world.received("a")[1:] == ["y"]


def test_a_turn_that_fails_says_why(world: World) -> None:
    world.create("a", env={"CLAUDE_CODE_MAX_RETRIES": "1"})
    world.rests("a")
    overloaded = "%% status 529 times=1 retry-after={seconds}\n%% say over"
    world.waits_for_its_limit("a", overloaded, "rate limit: overloaded: retry at ")
    world.rests_well("a")
    world.fleet.find("a").message("%% status 500 times=2")
    world.until("a", lambda agent: agent.state == "WAITING" and "500" in agent.status.reason, "fail")
    world.clear("a")  # what failed is said again with every message
    world.waits_for_its_limit("a", "%% status 429 times=2 retry-after={seconds}", "rate limit: retry at ")
    given_up = world.until(
        "a", lambda agent: agent.state == "BLOCKED" and "retry at" not in agent.status.reason, "give up"
    )
    assert given_up.status.reason.startswith("rate limit: ")
    world.press("a", "typed and not sent")
    world.shows("a", "typed and not sent")
    world.fleet.find("a").message("once more")
    assert world.received("a")[-1] == "once more"
    world.blocks("a", "rate limit: ")
    world.clear("a")
    world.fleet.find("a").message("%% say fine")
    world.rests_well("a")
    for status, reason in ((402, "credit: "), (404, "model: ")):
        world.fleet.find("a").message(f"%% status {status} times=9")
        world.blocks("a", reason)
        world.clear("a")
    world.fleet.find("a").message("%% status 401 times=9")
    world.blocks("a", "login: ")
    world.clear("a")
    world.fleet.find("a").message("%% say logged in")
    world.rests_well("a")
    world.says("a", ("user", "%% say logged in"), ("assistant", "logged in"))


def test_what_runs_in_the_background_is_told_and_begins_a_turn(world: World) -> None:
    call = {"command": "until [ -e go ]; do sleep 0.1; done", "description": "wait", "run_in_background": True}
    world.create("a", f"%% tool Bash {json.dumps(call)}\n%% say started")
    background = "a command runs in the background"
    agent = world.until("a", lambda agent: (agent.state, agent.status.reason) == ("WAITING", background), "rest")
    world.says("a", ("assistant", "started"))
    Path(agent.record.workspace.work_dir, "go").touch()

    def roles() -> list[object]:
        return [entry["role"] for entry in world.fleet.find("a").transcript().entries]

    wait_for(lambda: roles()[-2:] == ["system", "assistant"], "a turn at its end", TURN_SECONDS)
    world.rests_well("a")
    assert world.said("a")[-2] == ("assistant", "started")


def test_the_conversation_goes_on_after_clear_a_kill_and_in_a_clone(world: World) -> None:
    world.create("a", "%% say forgotten")
    world.rests("a")
    world.clear("a")
    world.ask("a", "%% say remembered")
    world.says("a", ("assistant", "remembered"))
    world.fleet.find("a").message(f"%% run touch began; {WORK.format(seconds=60)}")
    agent = world.fleet.find("a")
    wait_for(Path(agent.record.workspace.work_dir, "began").exists, "the command to begin", TURN_SECONDS)
    world.user.tmux("kill-server")
    world.until("a", lambda agent: agent.state == "FAILED", "be gone")
    world.fleet.find("a").snapshot("early")
    world.fleet.find("a").start()
    world.rests("a")
    world.ask("a", "%% say again")
    world.says("a", ("user", "%% say again"), ("assistant", "again"))
    assert ("assistant", "forgotten") in world.said("a")
    heard = [entry for entry in world.server.log if entry.user_text == "%% say again" and not entry.side]
    assert len(heard) == 1
    answers = len(DRIVER.usage(world.fleet.local.place(world.fleet.find("a").record)))

    world.fleet.find("a").clone("b", message="%% run pwd\n%% say in the clone")
    clone = world.rests("b")
    world.says("b", ("assistant", "in the clone"))
    assert ("assistant", "remembered") in world.said("b")
    assert clone.record.workspace.work_dir in str(
        [entry["text"] for entry in world.fleet.find("b").transcript().entries]
    )
    assert usage.total(world.fleet.local, clone.id).answers == 2, "and not those of the agent that it was made from"
    assert len(DRIVER.usage(world.fleet.local.place(world.fleet.find("a").record))) == answers

    world.fleet.find("a").stop()
    world.fleet.restore_snapshot("a/early")
    world.fleet.find("a").start()
    world.rests("a")
    wait_for(lambda: "remembered" in world.fleet.find("a").capture(), "its conversation to be shown")
    assert "again" not in str(world.said("a"))


def test_one_that_was_killed_before_its_first_message_begins_anew(world: World) -> None:
    world.create("a")
    world.rests("a")
    world.user.tmux("kill-server")
    world.until("a", lambda agent: agent.state == "FAILED", "be gone")
    world.fleet.find("a").start()
    world.rests("a")
    world.ask("a", "%% say hello")
    world.says("a", ("user", "%% say hello"), ("assistant", "hello"))


def test_one_task_ends_with_its_answer_or_its_failure(world: World) -> None:
    world.create("a", "!%% is no command\n%% run echo made > made\n%% say all done", one_shot=True)
    done = world.until("a", lambda agent: agent.state not in ("STARTING", "RUNNING"), "end")
    assert (done.state, done.status.exit_code) == ("DONE", 0)
    world.shows("a", "all done")
    assert world.said("a")[-1] == ("assistant", "all done")
    spent = DRIVER.usage(world.fleet.local.place(done.record))
    assert sum(one.output_tokens for one in spent) == world.server.usage().turns.output
    world.create("b", "%% status 400 times=99", one_shot=True)
    failed = world.until("b", lambda agent: agent.state not in ("STARTING", "RUNNING"), "end")
    assert (failed.state, failed.status.exit_code) == ("FAILED", 1)


def test_the_users_own_settings_and_login_are_used_and_left_alone(world: World) -> None:
    own = world.user.home / ".claude"
    own.mkdir()
    login = {"accessToken": "of-the-user", "refreshToken": "r", "expiresAt": int((time.time() + 9e4) * 1000)}
    files = {
        own / ".credentials.json": json.dumps({"claudeAiOauth": {**login, "scopes": ["user:inference"]}}),
        own / "settings.json": json.dumps({"model": "claude-sonnet-5", "env": {"OF_THE_USER": "yes"}}),
        own / "CLAUDE.md": "be kind",
        world.user.home / ".claude.json": json.dumps({"theme": "light", "projects": {"/elsewhere": {}}}),
    }
    for path, text in files.items():
        path.write_text(text)
    world.fleet = Fleet(
        environ={name: value for name, value in world.user.env.items() if name != "ANTHROPIC_AUTH_TOKEN"},
        cwd=str(world.user.repo),
    )
    world.create("a", "%% run echo $OF_THE_USER > seen\n%% say hello")
    agent = world.rests("a")
    assert Path(agent.record.workspace.work_dir, "seen").read_text() == "yes\n"
    asked = [entry for entry in world.server.log if not entry.side]
    assert {entry.model for entry in asked} == {"claude-sonnet-5"}
    assert {entry.auth for entry in asked} != {"none"}
    assert (world.home("a") / "CLAUDE.md").read_text() == "be kind"
    assert json.loads((world.home("a") / ".claude.json").read_text())["theme"] == "light"
    assert {path: path.read_text() for path in files} == files
    assert sorted(path.name for path in own.iterdir()) == [".credentials.json", "CLAUDE.md", "settings.json"]


def test_a_key_is_not_asked_about_and_without_a_login_it_is_blocked(world: World) -> None:
    environ = {name: value for name, value in world.user.env.items() if name != "ANTHROPIC_AUTH_TOKEN"}
    world.fleet = Fleet(environ=environ, cwd=str(world.user.repo))
    key = "sk-ant-api03-0123456789-0123456789-0123456789"
    world.create("a", "%% say hello", env={"ANTHROPIC_API_KEY": key})
    world.rests("a")
    world.create("b")
    world.rests("b")
    world.fleet.find("b").message("%% say hello")
    assert world.blocks("b", "login: ").status.reason == "login: Not logged in · Please run /login"


def test_a_dialog_at_the_start_is_told_and_what_the_user_chose_answers_it(world: World) -> None:
    (world.user.repo / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "true"}}}')
    world.user.git("add", ".")
    world.user.git("commit", "-q", "-m", "a server")
    with pytest.raises(Undecided, match=r"would obey `\.mcp\.json`"):
        world.create("a", permissions="ask")
    assert world.fleet.list().agents == []
    world.user.trust()
    world.create("a", permissions="ask")
    world.blocks("a", "trust: ")
    world.fleet.find("a").stop()
    (world.user.repo / ".claude").mkdir()
    (world.user.repo / ".claude" / "settings.local.json").write_text('{"disabledMcpjsonServers": ["x"]}')
    world.fleet.find("a").start()
    world.rests("a")
