"""The provider `modal`: a host is a sandbox. Stopping one keeps its files as a snapshot and ends the sandbox."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mngr.errors import MngrError, NotFoundError, UsageError
from mngr.files import make_private_dir
from mngr.names import suggest
from mngr.providers import pipe
from mngr.providers.provider import GONE, STOPPED, HostInfo, HostRequest, Provider
from mngr.remote.channel import Opening
from mngr.workspaces.origin import ensure_machine_id

if TYPE_CHECKING:
    from mngr.actions.site import Site

CONNECT_SECONDS = 60.0
_HELPER = "mngr.providers.modal.helper"
MOST_HOSTS = 50
_LONGEST_SOCKET = 90
_STOPPED = ".stopped"
# `options` of the settings and `--start-arg`: each `KEY=VALUE`.
_NUMBERS: Mapping[str, type[int] | type[float]] = {"cpu": float, "memory": int, "timeout": int, "max_hosts": int}
_TEXTS = ("gpu", "region", "block_network")
_LISTS = ("cidr", "secret", "volume")


class Modal(Provider):
    """`image` is a registry's name, a Dockerfile's path or an id; `options` are `KEY=VALUE`, as for `--start-arg`."""

    def __init__(self, name: str, near: Site, values: Mapping[str, object]) -> None:
        super().__init__(name)
        self._near = near
        self._image = str(values.get("image") or "")
        self._host_dir = str(values.get("host_dir") or "")
        options = values.get("options")
        self._options = [str(item) for item in options] if isinstance(options, list | tuple) else []
        seconds = values.get("connect_seconds")
        self._seconds = float(seconds) if isinstance(seconds, int | float) else CONNECT_SECONDS

    def opening(self, host: str) -> Opening:
        words = [sys.executable, "-m", "mngr.providers.pipe", _HELPER, self._socket()]
        argv, terminal = [*words, "run", host], [*words, "terminal", host]
        return Opening(host, argv, self._near.environ, self._host_dir, self._seconds, terminal)

    def hosts(self) -> list[HostInfo]:
        running = [HostInfo(one["host"], ours=True, details={"id": one["id"]}) for one in self._list()]
        names = {host.name for host in running}
        return running + [HostInfo(name, STOPPED, ours=True) for name in self._stopped() if name not in names]

    def check(self, request: HostRequest) -> None:
        for what, given in (("build arguments", request.build_args), ("labels of hosts", request.labels)):
            if given:
                raise self._unsupported(what)

    def create(self, request: HostRequest, progress: Callable[[str], None]) -> HostInfo:
        name = request.name
        image = request.snapshot or request.image or self._image
        options = _parsed([*self._options, *request.start_args])
        limit = options.pop("max_hosts", MOST_HOSTS)
        if len(self._list()) >= limit:
            raise MngrError(
                f"{limit} sandboxes of this machine run already, and `max_hosts` allows no more",
                hint=f"`mngr list` shows agents to destroy; `mngr config set providers.{self.name}.options` changes it",
            )
        progress(f"starting a Modal sandbox `{name}`")
        id = self._made(name, image, dict(request.env), options)
        return HostInfo(name, ours=True, details={"id": id})

    def _made(self, name: str, image: str, env: Mapping[str, str], options: Mapping[str, object]) -> str:
        tags = {**self._tags(), "host": name}
        return str(self._ask("create", name=name, tags=tags, image=image, env=env, options=options))

    def stop(self, host: str) -> None:
        if self._saved(host) is None or any(one["host"] == host for one in self._list()):
            image = self.snapshot(host, host)
            make_private_dir(self._directory())
            self._near.host.write(self._stopped_path(host), json.dumps({"image": image}).encode())
            self._ask("terminate", name=host)

    def start(self, host: str) -> None:
        saved = self._saved(host)
        if saved is None:
            if self.host(host).state == GONE:
                raise NotFoundError(f"Modal has no sandbox `{host}`")
            return
        self._made(host, saved["image"], {}, _parsed(self._options))
        os.unlink(self._stopped_path(host))

    def destroy(self, host: str) -> None:
        self._ask("terminate", name=host)
        if self._saved(host) is not None:
            os.unlink(self._stopped_path(host))

    def snapshot(self, host: str, name: str) -> str:
        return str(self._ask("snapshot", name=host))

    def _list(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = self._ask("list", tags=self._tags())
        return found

    def _tags(self) -> dict[str, str]:
        self._near.host.prepare()
        return {"mngr": ensure_machine_id(self._near.host), "provider": self.name}

    def _ask(self, do: str, **details: object) -> Any:
        return pipe.ask(_HELPER, self._socket(), self._near.environ, do, **details)

    def _directory(self) -> str:
        return os.path.join(self._near.host.dir, "hosts", self.name)

    def _stopped_path(self, host: str) -> str:
        return os.path.join(self._directory(), f"{host}{_STOPPED}")

    def _stopped(self) -> list[str]:
        try:
            names = sorted(os.listdir(self._directory()))
        except FileNotFoundError:
            return []
        return [name.removesuffix(_STOPPED) for name in names if name.endswith(_STOPPED)]

    def _saved(self, host: str) -> dict[str, str] | None:
        try:
            saved: dict[str, str] = json.loads(self._near.host.read(self._stopped_path(host)))
        except FileNotFoundError:
            return None
        return saved

    def _socket(self) -> str:
        """The helper's place: one for each login and server that Modal's variables name."""
        variables = sorted((key, value) for key, value in self._near.environ.items() if key.startswith("MODAL_"))
        key = hashlib.sha256(json.dumps(variables).encode()).hexdigest()[:12]
        base = self._directory()
        if len(os.fsencode(base)) > _LONGEST_SOCKET - 20:
            base = os.path.join(tempfile.gettempdir(), f"mngr-modal-{os.getuid()}")
        make_private_dir(base)
        return os.path.join(base, key)


def _parsed(options: Sequence[str]) -> dict[str, Any]:
    """The options by name; later ones win, those that are lists add up."""
    known = frozenset({*_NUMBERS, *_TEXTS, *_LISTS})
    found: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if key not in known or not equals:
            raise UsageError(f"Modal has no option `{option}`", hint=suggest(key, known, "option"))
        if key in _LISTS:
            found.setdefault(key, []).append(value)
        elif key in _NUMBERS:
            try:
                found[key] = _NUMBERS[key](value)
            except ValueError:
                raise UsageError(f"invalid number in `{option}`") from None
        else:
            found[key] = value
    return found
