"""Red or green decides what gets on the branch: gates that look at files."""

import random
from collections.abc import Iterator

import pytest

from mngr.errors import MngrError
from mngr.tmr.branch.gate import GateResult, IntegrationDecision, KnownTests
from mngr.tmr.branch.integrated import Integrated
from mngr.tmr.branch.integration import Rules, integrate
from mngr.tmr.branch.unit import BEHAVIOUR
from mngr.tmr.judge.paths import Paths
from tests.support.work import FILES, Project, TextGate, edited, summary


@pytest.fixture
def project() -> Iterator[Project]:
    made = Project(FILES)
    try:
        yield made
    finally:
        made.close()


def test_the_guilty_unit_is_found_in_a_batch_and_set_aside_with_the_evidence(project: Project) -> None:
    gate = TextGate(project, {"t_bad": lambda read: not read("src/w5.py")})
    work = [project.work(f"w{n}", {f"src/w{n}.py": "x\n", f"tests/test_w{n}.py": "x\n"}) for n in range(10)]
    told: list[IntegrationDecision] = []
    done = integrate(project.git, "r1", project.base, work, gate=gate, record=told.append)
    assert [aside.slugs for aside in done.set_aside] == [("w5",)]
    assert done.set_aside[0].evidence == ("t_bad\nt_bad says no",) and "t_bad" in done.set_aside[0].reason
    assert "src/w5.py" not in project.paths(done.tip) and "tests/test_w5.py" not in project.paths(done.tip)
    assert sorted(project.paths(done.set_aside[0].branch)) == sorted([*FILES, "src/w5.py", "tests/test_w5.py"])
    assert done.green and len(done.commits) == 18
    assert gate.asked[-1][0] == done.tip and gate.asked[-1][2]
    assert tuple(told) == done.decisions and len(gate.asked) < 24


def test_work_that_is_green_together_takes_one_run_of_the_suite(project: Project) -> None:
    work = [project.work(f"w{n}", {f"src/w{n}.py": "x\n"}) for n in range(3)]
    gate = TextGate(project, {})
    done = integrate(project.git, "r1", project.base, work, gate=gate, rules=Rules(batch=1))
    assert gate.asked == [(done.tip, ("w0", "w1", "w2"), True, ())]
    assert done.green and done.gate is not None and len(done.commits) == 3


def test_two_units_that_are_fine_alone_but_red_together_are_named(project: Project) -> None:
    gate = TextGate(project, {"t_pair": lambda read: not (read("src/w2.py") and read("src/w7.py"))})
    work = [project.work(f"w{n}", {f"src/w{n}.py": "x\n"}, importance=9 - n) for n in range(9)]
    done = integrate(project.git, "r1", project.base, work, gate=gate, rules=Rules(batch=20))
    (aside,) = done.set_aside
    assert aside.slugs == ("w7",) and aside.against == ("r1-w2-1",) and "together with" in aside.reason
    assert done.green and len(done.commits) == 8


def test_three_units_red_only_together_lose_one(project: Project) -> None:
    trio = ("src/w1.py", "src/w4.py", "src/w6.py")
    gate = TextGate(project, {"t_trio": lambda read: not all(read(path) for path in trio)})
    work = [project.work(f"w{n}", {f"src/w{n}.py": "x\n"}) for n in range(8)]
    done = integrate(project.git, "r1", project.base, work, gate=gate, rules=Rules(batch=3))
    (aside,) = done.set_aside
    assert aside.slugs == ("w6",) and aside.against == ("r1-w4-1",)


def test_what_only_the_whole_suite_shows_is_blamed_too(project: Project) -> None:
    class Partial(TextGate):
        def check(self, commit, units, *, final=False, focus=()):
            seen = super().check(commit, units, final=final, focus=focus)
            return seen if final or focus else seen._replace(green=True, failures=())

    gate = Partial(project, {"t_far": lambda read: not read("src/w3.py")})
    work = [project.work(f"w{n}", {f"src/w{n}.py": "x\n"}) for n in range(6)]
    done = integrate(project.git, "r1", project.base, work, gate=gate)
    assert [aside.slugs for aside in done.set_aside] == [("w3",)] and done.green


