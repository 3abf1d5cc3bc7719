"""`--sandbox` with the real bubblewrap: what an agent can reach, and that everything else works as always."""

import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.agent import sandbox
from mngr.errors import MngrError, UsageError
from mngr.programs.codex.driver import DRIVER as CODEX
from mngr.system import bubblewrap
from mngr_testing.model_server import ModelServer
from tests.support.program_world import ProgramWorld
from tests.support.programs import program
from tests.support.tmr import NO_CHANGE, Project
from tests.support.user import User, wait_for

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(not shutil.which("bwrap"), reason="`bwrap` is not installed: `apt-get install bubblewrap`"),
]
CANARY = "canary-8d1f"


@pytest.fixture
def secretive(user: User) -> User:
    """A user with secrets: in the home, in the environment, and beside the repository."""
    (user.home / ".ssh").mkdir()
    for path in (user.home / ".ssh" / "id_ed25519", user.home / "notes", user.root / "beside"):
        path.write_text(CANARY)
    user.env["AWS_SECRET_ACCESS_KEY"] = CANARY
    return user


def created(user: User, name: str, *words: str, command: str = "sleep 9999") -> Path:
    user.create(name, "--sandbox", *words, command=command)
    return user.work_dir(name)


def inside(user: User, name: str, command: str) -> str:
    return user.mngr("exec", name, command).ok().stdout


def refused(user: User, name: str, command: str) -> str:
    return user.mngr("exec", name, command).failed().stderr


def state_dir(user: User, name: str) -> Path:
    return user.host_dir / "agents" / user.agent(name)["id"]


def test_a_shared_extra_path_opens_nothing_outside_of_the_repository(secretive: User) -> None:
    """No trust is asked for these paths. Neither now, nor when the repository puts a link there later."""
    user = secretive
    (user.repo / ".gitignore").write_text("/key\n/data\n")
    user.git("add", ".gitignore")
    user.git("commit", "-qm", "ignore")
    (user.repo / ".mngr").mkdir()
    settings = user.repo / ".mngr" / "settings.toml"
    (user.repo / "key").symlink_to(user.home / ".ssh" / "id_ed25519")
    (user.repo / "link").symlink_to(user.home)
    for path in ("key", "link/.ssh", "link/.ssh/id_ed25519"):
        settings.write_text(f'[workspace]\nextra_paths = {{"{path}" = "share"}}\n')
        ran = user.mngr(
            "create", "foo", "--sandbox", "--no-connect", "--exclude-unclean", "--command", "sleep 9"
        ).failed()
        assert f"leads out of `{user.repo}`, to `{user.home}/.ssh" in ran.stderr
    settings.write_text('[workspace]\nextra_paths = {"data" = "share"}\n')
    (user.repo / "data").mkdir()
    (user.repo / "data" / "a").write_text("shared")
    created(user, "foo", "--exclude-unclean")
    assert inside(user, "foo", "cat data/a") == "shared"
    user.mngr("stop", "foo").ok()
    (user.repo / "data" / "a").unlink()
    (user.repo / "data").rmdir()
    (user.repo / "data").symlink_to(user.home / ".ssh")
    user.mngr("start", "foo").ok()
    assert CANARY not in inside(user, "foo", "ls -R data; cat data/*; true")


def test_secrets_of_the_user_are_out_of_reach(secretive: User) -> None:
    user = secretive
    created(user, "other")
    look = f"grep -rls {CANARY} ~ {user.root}; env | grep {CANARY}; true"
    made = created(user, "a", "-w", f"side={look} > side.txt 2>/dev/null; sleep 9999", command=f"{look} > seen; cat")
    wait_for(lambda: (made / "seen").exists() and (made / "side.txt").exists(), "what it saw")
    found = (made / "seen").read_text() + (made / "side.txt").read_text() + inside(user, "a", look)
    assert found == ""
    assert CANARY in user.run(["sh", "-c", look]).stdout  # outside, the same finds it
    assert user.agent("other")["id"] not in inside(user, "a", f"find {user.host_dir} -maxdepth 2")
    assert inside(user, "a", f"cat {user.repo}/README.md; echo $?").endswith("1\n")


