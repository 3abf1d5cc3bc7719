"""`mngr demo`: the whole test map-reduce on a sample project, without a model, from its tests to a branch and a report.

It runs the `mngr tmr` that it shows. It has a state directory of its own, beside its sample project: it never sees the
user's agents, needs no names that could be taken, and can clean up after itself by removing every agent it finds there.
Of the user's world it shares only the tmux server, where sessions belong to agents by id, and which ends with its last
session.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec

from mngr import interrupts, process
from mngr.agents.kinds import driver
from mngr.agents.kinds.kind import KNOWN_AGENTS
from mngr.cli import catalog, targets, trusting
from mngr.cli.app import App
from mngr.cli.dispatch import command_parser
from mngr.cli.parser import Args, Parser
from mngr.cli.telling import Teller
from mngr.cli.text import amount
from mngr.cli.tmr import ending, starting
from mngr.demo import place as places
from mngr.demo import sample
from mngr.demo.place import Place
from mngr.errors import PARTIAL, MngrError
from mngr.mapreduce.run import Run
from mngr.process import quote
from mngr.records import TYPE_CHECKING
from mngr.tools.git import Git

if TYPE_CHECKING:
    from mngr.testing.model_server import ModelServer

DESCRIPTION = (
    "Make a small project with failing tests, let an agent work on each of its tests, measure what they claim, and put "
    "what holds onto one branch, with a report. The agents follow scripts: no model, no account, no network. Some of "
    "them crash, ask, contradict each other or lie. Every step shows the command that does it. Your own agents and "
    "repositories are not touched."
)
EXAMPLES = (
    ("mngr demo", "in a new directory, ./mngr-demo"),
    ("mngr demo --keep", "and leave the agents there, to look around"),
    ("mngr demo --type claude", "with the real program, and a model that follows the scripts"),
)

_RUN = "demo"
SCRIPTED = "scripted"
_NEEDED = ("pytest", "pyte")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--dir", metavar="DIR", help="where to put it; must be new or empty (default: ./mngr-demo)")
    parser.add_argument(
        "--type",
        choices=(SCRIPTED, *KNOWN_AGENTS),
        default=SCRIPTED,
        help="what the agents are; real programs talk to a model on this machine that follows the same scripts",
    )
    parser.add_argument("--keep", action="store_true", help="leave the agents as they are at the end")


def run(args: Args, app: App) -> int:
    for program in ("git", "tmux"):
        process.require_program(program)
    missing = [name for name in _NEEDED if not find_spec(name)]
    if missing:
        raise MngrError(
            f"the tests of the sample project need {' and '.join(f'`{name}`' for name in missing)}",
            hint="pip install 'mngr[e2e]'",
        )
    with _model(args.type) as model:
        tour = Tour(app, places.claim(os.getcwd(), args.dir), args.type, model)
        try:
            return tour.walk(keep=args.keep)
        except BaseException:
            with interrupts.held():
                tour.clean_up()
            raise


@contextmanager
def _model(kind: str) -> Iterator[ModelServer | None]:
    """A model for real programs, on this machine."""
    if kind == SCRIPTED:
        yield None
        return
    if process.find_program(kind) is None:
        install = driver.find(kind).program.install
        raise MngrError(f"`{kind}` is not installed, or not on PATH", hint=f"`{install}`")
    from mngr.demo import model
    from mngr.testing.model_server import ModelServer

    with ModelServer(rules=model.rules(sample.scripts())) as server:
        yield server


class Tour:
    """The steps, each told with the command that does it. Only `clean_up` may be called after one failed."""

    def __init__(self, app: App, place: Place, kind: str, model: ModelServer | None) -> None:
        self.outer, self.place, self.kind, self.model = app, place, kind, model
        environ = {**_environ(app.environ, place), **(model.env(kind) if model is not None else {})}
        self.app = App(environ, app.stdin, app.stdout, app.stderr)
        self.teller = Teller(app.out)

    def walk(self, *, keep: bool) -> int:
        """Returns the exit code: that some agents fail, lie or ask is what the demo is about, a red branch is not."""
        self.make_project()
        made = self.begin()
        with starting.working(self.app, made) as work:
            code = work.go()
        found = ending.result(made)
        if self.teller.speaks or not self.app.out.human:
            where = {"repository": self.place.repository, "host_dir": self.place.host_dir, "agents_kept": keep}
            ending.tell(self.app, made, {**found, **where})
        if not keep:
            self.remove()
        self.say_goodbye(found["integration"] or {}, keep=keep)
        self.outer.out.line(found["report"])
        return 0 if code == PARTIAL else code

    def make_project(self) -> None:
        self.teller.title("An agent for each test of a small project, all at the same time")
        if self.model is None:
            self.teller.say("They follow scripts: no model, no account, no network. Some of them lie.")
        else:
            self.teller.say(
                f"They are real `{self.kind}` agents. Their model is on this machine and follows scripts: no account, "
                "no network. Some of them lie."
            )
        self.teller.say("Lines that begin with $ are what you would type.")
        self.teller.title("The project, after a hasty commit on a Friday evening")
        places.furnish(self.place)
        trusting.trust_made(self.app, self.place.repository)
        self.teller.command(f"demo={quote(self.place.directory)}; cd {self._path(sample.NAME)}")
        self.teller.command("git log --oneline --stat -1")
        colour = ["--color=always"] if self.app.out.colour else []
        shown = Git(process, self.place.repository).run("log", "--oneline", "--stat", "-1", *colour)
        self.teller.show(process.checked(shown).stdout)

    def begin(self) -> Run:
        """The run that the shown words ask for, made as `mngr tmr` makes it."""
        self.teller.title("Collect its tests, measure them, let agents work, measure again, integrate what holds")
        self._enter()
        shown = " ".join(["mngr", "tmr", *self._words(self._path)])
        self.teller.command(shown.replace(" --integrator", " \\\n    --integrator"))
        entry = catalog.find("tmr")
        assert entry is not None
        parser = command_parser(entry)
        words = [*_as_asked(self.outer), *self._words(lambda name: os.path.join(self.place.directory, name))]
        args = parser.bind(parser.scan(words))
        self.app.configure(args)
        return starting.begin(args, self.app)

    def remove(self) -> None:
        """By force: they are stopped, and what they made is in the repository and the run's directory by now."""
        self.teller.title("The agents can go, their work stays")
        self.teller.command("mngr destroy --all --force")
        agents = self.app.fleet.list().agents
        for _, result in targets.each(agents, lambda agent: self.app.fleet.destroy(agent, force=True), list):
            if isinstance(result, MngrError):
                raise result
        self.teller.say(f"destroyed {amount(len(agents), 'agent')}")

    def say_goodbye(self, integration: Mapping[str, object], *, keep: bool) -> None:
        # Whoever types these is where the demo was begun.
        there = f"cd {quote(self.place.repository)}; export MNGR_HOST_DIR={quote(self.place.host_dir)}"
        if keep:
            self.teller.title("The agents are still there")
            self.teller.command(there)
            self.teller.command("mngr list; mngr tmr connect watering-a")
            self.teller.command("mngr destroy --all --force")
        if branch := integration.get("branch"):
            self.teller.title("The branch is yours to read")
            if not keep:
                self.teller.command(there)
            self.teller.command(f"git log -p main..{branch}")
            self.teller.command("mngr tmr review")
        self.teller.say("With agents of your own, in a repository of yours: `mngr tmr init`, then `mngr tmr`.")
        self.teller.say(f"`rm -r {quote(self.place.directory)}` removes the demo. Its report:")

    def clean_up(self) -> None:
        """Leave nothing running, whatever happened."""
        agents = self.app.fleet.list().agents if os.path.isdir(self.place.host_dir) else []
        for agent, result in targets.each(agents, lambda agent: self.app.fleet.destroy(agent, force=True), list):
            if isinstance(result, MngrError):
                self.outer.out.warn(
                    f"`{agent.name}` could not be removed: {result.message}\n"
                    f"  hint: `MNGR_HOST_DIR={quote(self.place.host_dir)} mngr destroy --all --force`"
                )
        self.outer.out.note(f"the agents of the demo are gone; what it made so far is in `{self.place.directory}`")

    def _words(self, path: Callable[[str], str]) -> list[str]:
        """What the demo asks `mngr tmr` for; a path is what `path` makes of its name."""
        words = ["--name", _RUN, "--type", self.kind]
        if self.model is not None:
            return [*words, "--permissions", "bypass", "--", *self.model.args(self.kind)]
        integrator, mapper = path("scripts/integrator.script"), path("scripts/{name}.script")
        return [*words, "--integrator-arg", integrator, "--", mapper]

    def _enter(self) -> None:
        """Be where a person would be who typed the commands so far, with the same programs."""
        programs = os.path.dirname(sys.executable)
        mine = process.find_program("python3") == os.path.join(programs, "python3")
        path = "" if mine else f" PATH={quote(programs)}:$PATH"
        self.teller.command(f"export MNGR_HOST_DIR={self._path('host')}{path}")
        os.chdir(self.place.repository)
        os.environ["PATH"] = self.app.environ["PATH"]

    def _path(self, name: str) -> str:
        """A path in the demo's directory, in the words of a shell that ran the commands so far."""
        text = f"$demo/{name}"
        return text if quote(self.place.directory) == self.place.directory else f'"{text}"'


def _as_asked(app: App) -> list[str]:
    """The options that every verb has, as they were given to the demo."""
    quiet, headless = ["--quiet"] * (app.verbosity < 0), ["--headless"] * app.headless
    return ["--format", app.format, *quiet, *headless]


def _environ(environ: Mapping[str, str], place: Place) -> dict[str, str]:
    """What the agents get: not the user's settings and git hooks, and a `python` that is there."""
    return {
        **{name: value for name, value in environ.items() if not name.startswith("MNGR_")},
        "MNGR_HOST_DIR": place.host_dir,
        "PATH": os.path.dirname(sys.executable) + ":" + environ.get("PATH", os.defpath),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": os.devnull,
    }
