"""What every provider has to do, as one list of checks. The author of a provider runs it with pytest:

    from mngr_testing.checks.provider_checks import ProviderSubject, run_all, table

    def test_my_provider(fleet: Fleet) -> None:
        results = run_all(ProviderSubject(fleet, "mine"))
        print(table({"mine": results}))
        assert not [name for name, result in results.items() if result.startswith(FAILED)]

The subject names the checks that its provider cannot pass, with the reason. Without a `host` of its own, one is created
for the checks and destroyed at the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from mngr.actions import find
from mngr.errors import UNREACHED, MngrError
from mngr.fleet import host_verbs
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.fleet.known_hosts import KnownHost
from mngr.providers.provider import GONE, RUNNING, STOPPED, HostRequest, Provider, Unsupported
from mngr.system.process import Result, join, run
from mngr_testing.checks.subject import expect

YES, LACKS, FAILED = "yes", "-", "FAILED"
CANARY = "MNGR_CHECK_CANARY"
_SECONDS = 120.0
_PLAIN = HostRequest("")


class ProviderSubject:
    """A provider of a fleet's settings, and what it lacks: a reason by the name of the check."""

    def __init__(
        self, fleet: Fleet, provider: str, host: str = "", lacks: Mapping[str, str] | None = None, image: str = ""
    ) -> None:
        self.fleet, self.name, self.host, self.lacks, self.image = fleet, provider, host, dict(lacks or {}), image
        self._numbers = iter(range(1000))

    @property
    def provider(self) -> Provider:
        return self.fleet.hosts.provider(self.name)

    def shell(self, line: str, host: str = "", input: bytes = b"") -> Result:
        opening = self.provider.opening(host or self.host)
        return run([*opening.argv, line], timeout=_SECONDS, env=opening.env, input=input, cwd="/")

    @contextmanager
    def new_host(self, word: str, request: HostRequest = _PLAIN) -> Iterator[str]:
        """A host that is destroyed at the end."""
        hosts = self.fleet.hosts
        request = request._replace(name=f"check-{word}-{os.getpid()}-{next(self._numbers)}", image=self.image)
        name = hosts.create(self.name, request, lambda text: None).name
        try:
            yield name
        finally:
            hosts.destroy(KnownHost(self.name, name, ours=True))

    def agent(self, command: str = "cat") -> Agent:
        return self.fleet.create(f"a{next(self._numbers)}@{self.host}.{self.name}", command=command)


class PlaceCheck(NamedTuple):
    name: str
    do: Callable[[Any], None]


def runs_a_line(subject: ProviderSubject) -> None:
    """A shell reads the line as it is; its output, errors and exit code come back."""
    done = subject.shell("""printf '%s|' "it's" 'a "b" $c' "é 名" ; echo error >&2; exit 7""")
    expect(done.text == """it's|a "b" $c|é 名|""", f"the output was {done.text!r}")
    expect(done.exit_code == 7, f"the exit code was {done.exit_code}")
    expect("error" in done.error_text, f"the errors were {done.error_text!r}")


def bytes_arrive(subject: ProviderSubject) -> None:
    """A megabyte of any bytes goes there and back, and the end of the input arrives."""
    data = bytes(range(256)) * 4096
    expect(subject.shell("cat", input=data).stdout == data, "the same bytes came back")


def environment_stays(subject: ProviderSubject) -> None:
    expect(CANARY in subject.fleet.local.environ, f"the caller has {CANARY} in its environment")
    seen = subject.shell("env; echo end").text
    expect(seen.endswith("end") and CANARY not in seen, f"no variable of the caller is on the host: {seen}")


def terminal(subject: ProviderSubject) -> None:
    site = subject.fleet.hosts.site(subject.host, subject.name)
    site.run(find.listing)  # a terminal that is relayed needs our program there
    line = join(site.terminal_argv(["sh", "-c", "test -t 0 && echo is-a-terminal"]))
    env = {**subject.provider.opening(subject.host).env, "TERM": "xterm"}
    seen = run(["script", "-qec", line, "/dev/null"], timeout=_SECONDS, env=env, cwd="/")
    expect("is-a-terminal" in seen.text, f"a terminal: {seen.text!r}")


def several_at_once(subject: ProviderSubject) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = [done.text for done in pool.map(lambda number: subject.shell(f"echo {number}"), range(8))]
    expect(answers == [str(number) for number in range(8)], f"the answers were {answers}")


def agent_lives(subject: ProviderSubject) -> None:
    """An agent gets messages, runs commands, outlives the connection, and its commits come home."""
    agent = subject.agent()
    agent.message("hello")
    done = agent.exec("echo new > new.txt && git add new.txt && git commit -qm 'From there' && hostname")
    expect(done.ok, f"exec: {done.error_text}")
    subject.fleet.hosts.close()
    again = subject.fleet.find(agent.name)
    expect(again.state == "RUNNING", f"after the connection ended the agent is {again.state}")
    pulled = again.pull()
    expect(pulled.commits == 1, f"{pulled.commits} commits came home")
    again.destroy(force=True)
    expect(not subject.fleet.list([agent.id]).agents, "the agent is gone")


