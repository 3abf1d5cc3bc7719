"""The sample project in the repository of a user with one real agent program, whose model fixes its bugs."""

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mngr.demo import sample
from mngr_testing.model_server import ModelServer, Rule
from tests.support.programs import program, with_program
from tests.support.user import Ran, User

# Tests that fail in the sample project, each with the file of the product that is wrong.
BUGS = {
    "tests/test_due.py::test_due_names_the_thirsty": "src/sprout/plant.py",
    "tests/test_report.py::test_the_report_counts_by_room": "src/sprout/plant.py",
    "tests/test_report.py::test_the_week_begins_on_monday": "src/sprout/report.py",
    "tests/test_table.py::test_export_leaves_a_missing_room_empty": "src/sprout/table.py",
    "tests/test_table.py::test_export_quotes_a_name_with_a_comma": "src/sprout/table.py",
    "tests/test_watering.py::test_a_wrong_name_waters_nobody": "src/sprout/garden.py",
}
# The bug that the example itself has, beside those of its last commit.
_WATERS_AT_ONCE = """\
        watered = []
        for name in names:
            plant = self.find(name)
            plant.waterings.append(day)
            self.save()
            watered.append(plant)
        return watered
"""
_WATERS_ALL_OR_NONE = """\
        plants = [self.find(name) for name in names]
        for plant in plants:
            plant.waterings.append(day)
        self.save()
        return plants
"""
INTERRUPTED = "^You were interrupted"  # how an agent is told to continue


class SproutWorld:
    """`user`'s repository is the sample project after its hasty commit: some of its tests fail. `outside` is a
    directory that no agent may change, `bare` a repository that none may push to."""

    def __init__(self, kind: str, user: User) -> None:
        self.kind, self.user = kind, user
        with_program(program(kind), user.env, user.root / "bin")
        shutil.rmtree(user.repo)
        sample.make_repository(str(user.repo))
        user.trust()
        self.outside, self.bare = user.root / "outside", user.root / "bare"
        (self.outside / "kept").mkdir(parents=True)
        user.git("init", "-q", "--bare", str(self.bare))

    @property
    def forbidden(self) -> list[str]:
        """What the permissions `tests` deny."""
        return [
            f"git push {self.bare} HEAD:refs/heads/pushed",
            "curl -s -o fetched http://127.0.0.1:1/",
            f"touch {self.outside}/touched && rm -rf {self.outside}/kept",
        ]

    def look(self, test: str) -> list[str]:
        """What the model does first."""
        return [f"%% run python3 -m pytest -q {test}", f"%% run cat {BUGS[test]}"]

    def fix(self, test: str) -> list[str]:
        """What it does then: fix the bug, commit, and write its outcome."""
        path = BUGS[test]
        text = (Path(sample.source()) / path).read_text().replace(_WATERS_AT_ONCE, _WATERS_ALL_OR_NONE)
        change = {"kind": "implementation", "commit": "HEAD", "summary": f"Fix {path}", "importance": 4}
        outcome = {
            "schema": 1,
            "task": test,
            "status": "done",
            "changes": [change],
            "test": {"before": "failed", "after": "passed"},
            "summary": "The product was wrong: see the tutorial.",
        }
        return [
            f"%% write {path} <<END\n{text}END",
            f"%% run python3 -m pytest -q {test}",
            f"%% run git add {path} && git commit -q -m 'Fix {path}'",
            f"%% run <<END\ncat > \"$MNGR_OUTCOME_FILE\" <<'EOF'\n{json.dumps(outcome, indent=1)}\nEOF\nEND",
            "%% run python3 .mngr/task/check_outcome.py",
            "%% say Done.",
        ]

    def rule(self, test: str, steps: Sequence[str]) -> Rule:
        return Rule(f"^Test: {test}", "\n".join(steps))

    def tmr(self, server: ModelServer, tests: Iterable[str], *words: str, timeout: float = 500) -> Ran:
        """A run called `r1`, without the integrator: there is nothing to resolve."""
        given = ("--name", "r1", "--type", self.kind, "--permissions", "tests", "--integrator", "none", *words)
        args, env = server.args(self.kind), server.env(self.kind)
        return self.user.mngr("tmr", *given, "--format", "json", *tests, "--", *args, env=env, timeout=timeout)

    @property
    def ledger(self) -> list[dict[str, Any]]:
        path = self.user.repo / ".mngr" / "runs" / "r1" / "ledger.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def transcripts(self) -> dict[str, list[dict[str, Any]]]:
        """What each agent of the run said and did, by its name."""
        return {
            str(agent["name"]): self.user.mngr("transcript", agent["name"], "--format", "json").ok().json
            for agent in self.user.agents()
        }

    def untouched(self) -> bool:
        """Whether nothing came of what is forbidden."""
        pushed = self.user.git("ls-remote", str(self.bare))
        return not pushed and [path.name for path in self.outside.iterdir()] == ["kept"]
