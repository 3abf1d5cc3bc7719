"""Failures on purpose: which call fails next, how, and how often."""

from __future__ import annotations

import asyncio
from fnmatch import fnmatchcase
from typing import NamedTuple

from grpclib import GRPCError, Status


class Fault(NamedTuple):
    """What happens to calls whose name matches `rpc`, a shell pattern, for the next `times` calls.

    `seconds` delays the call. `status` refuses it. `cut_after` resets the stream of the answer after that many bytes of
    output; a call with a single answer is carried out and its answer lost. `start_seconds` lets a sandbox that this
    call creates come up later.
    """

    rpc: str
    times: int = 1
    seconds: float = 0.0
    start_seconds: float = 0.0
    status: str = ""
    message: str = ""
    cut_after: int | None = None


NO_FAULT = Fault("", 0)


class Faults:
    """The failures that are still to come, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._left: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Raises KeyError for a status that gRPC does not have."""
        if fault.status:
            Status[fault.status]
        self._left.append(fault)

    def clear(self) -> None:
        self._left.clear()

    async def meet(self, rpc: str) -> Fault:
        """Take the first failure for this call, wait as long as it says, and raise GRPCError if it refuses the call."""
        fault = self._take(rpc)
        if fault.seconds:
            await asyncio.sleep(fault.seconds)
        if fault.status:
            raise GRPCError(Status[fault.status], fault.message or f"{rpc} fails on purpose")
        return fault

    def _take(self, rpc: str) -> Fault:
        for place, fault in enumerate(self._left):
            if fnmatchcase(rpc, fault.rpc):
                if fault.times > 1:
                    self._left[place] = fault._replace(times=fault.times - 1)
                else:
                    del self._left[place]
                return fault
        return NO_FAULT