def test_baseline_failures_and_flakes_do_not_count_unless_a_fix_promised_them(project: Project) -> None:
    rules = {
        "t_old": lambda read: False,
        "t_flaky": lambda read: "flaky" not in read("src/other.py"),
        "t_promised": lambda read: bool(read("src/a.py")) and not read("src/b.py"),
        "t_unlisted": lambda read: False,
    }
    known = KnownTests(failing=frozenset({"t_old", "t_promised"}), flaky=frozenset({"t_flaky"}))
    work = [
        project.work("a", {"src/a.py": "x\n"}, effect=("t_promised",)),
        project.work("b", {"src/b.py": "x\n"}),
        project.work("c", {"src/other.py": "flaky\n"}),
    ]
    done = integrate(project.git, "r1", project.base, work, gate=TextGate(project, rules), rules=Rules(known=known))
    assert [(aside.slugs, aside.against) for aside in done.set_aside] == [(("b",), ("r1-a-1",))]
    assert any("fails at the base too: `t_unlisted`" in decision.because for decision in done.decisions)
    assert set(done.excused) == {"t_old", "t_flaky", "t_unlisted"} and done.green


def test_a_promise_counts_also_where_nobody_knew_that_the_test_failed_before(project: Project) -> None:
    gate = TextGate(project, {"t_promised": lambda read: bool(read("src/a.py")) and not read("src/b.py")})
    work = [project.work("a", {"src/a.py": "x\n"}, effect=("t_promised",)), project.work("b", {"src/b.py": "x\n"})]
    done = integrate(project.git, "r1", project.base, work, gate=gate)
    assert [(aside.slugs, aside.against) for aside in done.set_aside] == [(("b",), ("r1-a-1",))]


def test_a_flaky_test_that_a_fix_promised_is_excused_no_more(project: Project) -> None:
    gate = TextGate(project, {"t_flaky": lambda read: bool(read("src/a.py")) and not read("src/b.py")})
    work = [project.work("a", {"src/a.py": "x\n"}, effect=("t_flaky",)), project.work("b", {"src/b.py": "x\n"})]
    known = KnownTests(flaky=frozenset({"t_flaky"}))
    done = integrate(project.git, "r1", project.base, work, gate=gate, rules=Rules(known=known))
    assert [(aside.slugs, aside.against) for aside in done.set_aside] == [(("b",), ("r1-a-1",))] and done.green


def test_new_behaviour_comes_after_every_fix_and_counts_as_none(project: Project) -> None:
    work = [
        project.work("new", {"src/new.py": "x\n"}, importance=9, effect=()),
        project.work("old", {"src/old.py": "x\n"}, importance=1, effect=("t_old",)),
    ]
    work[0] = work[0]._replace(place=BEHAVIOUR)
    done = integrate(project.git, "r1", project.base, work, gate=TextGate(project, {}))
    assert [(commit.slugs, commit.place) for commit in done.commits] == [(("old",), "fix"), (("new",), "new behaviour")]
    assert done.commits[-1].because == "new behaviour: no test failed before"


def test_a_gate_that_cannot_measure_the_base_is_an_error_and_no_agents_fault(project: Project) -> None:
    class Broken(TextGate):
        def check(self, commit, units, *, final=False, focus=()):
            return GateResult(False, (), "no space left")

    with pytest.raises(MngrError, match="cannot judge even the base") as caught:
        integrate(project.git, "r1", project.base, [project.work("a", {"src/a.py": "x\n"})], gate=Broken(project, {}))
    assert caught.value.details == "no space left"


def test_a_unit_that_keeps_the_gate_from_measuring_is_blamed(project: Project) -> None:
    class Stopped(TextGate):
        def check(self, commit, units, *, final=False, focus=()):
            seen = super().check(commit, units, final=final)
            return seen._replace(failures=(), log="prepare failed")

    work = [project.work(f"w{n}", {f"src/w{n}.py": "x\n"}) for n in range(4)]
    gate = Stopped(project, {"t": lambda read: not read("src/w2.py")})
    done = integrate(project.git, "r1", project.base, work, gate=gate)
    assert [aside.slugs for aside in done.set_aside] == [("w2",)]
    assert "prepare failed" in done.set_aside[0].evidence[0]


def test_a_failure_that_does_not_repeat_is_not_red(project: Project) -> None:
    class Once(TextGate):
        def check(self, commit, units, *, final=False, focus=()):
            seen = super().check(commit, units, final=final, focus=focus)
            return seen if len(self.asked) == 1 else seen._replace(green=True, failures=())

    gate = Once(project, {"t_shy": lambda read: False})
    done = integrate(project.git, "r1", project.base, [project.work("a", {"src/a.py": "x\n"})], gate=gate)
    assert done.green and not done.set_aside
    assert any(decision.because == "failed once and passed once: `t_shy`" for decision in done.decisions)


