"""Codex itself, with a scripted model: what the driver promises, several facts for each agent that is started."""

import json
import math
import random
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.errors import MngrError, Undecided
from mngr.fleet.agent import Agent
from mngr.programs.codex.driver import DRIVER
from mngr_testing.model_server import ModelServer
from tests.support.program_world import TURN_SECONDS, ProgramWorld
from tests.support.programs import program
from tests.support.user import User, wait_for

pytestmark = pytest.mark.timeout(300)
CODEX = program("codex")
ASKS = "to confirm or"  # below every request for permission
# Of a model that says no, at once.
NO_RETRIES = [f"model_providers.scripted.{name}_max_retries=0" for name in ("request", "stream")]


class World(ProgramWorld):
    """A user with Codex installed, whose settings name the scripted model."""

    def __init__(self, user: User, server: ModelServer) -> None:
        super().__init__("codex", user, server)


@pytest.fixture
def user() -> Iterator[User]:
    """Not in `/dev/shm`: what Codex runs in its sandbox has a `/dev` of its own."""
    made = User("/tmp")
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def world(user: User, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with ModelServer() as server:
        made = World(user, server)
        monkeypatch.setenv("PATH", user.env["PATH"])
        yield made


def test_a_conversation_is_told_by_states_transcript_and_usage(world: World) -> None:
    first = "%% run echo out-put\n%% usage input=1000 output=20 cache_read=600\n%% say hello"
    agent = world.create("a", first)
    assert agent.state in ("RUNNING", "WAITING")  # acknowledged
    world.rests("a")
    tools = [entry for entry in world.fleet.find("a").transcript().entries if "tool" in entry]
    assert [(entry["role"], entry.get("input"), entry.get("exit_code")) for entry in tools] == [
        ("tool_call", "echo out-put", None),
        ("tool_result", None, 0),
    ]
    assert "out-put" in tools[1]["text"]

    # Before the command runs, Codex would drop the answer that asks for it, with what that cost.
    work = "%% run touch began; until [ -e go ]; do sleep 0.1; done\n%% say worked"
    world.fleet.find("a").message(work)
    working = world.fleet.find("a")
    wait_for(Path(working.record.workspace.work_dir, "began").exists, "its command to run", TURN_SECONDS)
    assert working.state == "RUNNING"
    world.fleet.find("a").message("one more\nwhile it works")  # noted at once, though its model gets it later
    assert world.fleet.find("a").state == "RUNNING"
    Path(working.record.workspace.work_dir, "go").touch()
    world.rests("a")
    texts = [first, work, "one more\nwhile it works"]
    wait_for(
        lambda: [text for role, text in world.said("a") if role == "user"] == texts, "all in its record", TURN_SECONDS
    )
    world.rests("a")

    spent = DRIVER.usage(world.fleet.local.place(world.fleet.find("a").record))
    assert [(one.input_tokens, one.cache_read_tokens, one.output_tokens) for one in spent if one.cache_read_tokens] == [
        (400, 600, 20)
    ]
    turns = world.server.usage().turns
    assert sum(one.input_tokens + one.cache_read_tokens for one in spent) == turns.input
    assert sum(one.output_tokens for one in spent) == turns.output
    assert {one.model for one in spent} == {"scripted"}

    world.fleet.find("a").message("%% think 300")
    world.until("a", lambda agent: agent.state == "RUNNING", "think")
    world.server.wait_for(lambda entry: entry.user_text == "%% think 300" and not entry.side, TURN_SECONDS)
    world.press("a", "Escape")
    world.until("a", lambda agent: (agent.state, agent.status.reason) == ("WAITING", "interrupted"), "be interrupted")


def test_random_messages_arrive_once_and_as_they_are(world: World) -> None:
    """Those that it would take for commands, too. The seed is fixed: what fails can be repeated."""
    chance = random.Random(6)
    letters = "abc def \"'`\\$(){}[]<>|&;*?~^%\t\n/!#@äöü日本語😀👩\u200d💻e\u0301\u2028\ufeff"
    texts = ["!ls", "/status", "/init\nnow", "$x", "@READ", "exit", "?", "--help", "#", "[Pasted Content 9000 chars]"]
    image = world.user.root / "a.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n")
    texts += [str(image), "/tmpx " + "word " * 400]
    for number in range(8):
        length = int(math.exp(chance.uniform(0, math.log(50_000))))
        texts.append(f"{chance.choice('!/#@x')}{number} " + "".join(chance.choices(letters, k=length)))
    world.create("a")
    world.rests("a")
    for text in texts:
        world.fleet.find("a").message(text)
    wanted = [DRIVER.wording(text.rstrip("\n")).recorded for text in texts]

    def heard() -> list[str]:
        return [text for role, text in world.said("a") if role == "user"]

    wait_for(lambda: len(heard()) >= len(wanted), "all messages in its record", TURN_SECONDS)
    world.rests("a")
    assert heard() == wanted
    altered = [
        event.get("altered", "") for event in world.fleet.find("a").events() if event["type"] == "message_queued"
    ]
    assert "a shell command" in altered[0] and altered[1:10] == [""] * 9


