"""What we do with Modal's own package: sandboxes of one app, found by their tags."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mngr.errors import UNREACHED, MngrError
from mngr.providers.modal import keeper as keeping
from mngr.providers.modal.keeper import KEPT, PLACE

if TYPE_CHECKING:
    import modal

APP = "mngr"
# What our program and the agents need besides a small Debian.
_SNAPSHOT_SECONDS = 600
_PACKAGES = ("ca-certificates", "curl", "git", "procps", "rsync", "tmux")


class _NotRunning(MngrError):
    pass


class Sandboxes:
    """The sandboxes of this user's account. Imports Modal's package at the first use; raises MngrError for all errors
    of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._app: modal.App | None = None
        self._found: dict[str, modal.Sandbox] = {}
        self._tags: dict[str, dict[str, str]] = {}  # by id; we never change them
        self._making: set[str] = set()
        self._counting = threading.Lock()

    def _get_app(self) -> modal.App:
        import modal

        with self._lock:
            if self._app is None:
                self._app = modal.App.lookup(APP, create_if_missing=True)
            return self._app

    def create(self, name: str, tags: Mapping[str, str], most: int, wanted: Mapping[str, Any]) -> str:
        """A new sandbox in which commands run; its id. Refused when `most` run or are being made. On failure nothing is
        left. What is `wanted`: `image`, `env`, `labels`, `options`, and for the keeper `volume`, `host_dir` and the
        `seconds` that a host may be idle and an agent wait."""
        with self._counting:
            if len({one["host"] for one in self.list(tags)} | self._making) >= most:
                raise MngrError(
                    f"{most} sandboxes of this machine run already, and `max_hosts` allows no more",
                    hint=f"`mngr list` shows agents to destroy; `providers.{tags['provider']}.max_hosts` is the limit",
                )
            self._making.add(name)
        try:
            return self._create(name, tags, wanted, wanted["options"])
        finally:
            with self._counting:
                self._making.discard(name)

    def _create(self, name: str, tags: Mapping[str, str], wanted: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        import modal

        volumes = _volumes(options.get("volume", ()))
        volume = modal.Volume.from_name(wanted["volume"], create_if_missing=True)
        # Only the host's own directory: what is kept of other hosts is nobody's business there.
        volumes[PLACE] = volume.with_mount_options(sub_path=f"/{name}")
        made = modal.Sandbox.create(
            *keeping.command(wanted["host_dir"], options["timeout"], *wanted["seconds"]),
            app=self._get_app(),
            name=name,
            tags={**wanted["labels"], **tags, "host": name},
            image=_image(wanted["image"]),
            env=dict(wanted["env"]),
            timeout=options["timeout"],
            cpu=options.get("cpu"),
            memory=options.get("memory"),
            gpu=options.get("gpu"),
            region=options.get("region"),
            block_network=options.get("block_network", False),
            outbound_cidr_allowlist=options.get("cidr"),
            outbound_domain_allowlist=options.get("domain"),
            secrets=[modal.Secret.from_name(secret) for secret in options.get("secret", ())],
            volumes=volumes,
        )
        try:
            made.exec(*keeping.READY).wait()
        except BaseException:
            made.terminate()
            raise
        self._found[name] = made
        return made.object_id

    def list(self, tags: Mapping[str, str]) -> list[dict[str, str]]:
        """The tags of every running sandbox that has these, with its id."""
        import modal

        def tags_of(one: modal.Sandbox) -> dict[str, str]:
            if one.object_id not in self._tags:
                self._tags[one.object_id] = one.get_tags()
            return {**self._tags[one.object_id], "id": one.object_id}

        found = list(modal.Sandbox.list(app_id=self._get_app().app_id, tags=dict(tags)))
        with ThreadPoolExecutor(16) as pool:
            return list(pool.map(tags_of, found))

    def kept(self, volume: str) -> Sequence[str]:
        """The hosts whose files are in this volume."""
        import modal

        try:
            entries = modal.Volume.from_name(volume).listdir("/", recursive=True)
        except modal.exception.NotFoundError:
            return []
        paths = [entry.path.strip("/").split("/") for entry in entries]
        return [path[0] for path in paths if path[1:] == [KEPT]]

    def drop_kept(self, volume: str, name: str) -> None:
        """Twice is safe."""
        import modal

        with suppress(FileNotFoundError):
            modal.Volume.from_name(volume).remove_file(f"/{name}", recursive=True)

    def find(self, name: str) -> modal.Sandbox:
        import modal

        known = self._found.get(name)
        if known is None or known.poll() is not None:
            try:
                known = self._found[name] = modal.Sandbox.from_name(APP, name)
            except modal.exception.NotFoundError:
                raise _NotRunning(
                    f"Modal runs no sandbox `{name}`",
                    hint="`mngr host list` shows whether it is stopped or gone; `mngr host start` starts it again",
                    exit_code=UNREACHED,
                ) from None
        return known

    def terminate(self, name: str) -> None:
        """Twice is safe."""
        import modal

        with suppress(_NotRunning, modal.exception.NotFoundError):
            self.find(name).terminate(wait=True)  # its name is free only then
        self._found.pop(name, None)

    def snapshot(self, name: str) -> str:
        """The id of an image with all files as they are now, for as long as nobody removes it."""
        return self.find(name).snapshot_filesystem(timeout=_SNAPSHOT_SECONDS, ttl=None).object_id


def _image(name: str) -> modal.Image:
    """The id of an image or snapshot, the path of a Dockerfile, the name of an image of a registry, or our default.
    Those of others may have words that our command would be appended to: they are taken away."""
    import modal

    if not name:
        return modal.Image.debian_slim().apt_install(*_PACKAGES)
    if name.startswith("im-"):
        return modal.Image.from_id(name)
    if name.startswith("/"):
        return modal.Image.from_dockerfile(name, context_dir=os.path.dirname(name)).entrypoint([])
    return modal.Image.from_registry(name).entrypoint([])


def _volumes(pairs: Sequence[str]) -> dict[str | os.PathLike[Any], modal.Volume | modal.CloudBucketMount]:
    import modal

    named = [pair.partition(":") for pair in pairs]
    return {path: modal.Volume.from_name(name, create_if_missing=True) for name, _, path in named}


def explained(error: Exception) -> MngrError:
    """An error of Modal's package in our words."""
    if isinstance(error, MngrError):
        return error
    if isinstance(error, ModuleNotFoundError):
        return MngrError("the Python package `modal` is not installed", hint="`pip install 'mngr[modal]'`")
    kind, text = type(error).__name__, str(error).strip()
    if kind == "AuthError" and text.startswith("Token missing"):
        return MngrError("no login of Modal was found", hint="`modal token new` makes one")
    said, hint = _ERRORS.get(kind, (f"Modal failed: {kind}", ""))
    return MngrError(f"{said}: {text}", hint=hint, exit_code=UNREACHED if kind in _OF_THE_NETWORK else None)


# All else is an answer: to ask again changes nothing.
_OF_THE_NETWORK = (
    "ConnectionError",
    "InternalError",
    "ServiceError",
    "TimeoutError",
    "StreamTerminatedError",
    "OSError",
)
_ERRORS = {
    "PermissionDeniedError": ("Modal does not allow this", "`modal profile current` shows whose login it is"),
    "AuthError": ("Modal refused the login", "`modal token new` makes a new token"),
    "ResourceExhaustedError": ("Modal's limit is reached", "`mngr list` shows agents to stop or destroy"),
    "ConnectionError": ("Modal cannot be reached", ""),
    "NotFoundError": ("Modal does not have this", ""),
}
