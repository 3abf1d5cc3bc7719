"""The demo's own directory: sample project, scripts, state of its fleet. Touches nothing outside it."""

import os

from mngr import files
from mngr.demo import sample
from mngr.errors import MngrError, UsageError
from mngr.records import NamedTuple

NAME = "mngr-demo"


class Place(NamedTuple):
    directory: str

    @property
    def repository(self) -> str:
        return os.path.join(self.directory, sample.NAME)

    @property
    def scripts(self) -> str:
        return os.path.join(self.directory, "scripts")

    @property
    def host_dir(self) -> str:
        return os.path.join(self.directory, "host")


def claim(cwd: str, wanted: str | None) -> Place:
    """Make the directory: the wanted one, which must be new or empty, or the first `mngr-demo-N` that is free."""
    if wanted is not None:
        path = os.path.abspath(os.path.join(cwd, wanted))
        if os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path)):
            raise UsageError(f"`{wanted}` exists and is not an empty directory", hint="name a new one: `--dir DIR`")
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise _cannot_be_made(path, error) from None
        return Place(path)
    for number in range(1, 1000):
        path = os.path.join(os.path.abspath(cwd), NAME if number == 1 else f"{NAME}-{number}")
        try:
            os.mkdir(path)
        except FileExistsError:
            continue
        except OSError as error:
            raise _cannot_be_made(path, error) from None
        return Place(path)
    raise MngrError(
        f"`{NAME}` to `{NAME}-999` exist already",
        hint=f"remove old ones (`rm -r {NAME}-*`), or name a new one: `--dir DIR`",
    )


def _cannot_be_made(path: str, error: OSError) -> MngrError:
    return MngrError(f"`{path}` cannot be made: {error.strerror}", hint="name another place: `mngr demo --dir DIR`")


def furnish(place: Place) -> None:
    """Put the project, as a repository, and the scripts of its agents into the directory."""
    # A repository around the demo sees nothing of it.
    files.write_atomic(os.path.join(place.directory, ".gitignore"), b"*\n", 0o644)
    sample.make_repository(place.repository)
    sample.copy_scripts(place.scripts)