def test_it_asks_for_permission_and_goes_on_when_allowed(world: World) -> None:
    command = "echo allowed > asked; until [ -e go ]; do sleep 0.1; done"
    call = {"cmd": command, "sandbox_permissions": "require_escalated", "justification": "?"}
    world.create("a", f"%% tool exec_command {json.dumps(call)}\n%% say went on", permissions="ask")
    blocked = world.blocks("a", f"permission: Bash: {command}")
    asked = Path(blocked.record.workspace.work_dir, "asked")
    assert not asked.exists()
    for columns in (40, 20, 200):  # its sentences are broken into lines wherever they have to end
        world.resize("a", columns)
        world.blocks("a", f"permission: Bash: {command}")
        with pytest.raises(MngrError, match="BLOCKED"):
            world.fleet.find("a").message("no answer")
    world.answer("a", "y", ASKS)
    wait_for(asked.exists, "the command to be run", TURN_SECONDS)
    assert world.fleet.find("a").state == "RUNNING"
    asked.with_name("go").touch()
    world.rests("a")
    world.says("a", ("assistant", "went on"))


def test_a_message_arrives_in_a_narrow_terminal(world: World) -> None:
    world.create("a")
    world.rests("a")
    world.resize("a", 20)
    text = "%% say one\nand a line that is wider than the terminal"
    world.ask("a", text)
    world.says("a", ("user", text), ("assistant", "one"))


def test_a_turn_that_fails_says_why(world: World) -> None:
    args = [*world.server.args("codex"), *(word for name in NO_RETRIES for word in ("-c", name))]
    world.create("a", "%% status 429 times=9", args=args)
    assert "429" in world.blocks("a", "rate limit: ").status.reason
    world.fleet.find("a").message("%% status 503 times=9")
    world.until("a", lambda agent: agent.state == "WAITING" and agent.status.reason, "fail")
    for status, reason in ((402, "credit: "), (404, "model: ")):
        world.fleet.find("a").message(f"%% status {status} times=9")
        assert str(status) in world.blocks("a", reason).status.reason
    world.fleet.find("a").message("%% status 401 times=9")
    assert "401" in world.blocks("a", "login: ").status.reason
    world.fleet.find("a").message("%% say logged in")
    world.rests_well("a")
    world.says("a", ("user", "%% say logged in"), ("assistant", "logged in"))