def test_nobody_is_blamed_for_what_fails_now_and_then_at_the_base(project: Project) -> None:
    class Flaky(TextGate):
        """Fails three times, then at every other look: also the base fails once of two times."""

        def check(self, commit, units, *, final=False, focus=()):
            seen = super().check(commit, units, final=final, focus=focus)
            passes = len(self.asked) > 3 and len(self.asked) % 2 == 0
            return seen._replace(green=True, failures=()) if passes else seen

    gate = Flaky(project, {"t_coin": lambda read: False})
    work = [project.work(f"w{n}", {f"src/w{n}.py": "x\n"}) for n in range(3)]
    done = integrate(project.git, "r1", project.base, work, gate=gate)
    assert done.green and not done.set_aside
    assert any(decision.because == "passes and fails when it is run alone: `t_coin`" for decision in done.decisions)


@pytest.mark.parametrize("seed", [56, 58, 78, 86, 93, 95, 110, 126])
def test_a_coin_that_fell_well_in_the_baseline_evicts_nobody(project: Project, seed: int) -> None:
    """As the test of the demo that fails in half of its runs, and passed in the first."""
    coin = random.Random(seed)
    gate = TextGate(project, {"t_coin": lambda read: coin.random() < 0.5})
    work = [project.work(f"w{n}", {f"src/w{n}.py": "x\n"}) for n in range(6)]
    done = integrate(project.git, "r1", project.base, work, gate=gate)
    assert done.green and not done.set_aside, done.decisions


def test_who_lost_to_a_unit_that_turns_out_red_gets_another_chance(project: Project) -> None:
    gate = TextGate(project, {"t_bad": lambda read: "bad" not in read("src/app.py")})
    work = [
        project.work("a", {"src/app.py": edited(5, "bad five")}, importance=5),
        project.work("b", {"src/app.py": edited(5, "good five")}, importance=1),
    ]
    done = integrate(project.git, "r1", project.base, work, gate=gate)
    assert summary(done) == [("implementation", ("b",))] and done.green
    assert [aside.slugs for aside in done.set_aside] == [("a",)]
    assert any(commit == done.tip and final for commit, _, final, _ in gate.asked)


def test_another_chance_is_measured_like_the_first(project: Project) -> None:
    gate = TextGate(project, {"t_bad": lambda read: "bad" not in read("src/app.py")})
    work = [project.work(name, {"src/app.py": edited(5, f"bad {name}")}) for name in ("a", "b")]
    done = integrate(project.git, "r1", project.base, work, gate=gate)
    assert done.tip == project.base and not done.commits
    assert [aside.reason for aside in done.set_aside] == ["turns the gate red: `t_bad`"] * 2


def test_fixes_that_a_person_dropped_leave_with_what_needs_them_and_the_rest_is_judged_again(project: Project) -> None:
    gate = TextGate(project, {"t_needs": lambda read: bool(read("src/a.py")) or not read("src/b.py")})
    work = [
        project.work("a", {"src/a.py": "a\n", "tests/test_a.py": "a\n"}, importance=5),
        project.work("b", {"src/b.py": "b\n", "tests/test_b.py": "b\n"}, importance=4),
        project.work("c", {"src/c.py": "c\n", "tests/test_c.py": "c\n"}, alone=True),
        project.work("d", {"src/c.py": "c\n"}),
    ]
    whole = integrate(project.git, "r1", project.base, work, gate=gate)
    assert whole.green and len(whole.commits) == 6
    kept = integrate(project.git, "r1", project.base, work, gate=gate, keep={"a", "b", "c"})
    assert summary(kept)[0] == ("test", ("c",)) and not any("d" in commit.slugs for commit in kept.commits)
    assert [(aside.slugs, aside.reason) for aside in kept.set_aside] == [(("c", "d"), "dropped in review")]
    without = integrate(project.git, "r1", project.base, work, gate=gate, keep={"b", "c", "d"})
    assert {aside.slugs[0]: "dropped" in aside.reason for aside in without.set_aside} == {"a": True, "b": False}
    assert without.green and summary(without) == [("test", ("c",)), ("implementation", ("c", "d"))]
    assert "set-aside/r1/a" in project.run("for-each-ref")
    again = integrate(project.git, "r1", project.base, work, gate=gate, keep={"a", "b", "c", "d"})
    assert again.tip == whole.tip and "set-aside" not in project.run("for-each-ref")


class Hiccups(TextGate):
    """Cannot measure whenever a question comes up for the first time."""

    def check(self, commit, units, *, final=False, focus=()):
        before = [*self.asked]
        seen = super().check(commit, units, final=final, focus=focus)
        return seen if self.asked[-1] in before else GateResult(False, (), "the network is down")


def test_what_could_not_be_measured_did_not_pass(project: Project) -> None:
    gate = Hiccups(project, {"t_bad": lambda read: not read("src/bad.py")})
    work = [project.work("a", {"src/a.py": "x\n"}), project.work("bad", {"src/bad.py": "x\n"})]
    done = integrate(project.git, "r1", project.base, work, gate=gate)
    assert [aside.reason for aside in done.set_aside] == ["turns the gate red: `t_bad`"]
    assert summary(done) == [("implementation", ("a",))] and done.green
    assert done.gate is not None and done.gate.green, "what is told of the tip is what was measured on it"


