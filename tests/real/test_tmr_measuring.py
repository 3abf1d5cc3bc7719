"""Copies of the code for measurements: each made ready once; what an agent leaves does not speak in another."""

import json
from pathlib import Path

import pytest

import mngr
from mngr.mapreduce.run import Run
from mngr.tmr.measure.measurement import Measurement, MeasurementResult, Pytest, SuiteEnvironment
from mngr.tmr.measure.measurer import Measurer
from tests.support.tmr import NO_CHANGE, PRODUCT, Project
from tests.support.user import User

pytestmark = pytest.mark.timeout(300)
# Writes a line for each copy of a measurement, and none for those of agents.
PREPARE = (
    "sleep 2.1; mkdir -p .deps; cat requirements.txt >.deps/ready.py; pwd >.deps/where; "
    "[ ! -d .mngr/task/job ] || echo x >>{log}"
)
NEEDS = "import ready\n\n\ndef test_ready():\n    import os\n    assert ready.READY == 1\n"
NEEDS += "    assert open('.deps/where').read().strip() == os.getcwd()\n"


class Measured:
    """A project whose `prepare` takes long, and a measurer of it."""

    def __init__(self, user: User) -> None:
        self.project = Project(user)
        self.log = user.root / "prepared.log"
        self.project.settings["prepare"] = PREPARE.format(log=self.log)
        self.project.settings["env.PYTHONPATH"] = ".:.deps"
        self.project.write(".mngr/settings.toml", self.project.toml())
        self.project.write("requirements.txt", "READY = 1\n")
        self.project.write("tests/test_ready.py", NEEDS)
        self.project.write(".gitignore", "__pycache__/\n.deps/\n.mngr/runs/\n")
        self.project.script("test_ready", NO_CHANGE)
        self.base = self.project.commit("a project that needs something")

    @property
    def prepared(self) -> int:
        return len(self.log.read_text().split()) if self.log.exists() else 0

    def measurer(self, user: User, at_once: int = 1) -> Measurer:
        place = Path(self.project.repo) / ".mngr" / "runs" / "m"
        place.mkdir(parents=True)
        environment = SuiteEnvironment(
            self.project.settings["test_command"],
            prepare=self.project.settings["prepare"],
            env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": ".:.deps"},
        )
        fleet = mngr.Fleet(environ=user.env, cwd=str(user.repo))
        jobs = str(place / "jobs")
        return Measurer(
            fleet,
            Run(str(place)),
            repo=str(user.repo),
            directory=jobs,
            environment=environment,
            at_once=at_once,
            base=self.base,
        )


def outcomes(done: MeasurementResult) -> dict[str, str]:
    assert not done.problem and not done.rows.doubt, (done.problem, done.rows.doubt)
    return {test.rpartition("::")[2]: ran.outcome for test, ran in done.rows.ran.items()}


# All that comes to the mind of one who wants to speak in the measurements of others.
POISON = """\
import glob, os, pathlib, subprocess, sys

top = os.getcwd()
bad = "READY = 2\\n"
for name in ("ready", "sitecustomize", "usercustomize", "calc"):
    path = pathlib.Path(".deps", name + ".py")
    path.write_text(bad)
    os.utime(path, (1000000000, 1000000000))
pathlib.Path(".deps", "bad.pth").write_text("import os; os._exit(3)\\n")
subprocess.run([sys.executable, "-m", "compileall", "-q", "-f", ".deps"], env={{"PATH": os.environ["PATH"]}})
pathlib.Path(".git/hooks").mkdir(exist_ok=True)
hook = pathlib.Path(".git/hooks/post-checkout")
hook.write_text(f"#!/bin/sh\\necho '{{bad.strip()}}' >.deps/ready.py\\n")
hook.chmod(0o755)
subprocess.run(["git", "config", "core.hooksPath", ".git/hooks"])
pathlib.Path(os.environ["HOME"], ".pythonrc.py").write_text(bad)
for path in glob.glob("{runs}/*/jobs/*/prepared.*") if {archives} else ():
    pathlib.Path(path).write_bytes(b"")
writes = f"while sleep 0.05; do mkdir -p {{top}}/.deps && echo READY = 2 >{{top}}/.deps/ready.py; done"
subprocess.Popen(["setsid", "sh", "-c", f"({{writes}}) &"], stdout=-3, stderr=-3, stdin=-3)
def test_ready():
    pass
"""


