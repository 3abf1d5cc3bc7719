"""Conflicts that agents resolve."""

import shlex

import pytest

from tests.support.tmr import OUTCOME, Project
from tests.support.user import User

pytestmark = pytest.mark.timeout(500)

TESTS = "import calc\nimport more\n\n\n" + "\n\n".join(
    f"def test_{name}():\n    assert {module}.{name} == 1\n"
    for module, name in (("calc", "a"), ("calc", "b"), ("more", "c"), ("more", "d"))
)
FIX = "wait\nreplace {file} <<END\nNAMES = 0\n====\n{name} = 1\nEND\ncommit Set {name}\n"
# Waits until the other one is at work too: asked one after the other, the first would end without an answer.
ANSWER = """\
wait
if-message are in conflict <<END
  run! mkdir -p {met} && touch {met}/$MNGR_AGENT_NAME
  run! timeout 60 sh -c 'until [ $(ls {met} | wc -l) = 2 ]; do sleep 0.1; done'
  run! sed -i -E '/^(<<<<<<<|=======|>>>>>>>)/d' $(git grep -l '^<<<<<<<')
  commit Both
END
"""
DONE = OUTCOME.format(status="done", changes="[]", summary="done")


def test_independent_conflicts_are_resolved_at_the_same_time(user: User) -> None:
    project = Project(user, product="NAMES = 0\n", tests=TESTS)
    project.write("more.py", "NAMES = 0\n")
    project.commit("more")
    for name in "abcd":
        project.script(f"test_{name}", FIX.format(file="calc.py" if name in "ab" else "more.py", name=name) + DONE)
    project.script("integrator", ANSWER.format(met=shlex.quote(str(user.root / "met"))) + DONE)
    words = ("--integrator", "scripted", "--integrator-arg", f"{project.scripts}/integrator.script")
    project.tmr("--no-baseline", "--no-canary", *words).ok()
    commits = project.status()["integration"]["commits"]
    assert [commit["slugs"][0][0] for commit in commits] == ["a", "b", "c", "d"], commits
