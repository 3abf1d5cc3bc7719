"""Verified work becomes one branch: real git, no gate."""

import random
from collections.abc import Iterator

import pytest

from mngr.tmr.branch.gate import IntegrationDecision
from mngr.tmr.branch.integration import integrate
from mngr.tmr.branch.unit import EXPECTATION, UNCONTROVERSIAL, VerifiedWork
from mngr.tmr.judge.paths import PathKind
from tests.support.work import FILES, LINES, Answers, Content, Project, TextGate, edited, summary, trailers


@pytest.fixture
def project() -> Iterator[Project]:
    made = Project(FILES)
    try:
        yield made
    finally:
        made.close()


def test_clean_work_becomes_one_linear_branch_in_order_of_kind_and_rank(project: Project) -> None:
    before = project.state()
    done = integrate(
        project.git,
        "r1",
        project.base,
        [
            project.work("a", {"src/app.py": edited(2, "two")}, importance=2, effect=("t1",), summary="Mend two"),
            project.work("b", {"src/other.py": "other = 2\n"}, importance=5, effect=("t2",), summary="Mend other"),
            project.work("c", {"src/new.py": "new = 1\n"}, effect=("t3", "t4"), summary="Add new"),
            project.work("d", {"tests/test_d.py": "d\n", "README.md": "# Better\n", "tutorial.sh": "app -h\n"}),
            project.work("e", {"tests/test_e.py": "e\n"}),
        ],
    )
    assert summary(done) == [
        ("test", ("d", "e")),
        ("tutorial", ("d",)),
        ("docs", ("d",)),
        ("implementation", ("c",)),
        ("implementation", ("b",)),
        ("implementation", ("a",)),
    ]
    parents = project.run("rev-list", "--parents", f"{project.base}..{done.tip}").splitlines()
    assert all(len(line.split()) == 2 for line in parents) and len(parents) == 6
    assert done.tip == done.commits[-1].id and not done.set_aside and done.green is None
    assert project.show(done.tip, "src/app.py") == edited(2, "two").strip()
    assert project.show(done.tip, "src/new.py") == "new = 1"
    assert [commit.rank for commit in done.commits] == [0, 0, 0, 1, 2, 3]
    assert project.run("log", "-1", "--format=%an|%s", done.commits[3].id) == "Agent c|Add new"
    assert trailers(project, done.commits[3].id) == [
        ("Mngr-Run", "r1"),
        ("Mngr-Agent", "r1-c-1"),
        ("Mngr-Test", "tests/test_c.py::test_c"),
        ("Mngr-Rank", "1"),
    ]
    assert ("Mngr-Agent", "r1-e-1") in trailers(project, done.commits[0].id)
    assert project.state() == before
    assert project.run("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert project.run("fsck", "--strict") == "" or "dangling" in project.run("fsck", "--strict")


def test_mixed_work_is_split_and_what_needs_the_fix_comes_right_after_it(project: Project) -> None:
    done = integrate(
        project.git,
        "r1",
        project.base,
        [
            project.work("a", {"src/app.py": edited(2, "two"), "tests/test_app.py": edited(2, "two")}, alone=False),
            project.work("b", {"src/other.py": "other = 2\n", "tests/test_b.py": "b\n"}, alone=True),
            project.work("c", {"src/c.py": "c\n", "tests/test_c.py": "c\n"}, importance=3),
        ],
    )
    assert summary(done) == [
        ("test", ("b",)),
        ("implementation", ("c",)),
        ("test", ("c",)),
        ("implementation", ("a",)),
        ("test", ("a",)),
        ("implementation", ("b",)),
    ]
    assert ("Mngr-Needs", "r1-a-1") in trailers(project, done.commits[4].id)
    fix = done.commits[3]
    assert done.commits[4].needs == (fix.id,) and fix.needed_by == (done.commits[4].id,)


def test_identical_fixes_are_one_commit_that_credits_all(project: Project) -> None:
    same = {"src/app.py": edited(5, "five")}
    done = integrate(
        project.git,
        "r1",
        project.base,
        [
            project.work("b", {**same, "tests/test_b.py": "b\n"}, alone=True, importance=1),
            project.work("a", same, importance=2, summary="Mend five"),
        ],
    )
    assert summary(done) == [("test", ("b",)), ("implementation", ("a", "b"))]
    found = trailers(project, done.tip)
    assert [value for key, value in found if key == "Mngr-Agent"] == ["r1-a-1", "r1-b-1"]
    assert [value for key, value in found if key == "Mngr-Test"] == [
        "tests/test_a.py::test_a",
        "tests/test_b.py::test_b",
    ]
    assert IntegrationDecision("made one", "the changes are identical", ("a", "b")) in done.decisions


def test_a_fix_that_holds_the_same_hunk_as_another_needs_it(project: Project) -> None:
    both = edited(5, "five").replace("line 30\n", "thirty\n")
    done = integrate(
        project.git,
        "r1",
        project.base,
        [
            project.work("a", {"src/app.py": edited(5, "five")}, importance=5),
            project.work("b", {"src/app.py": both}, importance=1),
        ],
    )
    first, second = done.commits
    assert second.needs == (first.id,) and second.id in first.needed_by
    assert ("Mngr-Needs", "r1-a-1") in trailers(project, second.id)
    assert project.show(done.tip, "src/app.py") == both.strip()


def test_a_fix_wholly_in_another_gives_it_its_credit_instead_of_an_empty_commit(project: Project) -> None:
    both = edited(5, "five").replace("line 30\n", "thirty\n")
    done = integrate(
        project.git,
        "r1",
        project.base,
        [
            project.work("a", {"src/app.py": both}, importance=5),
            project.work("b", {"src/app.py": edited(5, "five"), "tests/test_b.py": "b\n"}, importance=1),
        ],
    )
    assert summary(done) == [("implementation", ("a", "b")), ("test", ("b",))]


def test_a_fix_wholly_in_two_others_gives_its_credit_to_the_later_one(project: Project) -> None:
    done = integrate(
        project.git,
        "r1",
        project.base,
        [
            project.work("z", {"src/app.py": edited(5, "five"), "src/other.py": "other = 2\n"}, importance=5),
            project.work("a", {"src/app.py": edited(30, "thirty")}, importance=4),
            project.work(
                "b", {"src/app.py": edited(5, "five").replace("line 30\n", "thirty\n"), "tests/test_b.py": "b\n"}
            ),
        ],
    )
    assert summary(done) == [("implementation", ("z",)), ("implementation", ("a", "b")), ("test", ("b",))]
    assert [one.because for one in done.decisions if one.what == "made one"] == ["all of it is in `z` and `a`"]


def test_changes_of_the_same_file_in_different_places_are_merged_in_few_git_processes(project: Project) -> None:
    work = [project.work(f"w{at}", {"src/app.py": edited(at, f"mended {at}")}) for at in (1, 8, 15, 22, 29, 36)]
    project.git.calls.clear()
    done = integrate(project.git, "r1", project.base, work)
    assert len(project.git.calls) <= 14, project.git.calls
    text = project.show(done.tip, "src/app.py")
    assert len(done.commits) == 6 and not done.set_aside
    assert all(f"mended {at}" in text for at in (1, 8, 15, 22, 29, 36))
    assert all(commit.revert and commit.revert.clean for commit in done.commits)


def test_what_reverting_says_is_what_git_revert_does(project: Project) -> None:
    renamed = {"src/other.py": None, "src/moved.py": "other = 1\n"}
    done = integrate(
        project.git,
        "r1",
        project.base,
        [
            project.work("a", {"src/app.py": edited(5, "five")}, importance=5),
            project.work("b", {"src/app.py": edited(30, "thirty")}, importance=4),
            project.work("c", renamed, importance=3),
            project.work("d", {"src/app.py": edited(31, "thirty one")}, importance=2),
        ],
        resolver=Answers(project, {"src/app.py": edited(5, "five").replace("line 30\nline 31\n", "30\n31\n")}),
        gate=TextGate(project, {}),
    )
    assert [commit.slugs for commit in done.commits] == [("a",), ("b",), ("c",), ("d",)]
    assert [commit.revert and commit.revert.clean for commit in done.commits] == [True, False, True, True]
    assert done.commits[1].needed_by == (done.commits[3].id,)
    project.run("checkout", "-q", "--detach", done.tip)
    for commit in done.commits:
        assert commit.revert is not None
        if commit.revert.clean:
            project.run("revert", "--no-edit", commit.id)
            project.run("reset", "-q", "--hard", done.tip)
        else:
            with pytest.raises(AssertionError):
                project.run("revert", "--no-edit", commit.id)
            project.run("revert", "--abort")


def test_the_order_of_input_does_not_matter_and_twice_gives_the_same_ids(project: Project) -> None:
    work = [
        project.work(
            f"w{n:02}", {"src/app.py": edited(1 + n * 3, f"w{n}"), f"tests/test_{n}.py": "x\n"}, importance=n % 4
        )
        for n in range(12)
    ]
    work += [project.work(f"x{n}", {"src/other.py": f"x{n % 2}\n"}) for n in range(4)]
    seen = set()
    count = 0
    for seed in range(4):
        random.Random(seed).shuffle(work)
        gate = TextGate(project, {"t": lambda read: not read("tests/test_7.py")})
        done = integrate(project.git, "r1", project.base, work, gate=gate)
        seen.add((done.tip, tuple(aside.commit for aside in done.set_aside), done.decisions))
        count = len(done.set_aside)
    assert len(seen) == 1 and count == 2


def test_a_hundred_clean_branches_take_few_git_processes(project: Project) -> None:
    work = [
        project.work(f"w{n:03}", {f"src/new{n}.py": f"{n}\n", f"tests/test_new{n}.py": f"{n}\n"}, alone=True)
        for n in range(100)
    ]
    project.git.calls.clear()
    done = integrate(project.git, "r1", project.base, work)
    assert len(done.commits) == 101 and done.commits[0].kind == PathKind.TEST
    assert len(project.paths(done.tip)) == len(FILES) + 200
    assert len(project.git.calls) <= 10, project.git.calls


def test_flagged_work_beside_the_implementation_is_a_commit_of_its_own(project: Project) -> None:
    plain = project.work("b", {"tests/test_b.py": "b\n"})
    shorter = project.work("a", {"tests/test_a.py": "a\n"}, summary="Simpler test")
    flagged = shorter._replace(flags=("fewer-assertions",))
    done = integrate(project.git, "r1", project.base, [flagged, plain, project.work("c", {"tests/test_c.py": "c\n"})])
    assert summary(done) == [("test", ("b", "c")), ("test", ("a",))]
    assert ("Mngr-Flag", "fewer-assertions") in trailers(project, done.tip)
    assert project.run("diff", "--name-only", f"{done.tip}~", done.tip) == "tests/test_a.py"


TESTS = "import app\n\n\ndef test_one():\n    assert app.one() == 1\n"


def test_tests_that_agents_append_to_one_file_are_all_on_the_branch(project: Project) -> None:
    """Git sees a conflict in each of them. One of them also changes what is there; one moves a file of the product,
    whose merge with the change of another is git's."""
    base = project.commit({"tests/test_app.py": TESTS})
    appended = {name: f"{TESTS}\n\ndef test_{name}():\n    assert app.{name}()\n" for name in "abcd"}
    appended["b"] = appended["b"].replace("import app\n", "import app\nimport os\n")
    more: dict[str, dict[str, Content]] = {
        "c": {"src/app.py": None, "src/main.py": LINES},
        "d": {"src/app.py": edited(20, "twenty")},
    }
    work = []
    for name, text in appended.items():
        tip = project.commit({"tests/test_app.py": text, **more.get(name, {})}, parent=base)
        work.append(project.work(name, {})._replace(tip=tip))
    done = integrate(project.git, "r1", base, work)
    assert not done.set_aside, done.set_aside
    new = "".join(f"\n\ndef test_{name}():\n    assert app.{name}()\n" for name in "abcd")
    assert project.show(done.tip, "tests/test_app.py") + "\n" == TESTS.replace("app\n", "app\nimport os\n", 1) + new
    assert project.show(done.tip, "src/main.py") == edited(20, "twenty").strip()
    again = integrate(project.git, "r1", base, work[::-1])
    assert again.tip == done.tip


def test_two_tests_of_one_name_in_one_file_clash_although_git_merges_them(project: Project) -> None:
    base = project.commit({"tests/test_app.py": TESTS + TESTS.replace("one", "two")})
    new = "def test_new():\n    assert {}\n\n\n"
    work = []
    for name, before in (("a", "import app\n\n\ndef test_one"), ("b", "import app\n\n\ndef test_two")):
        text = (TESTS + TESTS.replace("one", "two")).replace(before, before.replace("def", new.format(name) + "def"))
        tip = project.commit({"tests/test_app.py": text}, parent=base)
        work.append(project.work(name, {})._replace(tip=tip))
    done = integrate(project.git, "r1", base, work)
    assert summary(done) == [("test", ("a",))]
    assert [aside.reason for aside in done.set_aside] == [
        "clashes with `r1-a-1` in `tests/test_app.py`: both define `test_new`"
    ]


def expecting(project: Project, name: str, files: dict[str, Content], *evidence: str) -> VerifiedWork:
    return project.work(name, files, summary=f"Expect {name}\n\nThe manual says so.")._replace(
        place=EXPECTATION, evidence=evidence
    )


def test_changed_expectations_are_one_commit_each_between_the_uncontroversial_and_the_fixes(project: Project) -> None:
    """Also one whose agent changed the product beside it, and two in one file."""
    work = [
        expecting(project, "a", {"tests/test_app.py": edited(5, "a")}, "tests/test_app.py:5: `5` became `a`"),
        project.work("b", {"tests/test_b.py": "b\n"}),
        expecting(project, "c", {"tests/test_app.py": edited(20, "c"), "src/c.py": "c\n"}),
        project.work("d", {"src/other.py": "other = 2\n"}, importance=5),
        project.work("e", {"tests/test_e.py": "e\n"})._replace(flags=("fewer-assertions",)),
        project.work("f", {"tests/test_f.py": "f\n"})._replace(place=UNCONTROVERSIAL),
    ]
    done = integrate(project.git, "r1", project.base, work)
    assert [(commit.place, commit.kind.value, commit.slugs) for commit in done.commits] == [
        ("uncontroversial", "test", ("b", "f")),
        ("uncontroversial", "test", ("e",)),
        ("expectation", "test", ("a",)),
        ("expectation", "test", ("c",)),
        ("fix", "implementation", ("d",)),
        ("fix", "implementation", ("c",)),
    ]
    message = project.run("log", "-1", "--format=%B", done.commits[2].id)
    assert message.startswith("tests: Expect a\n\nThe manual says so.\n\nWhat the test expects is changed")
    assert "- tests/test_app.py:5: `5` became `a`" in message
    assert ("Mngr-Place", "expectation") in trailers(project, done.commits[2].id)
    assert [commit.revert.clean if commit.revert else None for commit in done.commits] == [None, None, *[True] * 4]


def test_any_work_can_be_dropped_and_a_squashed_commit_loses_one_maker(project: Project) -> None:
    work = [
        project.work("a", {"tests/test_a.py": "a\n", "README.md": "# A\n"}),
        project.work("b", {"tests/test_b.py": "b\n", ".github/x.yml": "b\n"}),
        expecting(project, "c", {"tests/test_app.py": edited(5, "c")}),
        project.work("d", {"src/d.py": "d\n", "tests/test_d.py": "d\n"}, alone=True),
        project.work("e", {"tests/test_e.py": "e\n"}),
        project.work("f", {"tests/test_e.py": "e\n"}),
    ]
    whole = integrate(project.git, "r1", project.base, work)
    assert summary(whole)[0] == ("test", ("a", "b", "d", "e", "f"))
    kept = integrate(project.git, "r1", project.base, work, keep={"a", "e"})
    assert summary(kept) == [("test", ("a",)), ("docs", ("a",))]
    assert project.paths(kept.tip) == sorted([*FILES, "tests/test_a.py"])
    assert [(aside.slugs, aside.reason) for aside in kept.set_aside] == [
        *(((name,), "dropped in review") for name in "bcdd"),
        (("e", "f"), "dropped in review"),
    ]
    again = integrate(project.git, "r1", project.base, work, keep=set("abcdef"))
    assert again.tip == whole.tip and not again.set_aside
