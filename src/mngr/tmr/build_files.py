"""Files that build files of the base include: they decide what the product is made of, whatever they are called."""

from __future__ import annotations

import posixpath
import re

from mngr.tmr.objects import Objects
from mngr.tmr.paths import Paths, matches
from mngr.tmr.refusals import SUBMODULE
from mngr.tools.git import Git

# What reads them, and how it names another file. Names with variables in them are not known before the build runs.
_READERS = (
    (("Makefile", "makefile", "GNUmakefile", "Makefile.*", "*.mk", "*.mak"), r"^ *[-s]?include[ \t]+([^#\n]+)"),
    (("CMakeLists.txt", "*.cmake"), r"^\s*(?:include|configure_file)\s*\(\s*([^\s()]+)"),
    (("requirements*.txt", "constraints*.txt"), r"^(?:-r|-c|--requirement|--constraint)[ =]*(\S+)"),
    (("justfile", "Justfile"), r"^(?:import|mod)\??\s+.*?['\"]([^'\"]+)"),
)
_SIZE_MAX = 1_000_000


def with_included(git: Git, base: str, paths: Paths) -> Paths:
    """The paths, with what the build files of the base include, and what is included there. Without globs for the
    implementation all of these are part of it already."""
    if not paths.implementation:
        return paths
    objects = Objects(git)
    there = {path: entry.oid for path, entry in objects.files(base).items() if entry.mode != SUBMODULE}
    included: set[str] = set()
    todo = {path for path in there if _reader(path)}
    seen: set[str] = set()
    while todo:
        seen |= todo
        sizes = objects.sizes(there[path] for path in todo)
        todo = {path for path in todo if sizes[there[path]] <= _SIZE_MAX}
        blobs = objects.blobs(there[path] for path in todo)
        texts = {path: blobs[there[path]].decode(errors="replace") for path in todo}
        found = {name for path, text in texts.items() for name in includes(path, text, frozenset(there))}
        included |= found
        todo = found - seen
    return paths._replace(included=frozenset(included))


def includes(path: str, text: str, there: frozenset[str]) -> set[str]:
    """The files, among those that are there, that a build file names: beside it, or from the top. A file of an unknown
    name is read as one that a Makefile includes."""
    pattern = _reader(path) or _READERS[0][1]
    names = {name for found in re.findall(pattern, text, re.MULTILINE) for name in found.split() if "$" not in name}
    found: set[str] = set()
    for name in names:
        for folder in (posixpath.dirname(path), ""):
            wanted = posixpath.normpath(posixpath.join(folder, name))
            found |= (
                {wanted} & there if not set("*?[") & set(name) else {p for p in there if matches(p, (f"/{wanted}",))}
            )
    return found - {path}


def _reader(path: str) -> str:
    return next((pattern for globs, pattern in _READERS if matches(path, globs)), "")
