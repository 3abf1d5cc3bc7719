"""The demo's own directory: sample project, scripts, state of its fleet, report. Touches nothing outside it."""

import os
import sys

from mngr import files, process
from mngr.errors import MngrError, UsageError
from mngr.records import NamedTuple
from mngr.tools.git import Git

NAME = "mngr-demo"
_DATA = os.path.dirname(__file__)
_SECONDS = 60.0
# The sample has an identity of its own, and of the user's git settings none that would ask, sign or run a hook.
_GIT_SETTINGS = {
    "user.name": "mngr demo",
    "user.email": "demo@mngr.invalid",
    "commit.gpgsign": "false",
    "core.hooksPath": os.devnull,
    "core.autocrlf": "false",
    "merge.ff": "true",
}


class Place(NamedTuple):
    directory: str

    @property
    def repository(self) -> str:
        return os.path.join(self.directory, "bill")

    @property
    def host_dir(self) -> str:
        return os.path.join(self.directory, "host")

    @property
    def report(self) -> str:
        return os.path.join(self.directory, "report.md")

    def script(self, agent: str) -> str:
        return os.path.join(self.directory, f"{agent}.script")


class Tests(NamedTuple):
    ran: int
    failed: int

    @property
    def sentence(self) -> str:
        tests = f"{self.ran} test{'' if self.ran == 1 else 's'}"
        if not self.failed:
            return f"{tests}, all pass"
        return f"{tests}, {self.failed} fail{'s' if self.failed == 1 else ''}"


def claim(cwd: str, wanted: str | None) -> Place:
    """Make the directory: the wanted one, which must be new or empty, or the first `mngr-demo-N` that is free."""
    if wanted is not None:
        path = os.path.abspath(os.path.join(cwd, wanted))
        if os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path)):
            raise UsageError(f"`{wanted}` exists and is not an empty directory", hint="name a new one: `--dir DIR`")
        os.makedirs(path, exist_ok=True)
        return Place(path)
    for number in range(1, 1000):
        path = os.path.join(os.path.abspath(cwd), NAME if number == 1 else f"{NAME}-{number}")
        try:
            os.mkdir(path)
        except FileExistsError:
            continue
        return Place(path)
    raise MngrError(
        f"`{NAME}` to `{NAME}-999` exist already",
        hint=f"remove old ones (`rm -r {NAME}-*`), or name a new one: `--dir DIR`",
    )


def furnish(place: Place) -> None:
    """Put the project, as a repository with one commit, and the scripts into the directory."""
    import shutil

    # A repository around the demo sees nothing of it.
    files.write_atomic(os.path.join(place.directory, ".gitignore"), b"*\n", 0o644)
    for data, target in (("project", place.repository), ("agents", place.directory)):
        shutil.copytree(
            os.path.join(_DATA, data),
            target,
            ignore=shutil.ignore_patterns("__pycache__"),
            copy_function=shutil.copyfile,
            dirs_exist_ok=True,
        )
    git = Git(process, place.repository)
    git.must("-c", "init.defaultBranch=main", "init", "-q", "--template=", doing="git could not make the repository")
    for key, value in _GIT_SETTINGS.items():
        git.must("config", "--local", key, value)
    git.must("add", "-A")
    git.must("commit", "-q", "-m", "A bill splitter, with a bug or two", doing="git could not commit the project")


def run_tests(place: Place, environ: dict[str, str]) -> Tests:
    """The sample's own tests, as `python3 -m unittest` in its directory runs them."""
    import re

    result = process.run(
        [sys.executable, "-m", "unittest"], timeout=_SECONDS, cwd=place.repository, env={**environ, "NO_COLOR": "1"}
    )
    ran = re.search(r"^Ran (\d+) test", result.error_text, re.MULTILINE)
    if ran is None:
        raise process.CommandFailed(result, "the tests of the sample could not be run")
    return Tests(
        int(ran[1]), sum(int(number) for number in re.findall(r"(?:failures|errors)=(\d+)", result.error_text))
    )
