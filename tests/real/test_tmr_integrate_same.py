"""Several agents make the same edit in other words: the branch has it once, with all their names."""

from collections.abc import Callable, Iterator

import pytest

from mngr.tmr.branch.integrated import Integrated
from mngr.tmr.branch.integration import integrate
from mngr.tmr.branch.objects import Objects
from mngr.tmr.branch.same_edit import Alike, near
from mngr.tmr.branch.unit import VerifiedWork
from tests.support.tmr import FIX_SUB, TESTS
from tests.support.tmr import Project as CalcProject
from tests.support.user import User
from tests.support.work import Project, TextGate, summary, trailers

CONFTEST = "import os\n\n\ndef pytest_configure(config):\n    config.option.color = 'no'\n"
PRODUCT = "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n"
FILES = {"src/calc.py": PRODUCT, "tests/conftest.py": CONFTEST, "tests/test_calc.py": "def test_add():\n    pass\n"}
UTC = ["    os.environ['TZ'] = 'UTC'\n", "    os.environ['TZ'] = 'UTC'  # or it is not steady\n"]
UTC += ["    # One zone for all.\n    os.environ['TZ'] = \"UTC\"\n"]
NAMES = "abc"


@pytest.fixture
def project() -> Iterator[Project]:
    made = Project(FILES)
    try:
        yield made
    finally:
        made.close()


def patching(project: Project, flags: tuple[str, ...] = ()) -> list[VerifiedWork]:
    """Each agent patches `conftest.py` in its own words, and adds a test."""
    made = [
        project.work(
            name, {"tests/conftest.py": CONFTEST + text, f"tests/test_{name}.py": f"def test_{name}(): pass\n"}
        )
        for name, text in zip(NAMES, UTC, strict=True)
    ]
    return [work._replace(flags=flags) for work in made]


def agents(project: Project, commit: str) -> list[str]:
    return [value for key, value in trailers(project, commit) if key == "Mngr-Agent"]


def test_the_same_patch_of_a_shared_file_in_other_words_clashes_with_nobody(project: Project) -> None:
    done = integrate(project.git, "r1", project.base, patching(project))
    assert summary(done) == [("test", ("a", "b", "c"))] and not done.set_aside
    assert project.show(done.tip, "tests/conftest.py") == (CONFTEST + UTC[0]).strip()
    assert {f"tests/test_{name}.py" for name in NAMES} <= set(project.paths(done.tip))
    told = [one for one in done.decisions if one.what == "made one"]
    assert [one.about for one in told] == [("b",), ("c",)] and "`tests/conftest.py`" in told[0].because


def test_a_shared_patch_that_a_person_must_look_at_is_one_commit_of_all(project: Project) -> None:
    done = integrate(project.git, "r1", project.base, patching(project, flags=("conftest",)))
    assert summary(done) == [("test", ("a", "b", "c")), ("test", ("a",)), ("test", ("b",)), ("test", ("c",))]
    shared, *own = done.commits
    assert shared.paths == ("tests/conftest.py",) and len(agents(project, shared.id)) == 3
    assert [one.paths for one in own] == [(f"tests/test_{name}.py",) for name in NAMES]


def test_the_same_fix_in_other_words_is_one_commit_that_credits_all(project: Project) -> None:
    lines = ["return a + b", "return a + b  # a sum", "return (a + b)"]
    works = [
        project.work(name, {"src/calc.py": PRODUCT.replace("return a - b", line)}, effect=(f"test_{name}",))
        for name, line in zip(NAMES, lines, strict=True)
    ]
    done = integrate(project.git, "r1", project.base, works)
    assert summary(done) == [("implementation", ("a", "b", "c"))] and not done.set_aside
    assert len(agents(project, done.tip)) == 3 and done.commits[0].because.startswith("makes 3 tests pass")


