"""Where the files of the base contain a text, by `git grep`."""

from __future__ import annotations

from mngr.tmr.echo import Places
from mngr.tmr.paths import Kind, Paths
from mngr.tools.git import Git


class BaseText:
    """Each text is searched for once. `test_file` is left out of the search."""

    def __init__(self, git: Git, commit: str, paths: Paths, test_file: str) -> None:
        self._git, self._commit, self._paths, self._test_file = git, commit, paths, test_file
        self._known: dict[str, Places] = {}

    def test_source(self) -> str | None:
        shown = self._git.run("show", f"{self._commit}:{self._test_file}")
        return shown.stdout.decode(errors="replace") if shown.ok else None

    def where(self, text: str) -> Places:
        """Where the base has this line of text, as words of their own; nowhere if git cannot tell."""
        if text not in self._known:
            found = self._git.run("grep", "-l", "-z", "-I", "-w", "-F", "-e", text, self._commit)
            names = found.stdout.decode(errors="surrogateescape").split("\0")[:-1] if found.ok else []
            files = {name.partition(":")[2] for name in names} - {self._test_file}
            product = {file for file in files if self._is_product(file)}
            self._known[text] = Places(bool(product), bool(files - product))
        return self._known[text]

    def _is_product(self, path: str) -> bool:
        """Settings and build files name pytest in most projects, which says nothing about the product."""
        if path.startswith(".") or self._paths.builds(path):
            return False
        return self._paths.kind(path) == Kind.IMPLEMENTATION
