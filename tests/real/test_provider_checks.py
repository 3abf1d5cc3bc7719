"""Every provider and every place for agents passes one list of checks: this machine, a command line, a stand-in for
`kubectl`, a real sshd, real containers, sandboxes of the local Modal server. The summary at the end of the run shows
them as a table."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from mngr.fleet.fleet import Fleet
from mngr_testing.checks import site_checks
from mngr_testing.checks.provider_checks import CANARY, FAILED, ProviderSubject, run_all
from mngr_testing.checks.site_checks import SiteSubject
from mngr_testing.modal_server import ModalServer
from tests.support import far
from tests.support.containers import IMAGE, Containers
from tests.support.modal import CANNOT_RUN
from tests.support.pods import Pods, add_settings
from tests.support.sshd import Sshd
from tests.support.user import User

FIXED = dict.fromkeys(
    ("creates and destroys", "same name refused", "stops and starts", "snapshots", "variables and labels"),
    "its hosts are there already",
)
POD = dict.fromkeys(("stops and starts", "snapshots", "variables and labels"), "its settings have no such line")


def pipe(user: User, stack: ExitStack) -> ProviderSubject:
    there = User()
    stack.callback(there.close)
    line = " ".join(far.argv(there))
    add_settings(user, f'[providers.pipe]\nopen = "{line}"\nopen_tty = "{line}"\nhosts = ["there"]\n')
    lacks = {**FIXED, "unknown host": "every name is this machine"}
    return ProviderSubject(fleet(user, stack), "pipe", "there", lacks)


def pods(user: User, stack: ExitStack) -> ProviderSubject:
    stack.callback(Pods(user).close)
    return ProviderSubject(fleet(user, stack), "pods", lacks=POD)


def ssh(user: User, stack: ExitStack) -> ProviderSubject:
    there = User()
    stack.callback(there.close)
    server = stack.enter_context(Sshd(there))
    user.env.update(server.client.env(user.env))
    add_settings(user, '[providers.ssh]\nhosts = ["box"]\n')
    return ProviderSubject(fleet(user, stack), "ssh", "box", FIXED)


def podman(user: User, stack: ExitStack) -> ProviderSubject:
    engine = stack.enter_context(Containers())
    user.env.update(engine.env(user.env))
    add_settings(user, f'[providers.podman]\nimage = "{IMAGE}"\nmemory = "512m"\npids = 500\n')
    return ProviderSubject(fleet(user, stack), "podman")


def modal(user: User, stack: ExitStack) -> ProviderSubject:
    user.env.update(stack.enter_context(ModalServer()).env())
    return ProviderSubject(fleet(user, stack), "modal")


def fleet(user: User, stack: ExitStack) -> Fleet:
    user.env[CANARY] = "secret"
    made = Fleet(environ=user.env, cwd=str(user.repo))
    stack.callback(made.close)
    return made


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


MODAL = pytest.param(modal, marks=pytest.mark.skipif(bool(CANNOT_RUN), reason=CANNOT_RUN), id="modal")
Make = Callable[[User, ExitStack], ProviderSubject]
Record = Callable[[str, object], None]


@pytest.mark.parametrize("make", [pipe, pods, ssh, podman, MODAL])
@pytest.mark.timeout(300)
def test_a_provider_does_what_every_provider_has_to_do(
    user: User, stack: ExitStack, make: Make, record_property: Record
) -> None:
    subject = make(user, stack)
    report(run_all(subject), subject.name, record_property)


@pytest.mark.parametrize("make", [pytest.param(None, id="local"), pipe, pods, ssh, podman, MODAL])
@pytest.mark.timeout(300)
def test_an_agent_does_the_same_wherever_it_is(
    user: User, stack: ExitStack, make: Make | None, record_property: Record
) -> None:
    if make is None:
        report(site_checks.run_all(SiteSubject(fleet(user, stack))), "local", record_property)
        return
    subject = make(user, stack)
    host = subject.host or stack.enter_context(subject.new_host("site"))
    report(site_checks.run_all(SiteSubject(subject.fleet, f"@{host}.{subject.name}")), subject.name, record_property)


def report(results: dict[str, str], name: str, record_property: Record) -> None:
    """The summary of the run prints all of them as one table: see `pytest_terminal_summary`."""
    record_property("checks", [name, results])
    assert not [f"{check}: {result}" for check, result in results.items() if result.startswith(FAILED)]
