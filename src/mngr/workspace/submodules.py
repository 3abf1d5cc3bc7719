"""Submodules of a copy: each a repository of its own, at the commit that the code names, from the user's checkout.

Nothing is fetched from elsewhere. A copy has the commits that its code needs and no remote, so that whatever an agent
adds in there is seen as work of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.system.git import Git
from mngr.system.process import checked, quote
from mngr.workspace.work.git_files import common_dir_of, has_repository

_LIST = ".gitmodules"


class Submodule(NamedTuple):
    """`path` is from the top of the repository around them all, `commit` is what the code names."""

    path: str
    commit: str
    source: str


def find(top: str, commit: str, below: str = "") -> list[Submodule]:
    """Those of a commit, outer ones first, without those that `submodule.NAME.active` or `update` switch off. Raises
    for one that the checkout at `top` does not have."""
    git = Git.of_user(top)
    found: list[Submodule] = []
    for path, wanted in _named(git, commit):
        source = os.path.join(top, path)
        inner = Git.of_user(source)
        inside = os.path.realpath(source) == os.path.join(os.path.realpath(top), path)
        if not (inside and has_repository(source) and inner.ok("cat-file", "-e", f"{wanted}^{{commit}}")):
            raise _missing(git, top, path, wanted, below)
        found += [Submodule(below + path, wanted, source), *find(source, wanted, f"{below}{path}/")]
    return found


def listed(top: str, commit: str) -> bool:
    """Whether a commit has a list of submodules."""
    return bool(Git.of_user(top).run("ls-tree", "-z", commit, "--", _LIST).text)


def make(submodule: Submodule, directory: str, objects: str) -> None:
    """Check one out in a copy of the code around it."""
    from mngr.workspace.workspace import clone_repository

    place = os.path.join(directory, submodule.path)
    clone_repository(submodule.source, common_dir_of(submodule.source), place, objects, start=submodule.commit)
    git = Git.of_user(place)
    git.must("checkout", "-q", "--no-recurse-submodules", "--detach", submodule.commit, doing=f"`{place}` is not made")
    others = git.must("for-each-ref", "--no-merged", submodule.commit, "--format=delete %(refname)")
    git.must("update-ref", "--stdin", input=f"{others}\n".encode() if others else b"")
    for remote in git.must("remote").split():
        git.must("remote", "remove", remote)


def refuse_uncommitted(top: str, commit: str) -> None:
    """Raise for a submodule with changes that are not committed in it, which no commit around it can carry."""
    for submodule in find(top, commit):
        if Git.of_user(submodule.source).changed_paths():
            raise MngrError(
                f"`{submodule.path}` is a submodule with uncommitted changes, which `--include-unclean` cannot carry",
                hint=f"commit them: `git -C {quote(submodule.source)} commit -a`; or leave all out: "
                "`--exclude-unclean`",
            )


def _named(git: Git, commit: str) -> Iterator[tuple[str, str]]:
    """The path and the commit of each that is listed and wanted."""
    if not listed(git.directory, commit):
        return
    words = ("--blob", f"{commit}:{_LIST}", "--no-includes", "-z", "--get-regexp", r"^submodule\..*\.path$")
    items = [item.split("\n", 1) for item in git.run("config", *words).text.split("\0") if "\n" in item]
    names = {path: key.removeprefix("submodule.").removesuffix(".path") for key, path in items}
    tree = checked(git.run("ls-tree", "-r", "-z", "--full-tree", commit)).text.split("\0")
    for line in tree:
        facts, _, path = line.partition("\t")
        if facts.startswith("160000 ") and path in names and not _switched_off(git, names[path]):
            yield path, facts.split()[2]


def _switched_off(git: Git, name: str) -> bool:
    active = git.run("config", "--type=bool", "--get", f"submodule.{name}.active").text
    return active == "false" or git.run("config", "--get", f"submodule.{name}.update").text == "none"


def _missing(git: Git, top: str, path: str, commit: str, below: str) -> MngrError:
    here = quote(top)
    what = (
        "is not checked out" if not has_repository(os.path.join(top, path)) else f"does not have commit {commit[:10]}"
    )
    return MngrError(
        f"the submodule `{below}{path}` {what}, and nothing is fetched for a copy",
        hint=f"get it: `git -C {here} submodule update --init --recursive -- {quote(path)}`; if it is not needed: "
        f"`git -C {here} config submodule.NAME.active false`, with its name in `{_LIST}`",
    )
