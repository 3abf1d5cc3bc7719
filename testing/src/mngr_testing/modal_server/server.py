"""The server process: both services on one loopback port, and commands of its owner on standard input."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from grpclib import GRPCError, Status
from grpclib.server import Server
from modal_proto import api_pb2
from modal_proto.api_grpc import ModalClientBase
from modal_proto.task_command_router_grpc import TaskCommandRouterBase

from mngr.errors import MngrError
from mngr.system.process import environment, start
from mngr_testing.modal_server.account import Account, subject
from mngr_testing.modal_server.control_plane import ControlPlane
from mngr_testing.modal_server.faults import Fault, Faults
from mngr_testing.modal_server.router import Router
from mngr_testing.modal_server.sandbox import Layout
from mngr_testing.modal_server.service import CallLog, Metadata, Service

TOKEN_ID, TOKEN_SECRET = "ak-local", "as-local"


class Settings(NamedTuple):
    port: int
    root: str
    state: str
    log: str | None
    max_sandboxes: int | None
    controlled: bool
    shown: tuple[str, ...]


async def serve(settings: Settings) -> None:
    """Print the URL, then serve until a signal to end, or until standard input ends if the owner controls the server.
    Every sandbox ends with the server, and its files are removed. Raises MngrError."""
    layout = Layout(settings.state, os.path.abspath(settings.root), tuple(map(os.path.abspath, settings.shown)))
    layout.prepare()
    account, faults = Account(layout, settings.max_sandboxes), Faults()
    plane, router, log = ControlPlane(account), Router(account), CallLog(settings.log)
    services = [
        Service(ModalClientBase, plane.table(), plane.streams(), _admit_account, faults, log),
        Service(TaskCommandRouterBase, router.table(), router.streams(), _admit_task, faults, log),
    ]
    server = Server(services)
    try:
        await server.start("127.0.0.1", settings.port)
    except OSError as error:
        raise MngrError(f"cannot listen on port {settings.port}: {error.strerror}") from None
    plane.url = f"http://127.0.0.1:{_port(server)}"
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    _print(plane.url)
    orders = asyncio.create_task(_obey(account, faults, stopped.set)) if settings.controlled else None
    await stopped.wait()
    if orders:
        orders.cancel()
    for sandbox in account.running():
        sandbox.kill(api_pb2.GenericResult.GENERIC_STATUS_TERMINATED)
        await sandbox.ended.wait()
    server.close()
    await server.wait_closed()


def _port(server: Server) -> int:
    listening: asyncio.Server = server._server  # type: ignore[assignment]  # grpclib does not say which port it got
    port: int = listening.sockets[0].getsockname()[1]
    return port


def remove_when_we_end(path: str) -> None:
    """Leave a process behind that removes this directory as soon as this one is gone, even if it was killed."""
    ended, ours = os.pipe()
    os.set_inheritable(ours, False)
    nothing = os.open(os.devnull, os.O_RDWR)
    script = 'read line; for try in 1 2 3 4 5 6 7 8 9; do rm -rf "$0" && exit; sleep 0.2; done'
    start(["/bin/sh", "-c", script, path], cwd="/", env=environment(), descriptors=(ended, nothing, nothing))
    os.close(ended)
    os.close(nothing)


def _admit_account(rpc: str, metadata: Metadata) -> None:
    given = metadata.get("x-modal-token-id"), metadata.get("x-modal-token-secret")
    if given != (TOKEN_ID, TOKEN_SECRET):
        raise GRPCError(Status.UNAUTHENTICATED, "token ID and secret are not those of this account")


def _admit_task(rpc: str, metadata: Metadata) -> None:
    if not subject(str(metadata.get("authorization", "")).removeprefix("Bearer ")):
        raise GRPCError(Status.UNAUTHENTICATED, "the token of this task is not valid")


async def _obey(account: Account, faults: Faults, stop: Callable[[], None]) -> None:
    """Carry out one JSON object for each line of standard input and answer each with one line; stop at its end."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        try:
            _print(json.dumps({"answer": await _order(account, faults, json.loads(line))}))
        except (KeyError, TypeError, ValueError, GRPCError) as error:
            _print(json.dumps({"error": str(error)}))
    stop()


async def _order(account: Account, faults: Faults, order: dict[str, Any]) -> object:
    match order.pop("do"):
        case "fault":
            faults.add(Fault(**order))
        case "clear":
            faults.clear()
        case "preempt":
            sandbox = account.sandbox(order["sandbox"])
            sandbox.kill(api_pb2.GenericResult.GENERIC_STATUS_INTERNAL_FAILURE, "preempted on purpose")
            await sandbox.ended.wait()
        case "pass_time":
            account.pass_time(order["seconds"])
        case "list":
            return [
                {
                    "id": sandbox.id,
                    "name": sandbox.name,
                    "tags": sandbox.tags,
                    "running": sandbox.result is None,
                    "cpu": sandbox.definition.resources.milli_cpu / 1000,
                    "memory": sandbox.definition.resources.memory_mb,
                    "gpu": sandbox.definition.resources.gpu_config.gpu_type,
                    "image": sandbox.definition.image_id,
                    "received": sum(execution.written for execution in sandbox.executions.values()),
                    "pid": sandbox.main.pid if sandbox.main else 0,
                    "definition": _plain(sandbox.definition),
                }
                for sandbox in account.sandboxes.values()
            ]
        case "images":
            return [_plain(definition) for definition in account.definitions]
        case other:
            raise ValueError(f"unknown order `{other}`")
    return None


def _plain(message: Message) -> dict[str, Any]:
    """What the client sent, field by field."""
    return MessageToDict(message, preserving_proto_field_name=True)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
