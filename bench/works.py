"""The rows of the benchmark: what a user runs, and the least that any program would have to run for it."""

import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from bench.world import World
from mngr.mapreduce import begun
from tests.support import browser, tmr_runs

PYTHON = [sys.executable, "-c", "pass"]
Commands = Sequence[Sequence[str]]


class Work:
    """One row. `budget` is how many times the floor ours may take. Only `floor` and `ours` are timed."""

    name = ""
    budget = 3.0
    samples = 25
    floor_may_fail = False
    note = ""  # printed below the row

    def set_up_floor(self, world: World) -> None:
        """What the floor needs before its first sample."""

    def set_up(self, world: World) -> None:
        """What ours needs before its first sample."""

    def floor(self, world: World, number: int) -> Commands:
        """Command lines, run one after the other."""
        return [PYTHON]

    def time_floor(self, world: World, number: int) -> float:
        return world.timed(self.floor(world, number), may_fail=self.floor_may_fail)

    def ours(self, world: World, number: int) -> Sequence[str]:
        raise NotImplementedError

    def time_ours(self, world: World, number: int) -> float:
        return world.run(*self.ours(world, number))

    def after_floor(self, world: World, number: int) -> None:
        """Take back what the floor's sample made, so that all samples are alike."""

    def after(self, world: World, number: int) -> None:
        """Take back what our sample made."""

    def close(self) -> None:
        """End what outlives a world."""


class FirstScreen(Work):
    def __init__(self, option: str) -> None:
        self.name = f"mngr {option}"
        self._option = option

    def ours(self, world: World, number: int) -> Sequence[str]:
        return [world.mngr, self._option]


class List(Work):
    """Between 0 and 100 agents the budget is a straight line. Without agents no tmux server runs, so the floor's
    question to it fails, as fast as it can."""

    def __init__(self, agents: int, budget: float) -> None:
        self.name = f"list, {agents} agents"
        self.budget = budget
        self.floor_may_fail = agents == 0
        self._agents = agents

    def set_up(self, world: World) -> None:
        world.create_many(self._agents)

    def floor(self, world: World, number: int) -> Commands:
        return [PYTHON, ["tmux", "-L", "mngr", "list-panes", "-a", "-F", "#{pane_id}"]]

    def ours(self, world: World, number: int) -> Sequence[str]:
        return [world.mngr, "list"]


class Create(Work):
    name = "create --no-connect"
    samples = 15

    def set_up_floor(self, world: World) -> None:
        # Both servers run already, as they do for everyone's second agent.
        world.run(*world.tmux("new-session", "-d", "-s", "first", "sleep 9999"))

    def set_up(self, world: World) -> None:
        world.run(*world.create("first", "sleep 9999"))

    def floor(self, world: World, number: int) -> Commands:
        tree = str(world.trees / str(number))
        return [
            PYTHON,
            ["git", "worktree", "add", "-q", "-b", f"floor/{number}", tree],
            world.tmux("new-session", "-d", "-s", f"floor-{number}", "-c", tree, "sleep 9999"),
        ]

    def ours(self, world: World, number: int) -> Sequence[str]:
        return world.create(f"agent-{number}", "sleep 9999")

    def after_floor(self, world: World, number: int) -> None:
        world.run(*world.tmux("kill-session", "-t", f"=floor-{number}"))
        world.run("git", "worktree", "remove", "--force", str(world.trees / str(number)))
        world.run("git", "branch", "-q", "-D", f"floor/{number}")

    def after(self, world: World, number: int) -> None:
        world.run(world.mngr, "destroy", f"agent-{number}", "--force")


class CreateMany(Work):
    """A hundred by one command, beside as many git and tmux calls in a pool of the same width. Git sometimes refuses
    to add a worktree while another one is being added; it is then asked again."""

    budget = 1.5
    samples = 3
    agents = 100

    def __init__(self, transfer: str) -> None:
        self.name = f"create {self.agents}, {transfer.removeprefix('git-')}"
        self._transfer = transfer

    def set_up_floor(self, world: World) -> None:
        world.run(*world.tmux("new-session", "-d", "-s", "first", "sleep 9999"))

    def set_up(self, world: World) -> None:
        world.run(*world.create("first", "sleep 9999"))

    def time_floor(self, world: World, number: int) -> float:
        began = time.perf_counter()
        world.timed([PYTHON])
        with ThreadPoolExecutor(max_workers=2 * (os.cpu_count() or 1)) as pool:
            list(pool.map(lambda agent: self._make(world, agent), range(self.agents)))
        return time.perf_counter() - began

    def _make(self, world: World, agent: int) -> None:
        tree = str(world.trees / str(agent))
        if self._transfer == "git-mirror":
            world.run("git", "clone", "-q", "--local", ".", tree)
        else:
            world.run_again("git", "worktree", "add", "-q", "-B", f"floor/{agent}", tree)
        world.run(*world.tmux("new-session", "-d", "-s", f"floor-{agent}", "-c", tree, "sleep 9999"))

    def ours(self, world: World, number: int) -> Sequence[str]:
        return [*world.create("w", "sleep 9999"), "--count", str(self.agents), "--transfer", self._transfer]

    def after_floor(self, world: World, number: int) -> None:
        """Here and not by `after`: both sides share one repository, whose list of worktrees is then short again."""
        world.forget_agents()
        self.set_up_floor(world)
        self.set_up(world)