def test_a_test_that_its_agent_mended_without_the_product_stays_mended(project: Project) -> None:
    gate = TextGate(project, {"t_a": lambda read: bool(read("tests/test_a.py")) and not read("src/b.py")})
    work = [
        project.work("a", {"tests/test_a.py": "x\n"})._replace(repaired=("t_a",)),
        project.work("b", {"src/b.py": "x\n"}),
    ]
    rules = Rules(known=KnownTests(failing=frozenset({"t_a"})))
    done = integrate(project.git, "r1", project.base, work, gate=gate, rules=rules)
    assert [(aside.slugs, aside.against) for aside in done.set_aside] == [(("b",), ("r1-a-1",))]
    assert summary(done) == [("test", ("a",))] and done.green and not done.excused


def poisoned(project: Project, path: str, rules: Rules, *, proven: bool = True) -> Integrated:
    """Eleven fixes, proven by tests that fail at the base or not measured, and work on a file that makes those tests
    fail with them. Its agent's own test does not see that."""
    tests = {
        f"t{n}": (
            lambda read, n=n: (
                bool(read(f"src/w{n:02}.py")) and not read(path)
                if proven
                else not (read(path) and read(f"src/w{n:02}.py"))
            )
        )
        for n in range(11)
    }
    work = [
        project.work(f"w{n:02}", {f"src/w{n:02}.py": "x\n"}, effect=(f"t{n}",) if proven else None) for n in range(11)
    ]
    work.append(project.work("bad", {path: "bad\n"}, importance=5))
    known = KnownTests(failing=frozenset(tests) if proven else frozenset())
    return integrate(
        project.git, "r1", project.base, work, gate=TextGate(project, tests), rules=rules._replace(known=known)
    )


def settled(done: Integrated) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.what, one.about) for one in done.decisions if one.what in ("set aside", "back on the branch")]


@pytest.mark.parametrize("batch", [3, 16])
def test_one_bad_unit_that_comes_first_evicts_no_others(project: Project, batch: int) -> None:
    rules = Rules(paths=Paths(implementation=("src/",)), batch=batch)
    done = poisoned(project, "notes/odd.cfg", rules, proven=False)
    assert [aside.slugs for aside in done.set_aside] == [("bad",)], done.decisions
    assert done.set_aside[0].against == ("r1-w00-1", "r1-w01-1")
    assert "together with several: `r1-w00-1`, `r1-w01-1`" in done.set_aside[0].reason
    assert done.green and [commit.slugs[0] for commit in done.commits] == [f"w{n:02}" for n in range(11)]
    assert settled(done) == [("set aside", ("w00",)), ("back on the branch", ("w00",)), ("set aside", ("bad",))]


def test_a_unit_that_promised_nothing_goes_when_it_breaks_what_another_promised(project: Project) -> None:
    done = poisoned(project, "notes/odd.cfg", Rules(paths=Paths(implementation=("src/",))))
    assert settled(done) == [("set aside", ("bad",))] and done.set_aside[0].against == ("r1-w00-1",)
    assert done.green and len(done.commits) == 11


def test_build_files_are_ranked_among_the_fixes(project: Project) -> None:
    base = project.commit({"Makefile": "all:\n", "conf/rules": "x\n"})
    work = []
    for name, path in (("b", "Makefile"), ("c", "src/c.py"), ("d", "conf/other")):
        tip = project.commit({path: "x\n"}, parent=base)
        work.append(project.work(name, {})._replace(tip=tip, effect=("t",) if name == "c" else ()))
    done = integrate(project.git, "r1", base, work, rules=Rules(paths=Paths(implementation=("src/",))))
    assert summary(done) == [("other", ("d",)), ("implementation", ("c",)), ("implementation", ("b",))]


def test_a_unit_stays_that_others_break_whose_promise_it_is(project: Project) -> None:
    gate = TextGate(
        project, {"t_p": lambda read: bool(read("src/p.py")) and not read("src/a.py") and not read("src/b.py")}
    )
    work = [
        project.work("p", {"src/p.py": "x\n"}, effect=("t_p",)),
        *(project.work(name, {f"src/{name}.py": "x\n"}) for name in "ab"),
    ]
    rules = Rules(known=KnownTests(failing=frozenset({"t_p"})))
    done = integrate(project.git, "r1", project.base, work, gate=gate, rules=rules)
    assert [aside.slugs for aside in done.set_aside] == [("a",), ("b",)]
    assert [commit.slugs for commit in done.commits] == [("p",)]
