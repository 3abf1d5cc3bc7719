"""The tutorial and the blocks of it that tests cite, as their files are at a commit."""

from __future__ import annotations

from collections.abc import Mapping

from mngr.e2e.shell_blocks import blocks
from mngr.system.git import Git
from mngr.tutorial.citations import in_source
from mngr.tutorial.faithful import CitingTest
from mngr.tutorial.ran import RecordedRuns


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
        self._tutorials: dict[str, frozenset[str]] = {}

    def of(self, test: str) -> tuple[str, ...]:
        path = test.partition("::")[0]
        if path not in self._known:
            shown = self._git.run("show", f"{self._commit}:{path}")
            self._known[path] = cited(path, shown.stdout) if shown.ok else {}
        return self._known[path].get(test.partition("[")[0], ())

    def tutorial(self, script: str) -> frozenset[str]:
        """The texts of all blocks of a script, named from the top of the repository; empty if there is no such file."""
        if script not in self._tutorials:
            shown = self._git.run("show", f"{self._commit}:{script}")
            text = shown.stdout.decode("utf-8", "surrogateescape") if shown.ok else ""
            self._tutorials[script] = frozenset(block.text for block in blocks(text))
        return self._tutorials[script]

    def test(self, id: str, script: str, ran: RecordedRuns | None = None) -> CitingTest:
        """For `faithful.judge`."""
        return CitingTest(id, self.of(id), self.tutorial(script), ran)