class OnOneAgent(Work):
    """A verb on the one agent there is, beside the one call that does its work on the floor's own session."""

    program = "sleep 9999"

    def set_up_floor(self, world: World) -> None:
        world.run(*world.tmux("new-session", "-d", "-s", "first", "sleep 9999"))
        world.run(*world.tmux("new-session", "-d", "-s", "agent", self.program))

    def set_up(self, world: World) -> None:
        world.run(*world.create("agent", self.program))

    def floor(self, world: World, number: int) -> Commands:
        return [PYTHON, self.call(world)]

    def call(self, world: World) -> Sequence[str]:
        raise NotImplementedError


class Stop(OnOneAgent):
    name = "stop"

    def call(self, world: World) -> Sequence[str]:
        return world.tmux("kill-session", "-t", "=agent")

    def ours(self, world: World, number: int) -> Sequence[str]:
        return [world.mngr, "stop", "agent"]

    def after_floor(self, world: World, number: int) -> None:
        world.run(*world.tmux("new-session", "-d", "-s", "agent", self.program))

    def after(self, world: World, number: int) -> None:
        world.run(world.mngr, "start", "agent")


class Message(OnOneAgent):
    name = "message"
    program = "cat"

    def call(self, world: World) -> Sequence[str]:
        return world.tmux("send-keys", "-t", "=agent:", "hello there", "Enter")

    def ours(self, world: World, number: int) -> Sequence[str]:
        return [world.mngr, "message", "agent", "-m", "hello there"]


class Exec(OnOneAgent):
    name = "exec"

    def call(self, world: World) -> Sequence[str]:
        return ["sh", "-c", "true"]

    def ours(self, world: World, number: int) -> Sequence[str]:
        return [world.mngr, "exec", "agent", "true"]


class Capture(OnOneAgent):
    name = "capture"

    def call(self, world: World) -> Sequence[str]:
        return world.tmux("capture-pane", "-p", "-t", "=agent:")

    def ours(self, world: World, number: int) -> Sequence[str]:
        return [world.mngr, "capture", "agent"]


class Integrate(Work):
    """A hundred clean branches become one, without a gate, beside as many merges. `apart`, each has files of its own;
    otherwise all change different lines of one file, and each merge depends on the one before."""

    samples = 5
    branches = 100

    def __init__(self, *, apart: bool) -> None:
        self.name = f"integrate {self.branches}, {'apart' if apart else 'one file'}"
        self._apart = apart

    def set_up_floor(self, world: World) -> None:
        lines = [f"line {number}\n" for number in range(self.branches * 5)]
        (world.repo / "app.py").write_text("".join(lines))
        world.run("git", "add", ".")
        world.run("git", "commit", "-q", "-m", "base")
        stream = ""
        for number in range(self.branches):
            changed = [*lines[: number * 5], f"mended {number}\n", *lines[number * 5 + 1 :]]
            path, text = (f"src/new{number}.py", f"{number}\n") if self._apart else ("app.py", "".join(changed))
            stream += f"commit refs/heads/w{number}\ncommitter Agent <a@b> 1700000000 +0000\ndata 5\nwork\n\n"
            stream += f"from refs/heads/main^0\nM 100644 inline {path}\ndata {len(text)}\n{text}\n"
        (world.root / "stream").write_text(stream)
        world.run("sh", "-c", 'git fast-import --quiet <"$0"', str(world.root / "stream"))

    def floor(self, world: World, number: int) -> Commands:
        ones = [f"w{branch}" for branch in range(self.branches)]
        return [["git", "merge-tree", "--write-tree", one, ones[at - 1]] for at, one in enumerate(ones)]

    def ours(self, world: World, number: int) -> Sequence[str]:
        script = os.path.join(os.path.dirname(__file__), "integration.py")
        return [sys.executable, script, f"r{number}", "main", *(f"w{branch}" for branch in range(self.branches))]


class Report(Work):
    """Not a ratio: the floor is a second. The pages of a run are written, in seconds of CPU: what else the machine does
    has no floor here to be divided by."""

    samples = 3
    tasks = 1000
    budget = 10.0

    def __init__(self) -> None:
        self.name = f"report, {self.tasks}: CPU s"

    def set_up_floor(self, world: World) -> None:
        made = tmr_runs.make_run(world.repo, "many", tmr_runs.many(self.tasks))
        begun.note(str(world.home / ".mngr"), str(world.repo), str(made))

    def time_floor(self, world: World, number: int) -> float:
        return 1.0

    def ours(self, world: World, number: int) -> Sequence[str]:
        return [world.mngr, "tmr", "report", "many", "--output", str(world.root / f"pages-{number}")]

    def time_ours(self, world: World, number: int) -> float:
        before = os.times()
        world.run(*self.ours(world, number))
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system


class FirstPaint(Report):
    """The same pages, opened from disk in Chromium: until the first of them shows its data."""

    budget = 1.5

    def __init__(self) -> None:
        self.name = f"report, {self.tasks}: paint s"

    def set_up(self, world: World) -> None:
        world.run(*self.ours(world, 0))

    def time_ours(self, world: World, number: int) -> float:
        with browser.browser() as chromium:
            page = chromium.tab()
            browser.go(page, (world.root / "pages-0" / "index.html").as_uri())
            return float(page.evaluate("performance.getEntriesByName('mngr-shown')[0].startTime")) / 1000


WORKS: tuple[Work, ...] = (
    FirstScreen("--version"),
    FirstScreen("--help"),
    List(0, budget=4),
    List(10, budget=4.2),
    List(100, budget=6),
    Create(),
    CreateMany("git-worktree"),
    CreateMany("git-mirror"),
    Stop(),
    Message(),
    Exec(),
    Capture(),
    Integrate(apart=True),
    Integrate(apart=False),
    Report(),
    *((FirstPaint(),) if browser.BROWSER else ()),
)
NOT_MEASURED = () if browser.BROWSER else ("the first paint of a report (no Chromium)",)
