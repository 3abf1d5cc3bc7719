"""Every kind of agent does what `mngr_testing.checks.kind_checks` lists: in a worktree, and in a clone."""

from collections.abc import Collection

import pytest

from mngr_testing.checks.kind_checks import CHECKS, Subject
from mngr_testing.model_server import ModelServer
from tests.support.kinds import WITH_MODEL, WITHOUT_MODEL
from tests.support.user import User

TRANSFERS = ("git-worktree", "git-mirror")
# In `make test` each program that mngr has a kind for goes through the list once, in a worktree. Kinds of our own do so
# over the mirror path too.
REAL = [
    pytest.param(kind, transfer, marks=[pytest.mark.soak] if transfer != TRANSFERS[0] or kind == "pi" else [])
    for kind in WITH_MODEL
    for transfer in TRANSFERS
]


# What makes further agents, or starts the program again: ten to twenty seconds of CPU each for OpenCode.
OF_MORE_STARTS = (
    *("nested_program_does_not_disturb", "crash_is_seen", "resumes_after_stop"),
    *("resumes_after_the_tmux_server_was_killed", "blocked_on_permission", "one_task_and_ends"),
)


def run(subject: Subject, subtests: pytest.Subtests, *, heavy: bool = False, but: Collection[str] = ()) -> None:
    """The list with one agent, each check by its own name."""
    for check in CHECKS:
        if check.heavy == heavy and check.name not in but:
            with subtests.test(check.name):
                check.run(subject)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("transfer", TRANSFERS)
@pytest.mark.parametrize("kind", WITHOUT_MODEL)
def test_a_kind_of_our_own_does_what_every_kind_does(
    user: User, kind: str, transfer: str, subtests: pytest.Subtests
) -> None:
    run(WITHOUT_MODEL[kind](user, transfer), subtests)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "transfer"), REAL)
def test_a_real_program_does_what_every_kind_does(
    user: User, kind: str, transfer: str, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer() as server:
        subject = WITH_MODEL[kind](user, server, transfer)
        monkeypatch.setenv("PATH", user.env["PATH"])
        # The mirror path, in the soak, is the whole list for OpenCode.
        run(subject, subtests, but=OF_MORE_STARTS if (kind, transfer) == ("opencode", TRANSFERS[0]) else ())


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["scripted", *WITH_MODEL])
def test_a_kind_does_the_heavy_part_too(
    user: User, kind: str, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer() as server:
        if kind in WITH_MODEL:
            subject = WITH_MODEL[kind](user, server, TRANSFERS[0])
            monkeypatch.setenv("PATH", user.env["PATH"])
        else:
            subject = WITHOUT_MODEL[kind](user, TRANSFERS[0])
        run(subject, subtests, heavy=True)