def test_nothing_but_the_copy_can_be_written(secretive: User) -> None:
    user = secretive
    created(user, "a")
    for path in (user.repo / "new", user.root / "new", user.home / "new", Path("/usr/new"), Path("/etc/new")):
        user.mngr("exec", "a", f"echo x > {path}")
        assert not path.exists()
    state = state_dir(user, "a")
    for name in ("agent.json", "launch.sh", "env", sandbox.ARGUMENTS):
        before = (state / name).read_bytes()
        user.mngr("exec", "a", f"echo x >> {state / name} && mkdir -p {state} && rm -f {state / name}")
        assert (state / name).read_bytes() == before
    inside(user, "a", "echo x > ~/mine && echo x > /tmp/mine && echo x > here")
    assert not (user.home / "mine").exists() and not Path("/tmp/mine").exists()
    assert inside(user, "a", "cat ~/mine /tmp/mine here") == "x\nx\nx\n"  # its own home lasts


def test_its_git_can_commit_and_cannot_make_ours_run_anything(user: User) -> None:
    made = created(user, "a")
    inside(user, "a", "echo x > new && git add new && git commit -qm One && git gc -q && git status --short")
    assert inside(user, "a", "git log -1 --format='%an %s'") == "Test User One\n"
    pwned = user.root / "pwned"
    for attempt in (
        f"git config core.fsmonitor 'touch {pwned}'",
        f"printf '#!/bin/sh\\ntouch {pwned}' > .git/hooks/post-checkout",
        "rm -rf .git/hooks",
        "mv .git elsewhere",
        "rm .git/commondir",
        "echo ../other > .git/commondir",
    ):
        refused(user, "a", attempt)
    # A repository inside, with settings of its own, which git would obey when it looks at the outer one.
    evil = "git init -q n && cd n && git commit -q --allow-empty -m x && git config core.fsmonitor"
    inside(user, "a", f"({evil} 'touch {made}/pwned; false') && git add n && git commit -qm Two && rm -f pwned")
    inside(user, "a", "printf '[submodule \"n\"]\\npath = n\\nurl = n\\nignore = none\\n' > .gitmodules")
    for verb in (("diff", "a"), ("pull", "a"), ("list",), ("snapshot", "create", "a", "one")):
        user.mngr(*verb).ok()
    assert not (made / "pwned").exists() and not pwned.exists()
    user.mngr("destroy", "a", "--force").ok()
    assert not (made / "pwned").exists() and not made.exists()


def test_verbs_work_as_without_a_sandbox(user: User) -> None:
    made = created(user, "a", "--record", command="echo x > new; git add new; git commit -qm One; cat")
    wait_for(lambda: "One" in inside(user, "a", "git log --oneline"), "its commit")
    assert user.agent("a")["transfer"] == "git-mirror"
    assert "+x" in user.mngr("diff", "a").ok().stdout
    user.mngr("pull", "a").ok()
    assert user.git("log", "-1", "--format=%s", "mngr/a") == "One"
    user.mngr("merge", "a").ok()
    assert (user.repo / "new").read_text() == "x\n"
    user.mngr("message", "a", "-m", "hello there").ok()
    wait_for(lambda: "hello there" in user.mngr("capture", "a").ok().stdout, "the message on its screen")
    user.mngr("clone", "a", "b", "--no-connect").ok()
    assert inside(user, "b", f"ls {user.repo} 2>&1; echo $?").endswith("2\n")
    user.mngr("stop", "a").ok()
    user.mngr("start", "a").ok()
    assert user.state("a") == "RUNNING" and inside(user, "a", f"cat {user.repo}/README.md; echo $?").endswith("1\n")
    user.mngr("snapshot", "create", "a", "one").ok()
    user.mngr("destroy", "a", "b", "--force").ok()
    assert not made.exists() and user.agents() == []


def test_it_has_no_objects_that_no_branch_or_tag_needs(user: User) -> None:
    (user.repo / ".gitignore").write_text(".env\n")
    user.git("add", "-A")
    user.git("commit", "-qm", "ignore")
    place = Path(user.create("foo")["work_dir"])
    (place / ".env").write_text("KEY=top-secret\n")
    (place / "work").write_text("of another agent\n")
    user.mngr("destroy", "foo", "--force").ok()
    (user.repo / "README").write_text("put aside, with top-secret\n")
    user.git("add", "-A")
    user.git("stash")
    user.create("bar", "--sandbox")
    seen = user.mngr("exec", "bar", "git cat-file --batch-all-objects --batch").ok().stdout
    assert "tree" in seen and "top-secret" not in seen


