"""Hear from the hosts of a run when something happens to an agent there. Each host sends events; none is polled."""

from __future__ import annotations

import threading

from mngr.actions import wait
from mngr.errors import MngrError
from mngr.mapreduce.host_pool import HostPool

_RETRY_SECONDS = 5.0


class HostWatch:
    """A thread for each host that agents are on. It also finds out that a host does not answer, or answers again."""

    def __init__(self, pool: HostPool, wake: threading.Event) -> None:
        self._pool, self._wake = pool, wake
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._followed: set[str] = set()
        self._news: set[str] = set()

    def follow(self) -> None:
        """Watch all hosts of the pool. Those that are watched already are."""
        for name in self._pool.names:
            if name not in self._followed:
                self._followed.add(name)
                threading.Thread(target=self._watch, args=(name,), daemon=True, name=f"watch {name}").start()

    def news(self) -> set[str]:
        """The ids of agents to which something happened since this was last called."""
        with self._lock:
            found, self._news = self._news, set()
            return found

    def close(self) -> None:
        self._over.set()

    def _watch(self, name: str) -> None:
        while not self._over.is_set() and not self._pool.is_lost(name):
            try:
                for changed in self._pool.site(name).run(wait.changed_agents):
                    if self._over.is_set():
                        return
                    back = self._pool.reached(name)
                    with self._lock:
                        self._news |= set(changed)
                    if changed or back:
                        self._wake.set()
            except MngrError as error:
                if not self._over.is_set():
                    self._pool.fail(name, error.message)
                    self._wake.set()
            self._over.wait(_RETRY_SECONDS)
