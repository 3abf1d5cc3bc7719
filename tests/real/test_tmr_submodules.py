"""`mngr tmr` in a repository with submodules: tests that need one are measured, and an agent's changes in one are shown
and kept, never on the branch."""

import pytest

from tests.support.odd_projects import PROJECTS
from tests.support.odd_run import OddRun
from tests.support.tmr import OUTCOME
from tests.support.user import User

DONE = OUTCOME.format(
    status="done",
    changes='[{"kind": "implementation", "commit": "{head}", "summary": "s", "importance": 2}]',
    summary="s",
)
INSIDE = "wait\nreplace vendor/lib/library.py <<END\nreturn 4\n====\nreturn 5\nEND\n"
POINTER = (
    f"{INSIDE}run git -C vendor/lib -c user.name=a -c user.email=a@b commit -qam inside\ncommit Move the library\n"
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["edited", "moved"])
def test_a_change_inside_of_a_submodule_is_shown_and_kept(user: User, how: str) -> None:
    run = OddRun(user, PROJECTS["submodules"])
    script = POINTER if how == "moved" else INSIDE
    (run.scripts / "test_half.script").write_text(script + DONE)
    run.tmr("--max-attempts", "1")
    rows = user.mngr("tmr", "status", "r1", "--format", "json").ok().json["rows"]
    [row] = [row for row in rows if row["task"].endswith("test_half")]
    said = {"edited": "without what is changed inside of `vendor/lib`", "moved": "`vendor/lib` is another repository"}
    assert row["verdict"] in ("refuted", "refused") and said[how] in row["why"], row
    assert user.git("diff", "--name-only", "main", "tmr/r1", "--", "vendor") == ""
    saved = user.mngr("saved", "list", "--format", "json").ok().json
    print(saved)


@pytest.mark.timeout(100)
def test_a_submodule_that_is_not_checked_out_is_named_before_an_agent_is_paid(user: User) -> None:
    run = OddRun(user, PROJECTS["submodules"])
    user.git("submodule", "--quiet", "deinit", "-f", "vendor/lib")
    ran = user.mngr(
        "tmr", "--type", "scripted", "--integrator", "none", "--", f"{run.scripts}/{{name}}.script"
    ).failed()
    assert "the submodule `vendor/lib` is not checked out" in ran.stderr and "submodule update --init" in ran.stderr