def test_its_objects_are_not_second_names_of_ours(user: User) -> None:
    """Whoever can write a file can write it by all of its names."""
    made = created(user, "a")
    files = [path for path in (made / ".git" / "objects").rglob("*") if path.is_file()]
    assert files and all(path.stat().st_nlink == 1 for path in files)


def test_exit_code_interrupt_and_size_of_its_terminal_are_its_own(user: User) -> None:
    created(user, "code", command="exit 7")
    assert user.wait_for_state("code", "FAILED")["exit_code"] == 7
    made = created(user, "shell", command="trap 'echo got >> got' INT TERM HUP; while :; do sleep 0.1; done")
    session = user.agent("shell")["session"]

    def interrupted() -> bool:
        user.tmux("send-keys", "-t", session, "C-c")
        return (made / "got").exists()

    wait_for(interrupted, "its own handler of Ctrl-C")
    assert user.state("shell") == "RUNNING"
    created(user, "size", command="while :; do stty size; sleep 0.1; done")
    user.tmux("resize-window", "-t", user.agent("size")["session"], "-x", "77", "-y", "21")
    wait_for(lambda: "21 77" in user.mngr("capture", "size").ok().stdout, "the new size")
    created(user, "python", command="python3 -c 'import time; time.sleep(9999)'")
    session = user.agent("python")["session"]

    def ended() -> bool:
        user.tmux("send-keys", "-t", session, "C-c")
        return user.state("python") == "FAILED"

    wait_for(ended, "Ctrl-C to end a program that does not handle it")
    user.mngr("stop", "shell", "size").ok()
    marks = [user.agent(name)["id"] for name in ("shell", "size")]
    assert not [pid for pid in user.processes() if any(mark in _environ(pid) for mark in marks)]


def _environ(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return ""


def test_it_gets_time_to_end_when_asked_to(user: User) -> None:
    made = created(
        user, "a", command="trap 'sleep 0.5; echo saved > saved; exit 0' TERM; : > ready; while :; do sleep 0.1; done"
    )
    wait_for((made / "ready").exists, "it to run")
    user.mngr("stop", "a", "--graceful").ok()
    assert (made / "saved").read_text() == "saved\n"


def test_neither_our_tmux_nor_our_processes_can_be_reached(user: User) -> None:
    created(user, "other", command="cat")
    created(user, "a")
    sockets = [str(path) for path in user.tmux_dir.glob("*/mngr")]
    assert sockets
    refused(user, "a", f"TMUX_TMPDIR={user.tmux_dir} tmux -L mngr ls")
    refused(user, "a", f"tmux -S {sockets[0]} kill-server")
    assert inside(user, "a", "echo ${TMUX-none}") == "none\n"
    pid = user.agent("other")["pid"]
    assert "Test User" not in inside(user, "a", f"cat /proc/{pid}/cmdline; true")
    assert int(inside(user, "a", "ls -d /proc/[0-9]* | wc -l")) < 9
    inside(user, "a", "kill -9 -1; true")
    assert user.state("other") == "RUNNING" and user.state("a") == "RUNNING"
    refused(user, "a", "mngr list")


def test_without_a_network_there_is_none_but_its_own(user: User) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=_greet, args=(server,), daemon=True).start()
        ask = f"python3 -c 'import socket; print(socket.create_connection((\"127.0.0.1\", {port}), 5).recv(9))'"
        created(user, "on")
        assert "hello" in inside(user, "on", ask)
        created(user, "off", "--network", "off")
        assert "refused" in refused(user, "off", ask).lower()
        assert inside(user, "off", "ls /sys/class/net /proc/net/dev 2>/dev/null; grep -c : /proc/net/dev").endswith(
            "1\n"
        )


def _greet(server: socket.socket) -> None:
    while True:
        try:
            with server.accept()[0] as client:
                client.sendall(b"hello")
        except OSError:
            return


