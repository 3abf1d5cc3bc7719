"""Where a project has its tutorial and its tests, and the check of them as they are on disk now."""

from __future__ import annotations

import os
from typing import NamedTuple

from mngr.e2e.artifacts import DEFAULT, runs
from mngr.e2e.shell_blocks import ScriptBlock, blocks
from mngr.errors import MngrError, NotFoundError
from mngr.system.files import read_followed
from mngr.tutorial import citations, ran
from mngr.tutorial.check import Report, check

SCRIPT = "tutorial.sh"
_MOST_BYTES = 10_000_000
TESTS = ("tests",)


class Sources(NamedTuple):
    """Paths are relative to `root`. `artifacts` are runs, or directories of runs of which the newest counts; None means
    the `usual` place, if there is any run, and an empty tuple that what was run is not looked at."""

    root: str
    script: str = SCRIPT
    tests: tuple[str, ...] = TESTS
    artifacts: tuple[str, ...] | None = None
    usual: str = DEFAULT
    tests_needed: bool = True  # whether tests that are not there are an error, and not just no tests

    def seen_from(self, root: str) -> Sources:
        """The same places, named from another directory."""

        def moved(path: str) -> str:
            return os.path.relpath(os.path.join(self.root, path), root)

        artifacts = None if self.artifacts is None else tuple(map(moved, self.artifacts))
        tests = tuple(map(moved, self.tests))
        return self._replace(
            root=root, script=moved(self.script), tests=tests, artifacts=artifacts, usual=moved(self.usual)
        )

    def text(self) -> str:
        """The script. Bytes that are not UTF-8 survive; line ends stay as they are."""
        path = os.path.join(self.root, self.script)
        try:
            data = read_followed(path, _MOST_BYTES)
        except FileNotFoundError:
            raise NotFoundError(
                f"there is no tutorial at `{path}`",
                hint="name it: `--script FILE`, or `mngr config set tutorial.script FILE`",
            ) from None
        except OSError as error:
            raise MngrError(f"the tutorial `{path}` cannot be read: {error.strerror}") from None
        if len(data) > _MOST_BYTES:
            raise MngrError(f"the tutorial `{path}` is larger than {_MOST_BYTES // 1_000_000} MB")
        return data.decode("utf-8", "surrogateescape")

    def blocks(self) -> list[ScriptBlock]:
        return blocks(self.text())

    def report(self) -> Report:
        """What is missing now. Raises if the script, the tests or artifacts that were named are not there."""
        return check(self.script, self.blocks(), citations.find(self._tests(), self.root), self._ran())

    def _tests(self) -> list[str]:
        return [path for path in self.tests if self.tests_needed or os.path.exists(os.path.join(self.root, path))]

    def _ran(self) -> ran.RecordedRuns | None:
        places = [os.path.join(self.root, path) for path in (self.artifacts or ())]
        if self.artifacts is None:
            usual = os.path.join(self.root, self.usual)
            places = [usual] if runs(usual) else []
        return ran.read(places, self.root, self.script) if places else None
