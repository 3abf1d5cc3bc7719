"""The demo's own directory: the sample project, the scripts and the state of its agents. Changes nothing else."""

import os
from typing import NamedTuple

from mngr import files
from mngr.demo import sample
from mngr.errors import MngrError, UsageError

NAME = "mngr-demo"


class DemoDirectory(NamedTuple):
    directory: str

    @property
    def repository(self) -> str:
        return os.path.join(self.directory, sample.NAME)

    @property
    def host_dir(self) -> str:
        return os.path.join(self.directory, "host")


def claim(cwd: str, wanted: str | None) -> DemoDirectory:
    """Make the directory: the wanted one, which must be new or empty, or the first free `mngr-demo-N`."""
    if wanted is not None:
        path = os.path.abspath(os.path.join(cwd, wanted))
        if os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path)):
            raise UsageError(
                f"`{wanted}` exists and is not an empty directory", hint="choose a new directory: `--dir DIR`"
            )
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise _cannot_be_made(path, error) from None
        return DemoDirectory(path)
    for number in range(1, 1000):
        path = os.path.join(os.path.abspath(cwd), NAME if number == 1 else f"{NAME}-{number}")
        try:
            os.mkdir(path)
        except FileExistsError:
            continue
        except OSError as error:
            raise _cannot_be_made(path, error) from None
        return DemoDirectory(path)
    raise MngrError(
        f"`{NAME}` to `{NAME}-999` already exist",
        hint=f"remove old ones (`rm -r {NAME}-*`), or choose a new directory: `--dir DIR`",
    )


def _cannot_be_made(path: str, error: OSError) -> MngrError:
    return MngrError(
        f"cannot create `{path}`: {error.strerror}", hint="choose another directory: `mngr demo --dir DIR`"
    )


def furnish(place: DemoDirectory) -> None:
    """Put the project, as a repository, and the scripts of its agents into the directory."""
    import shutil

    # A repository around the demo ignores the demo.
    files.write_atomic(os.path.join(place.directory, ".gitignore"), b"*\n", 0o644)
    sample.make_repository(place.repository)
    shutil.copytree(sample.SCRIPTS, os.path.join(place.directory, "scripts"), copy_function=shutil.copyfile)
