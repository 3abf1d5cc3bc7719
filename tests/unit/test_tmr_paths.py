"""What a path is, which parts a change has, and what is refused: by globs and values alone."""

import pytest

from mngr.tmr.branch.objects import PathChange, TreeEntry, ident
from mngr.tmr.branch.unit import split
from mngr.tmr.judge.paths import PathKind, Paths, folders, matches
from mngr.tmr.judge.refusals import reasons

FILE = TreeEntry("100644", "1" * 40)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/app/main.py", PathKind.IMPLEMENTATION),
        ("pyproject.toml", PathKind.IMPLEMENTATION),
        ("src/app/latest.py", PathKind.IMPLEMENTATION),
        ("src/app/contest_rules.py", PathKind.IMPLEMENTATION),
        ("src/app/testimony/x.py", PathKind.IMPLEMENTATION),
        ("tests/test_a.py", PathKind.TEST),
        ("tests/data/a.json", PathKind.TEST),
        ("tests/README.md", PathKind.TEST),
        ("conftest.py", PathKind.TEST),
        ("src/app/conftest.py", PathKind.TEST),
        ("src/app/test_main.py", PathKind.TEST),
        ("src/app/main_test.py", PathKind.TEST),
        ("src/app/tests/x.py", PathKind.TEST),
        ("tutorial.sh", PathKind.TUTORIAL),
        ("tests/tutorial.sh", PathKind.TUTORIAL),
        ("tutorial/steps.sh", PathKind.TUTORIAL),
        ("src/app/tutorial/engine.py", PathKind.IMPLEMENTATION),
        ("README.md", PathKind.DOCS),
        ("docs/conf.py", PathKind.DOCS),
        ("LICENSE", PathKind.DOCS),
        ("src/app/man/x.py", PathKind.IMPLEMENTATION),
        (".github/workflows/ci.yml", PathKind.OTHER),
        (".gitignore", PathKind.OTHER),
        ("tests/n\udcff\n.py", PathKind.TEST),
    ],
)
def test_a_path_has_a_kind_without_any_settings(path: str, kind: PathKind) -> None:
    assert Paths().kind(path) == kind


def test_implementation_globs_win_and_leave_the_rest_as_other() -> None:
    paths = Paths(implementation=("src/**", "tests/fake_server.py"))
    assert paths.kind("src/app/main.py") == PathKind.IMPLEMENTATION
    assert paths.kind("tests/fake_server.py") == PathKind.IMPLEMENTATION
    assert paths.kind("tests/test_a.py") == PathKind.TEST
    assert paths.kind("tools/build.py") == PathKind.OTHER


@pytest.mark.parametrize(
    "path", ["Makefile", "lib/rules.mk", "setup.py", "web/package.json", "Cargo.lock", "requirements-dev.txt", "go.mod"]
)
def test_what_builds_the_product_is_judged_as_the_product_unless_settings_say_otherwise(path: str) -> None:
    assert Paths(("src/",)).kind(path) == Paths().kind(path) == PathKind.IMPLEMENTATION
    assert Paths(("src/",), non_implementation=(path,)).kind(path) == PathKind.OTHER
    assert (
        Paths(("src/",)).kind(f"tests/{path}") == PathKind.TEST
        and Paths(("src/",)).kind(f"docs/{path}") == PathKind.DOCS
    )


def test_what_is_hidden_is_no_product_and_what_the_product_reads_is() -> None:
    assert Paths().kind(".coveragerc") == Paths().kind("conf/.env") == PathKind.OTHER
    assert Paths((".tools/",)).kind(".tools/a.py") == PathKind.IMPLEMENTATION
    paths = Paths(("src/",), read=frozenset({"data/rates.json"}))
    assert paths.kind("data/rates.json") == PathKind.IMPLEMENTATION and paths.kind("data/more.json") == PathKind.OTHER


def test_non_implementation_globs_add_to_the_defaults() -> None:
    paths = Paths(non_implementation=("examples/",))
    assert paths.kind("examples/a.py") == PathKind.OTHER
    assert paths.kind("src/a.py") == PathKind.IMPLEMENTATION


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.py", ["a.py", "x/y/a.py"], ["a.pyc", "a/py"]),
        ("/a/*.py", ["a/b.py"], ["a/b/c.py", "x/a/b.py"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb", "b"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "ab"]),
        ("dir/", ["dir/a", "x/dir/a/b"], ["dir", "mydir/a"]),
        ("dir", ["dir", "dir/a", "x/dir"], ["dirs"]),
        ("?.[ch]", ["a.c", "x/b.h"], ["a.d", "ab.c"]),
        ("[!a].c", ["b.c"], ["a.c"]),
        ("a+(b).c", ["a+(b).c"], ["aab.c"]),
        ("[a", ["[a"], ["a"]),
    ],
)
def test_globs_match_as_in_gitignore(glob: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in yes if not matches(path, (glob,))] == []
    assert [path for path in no if matches(path, (glob,))] == []


