"""Changes that clash: an answer that is checked, or a branch of their own."""

from collections.abc import Iterator

import pytest

from mngr.errors import MngrError
from mngr.tmr.branch.integration import integrate
from tests.support.work import FILES, Answers, Content, Project, TextGate, edited, summary, trailers


@pytest.fixture
def project() -> Iterator[Project]:
    made = Project(FILES)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_two_that_clash_the_more_important_stays_and_the_other_is_kept_aside(project: Project, first: str) -> None:
    done = integrate(
        project.git,
        "r1",
        project.base,
        [
            project.work("a", {"src/app.py": edited(5, "five of a")}, importance=4 if first == "a" else 1),
            project.work("b", {"src/app.py": edited(5, "five of b")}, importance=2),
            project.work("c", {"src/other.py": "other = 3\n"}, importance=3),
        ],
    )
    loser = "b" if first == "a" else "a"
    assert f"five of {first}" in project.show(done.tip, "src/app.py")
    (aside,) = done.set_aside
    assert (aside.slugs, aside.paths, aside.against) == ((loser,), ("src/app.py",), (f"r1-{first}-1",))
    assert aside.branch == f"mngr/set-aside/r1/{loser}"
    assert project.show(aside.branch, "src/app.py") == edited(5, f"five of {loser}").strip()
    assert project.run("rev-parse", f"{aside.branch}^") == project.base
    assert summary(done)[-1][1] in (("c",), (first,)) and len(done.commits) == 2


def test_a_conflict_is_resolved_by_the_resolver_and_verified_by_the_gate(project: Project) -> None:
    merged = edited(5, "five of a and b")
    gate = TextGate(project, {"t_both": lambda read: read("src/app.py").count("line 5\n") == 0})
    resolver = Answers(project, {"src/app.py": merged})
    work = [
        project.work("a", {"src/app.py": edited(5, "five of a")}, importance=4),
        project.work("b", {"src/app.py": edited(5, "five of b"), "tests/test_b.py": "b\n"}, importance=2),
    ]
    done = integrate(project.git, "r1", project.base, work, gate=gate, resolver=resolver)
    # Only the base itself is red by this rule, so it is no unit's fault.
    assert done.green and not done.set_aside, done.decisions
    assert summary(done) == [("implementation", ("a",)), ("implementation", ("b",)), ("test", ("b",))]
    assert project.show(done.tip, "src/app.py") == merged.strip()
    assert ("Mngr-Needs", "r1-a-1") in trailers(project, done.commits[1].id)
    (conflict,) = resolver.conflicts
    assert conflict.paths == ("src/app.py",) and [unit.slug for unit in conflict.against] == ["a"]
    assert "<<<<<<<" in project.show(conflict.merged, "src/app.py")
    assert project.show(conflict.theirs, "src/app.py") == edited(5, "five of b").strip()
    assert project.show(conflict.tip, "src/app.py") == edited(5, "five of a").strip()


@pytest.mark.parametrize(
    ("answer", "because"),
    [
        ({"src/app.py": "broken\n"}, "refuted"),
        ({"src/app.py": edited(5, "both"), "src/other.py": "stolen = 1\n"}, "not about"),
        ({"src/app.py": edited(5, "<<<<<<< ours")}, "markers"),
        ({"src/app.py": ("120000", "/etc/passwd")}, "symbolic link out of the repository"),
        ({}, "leaves the change out"),
        (None, "no answer"),
    ],
)
def test_a_wrong_answer_is_refused_and_the_change_set_aside(
    project: Project, answer: dict[str, Content] | None, because: str
) -> None:
    gate = TextGate(project, {"t_lines": lambda read: "line 40" in read("src/app.py")})
    work = [
        project.work("a", {"src/app.py": edited(5, "five of a")}, importance=4),
        project.work("b", {"src/app.py": edited(5, "five of b")}, importance=2),
    ]
    done = integrate(project.git, "r1", project.base, work, gate=gate, resolver=Answers(project, answer))
    assert [aside.slugs for aside in done.set_aside] == [("b",)] and done.green
    assert done.set_aside[0].against == ("r1-a-1",)
    (decision,) = [one for one in done.decisions if one.what == "conflict not resolved"]
    assert because in decision.because


def test_an_answer_that_leaves_out_what_did_not_clash_is_refused(project: Project) -> None:
    gate = TextGate(project, {"t_true": lambda read: True})
    work = [
        project.work("a", {"src/app.py": edited(5, "five of a")}, importance=4),
        project.work("b", {"src/app.py": edited(5, "five of b"), "src/b.py": "precious\n"}, importance=2),
    ]
    for more, refused in (({"src/b.py": "precious\n"}, False), ({}, True)):
        answers = Answers(project, {"src/app.py": edited(5, "both"), **more})
        done = integrate(project.git, "r1", project.base, work, gate=gate, resolver=answers)
        assert bool(done.set_aside) == refused
        where = done.set_aside[0].branch if refused else done.tip
        assert project.show(where, "src/b.py") == "precious"


def test_an_answer_that_takes_the_tests_of_both_sides_away_is_refused(project: Project) -> None:
    def tests(name: str, mark: str = "") -> str:
        return f"import pytest\n\n\n{mark}def test_new():\n    assert open({name!r})\n"

    gate = TextGate(project, {"t_true": lambda read: True})
    work = [project.work(name, {"tests/test_new.py": tests(name)}) for name in ("a", "b")]
    for answer, refused in ((tests("a and b"), False), (tests("a and b", "@pytest.mark.skip\n"), True)):
        answers = Answers(project, {"tests/test_new.py": answer})
        done = integrate(project.git, "r1", project.base, work, gate=gate, resolver=answers)
        told = [one.because for one in done.decisions if one.what == "conflict not resolved"]
        assert bool(done.set_aside) == refused == any("weaker than both sides" in because for because in told)


