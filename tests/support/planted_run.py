"""A run of `mngr tmr` on planted work: the project with a script for each agent, and what the run says of each."""

import json
import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, NamedTuple

from tests.support.planted import ASIDE, FIX, HEAD, ONE_OF_TWO, SQUASHED, TUTORIAL, Plant, Product
from tests.support.tmr import NO_CHANGE, OUTCOME, Project
from tests.support.user import User


def project(user: User, product: Product, planted: Mapping[str, Plant]) -> Project:
    """The product with the test of each plant, and a script for its agent."""
    made = Project(user, product="", tests="")
    for name in ("calc.py", "tests/test_calc.py"):
        (made.repo / name).unlink()
    for path, text in product.files.items():
        made.write(path, text)
    made.write("tutorial.sh", TUTORIAL)
    made.write("README.md", "Adds.\n")
    made.write("tests/conftest.py", CONFTEST)
    made.write(".gitignore", "__pycache__/\nbin/\n")
    # The plugins of our own environment cost half a second of every start; one that an agent adds is loaded.
    others = [one.name for one in entry_points(group="pytest11") if one.name != "mngr-e2e"]
    del made.settings["env.PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        *(word for name in ("cacheprovider", *others) for word in ("-p", f"no:{name}")),
    ]
    made.settings |= {
        "test_command": shlex.join(words),
        "prepare": "make -s",
        "env.PYTHONPATH": "src",
        "mutants": "8",
    }
    made.write(".mngr/settings.toml", made.toml())
    for name, plant in planted.items():
        made.write(f"tests/test_{name}.py", (HEAD if plant.tests.startswith(("def", "@")) else "") + plant.tests)
        made.script(f"test_{name}", _script(plant))
    made.script("test_beside", NO_CHANGE)
    made.commit("Count")
    return made


CONFTEST = """\
import pathlib


def e2e_environment(session):
    session.env["PATH"] = f"{pathlib.Path(__file__).parent.parent / 'bin'}:{session.env['PATH']}"
"""


def _script(plant: Plant) -> str:
    if not plant.edits:
        return NO_CHANGE
    text = "wait\n"
    for path, old, new in plant.edits:
        body = f"{old}\n====\n{new}" if old else new.removesuffix("\n")
        text += f"{'replace' if old else 'write'} {path} <<END\n{body}\nEND\n"
    kinds = {"implementation" if edit.path.startswith(("src/", "Makefile")) else "test" for edit in plant.edits}
    changes = [{"kind": kind, "commit": "{head}", "summary": "Better", "importance": 3} for kind in sorted(kinds)]
    claim = OUTCOME.format(status="done", changes=json.dumps(changes), summary="Better than before")
    return f"{text}commit Better\n{claim}"


class Shown(NamedTuple):
    """What the run says of one plant."""

    verdict: str
    place: str
    why: str


def shown(made: Project, planted: Mapping[str, Plant]) -> dict[str, Shown]:
    status: dict[str, Any] = made.status()
    places: dict[str, str] = {}
    for commit in status["integration"]["commits"]:
        alone = commit["place"] == SQUASHED or len(commit["slugs"]) == 1
        places |= dict.fromkeys(commit["slugs"], commit["place"] if alone else f"{commit['place']}, not alone")
    rows = {row["task"].partition("::")[0]: row for row in status["rows"] if "beside" not in row["task"]}
    found = {}
    for name in planted:
        row = rows[f"tests/test_{name}.py"]
        found[name] = Shown(row["verdict"], places.get(row["slug"], row["place"]), row["why"])
    return found


def wrong(planted: Mapping[str, Plant], found: Mapping[str, Shown]) -> list[str]:
    """A line for each plant that was not judged as it is."""
    lines = []
    for name, plant in planted.items():
        seen = found[name]
        good = seen.verdict == plant.verdict and plant.why in seen.why
        if not good or (seen.place != plant.place and plant.place != ONE_OF_TWO):
            lines.append(f"{name}: wanted {plant.verdict}, {plant.place or 'nowhere'}, {plant.why!r}: {seen}")
    clashing = sorted(found[name].place for name, plant in planted.items() if plant.place == ONE_OF_TWO)
    return lines + [f"red together: {clashing}"] * (clashing != [FIX, ASIDE])