def unknown_host(subject: ProviderSubject) -> None:
    """A host that does not exist is unreached, with the exit code for that."""
    try:
        subject.fleet.hosts.site("no-such-host-here", subject.name).run(find.listing)
    except MngrError as error:
        expect(error.exit_code == UNREACHED, f"the exit code was {error.exit_code}: {error.message}")
        return
    expect(False, "an error")


def listed(subject: ProviderSubject) -> None:
    views, errors = host_verbs.listing(subject.fleet.hosts)
    states = {view.name: view.state for view in views if view.provider == subject.name}
    expect(states.get(subject.host) == RUNNING, f"`host list` shows {states}, and errors {errors}")


def creates_and_destroys(subject: ProviderSubject) -> None:
    with subject.new_host("new") as name:
        info = subject.provider.host(name)
        expect((info.state, info.ours) == (RUNNING, True), f"the new host is {info}")
        expect(subject.shell("echo there", name).text == "there", "the new host has a shell")
    expect(subject.provider.host(name).state == GONE, "a destroyed host is gone")
    subject.provider.destroy(name)


def same_name_refused(subject: ProviderSubject) -> None:
    with subject.new_host("twice") as name:
        try:
            subject.provider.create(HostRequest(name, image=subject.image), lambda text: None)
        except MngrError:
            expect(subject.shell("echo there", name).text == "there", "the first host is unharmed")
            return
        expect(False, "a second host of the same name is refused")


def stops_and_starts(subject: ProviderSubject) -> None:
    with subject.new_host("stop") as name:
        subject.shell("echo kept > /kept 2>/dev/null || echo kept > $HOME/kept", name)
        for _ in range(2):
            host_verbs.stop(subject.fleet.hosts, KnownHost(subject.name, name, ours=True))
        expect(subject.provider.host(name).state == STOPPED, "a stopped host says so")
        try:
            subject.fleet.hosts.site(name, subject.name).run(find.listing)
            expect(False, "a stopped host is unreached")
        except MngrError as error:
            expect(f"mngr host start {name}" in error.hint, f"the hint was {error.hint!r}")
        for _ in range(2):
            subject.provider.start(name)
        expect("kept" in subject.shell("cat /kept $HOME/kept", name).text, "files are there after a start")


def snapshots(subject: ProviderSubject) -> None:
    with subject.new_host("first") as name:
        subject.shell("echo kept > /kept", name)
        image = subject.provider.snapshot(name, f"mngr-check-{os.getpid()}")
    with subject.new_host("second", HostRequest("", snapshot=image)) as other:
        expect(subject.shell("cat /kept", other).text == "kept", "the new host has the files of the snapshot")


def variables_and_labels(subject: ProviderSubject) -> None:
    """A variable of a host is there; a label is accepted."""
    with subject.new_host("env", HostRequest("", env={"CHECK": "a 'b' $c"}, labels={"team": "one"})) as name:
        expect(subject.shell("printenv CHECK", name).text == "a 'b' $c", "the variable is there")


def says_what_it_lacks(subject: ProviderSubject) -> None:
    """What a provider cannot do is refused before anything is made."""
    lacking = [verb for verb in ("create", "stop", "start", "snapshot", "destroy") if not _has(subject.provider, verb)]
    for verb in lacking:
        try:
            subject.provider.require(verb)
        except Unsupported as error:
            expect(bool(error.hint) and subject.name in error.message, f"{verb}: {error.message}")


def _has(provider: Provider, verb: str) -> bool:
    try:
        provider.require(verb)
    except Unsupported:
        return False
    return True


CHECKS = tuple(
    PlaceCheck(check.__name__.replace("_", " "), check)
    for check in (
        *(runs_a_line, bytes_arrive, environment_stays, terminal, several_at_once, unknown_host, listed, agent_lives),
        *(says_what_it_lacks, creates_and_destroys, same_name_refused, stops_and_starts, snapshots),
        variables_and_labels,
    )
)


def run_all(subject: ProviderSubject) -> dict[str, str]:
    """Each check by name: `yes`, `-` with what the provider lacks, or FAILED with what was seen."""
    if subject.host:
        return results_of(CHECKS, subject)
    with subject.new_host("host") as subject.host:
        return results_of(CHECKS, subject)


class Lacking(Protocol):
    @property
    def lacks(self) -> Mapping[str, str]: ...


def results_of(checks: Sequence[PlaceCheck], subject: Lacking) -> dict[str, str]:
    found: dict[str, str] = {}
    for check in checks:
        if check.name in subject.lacks:
            found[check.name] = f"{LACKS} {subject.lacks[check.name]}"
            continue
        try:
            check.do(subject)
            found[check.name] = YES
        except (AssertionError, MngrError) as error:
            found[check.name] = f"{FAILED}: {error}"
    return found


def table(results: Mapping[str, Mapping[str, str]]) -> str:
    """Providers side by side, a line for each behaviour; what a provider lacks is explained below."""
    checks = list(dict.fromkeys(check for found in results.values() for check in found))
    wide = max(map(len, checks))
    lines = [" " * wide + "".join(f"  {name:<8}" for name in results)]
    for check in checks:
        cells = [results[name].get(check, "").split(" ")[0] for name in results]
        lines.append(f"{check:<{wide}}" + "".join(f"  {cell:<8}" for cell in cells))
    for name, found in results.items():
        lines += [f"{name}: {check}: {result}" for check, result in found.items() if result != YES]
    return "\n".join(line.rstrip() for line in lines)
