"""What we do with Modal's own package: sandboxes of one app, found by their tags."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from mngr.errors import UNREACHED, MngrError

if TYPE_CHECKING:
    import modal

APP = "mngr"
# Modal ends a sandbox after this time at the latest.
LONGEST_SECONDS = 24 * 3600
# What our program and the agents need besides a small Debian.
_PACKAGES = ("ca-certificates", "curl", "git", "procps", "rsync", "tmux")


class Sandboxes:
    """The sandboxes of this user's account. Imports Modal's package at the first use; raises MngrError for all errors
    of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._app: modal.App | None = None
        self._found: dict[str, modal.Sandbox] = {}

    def _get_app(self) -> modal.App:
        import modal

        with self._lock:
            if self._app is None:
                self._app = modal.App.lookup(APP, create_if_missing=True)
            return self._app

    def create(
        self, name: str, tags: Mapping[str, str], image: str, env: Mapping[str, str], options: Mapping[str, Any]
    ) -> str:
        """A new sandbox in which commands run; its id. On failure nothing is left."""
        import modal

        made = modal.Sandbox.create(
            app=self._get_app(),
            name=name,
            tags=dict(tags),
            image=_image(image),
            env=dict(env),
            timeout=options.get("timeout", LONGEST_SECONDS),
            cpu=options.get("cpu"),
            memory=options.get("memory"),
            gpu=options.get("gpu"),
            region=options.get("region"),
            block_network=bool(options.get("block_network")),
            outbound_cidr_allowlist=options.get("cidr"),
            secrets=[modal.Secret.from_name(secret) for secret in options.get("secret", ())],
            volumes=_volumes(options.get("volume", ())),
        )
        try:
            made.exec("true").wait()
        except BaseException:
            made.terminate()
            raise
        self._found[name] = made
        return made.object_id

    def list(self, tags: Mapping[str, str]) -> list[dict[str, str]]:
        """The tags of every running sandbox that has these, with its id."""
        import modal

        found = list(modal.Sandbox.list(app_id=self._get_app().app_id, tags=dict(tags)))
        with ThreadPoolExecutor(16) as pool:
            return list(pool.map(lambda one: {**one.get_tags(), "id": one.object_id}, found))

    def find(self, name: str) -> modal.Sandbox:
        import modal

        known = self._found.get(name)
        if known is None or known.poll() is not None:
            known = self._found[name] = modal.Sandbox.from_name(APP, name)
        return known

    def terminate(self, name: str) -> None:
        """Twice is safe."""
        import modal

        try:
            self.find(name).terminate()
        except modal.exception.NotFoundError:
            pass
        self._found.pop(name, None)

    def snapshot(self, name: str) -> str:
        """The id of an image with all files as they are now."""
        return self.find(name).snapshot_filesystem().object_id


def _image(name: str) -> modal.Image:
    """The id of an image or snapshot, the path of a Dockerfile, the name of an image of a registry, or our default."""
    import modal

    if not name:
        return modal.Image.debian_slim().apt_install(*_PACKAGES)
    if name.startswith("im-"):
        return modal.Image.from_id(name)
    if name.startswith(("/", "./", "../")):
        return modal.Image.from_dockerfile(name)
    return modal.Image.from_registry(name)


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
    match kind:
        case "AuthError" | "PermissionDeniedError":
            return MngrError(f"Modal refused the login: {text}", hint="`modal token new` makes a new token")
        case "ResourceExhaustedError":
            return MngrError(f"Modal's limit is reached: {text}", hint="`mngr list` shows agents to stop or destroy")
        case "NotFoundError":
            return MngrError(f"Modal does not have this: {text}", exit_code=UNREACHED)
        case _:
            return MngrError(f"Modal failed: {kind}: {text}", exit_code=UNREACHED)
