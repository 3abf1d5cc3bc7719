"""Every verb on each of 20 hosts in namespaces: the whole life of an agent, by the same words as on this machine."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.real.test_connect import Terminal
from tests.support.net_hosts import NetHosts
from tests.support.user import MNGR, Ran, User, wait_for

COUNT = 20
SECONDS = 300.0


@pytest.fixture
def hosts(user: User) -> Iterator[NetHosts]:
    with NetHosts(COUNT) as made:
        user.env.update(made.client.env(user.env))
        yield made


class Life:
    """What a user does with the agent of one host, in a repository of its own."""

    def __init__(self, user: User, host: str) -> None:
        self.user, self.host, self.name = user, host, f"foo-{host}"
        self.repo = user.root / f"repo-{host}"
        shutil.copytree(user.repo, self.repo)

    def mngr(self, *words: str) -> Ran:
        return self.user.run([MNGR, *words], cwd=self.repo, timeout=SECONDS)

    def ok(self, *words: str) -> str:
        return self.mngr(*words).ok().stdout

    def agent(self, name: str, *words: str) -> dict[str, object]:
        found = self.mngr("list", *words, "--format", "json").ok().json
        assert found["errors"] == [], found["errors"]
        (one,) = [agent for agent in found["agents"] if agent["name"] == name]
        assert one["host"]["name"] == self.host
        return dict(one)

    def whole(self) -> None:
        self.made_and_talked_to()
        self.code_goes_and_comes()
        self.kept_copied_and_brought_back()
        self.ended()

    def made_and_talked_to(self) -> None:
        self.ok("create", f"{self.name}@{self.host}", "--no-connect", "--label", "a=b", "--command", "cat")
        assert self.agent(self.name)["state"] == "RUNNING"
        self.ok("message", self.name, "-m", "hello there")
        wait_for(lambda: self.ok("capture", self.name).count("hello there") > 1, "the echo", timeout=SECONDS)
        assert "hello there" in self.ok("transcript", self.name)
        assert self.ok("exec", self.name, "hostname") == f"{self.host}\n"
        assert "message_delivered" in self.ok("event", self.name)
        assert self.mngr("usage", self.name, "--format", "json").ok().json["total"]["answers"] == 0
        self.ok("wait", self.name, "RUNNING", "--timeout", "60")
        self.ok("label", self.name, "team=x")
        self.ok("limit", self.name, "--timeout", "9h", "--idle-timeout", "8h")
        agent = self.agent(self.name)
        assert agent["labels"] == {"a": "b", "team": "x", "project": self.repo.name}, agent

    def code_goes_and_comes(self) -> None:
        self.ok("exec", self.name, "echo two > two; git add two; git commit -qm two; echo 3 > three")
        changed = self.ok("diff", self.name)
        assert "+two" in changed and "+3" in changed
        self.ok("pull", self.name)
        assert self.user.git("log", "-1", "--format=%s", f"mngr/{self.name}", cwd=self.repo) == "two"
        self.ok("merge", self.name)
        assert (self.repo / "two").read_text() == "two\n"
        self.ok("pull", f"{self.name}:three", f"../got-{self.host}")
        got = self.user.root / f"got-{self.host}"
        assert got.read_text() == "3\n"
        self.ok("push", f"{self.name}:sent", str(got))
        assert self.ok("exec", self.name, "cat sent") == "3\n"
        (self.repo / "mine").write_text("mine\n")
        self.user.git("add", ".", cwd=self.repo)
        self.user.git("commit", "-qm", "mine", cwd=self.repo)
        self.ok("push", self.name)
        assert self.ok("exec", self.name, "cat mine") == "mine\n"

    def kept_copied_and_brought_back(self) -> None:
        new = f"bar-{self.host}"
        self.ok("rename", self.name, new)
        self.name = new
        self.ok("snapshot", "create", self.name, f"snap-{self.host}")
        assert f"snap-{self.host}" in self.ok("snapshot", "list")
        self.ok("exec", self.name, "rm three; git reset -q --hard HEAD~1")
        self.ok("snapshot", "restore", f"snap-{self.host}")
        assert self.ok("exec", self.name, "cat three mine") == "3\nmine\n"
        self.ok("clone", self.name, f"copy-{self.host}@{self.host}", "--no-connect")
        assert self.ok("exec", f"copy-{self.host}", "cat three; git log -1 --format=%s") == "3\nmine\n"
        self.ok("destroy", f"copy-{self.host}", "--force")
        assert f"copy-{self.host}" in self.ok("saved", "list")
        self.ok("stop", self.name)
        self.ok("wait", self.name, "STOPPED", "--timeout", "60")
        self.ok("start", self.name)
        assert self.agent(self.name)["state"] == "RUNNING"
        self.ok("archive", self.name)
        assert self.agent(self.name, "--archived")["state"] == "STOPPED"
        self.ok("start", self.name)

    def ended(self) -> None:
        refused = self.mngr("destroy", self.name)
        assert (refused.exit_code, "found nowhere else" in refused.stderr) == (1, True), refused
        self.ok("destroy", self.name, "--force")
        assert "no agent named" in self.mngr("exec", self.name, "true").failed().stderr


@pytest.mark.soak
def test_every_verb_on_each_of_20_hosts(user: User, hosts: NetHosts) -> None:
    lives = [Life(user, name) for name in hosts.hosts]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(Life.whole, lives))
    for words in ((), ("--archived",)):
        left = user.run([MNGR, "list", *words, "--format", "json"], timeout=SECONDS).ok().json
        assert (left["agents"], left["errors"]) == ([], [])
    checks = user.run([MNGR, "doctor", "--format", "json"], timeout=SECONDS).ok().json["checks"]
    healthy = {check["name"] for check in checks if check["status"] == "ok"}
    assert healthy >= {f"host {name}" for name in hosts.hosts}, checks
    user.run([MNGR, "gc"], timeout=SECONDS).ok()
    assert "nothing" in user.run([MNGR, "gc", "--dry-run"], timeout=SECONDS).ok().stdout.lower()
    for host in hosts.hosts.values():
        assert "mngr-" not in host.run(["sh", "-c", "tmux -L mngr ls 2>&1; ls /root/.mngr/agents"]).stdout


@pytest.mark.soak
def test_connect_on_each_of_20_hosts(user: User, hosts: NetHosts) -> None:
    terminal = Terminal(user, "true")
    for name in hosts.hosts:
        user.run([MNGR, "create", f"{name}@{name}", "--no-connect", "--command", "cat"], timeout=SECONDS).ok()
        connect(user, terminal, name)


def connect(user: User, terminal: Terminal, name: str) -> None:
    """Look at the agent, type something, and leave it."""
    terminal.type(f"clear; mngr connect {name}; echo left {name} with $?")
    wait_for(lambda: user.agent(name)["attached"], f"the terminal of {name}", timeout=SECONDS)
    terminal.type(f"typed-{name}")
    wait_for(lambda: terminal.screen().count(f"typed-{name}") > 1, "the echo", timeout=SECONDS)
    terminal.press("C-b", "d")
    terminal.shows(f"left {name} with 0")