@pytest.mark.parametrize("archives", [False, True])
def test_nothing_that_an_agent_leaves_is_seen_by_the_next_measurement(user: User, archives: bool) -> None:
    made = Measured(user)
    measurer = made.measurer(user)
    tests = [Pytest("test", paths=["tests/test_calc.py", "tests/test_ready.py"])]
    facts = {"test_add": "passed", "test_sub": "failed", "test_mul": "failed", "test_ready": "passed"}
    try:
        assert outcomes(measurer.take(Measurement("base", made.base, tests))) == facts
        runs = Path(made.project.repo) / ".mngr" / "runs"
        made.project.user.git("checkout", "-q", "-B", "work", made.base)
        made.project.write("tests/test_ready.py", POISON.format(runs=runs, archives=archives))
        poison = made.project.commit("poison")
        assert outcomes(measurer.take(Measurement("poison", poison, tests)))["test_ready"] == "passed"
        assert made.prepared == 1
        for repeat in (1, 2):
            again = Measurement("again", made.base, tests, repeat=repeat)
            assert outcomes(measurer.take(again)) == facts
        assert made.prepared == (3 if archives else 1)
    finally:
        measurer.reap()
    assert not list(runs.glob("*/jobs/*/prepared.tar")), "what was made stays after the run"


def test_a_place_that_has_nothing_yet_gets_what_the_base_makes_there(user: User) -> None:
    made = Measured(user)
    measurer = made.measurer(user, at_once=2)
    steps = [Pytest("test", paths=["tests/test_calc.py", "tests/test_ready.py"])]
    commits = [made.base]
    for number in range(4):
        made.project.write("calc.py", PRODUCT + f"\n\nX = {number}\n")
        commits.append(made.project.commit("another product"))
    first, *others = [Measurement(f"m{at}", commit, steps) for at, commit in enumerate(commits)]
    try:
        facts = {"test_add": "passed", "test_sub": "failed", "test_mul": "failed", "test_ready": "passed"}
        assert outcomes(measurer.take(first)) == facts and made.prepared == 1
        assert [outcomes(done) for done in measurer.take_all(others)] == [facts] * 4
        assert made.prepared == 2
    finally:
        measurer.reap()


def test_a_run_makes_as_many_copies_ready_as_it_measures_at_a_time(user: User) -> None:
    made = Measured(user)
    made.project.tmr().ok()
    assert made.project.verdicts() == {
        "test_add": "unchanged",
        "test_sub": "fixed",
        "test_mul": "expectation changed",
        "test_ready": "unchanged",
    }
    taken = [entry for entry in made.project.ledger() if entry["type"] == "measuring"]
    assert made.prepared <= 2 < sum("prepared" in entry for entry in taken), (made.prepared, len(taken))


def test_a_product_that_prepare_copies_is_made_ready_for_each_change_of_it(user: User) -> None:
    made = Measured(user)
    made.project.settings["prepare"] += "; cp *.py .deps/"
    made.project.settings |= {"env.PYTHONPATH": ".deps", "env.PYTHONSAFEPATH": "1"}
    made.project.write(".mngr/settings.toml", made.project.toml())
    made.project.write("tests/conftest.py", "")
    made.project.commit("the product is built")
    made.project.tmr("-k", "sub").ok()
    assert made.project.verdicts() == {"test_sub": "fixed"}
    taken = [entry for entry in made.project.ledger() if entry["type"] == "measuring"]
    given = {entry["label"].partition("-")[0] for entry in taken if "prepared" in entry}
    assert "baseline" in given or "repeat" in given
    assert not given & {"verify", "spoiled", "canary", "gate"}, json.dumps(taken, indent=1)


def test_a_product_that_prepare_read_unseen_is_noticed_before_an_agent_is_paid(user: User) -> None:
    made = Measured(user)
    unseen = "import os; file = os.open('calc.py', os.O_RDONLY | os.O_NOATIME); "
    unseen += "open('.deps/calc.py', 'wb').write(os.read(file, 10000))"
    made.project.settings["prepare"] += f'; python3 -c "{unseen}"'
    made.project.settings |= {"env.PYTHONPATH": ".deps", "env.PYTHONSAFEPATH": "1"}
    made.project.write(".mngr/settings.toml", made.project.toml())
    made.project.commit("the product is built")
    made.project.tmr("-k", "sub").ok()
    assert made.project.verdicts() == {"test_sub": "fixed"}
    (said,) = [
        one["because"] for one in made.project.ledger() if one["type"] == "decision" and "prepare" in one["what"]
    ]
    assert "no test noticed" in said