def test_provision_commands_run_in_it_before_the_agent(secretive: User) -> None:
    user = secretive
    made = created(user, "a", "--extra-provision-command", f"cat {user.home}/notes > notes; git remote add x y; true")
    assert (made / "notes").read_text() == "" and inside(user, "a", "git remote") == "x\n"


def test_settings_let_it_see_and_write_more(secretive: User) -> None:
    user = secretive
    for name in ("sdk", "cache"):
        (user.home / name).mkdir()
        (user.home / name / "file").write_text(name)
    more = ("-S", "sandbox.readable=['~/sdk']", "-S", "sandbox.writable=['~/cache']")
    created(user, "a", *more)
    assert inside(user, "a", "cat ~/sdk/file ~/cache/file; echo changed > ~/cache/file") == "sdkcache"
    refused(user, "a", "echo changed > ~/sdk/file")
    assert (user.home / "cache" / "file").read_text() == "changed\n"
    for path in ("~/", "/", "~/.mngr/agents"):
        ran = user.mngr(
            "create", "b", "--no-connect", "--sandbox", "-S", f"sandbox.readable=['{path}']", "--command", "x"
        )
        assert "must not see" in ran.failed(2).stderr
    assert [agent["name"] for agent in user.agents()] == ["a"]


def test_links_that_the_agent_makes_show_nothing_at_its_next_start(secretive: User) -> None:
    user = secretive
    created(user, "a")
    home = state_dir(user, "a") / "home"
    inside(user, "a", f"ln -s {user.home}/.ssh {home}/x; ln -s {user.home} ~/link; ln -sfn {user.home} ~/.cache")
    user.mngr("stop", "a").ok()
    user.mngr("start", "a").ok()
    assert not os.path.lexists(home / "x")
    assert inside(user, "a", f"grep -rls {CANARY} ~/ ~/link/ ~/.ssh {home}; true") == ""


