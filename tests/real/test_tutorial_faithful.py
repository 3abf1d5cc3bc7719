"""The citations and commands of a changed test, from git and from recorded runs of pytest."""

import sys

import pytest

from mngr.system.git import Git
from mngr.tmr.blocks import Blocks
from mngr.tutorial.faithful import Faithful, judge
from mngr.tutorial.ran import read_every
from tests.support.greeter import BYE, HELLO, add_greeter
from tests.support.user import User

pytestmark = pytest.mark.timeout(300)

PYTEST = (sys.executable, "-m", "pytest", "-q", "--disable-plugin-autoload", "-p", "mngr.e2e.plugin", "tests")
SOON, WRONG = "tests/test_bye.py::TestBye::test_soon", "tests/test_bye.py::TestBye::test_wrong"


def measure(user: User, name: str) -> str:
    """Commit everything, run the tests and collect what they leave; the commit."""
    user.git("add", "-A")
    user.git("commit", "-q", "--allow-empty", "-m", name)
    user.run(PYTEST, env={"MNGR_E2E_DIR": str(user.root / name), "PYTHONDONTWRITEBYTECODE": "1"}, timeout=100)
    return user.git("rev-parse", "HEAD").strip()


def test_work_on_a_test_is_held_against_its_block(user: User) -> None:
    add_greeter(user, test_hello=HELLO, test_bye=BYE)
    path = user.repo / "tests" / "test_bye.py"
    git = Git.of_user(str(user.repo))
    base = measure(user, "base")

    def judged(name: str, text: str, test: str = SOON) -> Faithful:
        path.write_text(text)
        sides = ((base, "base"), (measure(user, name), name))
        then, now = (
            Blocks(git, commit).test(test, "tutorial.sh", read_every(str(user.root / place))) for commit, place in sides
        )
        return judge(then, now)

    same = judged("same", f"{BYE}\n# a comment\n")
    assert same == Faithful()
    assert judged("unhappy", BYE, WRONG).notes == (
        "the cited command `greet hello --name Ada` is not run by this test",
    )
    other = judged("other", BYE.replace("e2e.run(command)", 'e2e.run("echo see you")'))
    assert other.reasons == ("the cited command `greet bye --soon` is not run any more",)
    failed = judged("failed", BYE.replace('"see you"', '"see me"'))
    assert failed.reasons == ("the cited command `greet bye --soon` is not run any more",)
    removed = judged("removed", BYE.replace("        block = e2e.write_tutorial_block(", "        print("))
    assert removed.reasons == ("the citation of `greet bye --soon` was removed",)