def test_a_change_is_split_by_path_and_its_id_does_not_depend_on_order() -> None:
    changes = [
        PathChange("tests/t.py", None, FILE),
        PathChange("src/b.py", FILE, None),
        PathChange("src/a.py", None, FILE),
    ]
    parts = split("base", changes, Paths())
    assert parts.implementation and parts.implementation.paths == ("src/a.py", "src/b.py")
    assert parts.rest and parts.rest.paths == ("tests/t.py",)
    again = split("base", reversed(changes), Paths())
    assert again == parts and again.implementation and again.implementation.id == parts.implementation.id
    assert parts.implementation.id != parts.rest.id
    executable = split("base", [PathChange("tests/t.py", None, TreeEntry("100755", FILE.oid))], Paths())
    assert executable.rest and executable.rest.id != parts.rest.id and executable.implementation is None


@pytest.mark.parametrize(
    ("path", "target", "refused"),
    [
        ("a/link", "b.py", False),
        ("a/link", "../b.py", False),
        ("a/b/link", "../../c/d", False),
        ("a/link", "./x/.gitignore", False),
        ("link", "..", True),
        ("a/link", "../../b.py", True),
        ("a/link", "/etc/passwd", True),
        ("a/link", "b/../c", True),
        ("link", ".git/hooks/pre-commit", True),
        ("link", ".GIT/config", True),
    ],
)
def test_a_link_out_of_the_repository_is_refused(path: str, target: str, refused: bool) -> None:
    change = PathChange(path, None, TreeEntry("120000", "2" * 40))
    assert bool(reasons([change], {"2" * 40: target.encode()}, Paths(), {})) == refused


@pytest.mark.parametrize("path", [".git/config", "a/.GIT/x", "../x", "a/../x", "a//x", "./x", "GIT~1/x"])
def test_a_path_that_git_must_not_check_out_is_refused(path: str) -> None:
    assert reasons([PathChange(path, None, FILE)], {}, Paths(), {})


def test_taking_away_a_bad_link_is_fine_and_read_only_paths_are_not() -> None:
    paths = Paths(read_only=("vendor/",))
    assert reasons([PathChange("l", TreeEntry("120000", "2" * 40), None)], {}, paths, {}) == ()
    assert reasons([PathChange("vendor/x.py", FILE, None)], {}, paths, {}) == ("`vendor/x.py` is read-only",)


def test_folders_are_outermost_first() -> None:
    assert folders("a/b/c") == ("a", "a/b") and folders("a") == ()


@pytest.mark.parametrize("line", ["A <a@b> -5 +0000", "A <a@b", "A <<a>> 5 +0000", "", "A <a@b> 5", "A\n<a@b> 5 +0000"])
def test_a_damaged_author_is_none(line: str) -> None:
    assert ident(line) is None


def test_an_odd_zone_becomes_utc() -> None:
    found = ident("A B <a@b> 5 +9999")
    assert found and (found.name, found.zone) == ("A B", "+0000")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/app/core.py", PathKind.IMPLEMENTATION),
        ("src/app/self_test.py", PathKind.IMPLEMENTATION),  # at the base, without a test in it
        ("src/app/tests/data.json", PathKind.IMPLEMENTATION),
        ("src/app/tests/checks.py", PathKind.TEST),
        ("src/app/tests/test_a.py", PathKind.TEST),
        ("src/app/test_new.py", PathKind.TEST),
        ("src/app/deep/conftest.py", PathKind.TEST),
    ],
)
def test_what_pytest_collected_is_a_test_and_so_is_a_new_file_of_such_a_name(path: str, kind: PathKind) -> None:
    tests = ["src/app/tests/checks.py", "src/app/tests/test_a.py"]
    assert Paths(("src/",)).with_tests(tests, [*tests, "src/app/core.py", "src/app/self_test.py"]).kind(path) == kind
