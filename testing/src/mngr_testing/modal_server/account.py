"""What a Modal account has: apps, images, secrets, volumes and sandboxes, found by id or by name."""

from __future__ import annotations

import base64
import itertools
import json
import os
import time
from collections.abc import Iterable, Mapping
from hashlib import sha256

from google.protobuf.message import Message
from grpclib import GRPCError, Status
from modal_proto import api_pb2

from mngr_testing.modal_server.sandbox import Layout, Sandbox

SECONDS_OF_A_TOKEN = 3600
CREATING = (
    api_pb2.OBJECT_CREATION_TYPE_CREATE_IF_MISSING,
    api_pb2.OBJECT_CREATION_TYPE_CREATE_FAIL_IF_EXISTS,
    api_pb2.OBJECT_CREATION_TYPE_CREATE_OVERWRITE_IF_EXISTS,
)


class Account:
    """Everything lives in memory and in the state directory, until the server ends."""

    def __init__(self, layout: Layout, max_sandboxes: int | None) -> None:
        self.layout = layout
        self.max_sandboxes = max_sandboxes
        self.apps: dict[str, str] = {}
        self.images: dict[str, tuple[str, ...]] = {}
        self.definitions: list[Message] = []  # of images, as they were asked for
        self.secrets: dict[str, dict[str, str]] = {}
        self.sandboxes: dict[str, Sandbox] = {}
        self._named: dict[tuple[str, str], str] = {}
        self._numbers = itertools.count(1)
        self._mark = os.urandom(4).hex()

    def new_id(self, prefix: str) -> str:
        return f"{prefix}-{self._mark}{next(self._numbers):04}"

    def named(self, prefix: str, name: str, creation: api_pb2.ObjectCreationType.ValueType) -> tuple[str, bool]:
        """The id of what has this name, and whether it is new. Without a name it is always new."""
        known = self._named.get((prefix, name)) if name else None
        if known and creation == api_pb2.OBJECT_CREATION_TYPE_CREATE_FAIL_IF_EXISTS:
            raise GRPCError(Status.ALREADY_EXISTS, f"`{name}` already exists")
        if known:
            return known, creation == api_pb2.OBJECT_CREATION_TYPE_CREATE_OVERWRITE_IF_EXISTS
        if name and creation not in CREATING:
            raise GRPCError(Status.NOT_FOUND, f"`{name}` not found")
        made = self.new_id(prefix)
        if name:
            self._named[prefix, name] = made
        return made, True

    def image_of(self, definition: Message) -> str:
        """Every definition counts as built: the root directory is what it contains."""
        id = f"im-{sha256(definition.SerializeToString(deterministic=True)).hexdigest()[:22]}"
        self.images.setdefault(id, ())
        self.definitions.append(definition)
        return id

    def environment(
        self, secret_ids: Iterable[str], sources: Iterable[api_pb2.SecretSource], *maps: Mapping[str, str]
    ) -> dict[str, str]:
        """The variables of all these, later ones first choice."""
        env: dict[str, str] = {}
        for secret in secret_ids:
            env.update(self._secret(secret))
        for source in sources:
            env.update(self._secret(source.secret_id) if source.secret_id else source.env.contents)
        for variables in maps:
            env.update(variables)
        return env

    def _secret(self, id: str) -> dict[str, str]:
        if id not in self.secrets:
            raise GRPCError(Status.NOT_FOUND, f"secret `{id}` not found")
        return self.secrets[id]

    def sandbox(self, id: str) -> Sandbox:
        """By its own id, or by that of its task."""
        if found := self.sandboxes.get(id):
            return found
        for sandbox in self.sandboxes.values():
            if sandbox.task_id == id:
                return sandbox
        raise GRPCError(Status.NOT_FOUND, f"sandbox `{id}` not found")

    def running(self) -> list[Sandbox]:
        return [sandbox for sandbox in self.sandboxes.values() if sandbox.result is None]


def token(subject: str) -> str:
    """Shaped like the tokens of Modal, which clients read the time of expiry from."""
    parts = ({"alg": "none"}, {"sub": subject, "exp": int(time.time()) + SECONDS_OF_A_TOKEN})
    words = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*words, "local"])


def subject(text: str) -> str:
    """What the token was made for, or nothing when it is not one of ours or has expired."""
    try:
        body = json.loads(base64.urlsafe_b64decode(text.split(".")[1] + "=="))
        return str(body["sub"]) if body["exp"] > time.time() else ""
    except (IndexError, KeyError, TypeError, ValueError):
        return ""
