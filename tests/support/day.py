"""A day of a run, compressed: a project, the work of its agents, and what goes wrong for each of them.

The agents are real programs whose model is the model server. What an agent does in its shell is a small script, which a
scripted agent can run as well: so the same work can be done on a quiet day."""

import os
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from mngr_testing.model_server import ModelServer, Rule
from tests.support.user import User, wait_for

RETRIES = 2  # how often the program asks again by itself, after which its turn fails
# `fix` and `outcome` can be done twice: who was interrupted does not know how far it came.
WORK = """\
name=${MNGR_TASK##*::test_}
fix() {
  sed -i "s/return 0/return 3/" "shop/$name.py"
  git add -A
  git diff --cached --quiet || git commit -q -m "Return the price of $name"
}
outcome() {
  importance=4 end='"summary": "The price was missing."}'
  case $name:$1 in high:*) importance='"high"' ;; torn:) end='"summary": "The price' ;; esac
  changes="[{\\"kind\\": \\"implementation\\", \\"commit\\": \\"HEAD\\", \\"importance\\": $importance}]"
  [ "$name" != good ] || changes="[]"
  echo "{\\"schema\\": 1, \\"status\\": \\"done\\", \\"changes\\": $changes, $end" >"$MNGR_OUTCOME_FILE"
}
hold() {
  touch "$(dirname "$0")/$name.held"
  until [ -e "$(dirname "$0")/$name.free" ]; do sleep 0.1; done
}
for step in "$@"; do $step || exit; done
"""


class Trouble(NamedTuple):
    """What goes wrong for one agent between its fix and its outcome, and the requests that one attempt then takes:
    `answers` of the model, which are paid for, and `others`, by what became of them."""

    does: str = ""
    answers: int = 3
    others: Mapping[str, int] = {}


GIVES_UP = RETRIES + 1
TROUBLES: Mapping[str, Trouble] = {
    "limited": Trouble(f"%% status 429 times={GIVES_UP} Try again in {{limit}} seconds", 3, {"429": GIVES_UP}),
    "resets": Trouble(f"%% status 429 times={GIVES_UP} You've hit your limit, resets {{clock}}", 3, {"429": GIVES_UP}),
    "waits": Trouble("%% status 429 retry-after=9", 3, {"429": 1}),
    "good": Trouble("%% status 529 times=2", 3, {"529": 2}),
    "overloaded": Trouble(f"%% status 529 times={GIVES_UP}", 3, {"529": GIVES_UP}),
    "dropped": Trouble("%% drop", 3, {"drop": 1}),
    "asleep": Trouble("%% run sh {work} hold", 4),
    "killed": Trouble("%% run sh {work} hold", 4),
    "lost": Trouble("%% think 999", 3, {"gone": 1}),
    "high": Trouble(),
    "torn": Trouble(answers=5),
    "asks": Trouble("%% say Shall I continue?", 4),
}
UNCHANGED = "good"  # whose test passes at the base


class Day:
    """`user`'s repository as a project with a test for each of these agents."""

    def __init__(self, user: User, limit_seconds: int) -> None:
        self.user, self.limit_seconds = user, limit_seconds
        self.work = user.root / "work" / "do"
        self.work.parent.mkdir()
        self.work.write_text(WORK)
        (user.repo / "shop").mkdir()
        (user.repo / "tests").mkdir()
        for name in TROUBLES:
            price = 3 if name == UNCHANGED else 0
            (user.repo / "shop" / f"{name}.py").write_text(f"def price():\n    return {price}\n")
            test = f"from shop import {name}\n\n\ndef test_{name}():\n    assert {name}.price() == 3\n"
            (user.repo / "tests" / f"test_{name}.py").write_text(test)

    def rules(self) -> list[Rule]:
        """Of the model. The clock time of the limit is a whole minute, as those of real limits are."""
        minute = (time.time() + self.limit_seconds / 2) // 60 * 60 + 60
        clock = time.strftime("%H:%M (UTC)", time.gmtime(minute))
        values = {"limit": str(self.limit_seconds), "clock": clock, "work": str(self.work)}
        found = []
        for name, trouble in TROUBLES.items():
            does = trouble.does.format(**values)
            outcome = [] if name == "asks" else [f"%% run sh {self.work} outcome", "%% say Done."]
            lines = [f"%% run sh {self.work} fix", *filter(None, [does]), *outcome]
            found.append(Rule(rf"^Test: \S+::test_{name}\b", "\n".join(lines)))
        rest = f"%% run sh {self.work} fix 'outcome again'\n%% say Done now."
        return [*found, Rule(r"You were interrupted|There is no outcome file|cannot be read", rest)]

    def script(self) -> str:
        """The same work for a scripted agent."""
        return f"wait\nrun sh {self.work} fix 'outcome again'\n"

    def held(self, name: str) -> None:
        wait_for((self.work.parent / f"{name}.held").exists, f"the agent of `{name}` to be in mid-turn", 120)

    def free(self, name: str) -> None:
        (self.work.parent / f"{name}.free").touch()


def requests(server: ModelServer) -> dict[str, Counter[str]]:
    """For each conversation, by the test that it is about, the requests by what became of them. A second agent for a
    test would be a second conversation, here counted with its number."""
    tests: dict[str, str] = {}
    found: dict[str, Counter[str]] = {}
    for entry in server.log:
        if entry.side or entry.api != "messages":
            continue
        if entry.session not in tests:
            name = entry.user_text.partition("::test_")[2].split(" ")[0].split("\n")[0]
            tests[entry.session] = name if name not in found else f"{name} again {len(tests)}"
            found[tests[entry.session]] = Counter()
        what = "answer" if entry.answer in ("text", "tool") else str(entry.status) if entry.answer == "status" else ""
        found[tests[entry.session]][what or entry.answer] += 1
    return found


def waited(server: ModelServer, name: str) -> float:
    """The seconds between the last refusal of this agent's model and its next request."""
    about = [entry for entry in server.log if not entry.side and entry.api == "messages"]
    session = next(entry.session for entry in about if f"::test_{name} " in entry.user_text)
    own = [entry for entry in about if entry.session == session]
    last = max(number for number, entry in enumerate(own) if entry.answer == "status")
    return own[last + 1].arrived_at - own[last].arrived_at


def expected() -> dict[str, Counter[str]]:
    """What one attempt of each takes."""
    return {name: Counter(answer=trouble.answers, **trouble.others) for name, trouble in TROUBLES.items()}


def program_below(pid: int, name: str) -> int:
    """The first process with this program among a process and all that came of it."""
    found = [pid]
    for one in found:
        try:
            if Path(os.readlink(f"/proc/{one}/exe")).name == name:
                return one
            children = Path(f"/proc/{one}/task/{one}/children").read_text()
        except OSError:
            continue
        found += map(int, children.split())
    raise AssertionError(f"no `{name}` among {found}")
