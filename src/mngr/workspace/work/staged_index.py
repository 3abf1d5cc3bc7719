"""The index of a work tree, where it holds what is neither in a commit nor on the disk: kept as a tree, and back."""

from __future__ import annotations

import os

from mngr.system.git import Git
from mngr.workspace.work import files as uncommitted_files

_INDEX, _UNMERGED, _STAGES = "index", "unmerged", "stages"


def keep(git: Git) -> str:
    """A tree with what is staged; of paths with a conflict their lines, and what these name. Empty for an index that
    git cannot read."""
    listed = git.run("ls-files", "-s", "-z")
    if not listed.ok:
        return ""
    lines = [line for line in listed.text.split("\0") if line]
    conflicts = [line for line in lines if line.partition("\t")[0][-1] != "0"]
    if not conflicts:
        tree = git.must("write-tree")
        return git.must("mktree", input=f"040000 tree {tree}\t{_INDEX}\n".encode())
    with uncommitted_files.raw_git(git) as raw:
        staged = "".join(f"{line}\0" for line in lines if line not in set(conflicts))
        raw.must("update-index", "-z", "--index-info", input=os.fsencode(staged))
        tree = raw.must("write-tree")
    text = os.fsencode("".join(f"{line}\0" for line in conflicts))
    blob = git.must("hash-object", "-w", "--stdin", input=text)
    named = {line.split(" ")[1] for line in conflicts if not line.startswith("160000")}
    stages = git.must("mktree", input="".join(f"100644 blob {oid}\t{oid}\n" for oid in named).encode())
    parts = f"040000 tree {tree}\t{_INDEX}\n100644 blob {blob}\t{_UNMERGED}\n040000 tree {stages}\t{_STAGES}\n"
    return git.must("mktree", input=parts.encode())


def bring(git: Git, kept: str) -> None:
    """Make it the index of a work tree."""
    git.must("read-tree", f"{kept}:{_INDEX}", doing="git could not write the index")
    unmerged = git.run("cat-file", "blob", f"{kept}:{_UNMERGED}")
    if unmerged.ok:
        git.must("update-index", "-z", "--index-info", input=unmerged.stdout)
    git.run("update-index", "-q", "--refresh")
