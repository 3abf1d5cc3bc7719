"""Modal's service `ModalClient`: apps, images, secrets, volumes, and the life of sandboxes."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import string
import time
from collections.abc import AsyncIterator, Mapping
from random import choices
from typing import Any

from google.protobuf.empty_pb2 import Empty
from grpclib import GRPCError, Status
from modal_proto import api_pb2

from mngr.errors import MngrError
from mngr_testing.modal_server.account import Account, token
from mngr_testing.modal_server.sandbox import Sandbox
from mngr_testing.modal_server.service import Call, Single, Streamed

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SECONDS_TO_END = 0.3
BUILDER_VERSION = "2025.06"
BUILT = api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS)


class ControlPlane:
    """`url` is where the sandboxes' command router answers: it is told to clients."""

    def __init__(self, account: Account) -> None:
        self.url = ""
        self._account = account
        self._created: dict[str, asyncio.Future[Sandbox]] = {}

    def table(self) -> Mapping[str, Single]:
        """Calls of both generations of sandboxes: those with a GPU use the names without `V2`."""
        both: dict[str, Single] = {
            "SandboxGetFromName": self._from_name,
            "SandboxGetTaskId": self._task_id,
            "SandboxGetTunnels": self._tunnels,
            "SandboxList": self._list,
            "SandboxTagsGet": self._get_tags,
            "SandboxTagsSet": self._set_tags,
            "SandboxTerminate": self._terminate,
            "SandboxWait": self._wait,
        }
        return {
            **both,
            **{f"{name}V2": function for name, function in both.items()},
            "AppGetOrCreate": self._app,
            "AuthTokenGet": self._auth_token,
            "ClientHello": self._hello,
            "EnvironmentGetOrCreate": self._environment,
            "ImageFromId": self._image_from_id,
            "ImageGetOrCreate": self._image,
            "SandboxCreate": self._create_first_generation,
            "SandboxCreateV2": self._create,
            "SandboxGetCommandRouterAccess": self._router_access,
            "SandboxSetName": self._set_name,
            "SecretGetOrCreate": self._secret,
            "TaskGetCommandRouterAccess": self._router_access_of_task,
            "VolumeGetOrCreate": self._volume,
            "VolumeRemoveFile": self._remove_file,
        }

    def streams(self) -> Mapping[str, Streamed]:
        return {"VolumeListFiles": self._list_files}

    async def _hello(self, _: Empty, call: Call) -> api_pb2.ClientHelloResponse:
        return api_pb2.ClientHelloResponse(image_builder_version=BUILDER_VERSION)

    async def _auth_token(self, _: object, call: Call) -> api_pb2.AuthTokenGetResponse:
        return api_pb2.AuthTokenGetResponse(token=token("account"))

    async def _environment(
        self, request: api_pb2.EnvironmentGetOrCreateRequest, call: Call
    ) -> api_pb2.EnvironmentGetOrCreateResponse:
        settings = api_pb2.EnvironmentSettings(image_builder_version=BUILDER_VERSION)
        metadata = api_pb2.EnvironmentMetadata(name=request.deployment_name or "main", settings=settings)
        return api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-local", metadata=metadata)

    async def _app(self, request: api_pb2.AppGetOrCreateRequest, call: Call) -> api_pb2.AppGetOrCreateResponse:
        id, _ = self._account.named("ap", request.app_name, request.object_creation_type)
        self._account.apps[request.app_name] = id
        return api_pb2.AppGetOrCreateResponse(app_id=id, handle_metadata=api_pb2.AppHandleMetadata(app_id=id))

    async def _image(self, request: api_pb2.ImageGetOrCreateRequest, call: Call) -> api_pb2.ImageGetOrCreateResponse:
        metadata = api_pb2.ImageMetadata(image_builder_version=BUILDER_VERSION)
        id = self._account.image_of(request.image)
        return api_pb2.ImageGetOrCreateResponse(image_id=id, result=BUILT, metadata=metadata)

    async def _image_from_id(self, request: api_pb2.ImageFromIdRequest, call: Call) -> api_pb2.ImageFromIdResponse:
        self._account.layers(request.image_id)
        return api_pb2.ImageFromIdResponse(image_id=request.image_id, metadata=api_pb2.ImageMetadata())

    async def _secret(self, request: api_pb2.SecretGetOrCreateRequest, call: Call) -> api_pb2.SecretGetOrCreateResponse:
        id, new = self._account.named("st", request.deployment_name, request.object_creation_type)
        if new:
            self._account.secrets[id] = dict(request.env_dict)
        missing = [key for key in request.required_keys if key not in self._account.secrets[id]]
        if missing:
            raise GRPCError(Status.NOT_FOUND, f"secret `{request.deployment_name}` has no key {missing[0]!r}")
        metadata = api_pb2.SecretMetadata(name=request.deployment_name)
        return api_pb2.SecretGetOrCreateResponse(secret_id=id, metadata=metadata)

    async def _volume(self, request: api_pb2.VolumeGetOrCreateRequest, call: Call) -> api_pb2.VolumeGetOrCreateResponse:
        id, _ = self._account.named("vo", request.deployment_name, request.object_creation_type)
        os.makedirs(f"{self._account.layout.state}/volumes/{id}", exist_ok=True)
        version = request.version or api_pb2.VOLUME_FS_VERSION_V1
        metadata = api_pb2.VolumeMetadata(name=request.deployment_name, version=version)
        return api_pb2.VolumeGetOrCreateResponse(volume_id=id, version=version, metadata=metadata)

    def _volume_path(self, volume_id: str, path: str) -> str:
        return os.path.join(f"{self._account.layout.state}/volumes/{volume_id}", path.strip("/"))

    async def _list_files(
        self, request: api_pb2.VolumeListFilesRequest, call: Call
    ) -> AsyncIterator[api_pb2.VolumeListFilesResponse]:
        """Of one directory, with those below it if asked for."""
        top = self._volume_path(request.volume_id, "")
        names = []
        for place, directories, found in os.walk(self._volume_path(request.volume_id, request.path)):
            names += [os.path.relpath(os.path.join(place, name), top) for name in (*directories, *found)]
            if not request.recursive:
                break
        yield api_pb2.VolumeListFilesResponse(entries=[api_pb2.FileEntry(path=name) for name in names])

    async def _remove_file(self, request: api_pb2.VolumeRemoveFileRequest, call: Call) -> Empty:
        path = self._volume_path(request.volume_id, request.path)
        try:
            if request.recursive:
                shutil.rmtree(path)
            else:
                os.unlink(path)
        except FileNotFoundError:
            raise GRPCError(Status.NOT_FOUND, f"file `{request.path}` not found") from None
        return Empty()

    async def _create(self, request: api_pb2.SandboxCreateV2Request, call: Call) -> api_pb2.SandboxCreateV2Response:
        sandbox = await self._made(request, call, self._account.new_id("sb"))
        answer = api_pb2.SandboxCreateV2Response(sandbox_id=sandbox.id, metadata=_metadata(sandbox))
        if time.time() >= sandbox.starts_at:
            answer.task_id = sandbox.task_id
            answer.command_router_access.url = self.url
            answer.command_router_access.jwt = token(sandbox.task_id)
            answer.tunnels.extend(_tunnels(sandbox))
        return answer

    async def _create_first_generation(
        self, request: api_pb2.SandboxCreateRequest, call: Call
    ) -> api_pb2.SandboxCreateResponse:
        id = f"sb-{''.join(choices(string.ascii_letters, k=22))}"  # clients know the generation by this form
        sandbox = await self._made(request, call, id)
        return api_pb2.SandboxCreateResponse(sandbox_id=sandbox.id, metadata=_metadata(sandbox))

    async def _made(self, request: Any, call: Call, id: str) -> Sandbox:
        """The new sandbox, or the one that an earlier try of the same call made or makes. It is made also for a client
        that is gone meanwhile. A call that failed can be tried again."""
        key = str(call.metadata.get("x-idempotency-key", id))
        known = self._created.get(key)
        if known is None or (known.done() and known.exception()):
            known = self._created[key] = asyncio.ensure_future(self._make(request, call, id))
        return await asyncio.shield(known)

    async def _make(self, request: Any, call: Call, id: str) -> Sandbox:
        definition: api_pb2.Sandbox = request.definition
        account = self._account
        running = account.running()
        if account.max_sandboxes is not None and len(running) >= account.max_sandboxes:
            raise GRPCError(Status.RESOURCE_EXHAUSTED, f"this workspace may run {account.max_sandboxes} sandboxes")
        if definition.name and any(one.name == definition.name and one.app_id == request.app_id for one in running):
            raise GRPCError(Status.ALREADY_EXISTS, f"a sandbox named `{definition.name}` is already running")
        if definition.name and not _NAME.fullmatch(definition.name):
            raise GRPCError(Status.INVALID_ARGUMENT, f"`{definition.name}` is not a name of a sandbox")
        layers = account.layers(definition.image_id)
        inline = request.ephemeral_secrets.contents if hasattr(request, "ephemeral_secrets") else {}
        sources = getattr(request, "secret_sources", ())
        env = account.environment(definition.secret_ids, sources, inline, definition.environment_variables.contents)
        sandbox = Sandbox(account.layout, id, definition, env)
        sandbox.app_id = request.app_id
        sandbox.tags = {tag.tag_name: tag.tag_value for tag in request.tags}
        sandbox.starts_at = time.time() + call.fault.start_seconds
        account.sandboxes[id] = sandbox
        volumes = {}
        for mount in definition.volume_mounts:
            volumes[mount.mount_path] = os.path.join(mount.volume_id, mount.sub_path.strip("/")).rstrip("/")
            os.makedirs(f"{account.layout.state}/volumes/{volumes[mount.mount_path]}", exist_ok=True)
        try:
            await sandbox.start(account.command(definition.image_id, definition.entrypoint_args), layers, volumes)
        except MngrError as error:
            del account.sandboxes[id]
            raise GRPCError(Status.FAILED_PRECONDITION, f"{error.message}: {error.details}") from None
        return sandbox

    async def _task_id(self, request: api_pb2.SandboxGetTaskIdRequest, call: Call) -> api_pb2.SandboxGetTaskIdResponse:
        sandbox = self._account.sandbox(request.sandbox_id)
        if sandbox.result:
            return api_pb2.SandboxGetTaskIdResponse(task_result=sandbox.result)
        started = time.time() >= sandbox.starts_at
        return api_pb2.SandboxGetTaskIdResponse(task_id=sandbox.task_id if started else None)

    async def _router_access(
        self, request: api_pb2.SandboxGetCommandRouterAccessRequest, call: Call
    ) -> api_pb2.SandboxGetCommandRouterAccessResponse:
        sandbox = self._alive(request.sandbox_id or request.task_id)
        return api_pb2.SandboxGetCommandRouterAccessResponse(url=self.url, jwt=token(sandbox.task_id))

    async def _router_access_of_task(
        self, request: api_pb2.TaskGetCommandRouterAccessRequest, call: Call
    ) -> api_pb2.TaskGetCommandRouterAccessResponse:
        sandbox = self._alive(request.task_id)
        return api_pb2.TaskGetCommandRouterAccessResponse(url=self.url, jwt=token(sandbox.task_id))

    def _alive(self, id: str) -> Sandbox:
        sandbox = self._account.sandbox(id)
        if sandbox.result:
            raise GRPCError(Status.FAILED_PRECONDITION, f"sandbox `{sandbox.id}` has already ended")
        return sandbox

    async def _from_name(
        self, request: api_pb2.SandboxGetFromNameRequest, call: Call
    ) -> api_pb2.SandboxGetFromNameResponse:
        app = self._account.apps.get(request.app_name)
        for sandbox in self._account.running():
            if sandbox.name == request.sandbox_name and sandbox.app_id == app:
                return api_pb2.SandboxGetFromNameResponse(sandbox_id=sandbox.id, metadata=_metadata(sandbox))
        raise GRPCError(Status.NOT_FOUND, f"no running sandbox is named `{request.sandbox_name}`")

    async def _set_name(self, request: api_pb2.SandboxSetNameRequest, call: Call) -> api_pb2.SandboxSetNameResponse:
        self._alive(request.sandbox_id).name = request.name
        return api_pb2.SandboxSetNameResponse()

    async def _list(self, request: api_pb2.SandboxListRequest, call: Call) -> api_pb2.SandboxListResponse:
        wanted = {tag.tag_name: tag.tag_value for tag in request.tags}
        found = [
            _info(sandbox)
            for sandbox in self._account.sandboxes.values()
            if (request.include_finished or sandbox.result is None)
            and (not request.app_id or sandbox.app_id == request.app_id)
            and (not request.before_timestamp or sandbox.created_at < request.before_timestamp)
            and wanted.items() <= sandbox.tags.items()
        ]
        return api_pb2.SandboxListResponse(sandboxes=sorted(found, key=lambda info: -info.created_at))

    async def _get_tags(self, request: api_pb2.SandboxTagsGetRequest, call: Call) -> api_pb2.SandboxTagsGetResponse:
        return api_pb2.SandboxTagsGetResponse(tags=_tags(self._account.sandbox(request.sandbox_id)))

    async def _set_tags(self, request: api_pb2.SandboxTagsSetRequest, call: Call) -> Empty:
        self._alive(request.sandbox_id).tags = {tag.tag_name: tag.tag_value for tag in request.tags}
        return Empty()

    async def _tunnels(
        self, request: api_pb2.SandboxGetTunnelsRequest, call: Call
    ) -> api_pb2.SandboxGetTunnelsResponse:
        return api_pb2.SandboxGetTunnelsResponse(tunnels=_tunnels(self._alive(request.sandbox_id)))

    async def _terminate(
        self, request: api_pb2.SandboxTerminateRequest, call: Call
    ) -> api_pb2.SandboxTerminateResponse:
        """It ends some time after the answer, as with Modal: its name is not free at once."""
        sandbox = self._account.sandbox(request.sandbox_id)
        existing = sandbox.result
        if existing is None:
            loop = asyncio.get_running_loop()
            loop.call_later(_SECONDS_TO_END, sandbox.kill, api_pb2.GenericResult.GENERIC_STATUS_TERMINATED)
        return api_pb2.SandboxTerminateResponse(existing_result=existing)

    async def _wait(self, request: api_pb2.SandboxWaitRequest, call: Call) -> api_pb2.SandboxWaitResponse:
        sandbox = self._account.sandbox(request.sandbox_id)
        if request.timeout and sandbox.result is None:
            try:
                await asyncio.wait_for(sandbox.ended.wait(), request.timeout)
            except TimeoutError:
                pass
        return api_pb2.SandboxWaitResponse(result=sandbox.result, metadata=_metadata(sandbox))


