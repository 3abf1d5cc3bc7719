"""`mngr demo`: five agents on a sample project, without a model, from start to merged work.

The demo has a state directory of its own, beside its sample project: it never sees the user's agents, needs no names
that could be taken, and can clean up after itself by removing every agent it finds there. Of the user's world it shares
only the tmux server, where sessions belong to agents by id, and which ends with its last session.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from mngr import files, interrupts, process, waiting
from mngr.actions import commits, find, lifecycle
from mngr.actions import create as creating
from mngr.actions import destroy as destroying
from mngr.actions import message as messages
from mngr.actions.agent import Agent
from mngr.actions.create import Request
from mngr.actions.fleet import Fleet
from mngr.agents.kinds import kind as kinds
from mngr.cli import targets
from mngr.cli.app import App
from mngr.cli.board import Board
from mngr.cli.parser import Args, Parser
from mngr.cli.telling import Teller
from mngr.cli.terminal import is_terminal
from mngr.cli.text import amount
from mngr.demo import place as places
from mngr.demo import report
from mngr.demo.cast import ANSWER, CAST, Part
from mngr.demo.place import Place
from mngr.demo.report import Outcome, Work
from mngr.demo.timeline import Timeline
from mngr.errors import MngrError, TimedOut
from mngr.process import quote
from mngr.tools.git import Git

DESCRIPTION = (
    "Make a small project, let five agents work on it at the same time, answer the one that asks, merge what they did "
    "and run the tests. The agents follow scripts: no model, no account, no network. Every step shows the command that "
    "does it. Your own agents and repositories are not touched."
)
EXAMPLES = (
    ("mngr demo", "in a new directory, ./mngr-demo"),
    ("mngr demo --keep", "and leave the agents there, to look around"),
)

_SECONDS = 60.0
# Long enough to be seen, short enough not to bore.
_SECONDS_BLOCKED = 2.5
_FEWEST_LINES = 12
_RESTING = ("WAITING", "DONE")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--dir", metavar="DIR", help="where to put it; must be new or empty (default: ./mngr-demo)")
    parser.add_argument("--keep", action="store_true", help="leave the agents as they are at the end")


def run(args: Args, app: App) -> int:
    for program in ("git", "tmux"):
        process.require_program(program)
    place = places.claim(os.getcwd(), args.dir)
    tour = Tour(app, place)
    try:
        outcome = tour.walk(keep=args.keep)
    except BaseException:
        with interrupts.held():
            tour.clean_up()
        raise
    app.out.emit_object(report.as_json(outcome), human=place.report)
    return 0


class Tour:
    """The steps, each told with the command that does it. Only `clean_up` may be called after one failed."""

    def __init__(self, app: App, place: Place) -> None:
        self.out = app.out
        self.place = place
        self.environ = _environ(app.environ, place)
        self.fleet = Fleet(environ=self.environ, cwd=place.repository)
        self.teller = Teller(app.out)
        self.in_place = is_terminal(app.stdout) and app.environ.get("TERM") != "dumb" and _lines() >= _FEWEST_LINES
        self.timeline = Timeline(part.name for part in CAST)
        self.pool = ThreadPoolExecutor(max_workers=len(CAST))
        self.asked = False
        self.began = time.time()

    def walk(self, *, keep: bool) -> Outcome:
        before = self.make_project()
        agents, seconds_worked = self.work()
        work = self.look_at(agents)
        self.merge(agents)
        after = self.test()
        if not keep:
            self.remove(agents)
        head = self.show_log()
        outcome = Outcome(
            place=self.place,
            work=work,
            before=before,
            after=after,
            base=agents[0].record.base_commit or "",
            head=head,
            seconds_worked=seconds_worked,
            seconds=time.time() - self.began,
            kept=keep,
            commands=tuple(self.teller.commands),
        )
        files.write_atomic(self.place.report, report.markdown(outcome).encode(), 0o644)
        self.say_goodbye(outcome)
        return outcome

    def make_project(self) -> places.Tests:
        self.teller.title("Five agents work on one small project, all at the same time")
        self.teller.say("They follow scripts: no model, no account, no network.")
        self.teller.say("Lines that begin with $ are what you would type.")
        self.teller.title("A small project with a bug or two")
        places.furnish(self.place)
        self.teller.command(f"demo={quote(self.place.directory)}")
        self.teller.command(f"cd {self._path('bill')} && ls")
        self.teller.say(
            "  ".join(sorted(name for name in os.listdir(self.place.repository) if not name.startswith(".")))
        )
        self.teller.command("python3 -m unittest")
        tests = places.run_tests(self.place, self.environ)
        self.teller.say(tests.sentence)
        return tests

    def work(self) -> tuple[list[Agent], float]:
        """Create the agents, all at once, and watch them until they rest. Answers the one that asks."""
        self.teller.title("Five agents, each with its own copy of it")
        self.teller.command(f"export MNGR_HOST_DIR={self._path('host')}")
        for part in CAST:
            transfer = f" --transfer {part.transfer} \\\n   " if part.transfer != "git-worktree" else ""
            script = self._path(f"{part.name}.script")
            self.teller.command(f"mngr create {part.name} --no-connect{transfer} --type scripted -- {script}")
        self.teller.title("What they do, live")
        self.teller.command("mngr list --watch", "Ctrl-C ends it")
        self.fleet.host.prepare()
        kind = kinds.resolve("scripted", self.fleet.settings)
        board = Board(self.out, in_place=self.in_place, speaks=self.teller.speaks)
        began = time.time()
        try:
            made = [
                self.pool.submit(
                    creating.create,
                    self.fleet,
                    Request(part.name, kind, rest=(self.place.script(part.name),), transfer=part.transfer),
                )
                for part in CAST
            ]
            for agents in self._seen(board, began):
                for future in made:
                    if future.done():
                        future.result()
                for agent in agents:
                    last = self.timeline.last(agent.name)
                    if agent.state == "BLOCKED" and last is not None:
                        self._answer(agent, board, time.time() - began - last.at)
                if len(agents) == len(CAST) and all(agent.state in _RESTING for agent in agents):
                    return agents, time.time() - began
        finally:
            board.close()
        slow = ", ".join(f"`{agent.name}` is {agent.state}" for agent in agents if agent.state not in _RESTING)
        raise TimedOut(f"after {_SECONDS:g} s {slow}", hint="is this machine very busy? Try again")

    def _seen(self, board: Board, began: float) -> Iterator[list[Agent]]:
        """The agents in the order of their parts, now and after every change."""
        directory = os.path.join(self.place.host_dir, "agents")
        every = 0.1 if self.in_place else 0.25
        for _ in waiting.changes([directory], deadline=waiting.Deadline(_SECONDS), at_least_every=every):
            found = {agent.name: agent for agent in find.listing(self.fleet).agents}
            agents = [found[part.name] for part in CAST if part.name in found]
            now = time.time() - began
            for agent in agents:
                self.timeline.see(agent.name, agent.state, agent.status.reason, now)
            board.show(self.timeline, now)
            for agent in agents:
                if agent.state in ("FAILED", "STOPPED"):
                    raise self._failed(agent)
            yield agents

    def _answer(self, agent: Agent, board: Board, blocked_for: float) -> None:
        """Show the question, let it be seen for a moment, answer."""
        if not self.asked:
            self.asked = True
            board.clear()
            self.teller.command(f"mngr wait {agent.name} BLOCKED")
            self.teller.say(f"{agent.name} is BLOCKED: {agent.status.reason}")
        elif blocked_for >= _SECONDS_BLOCKED:
            board.clear()
            self.teller.command(f"mngr message {agent.name} -m {quote(ANSWER)}")
            messages.deliver(self.fleet, agent, ANSWER)
            self.teller.say(f"{agent.name}: acknowledged")
            self.teller.command("mngr list --ids | mngr wait - WAITING DONE")

    def look_at(self, agents: Sequence[Agent]) -> tuple[Work, ...]:
        self.teller.title("What each of them changed")
        colour = ["--color=always"] if self.out.colour else []
        work = []
        for part, agent in zip(CAST, agents, strict=True):
            self.teller.command(f"mngr diff {agent.name} --stat")
            self.teller.show(commits.diff(self.fleet, agent, "--stat", *colour))
            work.append(self._work_of(part, agent))
        return tuple(work)

    def _work_of(self, part: Part, agent: Agent) -> Work:
        git = Git(self.fleet.host, agent.record.work_dir)
        log = git.must("log", "--reverse", "--format=%h %s", f"{agent.record.base_commit}..HEAD")
        made = tuple((line.partition(" ")[0], line.partition(" ")[2]) for line in log.split("\n") if line)
        changed = commits.diff(self.fleet, agent, "--name-only").decode(errors="replace").split()
        return Work(part, made, tuple(changed), tuple(self.timeline.spans[part.name]))

    def merge(self, agents: Sequence[Agent]) -> None:
        self.teller.title("All of it on one branch")
        for agent in agents:
            if agent.record.transfer == "git-mirror":
                self.teller.command(f"mngr pull {agent.name}")
                pulled = commits.pull(self.fleet, agent)
                self.teller.say(f"{amount(pulled.commits, 'commit')} of {agent.name} on branch {pulled.branch}")
        for agent in agents:
            self.teller.command(f"mngr merge {agent.name}")
            merged = commits.merge(self.fleet, agent)
            self.teller.say(f"merged {amount(merged.commits, 'commit')} of {agent.name} into {merged.into}")

    def test(self) -> places.Tests:
        self.teller.command("python3 -m unittest")
        tests = places.run_tests(self.place, self.environ)
        self.teller.say(tests.sentence, "green" if not tests.failed else "red")
        if tests.failed:
            raise MngrError(
                f"the merged work does not pass its tests: {tests.sentence}",
                hint=f"`cd {quote(self.place.repository)} && python3 -m unittest` shows which",
            )
        return tests

    def remove(self, agents: Sequence[Agent]) -> None:
        """Without force: that it works proves that nothing would be lost."""
        self.teller.title("The agents can go, their work stays")
        self.teller.command("mngr stop --all")
        self._each(agents, lambda agent: lifecycle.stop(self.fleet, agent))
        self.teller.say(f"stopped {amount(len(agents), 'agent')}")
        self.teller.command("mngr destroy --all")
        self._each(agents, lambda agent: destroying.destroy(self.fleet, agent.id))
        self.teller.say(f"destroyed {amount(len(agents), 'agent')}; nothing was lost")

    def show_log(self) -> str:
        git = Git(self.fleet.host, self.place.repository)
        self.teller.command("git log --oneline --graph")
        colour = ["--color=always"] if self.out.colour else []
        self.teller.show(process.checked(git.run("log", "--oneline", "--graph", *colour)).stdout)
        return git.must("rev-parse", "HEAD")

    def say_goodbye(self, outcome: Outcome) -> None:
        self.teller.title(
            f"{len(CAST)} agents, {amount(sum(len(work.commits) for work in outcome.work), 'commit')}, "
            f"{outcome.after.sentence}, in {outcome.seconds:.0f} s"
        )
        if outcome.kept:
            self.teller.say("The agents are still there. In this terminal:")
            self.teller.command(f"cd {quote(self.place.repository)}; export MNGR_HOST_DIR={quote(self.place.host_dir)}")
            self.teller.command(f"mngr list; mngr connect {CAST[0].name}")
            self.teller.command("mngr destroy --all --force")
        else:
            self.teller.say("With an agent of your own, in a repository of yours:")
            self.teller.command("mngr create fix-login --message 'Fix the login test'")
        self.teller.say(f"`rm -r {quote(self.place.directory)}` removes the demo. Its report:")

    def clean_up(self) -> None:
        """Leave nothing running, whatever happened."""
        self.pool.shutdown()  # what is being created now would be missed
        agents = find.listing(self.fleet).agents
        outcomes = targets.each(agents, lambda agent: destroying.destroy(self.fleet, agent.id, force=True))
        for agent, result in outcomes:
            if isinstance(result, MngrError):
                self.out.warn(
                    f"`{agent.name}` could not be removed: {result.message}\n"
                    f"  hint: `MNGR_HOST_DIR={quote(self.place.host_dir)} mngr destroy --all --force`"
                )
        self.out.note(f"the agents of the demo are stopped; what it made so far is in `{self.place.directory}`")

    def _each(self, agents: Sequence[Agent], act: Callable[[Agent], object]) -> None:
        for _, result in targets.each(list(agents), act):
            if isinstance(result, MngrError):
                raise result

    def _failed(self, agent: Agent) -> MngrError:
        screen = self.fleet.tmux.capture(agent.pane) if agent.pane else ""
        return MngrError(
            f"`{agent.name}` is {agent.state}: {agent.status.reason}",
            details="\n".join([line for line in screen.split("\n") if line.strip()][-15:]),
        )

    def _path(self, name: str) -> str:
        """A path in the demo's directory, in the words of a shell that ran the commands so far."""
        text = f"$demo/{name}"
        return text if quote(self.place.directory) == self.place.directory else f'"{text}"'


def _environ(environ: Mapping[str, str], place: Place) -> dict[str, str]:
    """What the agents get: not the user's settings and git hooks, and a `python3` that is there."""
    return {
        **{name: value for name, value in environ.items() if not name.startswith("MNGR_")},
        "MNGR_HOST_DIR": place.host_dir,
        "PATH": os.path.dirname(sys.executable) + ":" + environ.get("PATH", os.defpath),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": os.devnull,
    }


def _lines() -> int:
    import shutil

    return shutil.get_terminal_size().lines