def test_the_conversation_goes_on_after_a_kill_and_in_a_clone(world: World) -> None:
    world.create("a", "%% say remembered")
    world.rests("a")
    world.fleet.find("a").message("%% run touch began; sleep 60")
    agent = world.fleet.find("a")
    wait_for(Path(agent.record.workspace.work_dir, "began").exists, "the command to begin", TURN_SECONDS)
    world.user.tmux("kill-server")
    world.until("a", lambda agent: agent.state == "FAILED", "be gone")
    world.fleet.find("a").snapshot("early")
    world.fleet.find("a").start()
    world.rests("a")
    world.ask("a", "%% say again")
    before = [("user", "%% say remembered"), ("assistant", "remembered")]
    assert world.said("a")[:2] == before
    world.says("a", ("user", "%% say again"), ("assistant", "again"))
    answers = len(DRIVER.usage(world.fleet.local.place(world.fleet.find("a").record)))

    world.fleet.find("a").clone("b", message="%% run pwd\n%% say in the clone")
    clone = world.rests("b")
    assert world.said("b")[:2] == before
    world.says("b", ("assistant", "in the clone"))
    assert clone.record.workspace.work_dir in str(
        [entry["text"] for entry in world.fleet.find("b").transcript().entries]
    )
    assert world.said("a")[-1] == ("assistant", "again")
    assert len(DRIVER.usage(world.fleet.local.place(world.fleet.find("a").record))) == answers

    world.fleet.find("a").stop()
    world.fleet.restore_snapshot("a/early")
    world.fleet.find("a").start()
    world.rests("a")
    shown = wait_for(
        lambda: text if "remembered" in (text := world.fleet.find("a").capture()) else None,
        "its conversation to be shown",
    )
    assert "again" not in shown
    assert world.said("a")[-1][0] == "user" and "again" not in str(world.said("a"))


def test_a_codex_inside_of_the_agent_does_not_count_as_the_agent(world: World) -> None:
    inner = ["codex", "exec", "--skip-git-repo-check", *world.server.args("codex"), "%% say inside"]
    hold = "touch ran; until [ -e go ]; do sleep 0.1; done"
    agent = world.create("a", f"%% run {shlex.join(inner)} < /dev/null; {hold}\n%% say outside")
    states: set[str] = set()

    def ran(agent: Agent) -> bool:
        states.add(agent.state)
        return Path(agent.record.workspace.work_dir, "ran").exists()

    world.until("a", ran, "have run the other one")
    assert states == {"RUNNING"}
    Path(agent.record.workspace.work_dir, "go").touch()
    world.rests("a")
    assert len(list(world.home("a").glob("sessions/*/*/*/*.jsonl"))) == 2
    assert [text for role, text in world.said("a") if role == "assistant"] == ["outside"]
    assert len(DRIVER.usage(world.fleet.local.place(world.fleet.find("a").record))) == 2

    def told() -> list[object]:
        return [event["state"] for event in world.fleet.find("a").events() if event["type"] == "state"]

    wait_for(lambda: "WAITING" in told(), "the hook of the end", TURN_SECONDS)
    assert told() == ["RUNNING", "WAITING"]


