"""Five real Claude Code agents fix five tests on two ssh hosts, of which one goes down meanwhile: `make soak`."""

import os
import pwd
from collections.abc import Iterator

import pytest

from mngr_testing.model_server import ModelServer
from tests.real.test_tmr_hosts import end_processes
from tests.support.pods import add_settings
from tests.support.programs import program, with_program
from tests.support.sprout_world import BUGS, SproutWorld
from tests.support.sshd import SshClient, Sshd
from tests.support.user import User, wait_for

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1500)]
program("claude")  # without it, none of this
TESTS = list(BUGS)[:5]


@pytest.fixture
def world(user: User) -> SproutWorld:
    return SproutWorld("claude", user)


@pytest.fixture
def boxes(user: User, world: SproutWorld) -> Iterator[dict[str, Sshd]]:
    """The pool `farm`: two machines with Claude Code that ssh reaches as `a` and `b`."""
    client, made = SshClient(user.root / "ssh"), {}
    try:
        for name in ("a", "b"):
            far = User()
            with_program(program("claude"), far.env, far.root / "bin")
            made[name] = Sshd(far, name=name)
            client.add(name, "127.0.0.1", port=made[name].port, login=pwd.getpwuid(os.getuid()).pw_name)
            client.trust("127.0.0.1", port=made[name].port)
        user.env.update(client.env(user.env))
        yield made
    finally:
        for box in made.values():
            box.close()
            box.far.close()


def test_claude_code_fixes_tests_on_hosts_of_which_one_goes_down(
    user: User, world: SproutWorld, boxes: dict[str, Sshd]
) -> None:
    add_settings(user, '[providers.farm]\ntype = "ssh"\nhosts = ["a", "b"]\n[tmr]\nlost_seconds = 15\n')
    rules = [world.rule(test, [*world.look(test), "%% run sleep 15", *world.fix(test)]) for test in TESTS]
    with ModelServer(rules) as server:
        env = server.env("claude")
        given = [word for key, value in env.items() if "KEY" not in key for word in ("--env", f"{key}={value}")]
        given += [word for key in env if "KEY" in key for word in ("--pass-env", key)]
        common = ["--type", "claude", "--permissions", "tests", "--integrator", "none", "--max-agents", "5"]
        words = ["tmr", "--name", "r1", *common, "--provider", "farm", "--agents-per-host", "5", *given, *TESTS]
        here = user.root / "bin" / "claude"
        here.unlink()  # this machine needs none
        child = user.popen(*words, "--", *server.args("claude"), env=env)
        try:
            wait_for(lambda: child.poll() is not None or len(busy(world)) == 5, "five agents to work", 300)
            assert child.poll() is None, "\n".join(map(bytes.decode, child.communicate()))
            lost = [task for task, host in busy(world).items() if host == "a"]
            boxes["a"].close()
            end_processes(boxes["a"].far.home)
            out, err = child.communicate(timeout=900)
        finally:
            child.kill()
            child.communicate()
        assert child.returncode == 0, (out, err)
        ended = [(entry["task"], entry["reason"]) for entry in world.ledger if entry["type"] == "ended"]
        assert lost and sorted(task for task, reason in ended if reason == "host-lost") == sorted(lost)
        assert sorted(task for task, reason in ended if reason == "outcome") == sorted(TESTS)
        here.symlink_to(program("claude"))
        user.mngr("tmr", "--name", "local", *common, *TESTS, "--", *server.args("claude"), env=env, timeout=900).ok()
    trees = {user.git("rev-parse", f"tmr/{name}^{{tree}}") for name in ("r1", "local")}
    assert len(trees) == 1
    told = user.mngr("tmr", "status", "r1").ok().stdout
    assert f"{len(lost)} tasks moved to other hosts" in told.replace("1 task ", "1 tasks "), told


def busy(world: SproutWorld) -> dict[str, str]:
    """The tasks whose agents were told what to do, with their hosts."""
    if not (world.user.repo / ".mngr" / "runs" / "r1" / "ledger.jsonl").exists():
        return {}
    told = {entry["task"] for entry in world.ledger if entry["type"] == "told"}
    return {
        entry["task"]: entry["host"] for entry in world.ledger if entry["type"] == "attempt" and entry["task"] in told
    }
