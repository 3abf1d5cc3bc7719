"""What a Modal account has: apps, images, secrets, volumes and sandboxes, found by id or by name."""

from __future__ import annotations

import base64
import itertools
import json
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from grpclib import GRPCError, Status
from modal_proto import api_pb2

from mngr_testing.modal_server.sandbox import Layout, Sandbox

SECONDS_OF_A_TOKEN = 3600
CREATING = (
    api_pb2.OBJECT_CREATION_TYPE_CREATE_IF_MISSING,
    api_pb2.OBJECT_CREATION_TYPE_CREATE_FAIL_IF_EXISTS,
    api_pb2.OBJECT_CREATION_TYPE_CREATE_OVERWRITE_IF_EXISTS,
)


class Words(NamedTuple):
    """ENTRYPOINT and CMD of an image."""

    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()


class Account:
    """Everything lives in memory and in the state directory, until the server ends."""

    def __init__(self, layout: Layout, max_sandboxes: int | None) -> None:
        self.layout = layout
        self.max_sandboxes = max_sandboxes
        self.apps: dict[str, str] = {}
        self._images: dict[str, tuple[str, ...]] = {}
        self._words: dict[str, Words] = {}
        self._expires: dict[str, float] = {}
        self._ahead = 0.0
        self.definitions: list[Any] = []  # of images, as they were asked for
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

    def image_of(self, definition: Any) -> str:
        """Every definition counts as built: the root directory is what it contains. Of an image of a registry nobody
        here knows which command it has: it has none."""
        id = f"im-{sha256(definition.SerializeToString(deterministic=True)).hexdigest()[:22]}"
        self._images.setdefault(id, ())
        bases = [self._words[one.image_id] for one in definition.base_images if one.image_id in self._words]
        self._words[id] = _words(definition.dockerfile_commands, bases[0] if bases else Words())
        self.definitions.append(definition)
        return id

    def keep_image(self, id: str, layers: tuple[str, ...], base: str, seconds: float) -> None:
        """A snapshot: layers over an image. After `seconds` it is gone; a number below 1 is for ever."""
        self._images[id] = layers
        self._words[id] = self._words.get(base, Words())
        if seconds > 0:
            self._expires[id] = time.time() + self._ahead + seconds

    def layers(self, id: str) -> tuple[str, ...]:
        if id not in self._images or self._expires.get(id, math.inf) < time.time() + self._ahead:
            raise GRPCError(Status.NOT_FOUND, f"image `{id}` not found")
        return self._images[id]

    def command(self, image: str, given: Sequence[str]) -> list[str]:
        """What the first process of a sandbox runs: the words of the image, and those given in place of its command."""
        words = self._words.get(image, Words())
        return [*words.entrypoint, *(given or words.command)]

    def pass_time(self, seconds: float) -> None:
        """From now on snapshots are so much older."""
        self._ahead += seconds

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


def _words(lines: Iterable[str], base: Words) -> Words:
    """The last ENTRYPOINT and CMD of a Dockerfile. A new ENTRYPOINT takes the command of the base away."""
    words = base
    for line in lines:
        name, _, rest = line.strip().partition(" ")
        if name.upper() in ("CMD", "ENTRYPOINT"):
            listed = json.loads(rest) if rest.strip().startswith("[") else ["/bin/sh", "-c", rest]
            words = words._replace(command=listed) if name.upper() == "CMD" else Words(listed)
    return words


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