def test_without_a_gate_no_answer_is_believed(project: Project) -> None:
    work = [project.work(name, {"src/app.py": edited(5, f"five of {name}")}) for name in ("a", "b")]
    done = integrate(
        project.git, "r1", project.base, work, resolver=Answers(project, {"src/app.py": edited(5, "both")})
    )
    assert [aside.slugs for aside in done.set_aside] == [("b",)]


def test_a_test_that_clashes_is_set_aside_and_its_fix_stays(project: Project) -> None:
    done = integrate(
        project.git,
        "r1",
        project.base,
        [
            project.work("a", {"tests/test_app.py": edited(5, "five of a")}),
            project.work("b", {"src/other.py": "other = 2\n", "tests/test_app.py": edited(5, "five of b")}),
        ],
    )
    assert summary(done) == [("test", ("a",)), ("implementation", ("b",))]
    assert [(aside.slugs, aside.paths) for aside in done.set_aside] == [(("b",), ("tests/test_app.py",))]


def test_a_set_aside_branch_that_somebody_works_on_is_left_alone(project: Project) -> None:
    work = [project.work(name, {"src/app.py": edited(5, f"five of {name}")}) for name in ("a", "b")]
    first = integrate(project.git, "r1", project.base, work)
    own = project.run(
        "commit-tree", f"{first.set_aside[0].commit}^{{tree}}", "-p", first.set_aside[0].commit, "-m", "mine"
    )
    project.run("update-ref", "refs/heads/mngr/set-aside/r1/b", own)
    again = integrate(project.git, "r1", project.base, work)
    assert project.run("rev-parse", "mngr/set-aside/r1/b") == own
    assert again.set_aside[0].branch == "mngr/set-aside/r1/b-2"


def test_a_branch_called_mngr_in_the_way_is_said(project: Project) -> None:
    project.run("update-ref", "refs/heads/mngr", project.base)
    work = [project.work(name, {"src/app.py": edited(5, f"five of {name}")}) for name in ("a", "b")]
    with pytest.raises(MngrError) as caught:
        integrate(project.git, "r1", project.base, work)
    assert "git branch -m mngr" in caught.value.hint


def test_a_resolved_conflict_is_measured_by_both_sides_then_in_its_place_by_rank(project: Project) -> None:
    gate = TextGate(project, {"t_both": lambda read: read("src/app.py").count("line 5\n") == 0})
    work = [
        project.work("a", {"src/app.py": edited(5, "five of a")}, importance=4),
        project.work("b", {"src/app.py": edited(5, "five of b")}, importance=3),
        project.work("c", {"src/other.py": "other = 3\n"}, importance=2),
    ]
    answers = Answers(project, {"src/app.py": edited(5, "five of a and b")})
    done = integrate(project.git, "r1", project.base, work, gate=gate, resolver=answers)
    assert [slugs for _, slugs, *_ in summary(done)] == [("a",), ("b",), ("c",)] and done.green
    asked = [(units, final) for _, units, final, _ in gate.asked]
    assert asked == [(("a", "b"), False), (("a", "b", "c"), True)]
    assert gate.asked[-1][0] == done.tip


def test_independent_conflicts_are_asked_about_at_once_and_dependent_ones_after_each_other(project: Project) -> None:
    """`b` and `d` both meet `a`; `c` meets only `x`, elsewhere. The answer for `d` is made on that for `b`."""
    gate = TextGate(project, {"t_true": lambda read: True})
    work = [
        project.work("a", {"src/app.py": edited(5, "a")}, importance=9),
        project.work("b", {"src/app.py": edited(5, "b")}, importance=8),
        project.work("d", {"src/app.py": edited(5, "d")}, importance=7),
        project.work("x", {"src/other.py": "x\n"}, importance=6),
        project.work("c", {"src/other.py": "c\n"}, importance=5),
    ]
    answers = Answers(
        project,
        None,
        b={"src/app.py": edited(5, "a and b")},
        c={"src/other.py": "x and c\n"},
        d={"src/app.py": edited(5, "a, b and d")},
    )
    done = integrate(project.git, "r1", project.base, work, gate=gate, resolver=answers)
    assert answers.rounds == [["b", "c"], ["d"]]
    assert [commit.slugs[0] for commit in done.commits] == ["a", "b", "d", "x", "c"] and not done.set_aside
    assert project.show(done.tip, "src/app.py") == edited(5, "a, b and d").strip()
    assert project.show(done.tip, "src/other.py") == "x and c"
    assert integrate(project.git, "r1", project.base, work[::-1], gate=gate, resolver=answers).tip == done.tip


def test_a_refused_answer_is_not_asked_for_again_and_keeps_no_other_out(project: Project) -> None:
    gate = TextGate(project, {"t_lines": lambda read: "broken" not in read("src/app.py")})
    work = [project.work(name, {"src/app.py": edited(5, name)}) for name in "abc"]
    answers = Answers(project, None, b={"src/app.py": "broken\n"}, c={"src/app.py": edited(5, "a and c")})
    done = integrate(project.git, "r1", project.base, work, gate=gate, resolver=answers)
    assert answers.rounds == [["b"], ["c"]]
    assert [aside.slugs for aside in done.set_aside] == [("b",)] and "refuted" in done.set_aside[0].reason
    assert [commit.slugs[0] for commit in done.commits] == ["a", "c"]
