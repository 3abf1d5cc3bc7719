"""Modal's service `TaskCommandRouter`: commands in a sandbox, their input and output, and snapshots."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from grpclib import GRPCError, Status
from modal_proto import task_command_router_pb2 as pb2

from mngr.errors import MngrError
from mngr_testing.modal_server.account import Account
from mngr_testing.modal_server.execution import Execution, Lost, Output, Size
from mngr_testing.modal_server.sandbox import Sandbox
from mngr_testing.modal_server.service import Call, Single, Streamed


class Router:
    def __init__(self, account: Account) -> None:
        self._account = account
        self._snapshots: dict[str, asyncio.Future[None]] = {}

    def table(self) -> Mapping[str, Single]:
        return {
            "SandboxStdinWriteV2": self._write_main,
            "SandboxWaitUntilReady": self._ready,
            "TaskExecPoll": self._poll,
            "TaskExecStart": self._start,
            "TaskExecStdinStatus": self._input_status,
            "TaskExecStdinWrite": self._write,
            "TaskExecStdinWriteStream": self._write_stream,
            "TaskExecWait": self._wait,
            "TaskSnapshotFilesystem": self._snapshot,
        }

    def streams(self) -> Mapping[str, Streamed]:
        return {"SandboxStdioReadV2": self._read_main, "TaskExecStdioRead": self._read}

    async def _start(self, request: pb2.TaskExecStartRequest, call: Call) -> pb2.TaskExecStartResponse:
        sandbox = self._running(request.task_id)
        env = self._account.environment(request.secret_ids, request.secret_sources, request.env)
        size = None
        if request.HasField("pty_info"):
            info = request.pty_info
            size = Size(info.winsz_rows, info.winsz_cols)
            env = {"TERM": info.env_term or "xterm-256color", **env}
        try:
            sandbox.execute(request.exec_id, request.command_args, env, request.workdir, size)
        except OSError as error:  # the sandbox ended at this moment
            raise GRPCError(Status.NOT_FOUND, f"sandbox `{sandbox.id}` is not running: {error.strerror}") from None
        if request.timeout_secs:
            execution = sandbox.executions[request.exec_id]
            asyncio.get_running_loop().call_later(request.timeout_secs, _kill_if_running, execution)
        return pb2.TaskExecStartResponse()

    async def _read(
        self, request: pb2.TaskExecStdioReadRequest, call: Call
    ) -> AsyncIterator[pb2.TaskExecStdioReadResponse]:
        execution = self._execution(request)
        is_error = request.file_descriptor == pb2.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR
        async for data in _parts(execution.stderr if is_error else execution.stdout, request.offset):
            yield pb2.TaskExecStdioReadResponse(data=data)

    async def _read_main(
        self, request: pb2.SandboxStdioReadV2Request, call: Call
    ) -> AsyncIterator[pb2.SandboxStdioReadV2Response]:
        main = _main(self._account.sandbox(request.task_id))
        is_error = request.file_descriptor == pb2.SANDBOX_STDIO_FILE_DESCRIPTOR_STDERR
        offset = request.offset
        async for data in _parts(main.stderr if is_error else main.stdout, offset):
            yield pb2.SandboxStdioReadV2Response(data=data, starting_offset=offset)
            offset += len(data)

    async def _write(self, request: pb2.TaskExecStdinWriteRequest, call: Call) -> pb2.TaskExecStdinWriteResponse:
        await _write_to(self._execution(request), request.offset, request.data, request.eof)
        return pb2.TaskExecStdinWriteResponse()

    async def _write_main(self, request: pb2.SandboxStdinWriteV2Request, call: Call) -> pb2.SandboxStdinWriteV2Response:
        main = _main(self._running(request.task_id))
        await _write_to(main, request.offset, request.data, request.eof)
        return pb2.SandboxStdinWriteV2Response()

    async def _write_stream(
        self, request: pb2.TaskExecStdinWriteStreamRequest, call: Call
    ) -> pb2.TaskExecStdinWriteStreamResponse:
        execution, offset = self._execution(request.start), request.start.offset
        async for part in call.stream:
            ends = part.WhichOneof("payload") == "end"
            await _write_to(execution, offset, part.data, ends)
            offset += len(part.data)
            if ends:
                break
        return pb2.TaskExecStdinWriteStreamResponse()

    async def _input_status(
        self, request: pb2.TaskExecStdinStatusRequest, call: Call
    ) -> pb2.TaskExecStdinStatusResponse:
        execution = self._execution(request)
        return pb2.TaskExecStdinStatusResponse(num_bytes_written=execution.written, closed=execution.closed)

    async def _poll(self, request: pb2.TaskExecPollRequest, call: Call) -> pb2.TaskExecPollResponse:
        return pb2.TaskExecPollResponse(**_exit_status(self._execution(request)))

    async def _wait(self, request: pb2.TaskExecWaitRequest, call: Call) -> pb2.TaskExecWaitResponse:
        execution = self._execution(request)
        await execution.done.wait()
        return pb2.TaskExecWaitResponse(**_exit_status(execution))

    async def _ready(
        self, request: pb2.SandboxWaitUntilReadyTcrRequest, call: Call
    ) -> pb2.SandboxWaitUntilReadyTcrResponse:
        self._running(request.task_id)
        return pb2.SandboxWaitUntilReadyTcrResponse(ready_at=time.time())

    async def _snapshot(
        self, request: pb2.TaskSnapshotFilesystemRequest, call: Call
    ) -> pb2.TaskSnapshotFilesystemResponse:
        """The same snapshot id again gives the same image, also while that is made. A client that is gone changes
        nothing."""
        sandbox = self._running(request.task_id)
        image = f"im-{request.snapshot_id.replace('-', '')[:22]}"
        if image not in self._snapshots:
            self._snapshots[image] = asyncio.ensure_future(self._keep(sandbox, image, request.ttl_seconds))
        await asyncio.shield(self._snapshots[image])
        return pb2.TaskSnapshotFilesystemResponse(image_id=image)

    async def _keep(self, sandbox: Sandbox, image: str, seconds: float) -> None:
        try:
            layer = await asyncio.to_thread(sandbox.copy_changes, image)
        except MngrError as error:
            raise GRPCError(Status.INTERNAL, f"{error.message}: {error.details}") from None
        base = sandbox.definition.image_id
        self._account.keep_image(image, (layer, *self._account.layers(base)), base, seconds)

    def _running(self, task_id: str) -> Sandbox:
        sandbox = self._account.sandbox(task_id)
        if sandbox.result:
            raise GRPCError(Status.NOT_FOUND, f"sandbox `{sandbox.id}` is not running")
        return sandbox

    def _execution(self, request: Any) -> Execution:
        sandbox = self._account.sandbox(request.task_id)
        if request.exec_id not in sandbox.executions:
            raise GRPCError(Status.NOT_FOUND, f"command `{request.exec_id}` not found")
        return sandbox.executions[request.exec_id]


def _main(sandbox: Sandbox) -> Execution:
    assert sandbox.main is not None
    return sandbox.main


def _kill_if_running(execution: Execution) -> None:
    if not execution.done.is_set():
        execution.kill()


def _exit_status(execution: Execution) -> dict[str, int]:
    if execution.code is None:
        return {}
    return {"code": execution.code} if execution.code >= 0 else {"signal": -execution.code}


async def _parts(output: Output, offset: int) -> AsyncIterator[bytes]:
    try:
        async for data in output.read(offset):
            yield data
    except Lost:
        raise GRPCError(Status.OUT_OF_RANGE, f"output at {offset} is no longer kept") from None


async def _write_to(execution: Execution, offset: int, data: bytes, eof: bool) -> None:
    try:
        await execution.write(offset, data, eof)
    except BrokenPipeError:
        raise GRPCError(Status.FAILED_PRECONDITION, "the command does not read its input any more") from None
    except ValueError as error:
        raise GRPCError(Status.OUT_OF_RANGE, str(error)) from None