def needs_namespaces(user: User) -> None:
    if user.run(["unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "true"]).exit_code:
        pytest.skip("not run: this machine has no user namespaces, which the sandbox of Codex needs")


@pytest.mark.parametrize("version", ["old", "none"])
def test_the_sandbox_starts_with_an_old_bubblewrap_and_with_none(world: World, version: str) -> None:
    """Codex takes a bubblewrap whose help has `--perms`, and its own otherwise."""
    needs_namespaces(world.user)
    system = shutil.which("bwrap")
    if version == "old" and system is None:
        pytest.skip("not run: bubblewrap is not installed: `scripts/setup --test` does it")
    text = {"old": f"{system} --help 2>&1 | grep -v -e --argv0", "none": "exit 1"}[version]
    bwrap = world.user.root / "bin" / "bwrap"
    bwrap.write_text(f'#!/bin/sh\n[ "$*" = --help ] || exec {system} "$@"\n{text}\n')
    bwrap.chmod(0o700)
    narrow = "sandbox_workspace_write={exclude_slash_tmp=true,exclude_tmpdir_env_var=true}"
    args = [*world.server.args("codex"), "-c", narrow]  # Codex takes no bubblewrap from where its sandbox can write
    agent = world.create("a", "%% run echo made > made\n%% say done", permissions="edits", one_shot=True, args=args)
    world.until("a", lambda agent: agent.state not in ("STARTING", "RUNNING"), "end")
    assert Path(agent.record.workspace.work_dir, "made").exists(), world.fleet.find("a").transcript().entries


def test_one_task_may_commit_in_its_worktree_and_ends(world: World) -> None:
    needs_namespaces(world.user)
    git_dir = world.user.repo / ".git"
    (git_dir / "config").write_text((git_dir / "config").read_text() + "[mine]\n\tkey = 1\n")
    hostile = [git_dir / name for name in ("hooks/post-checkout", "info/attributes", "refs/heads/theirs")]
    tries = " ".join(f"touch {path};" for path in (world.user.root / "outside", *hostile))
    task = (
        f"%% run echo x > made; git add made; git commit -q -m made; {tries} git config core.fsmonitor evil\n"
        "%% say all done"
    )
    narrow = [f"sandbox_workspace_write.exclude_{name}=true" for name in ("slash_tmp", "tmpdir_env_var")]
    args = [*world.server.args("codex"), *(word for name in narrow for word in ("-c", name))]
    world.create("a", task, permissions="edits", one_shot=True, args=args)
    done = world.until("a", lambda agent: agent.state not in ("STARTING", "RUNNING"), "end")
    assert (done.state, done.status.exit_code) == ("DONE", 0)
    assert world.user.git("log", "-1", "--format=%s", "mngr/a") == "made"
    assert not any(path.exists() for path in (world.user.root / "outside", *hostile))
    assert "fsmonitor" not in (git_dir / "config").read_text()
    assert world.said("a") == [("user", task), ("assistant", "all done")]
    world.shows("a", "all done")
    assert len(DRIVER.usage(world.fleet.local.place(done.record))) == 2

    world.create("b", "%% status 400 times=9", one_shot=True)
    failed = world.until("b", lambda agent: agent.state not in ("STARTING", "RUNNING"), "end")
    assert (failed.state, failed.status.exit_code) == ("FAILED", 1)


def test_the_users_own_settings_and_login_are_used_and_left_alone(world: World) -> None:
    own = world.user.home / ".codex"
    own.mkdir()
    settings = f"""model = "mine"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{world.server.url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""
    (own / "config.toml").write_text(settings)
    (own / "auth.json").write_text('{"OPENAI_API_KEY": "of the user"}')
    (own / "AGENTS.md").write_text("be kind")
    (world.user.repo / ".codex").mkdir()
    (world.user.repo / ".codex" / "config.toml").write_text('model_verbosity = "low"\n')  # asks for trust
    world.user.git("add", ".codex")
    world.user.git("commit", "-q", "-m", "settings")
    with pytest.raises(Undecided, match=r"would obey `\.codex`"):
        world.create("a", "%% say hello", args=[])
    settings += f'[projects."{world.user.repo}"]\ntrust_level = "trusted"\n'
    (own / "config.toml").write_text(settings)
    world.create("a", "%% say hello", args=[])
    world.rests("a")
    assert {entry.model for entry in world.server.log if not entry.side} == {"mine"}
    assert (world.home("a") / "auth.json").readlink() == own / "auth.json"
    assert sorted(path.name for path in own.iterdir()) == ["AGENTS.md", "auth.json", "config.toml"]
    assert (own / "config.toml").read_text() == settings
    assert (world.home("a") / "AGENTS.md").read_text() == "be kind"

    Path(world.fleet.find("a").record.workspace.work_dir, "more").touch()
    world.fleet.find("a").destroy(force=True)
    home = world.user.host_dir / "saved" / "a-1" / "agent" / "home"
    assert {path.name for path in home.iterdir()} == {"sessions", "threads.jsonl"}


def test_without_hooks_its_rollout_and_its_screen_tell_the_states(world: World) -> None:
    """Such as an administrator may forbid."""
    call = {"cmd": "true", "sandbox_permissions": "require_escalated", "justification": "may I?"}
    args = [*world.server.args("codex"), "-c", "features.hooks=false"]
    world.create("a", f"%% tool exec_command {json.dumps(call)}\n%% say went on", permissions="ask", args=args)
    blocked = world.blocks("a", "permission: ")
    world.answer("a", "y", ASKS)
    world.rests("a")
    assert world.said("a")[-1] == ("assistant", "went on")
    assert len(DRIVER.usage(world.fleet.local.place(blocked.record))) == 2
    world.fleet.find("a").stop()
    world.fleet.find("a").start()
    world.rests("a")
    world.ask("a", "%% say again")
    world.says("a", ("user", "%% say again"), ("assistant", "again"))
    assert [text for role, text in world.said("a") if role == "assistant"] == ["went on", "again"]


def test_without_a_login_it_is_blocked(world: World) -> None:
    world.create("a", args=[])
    world.blocks("a", "login: ")
