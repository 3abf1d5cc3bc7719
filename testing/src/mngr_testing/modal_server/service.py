"""A gRPC service made of a table of functions: each call is logged, may fail on purpose, and the rest are refused."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from grpclib import GRPCError, Status
from grpclib.server import Stream

from mngr.system.files import append_line
from mngr_testing.modal_server.faults import Fault, Faults

Metadata = Mapping[str, str | bytes]


class Call(NamedTuple):
    """What a function learns besides the request. `stream` yields the requests of a client that streams them."""

    metadata: Metadata
    fault: Fault
    stream: Stream[Any, Any]


Single = Callable[[Any, Call], Awaitable[Any]]
Streamed = Callable[[Any, Call], AsyncIterator[Any]]


class CallLog:
    """One JSON line for each call that ended."""

    def __init__(self, path: str | None) -> None:
        self._path = path

    def put(self, rpc: str, began_at: float, status: str, message: str = "", request: object = None) -> None:
        if self._path:
            target = getattr(request, "sandbox_id", "") or getattr(request, "task_id", "")
            seconds = round(time.time() - began_at, 4)
            entry = {"at": began_at, "rpc": rpc, "seconds": seconds, "status": status}
            append_line(self._path, {**entry, "message": message, "target": target})


class Service:
    """Serves what the tables name. Every other call of `base` is answered UNIMPLEMENTED and logged."""

    def __init__(
        self,
        base: type[Any],
        single: Mapping[str, Single],
        streamed: Mapping[str, Streamed],
        admit: Callable[[str, Metadata], None],
        faults: Faults,
        log: CallLog,
    ) -> None:
        self._single, self._streamed = single, streamed
        self._admit, self._faults, self._log = admit, faults, log
        methods = {name: self._handler(name) for name in base.__abstractmethods__}
        self._served = type(base.__name__, (base,), methods)()

    def __mapping__(self) -> dict[str, Any]:
        mapping: dict[str, Any] = self._served.__mapping__()
        return mapping

    def _handler(self, rpc: str) -> Callable[[object, Stream[Any, Any]], Awaitable[None]]:
        async def handle(_: object, stream: Stream[Any, Any]) -> None:
            began_at = time.time()
            request = None
            try:
                self._admit(rpc, stream.metadata or {})
                fault = await self._faults.meet(rpc)
                request = await stream.recv_message()
                await self._answer(rpc, request, Call(stream.metadata or {}, fault, stream))
            except GRPCError as error:
                self._log.put(rpc, began_at, error.status.name, error.message or "", request)
                raise
            except BaseException as error:
                self._log.put(rpc, began_at, "GONE", repr(error), request)
                raise
            self._log.put(rpc, began_at, "OK", request=request)

        return handle

    async def _answer(self, rpc: str, request: object, call: Call) -> None:
        if single := self._single.get(rpc):
            answer = await single(request, call)
            if call.fault.cut_after is not None:
                await self._cut(call)
            await call.stream.send_message(answer)
        elif streamed := self._streamed.get(rpc):
            left = call.fault.cut_after
            async for part in streamed(request, call):
                await call.stream.send_message(part)
                if left is not None and (left := left - part.ByteSize()) <= 0:
                    await self._cut(call)
        else:
            raise GRPCError(Status.UNIMPLEMENTED, f"the local Modal server does not have `{rpc}`")

    async def _cut(self, call: Call) -> None:
        await call.stream.cancel()
        raise GRPCError(Status.UNAVAILABLE, "cut on purpose")
