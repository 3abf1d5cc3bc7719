"""What a path of the project is: implementation, or something beside it. What pytest collected tests from is a test,
whatever the globs say; they decide the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import cache, lru_cache
from typing import NamedTuple


class PathKind(StrEnum):
    """In the order in which the branch brings them."""

    TEST = "test"
    TUTORIAL = "tutorial"
    DOCS = "docs"
    OTHER = "other"
    IMPLEMENTATION = "implementation"


TEST = ("test/", "tests/", "testing/", "__tests__/", "e2e/", "test_*.py", "*_test.py", "conftest.py", "pytest.ini")
# What pytest itself looks for, so a new file of this name is a test wherever it is.
_TEST_NAMES = ("test_*.py", "*_test.py")
TUTORIAL = ("tutorial.sh", "tutorials/", "/tutorial/")
DOCS = ("/doc/", "docs/", "/man/", "*.md", "*.rst", "*.adoc", "mkdocs.yml", "LICENSE*", "COPYING*", "AUTHORS*")
# They decide what the product is made of, so they are judged as it is.
BUILD = (
    *("Makefile", "makefile", "GNUmakefile", "Makefile.*", "*.mk", "*.mak", "CMakeLists.txt", "*.cmake", "meson.build"),
    *("meson_options.txt", "meson.options", "configure", "configure.ac", "BUILD", "*.bazel", "*.bzl", "WORKSPACE"),
    *("SConstruct", "SConscript", "build.ninja", "justfile", "Justfile", "Rakefile", "Taskfile.yml", "Dockerfile*"),
    *("pyproject.toml", "setup.py", "setup.cfg", "MANIFEST.in", "requirements*.txt", "constraints*.txt", "Pipfile"),
    *("environment.yml", "hatch_build.py", "noxfile.py", "tox.ini", "Cargo.toml", "build.rs", "go.mod", "go.sum"),
    *("package.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", ".npmrc", "Gemfile", "*.gemspec"),
    *("*.gradle", "*.gradle.kts", "gradle.properties", "pom.xml", "build.sbt", "*.csproj", "*.sln", "*.lock"),
)
OTHER = (
    "/.github/",
    ".gitlab-ci.yml",
    "/.ci/",
    "/.vscode/",
    "/.idea/",
    ".gitignore",
    ".gitattributes",
    ".editorconfig",
)


class Paths(NamedTuple):
    """Globs as in `.gitignore`: without a slash inside, at any depth; with one, from the top; `dir/` is all below it.

    `implementation` wins over all others. Empty, it means whatever nothing else matches and is not hidden; given, the
    rest is `other`, except for what builds the product. `read` are files beside it that the product reads when it runs.

    `collected` are the files of the base that pytest collected tests from, `named` those that have the name of a test
    and none in them. Every `conftest.py` is a test.
    """

    implementation: tuple[str, ...] = ()
    non_implementation: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    test: tuple[str, ...] = TEST
    tutorial: tuple[str, ...] = TUTORIAL
    docs: tuple[str, ...] = DOCS
    other: tuple[str, ...] = OTHER
    read: frozenset[str] = frozenset()
    collected: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()

    def kind(self, path: str) -> PathKind:
        is_test = path in self.collected or (path not in self.named and matches(path, _TEST_NAMES))
        if is_test or matches(path, ("conftest.py",)):
            return PathKind.TEST
        if path in self.read or matches(path, self.implementation):
            return PathKind.IMPLEMENTATION
        globs = (
            (PathKind.TUTORIAL, self.tutorial),
            (PathKind.TEST, self.test),
            (PathKind.DOCS, self.docs),
            (PathKind.OTHER, self.other),
        )
        for kind, those in globs:
            if matches(path, those):
                return kind
        hidden = path.startswith(".") or "/." in path
        beside = (bool(self.implementation) or hidden) and not self.builds(path)
        return PathKind.OTHER if beside or matches(path, self.non_implementation) else PathKind.IMPLEMENTATION

    def with_tests(self, collected: Iterable[str], files: Iterable[str]) -> Paths:
        """The paths, with what pytest collected from these files of the base."""
        tests = frozenset(collected)
        named = frozenset(path for path in files if path not in tests and matches(path, _TEST_NAMES))
        return self._replace(collected=tests, named=named)

    def builds(self, path: str) -> bool:
        """Whether the file decides what the product is made of."""
        return matches(path, BUILD)

    def touched_read_only(self, paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(path for path in paths if matches(path, self.read_only)))


def matches(path: str, globs: tuple[str, ...]) -> bool:
    return any(_pattern(glob).fullmatch(path) for glob in globs)


@lru_cache(maxsize=1 << 16)
def folders(path: str) -> tuple[str, ...]:
    """The directories that a path is in, outermost first."""
    names = path.split("/")
    return tuple("/".join(names[:count]) for count in range(1, len(names)))


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    """`*` and `?` stop at a slash, `**` does not; a name of a directory matches what is below it too."""
    body = glob.strip("/")
    anchored = glob.startswith("/") or "/" in body
    parts = []
    at = 0
    while at < len(body):
        if body.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif body.startswith("**", at):
            parts.append(".*")
            at += 2
        elif body[at] == "[" and (end := body.find("]", at + 2)) > 0:
            inside = body[at + 1 : end].replace("\\", "\\\\")
            parts.append(f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]")
            at = end + 1
        else:
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(body[at]) or re.escape(body[at]))
            at += 1
    below = "/.+" if glob.endswith("/") else "(?:/.+)?"
    return re.compile(("" if anchored else "(?:.*/)?") + "".join(parts) + below, re.DOTALL)
