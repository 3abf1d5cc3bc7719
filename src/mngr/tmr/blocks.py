"""The tutorial blocks that tests cite, as their files are at a commit."""

from __future__ import annotations

from collections.abc import Mapping

from mngr.tools.git import Git
from mngr.tutorial.citations import in_source


def cited(path: str, source: bytes) -> dict[str, tuple[str, ...]]:
    """The text of the blocks that each test function of a file cites, by its id without parameters."""
    found: dict[str, tuple[str, ...]] = {}
    for citation in in_source(source, path)[0]:
        test = f"{path}::{citation.test}"
        found[test] = (*found.get(test, ()), citation.text)
    return found


class Blocks:
    """Reads each file once; a file that is not there cites nothing."""

    def __init__(self, git: Git, commit: str) -> None:
        self._git, self._commit = git, commit
        self._known: dict[str, Mapping[str, tuple[str, ...]]] = {}

    def of(self, test: str) -> tuple[str, ...]:
        path = test.partition("::")[0]
        if path not in self._known:
            shown = self._git.run("show", f"{self._commit}:{path}")
            self._known[path] = cited(path, shown.stdout) if shown.ok else {}
        return self._known[path].get(test.partition("[")[0], ())
