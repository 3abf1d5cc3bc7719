"""What `mngr tmr status` and the end of a run say to a person."""

from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from mngr.cli.app import App
from mngr.cli.output.amounts import money, tokens
from mngr.cli.output.durations import took
from mngr.cli.output.output import Output
from mngr.cli.tmr import account
from mngr.mapreduce.run import Run
from mngr.report.tmr import TmrRun
from mngr.tmr.judge import verdict
from tests.support.tmr_runs import Made, make_run

FLAG = {"kind": "skip", "path": "src/sprout.py", "text": "`t` has a new `skip`"}
NAMES = ("one", "two", "three", "four", "five", "six")


def told(run: Path) -> str:
    out = TextIOWrapper(BytesIO(), encoding="utf-8")
    account.show(cast(App, SimpleNamespace(out=Output("human", out, out, columns=100))), Run(str(run)), "pages.html")
    out.seek(0)
    return out.read()


def test_a_run_is_told_by_what_needs_you_and_ends_with_what_to_type(tmp_path: Path) -> None:
    made = [Made(f"t.py::test_{name}", verdict.FIXED) for name in NAMES]
    made += [Made("t.py::test_odd", verdict.FIXED, flags=[FLAG]), Made("t.py::test_lie", verdict.REFUTED)]
    made += [Made("t.py::test_ask", verdict.BLOCKED, "Sunday?"), Made("t.py::test_aside", verdict.HELD)]
    directory = make_run(tmp_path, "night", made)
    text = told(directory)
    head, *groups = text.split("\n\n")
    assert "ago, took " in head and "$0.70" in head and "209 k tokens" in head
    assert "Branch `tmr/made` is ready: 7 commits" in head and "Look at 1 flagged commit before you merge." in head
    titles = [group.partition("\n")[0] for group in groups]
    assert titles[:3] == ["NEEDS YOU (3)", "REFUTED (1)", "ON THE BRANCH (6)"]
    queue = TmrRun(str(directory)).load("run")["queue"]
    assert [card["kind"] for card in queue] == ["on the branch", "blocked", "set aside"], "the page counts the same"
    assert "on the branch  `t` has a new `skip`" in groups[0] and "blocked        Sunday?" in groups[0]
    assert "set aside      clashes with" in groups[0]
    assert "as measured" not in groups[2] and all(name in groups[2] for name in NAMES), (
        "what is good is folded to names"
    )
    assert [line.split(maxsplit=2)[-1] for line in text.splitlines()[-3:]] == [
        "mngr tmr review night",
        "git merge tmr/made",
        "pages.html",
    ]
    assert all(len(line) <= 100 for line in "\n\n".join(groups[:-1]).splitlines())


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (90, "1 min 30 s"), (7500, "2 h 05 min")],
)
def test_how_long_something_took(seconds: float, text: str) -> None:
    assert took(seconds) == text


def test_money_and_tokens_are_written_one_way() -> None:
    assert [money(1.5), money(1234)] == ["$1.50", "$1,234.00"]
    assert [tokens(1), tokens(491_150), tokens(1_234_567)] == ["1 token", "491 k tokens", "1.2 M tokens"]