def test_what_a_sandbox_cannot_be_is_said_before_anything_is_made(user: User) -> None:
    words = ("create", "a", "--no-connect", "--sandbox", "--command", "sleep 9")
    assert "git-mirror" in user.mngr(*words, "--transfer", "git-worktree").failed(2).stderr
    assert "--sandbox" in user.mngr("create", "a", "--network", "off", "--command", "x").failed(2).stderr
    lacking = user.root / "few"
    lacking.mkdir()
    for name in ("git", "tmux", "sh", "sleep"):
        (lacking / name).symlink_to(shutil.which(name) or "")
    said = user.run([shutil.which("mngr", path=user.env["PATH"]) or "mngr", *words], env={"PATH": str(lacking)})
    assert "apt-get install bubblewrap" in said.failed().stderr
    broken = user.root / "broken"
    broken.mkdir()
    (broken / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (broken / "bwrap").chmod(0o755)
    env = {"PATH": f"{broken}:{user.env['PATH']}"}
    said = user.run([shutil.which("mngr", path=user.env["PATH"]) or "mngr", *words], env=env)
    assert "No permissions to create new namespace" in said.failed().stderr and "user namespaces" in said.stderr
    assert user.agents() == []
    created(user, "b")
    user.mngr("create", "c", "--no-connect", "--command", "sleep 9999").ok()
    reused = user.mngr("create", "c", "--reuse", "--no-connect", "--sandbox")
    assert "its sandbox is `off`, not `on`" in reused.failed().stderr
    assert "`--sandbox` works" in user.mngr("doctor").stdout


def test_in_place_only_the_checkout_can_be_written(secretive: User) -> None:
    user = secretive
    assert created(user, "a", "--transfer", "none") == user.repo
    inside(user, "a", "echo x > new && git add new && git commit -qm Here")
    assert user.git("log", "-1", "--format=%s") == "Here"
    refused(user, "a", "echo x > .git/hooks/pre-commit")
    assert inside(user, "a", f"cat {user.root}/beside ~/notes 2>/dev/null; true") == ""
    user.mngr("destroy", "a").ok()
    assert (user.repo / "new").exists() and user.git("status", "--short") == ""


@pytest.fixture
def claude(user: User, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProgramWorld]:
    program("claude")
    with ModelServer() as server:
        made = ProgramWorld("claude", user, server)
        monkeypatch.setenv("PATH", user.env["PATH"])
        yield made


@pytest.mark.timeout(300)
def test_claude_code_works_in_it(claude: ProgramWorld) -> None:
    user = claude.user
    (user.home / "notes").write_text(CANARY)
    (user.home / ".claude").mkdir()
    (user.home / ".claude" / "CLAUDE.md").write_text("Be kind.\n")
    run = f"%% run cat {user.home}/notes ; echo made > made.txt && git add made.txt && git commit -qm Made\n%% say one"
    claude.create("a", run, sandbox="on")
    claude.rests("a")
    claude.says("a", ("assistant", "one"))
    assert user.git("log", "-1", "--format=%s", cwd=user.work_dir("a")) == "Made"
    assert CANARY not in str(claude.fleet.find("a").transcript())
    claude.ask("a", "%% say two")
    claude.says("a", ("user", "%% say two"), ("assistant", "two"))
    agent = claude.fleet.find("a")
    agent.stop()
    claude.fleet.find("a").start()
    claude.rests("a")
    claude.ask("a", "%% say three")
    claude.says("a", ("assistant", "two"), ("user", "%% say three"), ("assistant", "three"))
    with pytest.raises(MngrError, match="without a network"):
        claude.create("b", sandbox="no-network")


def test_the_sandbox_of_codex_is_not_put_into_another_one_for_root() -> None:
    with pytest.raises(UsageError, match="for root"):
        sandbox.check_kind("codex", CODEX, "on", "edits", root=True)
    sandbox.check_kind("codex", CODEX, "on", "bypass", root=True)
    sandbox.check_kind("codex", CODEX, "on", "edits", root=False)


SPY = """

def test_spy():
    found = []
    for path in {paths}:
        try:
            found.append(open(path).read())
        except OSError:
            pass
    open({left!r}, "w").close()
    assert found == []
"""


@pytest.mark.timeout(300)
def test_a_run_of_tests_gives_the_same_verdicts_and_its_tests_are_contained(secretive: User) -> None:
    user = secretive
    project = Project(user)
    left, file = user.root / "left", Path(user.repo) / "tests" / "test_calc.py"
    spied = [f"{user.home}/.ssh/id_ed25519", f"{user.root}/beside"]
    project.write("tests/test_calc.py", file.read_text() + SPY.format(paths=spied, left=str(left)))
    project.commit("a test that spies")
    project.script("test_spy", NO_CHANGE)
    seen = ("-S", f"sandbox.readable=['{project.scripts}']")
    project.tmr("tests", "--no-canary", "--sandbox", "--network", "off", *seen, name="boxed")
    assert not left.exists()
    project.tmr("tests", "--no-canary", name="plain")
    assert left.exists()
    measured = {name: _baseline(project, name) for name in ("boxed", "plain")}
    assert (measured["boxed"].pop("test_spy"), measured["plain"].pop("test_spy")) == ("pass", "fail")
    assert measured["boxed"] == measured["plain"] == {"test_add": "pass", "test_sub": "fail", "test_mul": "fail"}
    boxed, plain = (project.verdicts(name) for name in ("boxed", "plain"))
    assert {**boxed, "test_spy": ""} == {**plain, "test_spy": ""} and boxed["test_sub"] == "fixed"
    assert user.git("rev-parse", "tmr/boxed^{tree}") == user.git("rev-parse", "tmr/plain^{tree}")


def _baseline(project: Project, name: str) -> dict[str, str]:
    measured = json.loads((Path(project.repo) / ".mngr" / "runs" / name / "baseline.json").read_text())["tests"]
    return {test.rpartition("::")[2]: str(one["verdict"]) for test, one in measured.items()}


def test_advice_names_the_switch_that_is_off() -> None:
    said = "bwrap: setting up uid map: Permission denied"
    for name, value in (
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
        ("kernel/unprivileged_userns_clone", "0"),
        ("user/max_user_namespaces", "0"),
    ):
        assert name.replace("/", ".") in bubblewrap.advice(said, {name: value})
    assert "container" in bubblewrap.advice(said, {})
    assert "coreutils" in bubblewrap.advice("env: unrecognized option '--default-signal'", {})


def test_saved_work_has_nothing_of_the_private_home(user: User) -> None:
    made = created(user, "a", command=f"echo {CANARY} > ~/token; echo {CANARY} > /tmp/token; echo > here; sleep 9999")
    wait_for((made / "here").exists, "the files in its home")
    user.mngr("destroy", "a", "--force").ok()
    kept = user.host_dir / "saved" / "a-1" / "agent"
    assert sorted(path.name for path in kept.iterdir()) == ["events.jsonl", "screen.txt"]


def test_git_outside_of_the_sandbox_writes_through_no_link_in_its_repository(user: User) -> None:
    """A line of a log of git can hold words of the agent: appended to `~/.bashrc` it would be a command."""
    victim = user.home / ".bashrc"
    victim.write_text("mine\n")
    work_dir = created(user, "foo")
    user.mngr("stop", "foo").ok()
    user.mngr("start", "foo").ok()
    (user.repo / "more").write_text("more\n")
    user.git("add", "more")
    user.git("commit", "-qm", "more")
    inside(user, "foo", "echo 1 > README.md; git stash push -qm 'x; touch PWNED;'")
    user.mngr("snapshot", "create", "foo", "s").ok()
    inside(user, "foo", "git stash clear; mkdir -p .git/refs/new")
    for link, target in {
        ".git/logs/refs/stash": victim,
        ".git/logs/HEAD": victim,
        ".git/refs/mngr": user.home,
    }.items():
        inside(user, "foo", f"[ ! -e {link} ] || mv {link} .git/aside; ln -s {target} {link}")
        before = sorted(os.listdir(user.home))
        refusals = [user.mngr(*words).failed().stderr for words in (("snapshot", "restore", "s"), ("push", "foo"))]
        assert all(f"{work_dir}/{link}` is a link to `{target}`" in refusal for refusal in refusals)
        assert victim.read_text() == "mine\n" and sorted(os.listdir(user.home)) == before
        user.mngr("diff", "foo")
        user.run(["sh", "-c", refusals[0].split("hint: `")[1].split("`")[0]]).ok()
        user.mngr("start", "foo").ok()
        inside(user, "foo", f"[ ! -e .git/aside ] || mv .git/aside {link}")
    user.mngr("snapshot", "restore", "s").ok()
    empty = user.home / "empty"
    empty.mkdir()
    inside(user, "foo", f"mv .git/objects .git/aside; ln -s {empty} .git/objects")
    for words in (("diff", "foo"), ("snapshot", "create", "foo"), ("destroy", "foo", "--force")):
        assert user.mngr(*words).exit_code != 70 and not os.listdir(empty)


def test_the_copy_holds_no_objects_that_its_branches_do_not_need(user: User) -> None:
    """Saved work and stashes lie in the same repository as the branches."""
    (user.repo / ".gitignore").write_text(".env\n")
    user.git("add", ".")
    user.git("commit", "-qm", "ignore")
    user.create("other")
    (user.work_dir("other") / ".env").write_text(f"KEY={CANARY}-saved\n")
    (user.work_dir("other") / "work").write_text("work\n")
    user.mngr("destroy", "other", "--force").ok()
    (user.repo / "README.md").write_text(f"{CANARY}-stash\n")
    user.git("stash", "-q")
    (user.repo / "README.md").write_text("not committed\n")
    created(user, "foo", "--include-unclean")
    objects = inside(user, "foo", "git cat-file --batch-all-objects --batch; cat README.md")
    assert CANARY not in objects and objects.endswith("not committed\n")
    (user.work_dir("foo") / "own").write_text("own\n")
    inside(user, "foo", "git stash -q -u; git commit -q --allow-empty -m own")
    user.mngr("destroy", "foo", "--force").ok()
    user.mngr("saved", "restore", "foo-1").ok()
    assert "own" in user.git("log", "-1", "--format=%s", cwd=user.work_dir("foo"))
    assert user.git("stash", "list", cwd=user.work_dir("foo")).count("\n") == 0
    assert CANARY not in user.git("cat-file", "--batch-all-objects", "--batch", cwd=user.work_dir("foo"))
