"""`mngr demo`: a whole test map-reduce on a sample project, without a model, from its tests to a branch and a report.

It runs the `mngr tmr` that it shows. Its state directory is its own, so it never sees the user's agents, and removes
every agent that it finds there. It shares only the tmux server with the user.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mngr.cli import catalog, targets, trust_prompt
from mngr.cli.app import App
from mngr.cli.dispatch import command_parser
from mngr.cli.output.amounts import amount
from mngr.cli.output.narrator import Narrator
from mngr.cli.parser import scan
from mngr.cli.parser.parser import Args, Parser
from mngr.cli.tmr import orchestrator
from mngr.cli.tmr.result_forms import FINISHED
from mngr.demo import sample
from mngr.demo.sample import DemoDirectory
from mngr.errors import PARTIAL, MngrError
from mngr.mapreduce.run import Run
from mngr.programs import driver
from mngr.programs.kind import KNOWN_AGENTS
from mngr.system import interrupts, process
from mngr.system.git import Git
from mngr.system.process import quote

if TYPE_CHECKING:
    from mngr.actions.destroy import Destroyed
    from mngr.fleet.agent import Agent
    from mngr_testing.model_server import ModelServer

DESCRIPTION = (
    "Create a small project with failing tests, start an agent for each test, verify what the agents claim, and put "
    "the verified changes on one branch, with a report. The agents follow scripts: no model, no account, no network. "
    "Some of them crash, ask, contradict each other or lie. Each step shows its command. Your own agents and "
    "repositories are not changed."
)
EXAMPLES = (
    ("mngr demo", "in a new directory, ./mngr-demo"),
    ("mngr demo --keep", "keep the agents, to look around"),
    ("mngr demo --type claude", "with real Claude Code agents, and a local model that follows the scripts"),
)

_RUN = "demo"
SCRIPTED = "scripted"


def results() -> list[Any]:
    return [{**FINISHED, "repository": str, "host_dir": str, "agents_kept": bool}]


def add_arguments(parser: Parser) -> None:
    parser.option("--dir DIR", "directory for the demo; must be new or empty (default: ./mngr-demo)")
    parser.option(
        "--type",
        "kind of the agents; real programs use a local model that follows the same scripts",
        choices=(SCRIPTED, *KNOWN_AGENTS),
        default=SCRIPTED,
    )
    parser.option("--keep", "keep the agents at the end")


def run(args: Args, app: App) -> int:
    for program in ("git", "tmux"):
        process.require_program(program)
    if not find_spec("pytest"):
        raise MngrError("the tests of the sample project need `pytest`", hint="pip install 'mngr[e2e]'")
    with _model(args.type) as model:
        tour = Tour(app, sample.claim(os.getcwd(), args.dir), args.type, model)
        try:
            return tour.walk(keep=args.keep)
        except BaseException:
            with interrupts.held():
                tour.clean_up()
            raise


@contextmanager
def _model(kind: str) -> Iterator[ModelServer | None]:
    """A local model server for real programs."""
    if kind == SCRIPTED:
        yield None
        return
    if not find_spec("mngr_testing"):
        raise MngrError(
            "the model that follows scripts, for real programs, is in `mngr-testing`, which is not installed",
            hint="pip install mngr-testing",
        )
    if process.find_program(kind) is None:
        install = driver.find(kind).program.install
        raise MngrError(f"`{kind}` is not installed, or not on PATH", hint=f"`{install}`")
    from mngr_testing.model_server import ModelServer, agent_scripts

    with ModelServer(rules=agent_scripts.rules(sample.SCRIPTS)) as server:
        yield server


class Tour:
    """The steps of the demo, each shown with its command. After a failed step, only `clean_up` may be called."""

    def __init__(self, app: App, place: DemoDirectory, kind: str, model: ModelServer | None) -> None:
        self.outer, self.place, self.kind, self.model = app, place, kind, model
        environ = {**_environ(app.environ, place), **(model.env(kind) if model is not None else {})}
        self.app = App(environ, app.stdin, app.stdout, app.stderr)
        self.narrator = Narrator(app.out)

    def walk(self, *, keep: bool) -> int:
        """Run all steps and return the exit code: 0 although some agents fail, lie or ask; 1 for a red branch."""
        self.make_project()
        made = self.begin()
        with orchestrator.working(self.app, made) as work:
            code = work.go()
        found = orchestrator.result(made)
        if self.narrator.speaks or not self.app.out.human:
            where = {"repository": self.place.repository, "host_dir": self.place.host_dir, "agents_kept": keep}
            orchestrator.tell(self.app, made, {**found, **where})
        if not keep:
            self.remove()
        self.say_goodbye(found["integration"] or {}, keep=keep)
        self.outer.out.line(found["report"])
        return 0 if code == PARTIAL else code

    def make_project(self) -> None:
        self.narrator.title("One agent for each test of a small project, all at the same time")
        real = f"are real `{self.kind}` programs. Their model runs on this machine and follows scripts: no account,"
        what = "follow scripts: no model, no account," if self.model is None else real
        self.narrator.say(f"The agents {what} no network. Some of them lie.")
        self.narrator.say("Lines that begin with $ are what you would type.")
        self.narrator.title("The project, after a hasty commit on a Friday evening")
        sample.write_project(self.place)
        trust_prompt.trust_made(self.app, self.place.repository)
        self.narrator.command(f"demo={quote(self.place.directory)}; cd {self._path(sample.NAME)}")
        self.narrator.command("git log --oneline --stat -1")
        colour = ["--color=always"] if self.app.out.colour else []
        shown = Git.of_user(self.place.repository).run("log", "--oneline", "--stat", "-1", *colour)
        self.narrator.show(process.checked(shown).stdout)

    def begin(self) -> Run:
        """Begin the run of the `mngr tmr` that is shown."""
        self.narrator.title("Collect the tests, measure them, let agents work, verify their claims, integrate")
        self._enter()
        shown = " ".join(["mngr", "tmr", *self._words(self._path)])
        self.narrator.command(shown.replace(" --integrator", " \\\n    --integrator"))
        entry = catalog.find("tmr")
        assert entry is not None
        words = [*_as_asked(self.outer), *self._words(lambda name: os.path.join(self.place.directory, name))]
        args = scan.parse(command_parser(entry), words)
        self.app.configure(args)
        return orchestrator.begin(args, self.app)

    def remove(self) -> None:
        """By force: the agents are stopped, and their work is in the repository and the run's directory."""
        self.narrator.title("Destroy the agents; their work is kept")
        self.narrator.command("mngr destroy --all --force")
        gone = self._destroy()
        for _, result in gone:
            if isinstance(result, MngrError):
                raise result
        self.narrator.say(f"destroyed {amount(len(gone), 'agent')}")

    def _destroy(self) -> list[tuple[Agent, Destroyed | MngrError]]:
        agents = self.app.fleet.list().agents if os.path.isdir(self.place.host_dir) else []
        return targets.each(agents, lambda agent: agent.destroy(force=True), list)

    def say_goodbye(self, integration: Mapping[str, object], *, keep: bool) -> None:
        # The user types these in the directory where the demo began.
        there = f"cd {quote(self.place.repository)}; export MNGR_HOST_DIR={quote(self.place.host_dir)}"
        if keep:
            self.narrator.title("The agents are still there")
            self.narrator.command(there)
            self.narrator.command("mngr list; mngr tmr connect watering-a")
            self.narrator.command("mngr destroy --all --force")
        if branch := integration.get("branch"):
            self.narrator.title("Read the branch")
            if not keep:
                self.narrator.command(there)
            self.narrator.command(f"git log -p main..{branch}")
            self.narrator.command("mngr tmr review")
        self.narrator.say("In your own repository, with real agents: `mngr tmr init`, then `mngr tmr`.")
        self.narrator.say(f"`rm -r {quote(self.place.directory)}` removes the demo. Its report:")

    def clean_up(self) -> None:
        """Destroy all agents of the demo, after a failure too."""
        for agent, result in self._destroy():
            if isinstance(result, MngrError):
                self.outer.out.warn(
                    f"`{agent.name}` could not be removed: {result.message}\n"
                    f"  hint: `MNGR_HOST_DIR={quote(self.place.host_dir)} mngr destroy --all --force`"
                )
        self.outer.out.note(f"the demo's agents were destroyed; its files are in `{self.place.directory}`")

    def _words(self, path: Callable[[str], str]) -> list[str]:
        """The arguments of `mngr tmr`; `path` turns the name of a file into its path."""
        words = ["--name", _RUN, "--type", self.kind]
        if self.model is not None:
            return [*words, "--permissions", "bypass", "--", *self.model.args(self.kind)]
        integrator, mapper = path("scripts/integrator.script"), path("scripts/{name}.script")
        return [*words, "--integrator-arg", integrator, "--", mapper]

    def _enter(self) -> None:
        """Change to the directory, and use the programs, of a person who typed the commands so far."""
        programs = os.path.dirname(sys.executable)
        mine = process.find_program("python3") == os.path.join(programs, "python3")
        path = "" if mine else f" PATH={quote(programs)}:$PATH"
        self.narrator.command(f"export MNGR_HOST_DIR={self._path('host')}{path}")
        os.chdir(self.place.repository)
        os.environ["PATH"] = self.app.environ["PATH"]

    def _path(self, name: str) -> str:
        """A path in the demo's directory, for a shell that ran the commands so far."""
        text = f"$demo/{name}"
        return text if quote(self.place.directory) == self.place.directory else f'"{text}"'


def _as_asked(app: App) -> list[str]:
    """The common options that were given to the demo."""
    quiet, headless = ["--quiet"] * (app.verbosity < 0), ["--headless"] * app.headless
    return ["--format", app.format, *quiet, *headless]


def _environ(environ: Mapping[str, str], place: DemoDirectory) -> dict[str, str]:
    """The agents' environment: without the user's settings and git hooks, with this Python on PATH."""
    return {
        **{name: value for name, value in environ.items() if not name.startswith("MNGR_")},
        "MNGR_HOST_DIR": place.host_dir,
        "PATH": os.path.dirname(sys.executable) + ":" + environ.get("PATH", os.defpath),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": os.devnull,
    }
