"""Several agents make the same edit in other words: the branch has it once, with all their names."""

from collections.abc import Callable, Iterator

import pytest

from mngr.tmr.branch.integrated import Integrated
from mngr.tmr.branch.integration import integrate
from mngr.tmr.branch.unit import VerifiedWork
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
