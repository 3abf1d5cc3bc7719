"""The demo's own directory: the sample project, `sprout`, the scripts of the agents that work on its tests, and the
state of these agents. Changes nothing else. The source of the project is `examples/sprout`; a wheel has a copy beside
this file. A second commit adds the bugs."""

import os
import shutil
from itertools import chain, count
from typing import NamedTuple

from mngr.errors import MngrError, UsageError
from mngr.system import files
from mngr.system.git import Git

NAME = "sprout"
_HERE = os.path.dirname(os.path.abspath(__file__))
_SOURCES = (os.path.join(_HERE, NAME), os.path.join(_HERE, "..", "..", "..", "examples", NAME))
# Files that tests, agents and pip leave beside the source.
_NOT_SOURCE = ("__pycache__", "e2e", "runs", ".pytest_cache", "*.egg-info", ".venv", "dist", "settings.local.toml")
_FRIDAY = os.path.join(_HERE, "friday.patch")
SCRIPTS = os.path.join(_HERE, "scripts")  # `NAME.script` for each test, and `integrator.script`
# The sample commits as itself. The user's git settings must not ask, sign or run a hook.
_GIT_SETTINGS = {
    "user.name": "mngr demo",
    "user.email": "demo@mngr.invalid",
    "commit.gpgsign": "false",
    "core.hooksPath": os.devnull,
    "core.autocrlf": "false",
}
# Fixed dates: every demo has the same commit ids.
_MORNING, _EVENING = "2026-05-08T09:10:00+00:00", "2026-05-08T17:55:00+00:00"
DIRECTORY = "mngr-demo"


class DemoDirectory(NamedTuple):
    directory: str

    @property
    def repository(self) -> str:
        return os.path.join(self.directory, NAME)

    @property
    def host_dir(self) -> str:
        return os.path.join(self.directory, "host")


def claim(cwd: str, wanted: str | None) -> DemoDirectory:
    """Make the directory: the wanted one, which must be new or empty, or the first free `mngr-demo-N`."""
    names = [wanted] if wanted is not None else chain([DIRECTORY], (f"{DIRECTORY}-{number}" for number in count(2)))
    paths = (os.path.abspath(os.path.join(cwd, name)) for name in names)
    path = next(path for path in paths if wanted is not None or not os.path.lexists(path))
    if os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path)):
        raise UsageError(f"`{wanted}` exists and is not an empty directory", hint="choose a new directory: `--dir DIR`")
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        hint = "choose another directory: `mngr demo --dir DIR`"
        raise MngrError(f"cannot create `{path}`: {error.strerror}", hint=hint) from None
    return DemoDirectory(path)


def write_project(place: DemoDirectory) -> None:
    """Put the project, as a repository, and the scripts of its agents into the directory."""
    # A repository around the demo ignores the demo.
    files.write_atomic(os.path.join(place.directory, ".gitignore"), b"*\n", 0o644)
    make_repository(place.repository)
    shutil.copytree(SCRIPTS, os.path.join(place.directory, "scripts"), copy_function=shutil.copyfile)


def source() -> str:
    """Where the example is: in the wheel, or in this repository."""
    for path in _SOURCES:
        if os.path.isfile(os.path.join(path, "tutorial.sh")):
            return os.path.realpath(path)
    raise MngrError("the sample project of the demo is not installed", hint="pip install --force-reinstall mngr")


def copy(directory: str) -> None:
    """Put the example, as it is in `examples/`, into a new directory."""
    ignored = shutil.ignore_patterns(*_NOT_SOURCE)
    shutil.copytree(source(), directory, ignore=ignored, copy_function=shutil.copyfile, dirs_exist_ok=True)


def make_repository(directory: str) -> str:
    """Make a repository with two commits, the example and the bugs, and return the last commit."""
    copy(directory)
    git = Git.of_user(directory)
    git.must("-c", "init.defaultBranch=main", "init", "-q", "--template=", doing="git could not make the repository")
    for key, value in _GIT_SETTINGS.items():
        git.must("config", "--local", key, value)
    git.must("add", "-A")
    _commit(git, "sprout remembers when plants want water", _MORNING)
    git.must("apply", "--index", _FRIDAY, doing="git could not apply the changes of Friday")
    return _commit(git, "Tidy up before the weekend", _EVENING)


def _commit(git: Git, message: str, when: str) -> str:
    env = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    git.must("commit", "-q", "-m", message, env=env, doing="git could not commit the project")
    return git.must("rev-parse", "HEAD")
