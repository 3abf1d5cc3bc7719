"""The sample project of the demo, `sprout`, and the scripts of the agents that work on its tests. The source is
`examples/sprout`; a wheel has a copy beside this file. A second commit adds the bugs."""

import os

from mngr.errors import MngrError
from mngr.tools.git import Git

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


def source() -> str:
    """Where the example is: in the wheel, or in this repository."""
    for path in _SOURCES:
        if os.path.isfile(os.path.join(path, "tutorial.sh")):
            return os.path.realpath(path)
    raise MngrError("the sample project of the demo is not installed", hint="pip install --force-reinstall mngr")


def copy(directory: str) -> None:
    """Put the example, as it is in `examples/`, into a new directory."""
    import shutil

    shutil.copytree(
        source(),
        directory,
        ignore=shutil.ignore_patterns(*_NOT_SOURCE),
        copy_function=shutil.copyfile,
        dirs_exist_ok=True,
    )


def make_repository(directory: str) -> str:
    """Make a repository with two commits, the example and the bugs, and return the last commit."""
    copy(directory)
    git = Git(directory)
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