def _metadata(sandbox: Sandbox) -> api_pb2.SandboxHandleMetadata:
    return api_pb2.SandboxHandleMetadata(result=sandbox.result, app_id=sandbox.app_id)


def _tags(sandbox: Sandbox) -> list[api_pb2.SandboxTag]:
    return [api_pb2.SandboxTag(tag_name=name, tag_value=value) for name, value in sandbox.tags.items()]


def _tunnels(sandbox: Sandbox) -> list[api_pb2.TunnelData]:
    """Sandboxes share this machine's network, so their ports are its ports."""
    return [
        api_pb2.TunnelData(
            host="127.0.0.1",
            port=spec.port,
            container_port=spec.port,
            unencrypted_host="127.0.0.1",
            unencrypted_port=spec.port,
        )
        for spec in sandbox.definition.open_ports.ports
    ]


def _info(sandbox: Sandbox) -> api_pb2.SandboxInfo:
    return api_pb2.SandboxInfo(
        id=sandbox.id,
        created_at=sandbox.created_at,
        task_info=api_pb2.TaskInfo(id=sandbox.task_id, started_at=sandbox.created_at, result=sandbox.result),
        app_id=sandbox.app_id,
        tags=_tags(sandbox),
        name=sandbox.name,
        image_id=sandbox.definition.image_id,
        regions=sandbox.definition.scheduler_placement.regions,
        timeout_secs=sandbox.definition.timeout_secs,
        metadata=_metadata(sandbox),
    )
