"""What an agent has to do wherever it runs, as one list of checks: on this machine, through a pipe to ourselves, on a
host of any provider. `provider_checks` is the list for the hosts themselves, and has an example of a test."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mngr.actions import snapshots
from mngr.actions.destroy import HasWork
from mngr.agent.limits import Limits
from mngr.errors import MngrError
from mngr.fleet.agent import Agent
from mngr.fleet.fleet import Fleet
from mngr.system.waiting import wait_until
from mngr_testing.checks.provider_checks import PlaceCheck, results_of
from mngr_testing.checks.subject import expect

_SECONDS = 60.0


class SiteSubject:
    """A place for agents, `at`: empty for this machine, or `@HOST.PROVIDER`; the fleet works in a repository."""

    lacks: Mapping[str, str] = {}

    def __init__(self, fleet: Fleet, at: str = "") -> None:
        self.fleet, self.at = fleet, at

    def agent(self, command: str = "cat") -> Agent:
        return self.fleet.create(f"check-{os.urandom(4).hex()}{self.at}", command=command)


def created_and_listed(subject: SiteSubject) -> None:
    agent = subject.agent()
    (seen,) = subject.fleet.list([agent.id]).agents
    expect((seen.name, seen.state) == (agent.name, "RUNNING"), f"the list shows {seen.name} as {seen.state}")
    agent.destroy()
    expect(not subject.fleet.list([agent.id]).agents, "a destroyed agent is gone")


def message_capture_transcript(subject: SiteSubject) -> None:
    agent = subject.agent()
    agent.message("grüße\nto you")
    echoed = wait_until(lambda: agent.capture().count("to you") > 1, timeout=_SECONDS)
    expect(bool(echoed), f"the screen has the echo: {agent.capture()}")
    expect(agent.transcript().entries[0]["text"] == "grüße\nto you", "the transcript has the message")
    types = [event["type"] for event in agent.events()]
    expect("message_delivered" in types, f"the events tell of it: {types}")
    agent.destroy()


def exec_with_output_and_code(subject: SiteSubject) -> None:
    agent = subject.agent()
    done = agent.exec("pwd; printf '\\377' >&2; exit 3")
    expect(
        (done.exit_code, done.text, done.stderr) == (3, agent.record.workspace.work_dir, b"\xff"), f"exec gave {done}"
    )
    agent.destroy()


def stop_start_wait(subject: SiteSubject) -> None:
    agent = subject.agent()
    agent.stop()
    expect(subject.fleet.wait([agent], ["STOPPED"], timeout=_SECONDS)[0].state == "STOPPED", "it stops")
    expect(agent.start()[0].now().state == "RUNNING", "it runs again")
    agent.destroy()


def rename_label_limit(subject: SiteSubject) -> None:
    agent = subject.agent()
    new = f"{agent.name}-new"
    agent = agent.rename(new).label({"team": "x"}).limit(Limits(run_seconds=9999.0))
    found = subject.fleet.find(new).record
    expect((found.spec.labels["team"], found.spec.limits["run_seconds"]) == ("x", 9999.0), f"the record is {found}")
    agent.destroy()


def commits_both_ways(subject: SiteSubject) -> None:
    agent = subject.agent()
    agent.exec("echo there > there.txt && git add there.txt && git commit -qm there && echo more >> there.txt")
    expect(b"+more" in agent.diff(), "the difference has what is not committed")
    expect(agent.pull().commits == 1, "a commit comes home")
    commit = agent.exec("git rev-parse HEAD && git reset -q --hard HEAD~1").text
    expect(agent.push(commit) == (commit, 1), "and goes there again")
    expect(agent.exec("cat there.txt").text == "there", "with its files")
    agent.destroy(force=True)


def files_both_ways(subject: SiteSubject) -> None:
    agent = subject.agent()
    place = Path(subject.fleet.local.host.dir, f"check-{os.urandom(4).hex()}")
    place.mkdir()
    (place / "a b").write_text("ü")
    agent.push_files(str(place), "sent")
    agent.pull_files("sent", str(place / "back"))
    expect((place / "back" / "a b").read_text() == "ü", "the file is the same after both ways")
    agent.destroy(force=True)


def snapshot_and_restore(subject: SiteSubject) -> None:
    agent = subject.agent()
    agent.exec("echo kept > kept")
    entry = agent.snapshot()
    agent.exec("rm kept")
    agent.stop()
    agent.site.run(snapshots.restore_to, entry, name=None)
    expect(agent.exec("cat kept").text == "kept", "the file is there again")
    agent.destroy(force=True)


def clone_has_the_files(subject: SiteSubject) -> None:
    agent = subject.agent()
    agent.exec("echo loose > loose")
    copy = agent.clone(f"{agent.name}-copy")
    expect((copy.now().state, copy.exec("cat loose").text) == ("RUNNING", "loose"), "the clone runs and has them")
    for one in (agent, copy):
        one.destroy(force=True)


def destroy_keeps_work(subject: SiteSubject) -> None:
    agent = subject.agent()
    agent.exec("echo only-here > only-here")
    try:
        agent.destroy()
        expect(False, "an agent with work is not destroyed")
    except HasWork as error:
        expect("--force" in error.hint, f"the hint was {error.hint!r}")
    expect(agent.destroy(force=True).entry is not None, "forced, its work is saved")


def unknown_agent(subject: SiteSubject) -> None:
    try:
        subject.fleet.find(f"no-such-agent{subject.at}")
    except MngrError as error:
        expect(bool(error.hint) and error.exit_code == 1, f"the error was {error.message}")
        return
    expect(False, "an agent that does not exist is an error")


CHECKS = tuple(
    PlaceCheck(check.__name__.replace("_", " "), check)
    for check in (
        *(created_and_listed, message_capture_transcript, exec_with_output_and_code, stop_start_wait),
        *(rename_label_limit, commits_both_ways, files_both_ways, snapshot_and_restore, clone_has_the_files),
        *(destroy_keeps_work, unknown_agent),
    )
)


def run_all(subject: SiteSubject) -> dict[str, str]:
    """Each check by name: `yes`, or FAILED with what was seen."""
    return results_of(CHECKS, subject)