def test_fixes_that_share_a_patch_of_their_tests_name_the_one_that_brings_it(project: Project) -> None:
    made = {"a": PRODUCT.replace("a - b", "a + b"), "b": PRODUCT.replace("a * b", "a ** b")}
    works = [
        project.work(name, {"src/calc.py": text, "tests/conftest.py": CONFTEST + patch}, effect=(name,), alone=False)
        for (name, text), patch in zip(made.items(), UTC, strict=False)
    ]
    done = integrate(project.git, "r1", project.base, works)
    first, patch, second = done.commits
    assert patch.needs == (first.id,) and second.needs == (first.id,) and not done.set_aside
    assert ("Mngr-Needs", "r1-a-1") in trailers(project, second.id)
    assert second.id in first.needed_by, "who reverts the first is told"


def named(project: Project, rule: Callable[[Callable[[str], str]], bool]) -> Integrated:
    bodies = ["total = a + b\n    return total", "result = a + b\n    return result"]
    works = [
        project.work(name, {"src/calc.py": PRODUCT.replace("return a - b", body)}, effect=(f"test_{name}",))
        for name, body in zip("ab", bodies, strict=True)
    ]
    return integrate(project.git, "r1", project.base, works, gate=TextGate(project, {"test_b": rule}))


def test_names_of_its_own_make_no_other_fix_where_the_tests_are_green_with_it(project: Project) -> None:
    done = named(project, lambda show: "a - b" not in show("src/calc.py"))
    assert summary(done) == [("implementation", ("a", "b"))] and "total" in project.show(done.tip, "src/calc.py")


def test_a_fix_whose_test_wants_its_own_words_is_not_written_as_another(project: Project) -> None:
    done = named(project, lambda show: "total" not in show("src/calc.py"))
    assert [one.slugs for one in done.commits] == [("b",)] and [one.slugs for one in done.set_aside] == [("a",)]


def test_other_edits_in_the_same_place_are_nobody_else_s(project: Project) -> None:
    works = [
        project.work(name, {"src/calc.py": PRODUCT.replace("return a - b", line)}, effect=(f"test_{name}",))
        for name, line in zip("ab", ["return a + b", "return b + a + 0"], strict=True)
    ]
    done = integrate(project.git, "r1", project.base, works)
    assert [one.slugs for one in done.commits] == [("a",)] and [one.slugs for one in done.set_aside] == [("b",)]


def test_nearly_the_same_edit_in_one_place_is_told_from_another(project: Project) -> None:
    lines = ["    wait(5, every=0.1)\n", "    wait(9, every=0.1)\n", "    config.option.verbose = 2\n"]
    works = [
        project.work(name, {"tests/conftest.py": CONFTEST + text}) for name, text in zip(NAMES, lines, strict=True)
    ]
    objects = Objects(project.git)
    changes = {work.slug: objects.changed(project.base, work.tip) for work in works}
    assert near(objects, changes) == (Alike("tests/conftest.py", ("a", "b")),)
    tests = {name: {"tests/test_new.py": f"def test_{name}(): assert 1\n"} for name in NAMES}
    added = {name: objects.changed(project.base, project.work(name, files).tip) for name, files in tests.items()}
    assert near(objects, added) == (), "new tests look alike"


@pytest.mark.timeout(300)
def test_three_agents_that_fix_one_bug_in_their_own_words_are_one_commit(user: User) -> None:
    body = "\n\ndef test_{0}():\n    assert calc.sub({1}, 1) == {1} - 1\n"
    tests = (
        TESTS.partition("\n\n\ndef test_sub")[0]
        + "\n"
        + "".join(body.format(name, number) for number, name in enumerate(NAMES, 3))
    )
    calc = CalcProject(user, tests=tests)
    for name, line in zip(NAMES, ["a - b", "a - b  # no less", "(a - b)"], strict=True):
        calc.script(f"test_{name}", FIX_SUB.replace("    return a - b\nEND", f"    return {line}\nEND"))
    calc.tmr("--no-canary", "--failing").ok()
    found = calc.status()["integration"]
    assert [len(one["slugs"]) for one in found["commits"]] == [3] and not found["set_aside"]
    message = user.git("log", "-1", "--format=%B", found["tip"])
    assert message.count("Mngr-Agent:") == 3 and "makes 3 tests pass" in message
