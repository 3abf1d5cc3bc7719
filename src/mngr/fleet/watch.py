"""Wait for agents of several machines, and watch all of them. Each host answers by events; nothing is polled here."""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

from mngr.actions import wait
from mngr.actions.site import Site
from mngr.actions.view import AgentView
from mngr.errors import MngrError, TimedOut
from mngr.fleet.agent import Agent, Listing
from mngr.fleet.hosts import Hosts
from mngr.system.interrupts import check
from mngr.system.waiting import Deadline

T = TypeVar("T")
# How long a thread waits before it looks whether anybody still wants to know.
_SLICE_SECONDS = 5.0
_RETRY_SECONDS = 5.0


def until(
    groups: Mapping[Site, Sequence[str]], states: Collection[str], *, any_of: bool, timeout: float | None
) -> list[Agent]:
    """The agents (by site) once all, or any, are in one of the states. Raises what the first site raises."""
    if len(groups) == 1:
        ((site, ids),) = groups.items()
        views = site.run(wait.until, ids, states, any_of=any_of, timeout=timeout)
        return [Agent(site, view.record, view) for view in views]
    deadline, over = Deadline(timeout), threading.Event()
    answers: SimpleQueue[list[Agent] | MngrError] = SimpleQueue()

    def ask(site: Site, ids: Sequence[str]) -> None:
        while not over.is_set():
            seconds = deadline.left(_SLICE_SECONDS)
            try:
                views = site.run(wait.until, ids, states, any_of=any_of, timeout=seconds)
            except TimedOut as error:
                if not deadline.passed:
                    continue
                answers.put(error)
            except MngrError as error:
                answers.put(error)
            else:
                answers.put([Agent(site, view.record, view) for view in views])
            return

    for site, ids in groups.items():
        threading.Thread(target=ask, args=(site, ids), daemon=True, name=f"wait for {site.name}").start()
    found: list[Agent] = []
    failed: list[MngrError] = []
    try:
        while len(failed) < len(groups):
            answer = _next(answers)
            if isinstance(answer, MngrError):
                failed.append(answer)
                if not any_of:
                    break
                continue
            found += answer
            if any_of or len({agent.site for agent in found}) == len(groups):
                return found
    finally:
        over.set()
    raise failed[0]


def _next(answers: SimpleQueue[T]) -> T:
    """The next answer of a thread; an interrupt ends the wait for it."""
    while True:
        check()
        try:
            return answers.get(timeout=0.2)
        except Empty:
            continue


def listings(hosts: Hosts) -> Iterator[Listing]:
    """The agents of all sites now, and again after every change on one of them, for ever. Those of a host that does not
    answer are UNKNOWN until it answers again. Raises what is wrong with this machine."""
    changes: SimpleQueue[tuple[Site, list[AgentView], list[MngrError]] | MngrError] = SimpleQueue()
    over = threading.Event()

    def follow(site: Site) -> None:
        while not over.is_set():
            try:
                for views, errors in site.run(wait.watch):
                    if over.is_set():
                        return
                    if not errors:
                        hosts.note(site, views)
                    changes.put((site, views, list(errors)))
            except MngrError as error:
                changes.put(error if site.is_local else (site, hosts.last_seen(site, error), [error]))
            over.wait(_RETRY_SECONDS)

    sites = hosts.sites()
    for site in sites:
        threading.Thread(target=follow, args=(site,), daemon=True, name=f"watch {site.name}").start()
    latest: dict[Site, tuple[list[AgentView], list[MngrError]]] = {}
    try:
        while True:
            change = _next(changes)
            if isinstance(change, MngrError):
                raise change
            latest[change[0]] = change[1:]
            known = [(one, *latest[one]) for one in sites if one in latest]
            yield Listing(
                [Agent(one, view.record, view) for one, views, _ in known for view in views],
                [error for _, _, errors in known for error in errors],
            )
    finally:
        over.set()
