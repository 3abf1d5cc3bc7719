"""The provider `ray`: a host is a place on a node of a Ray cluster, with the resources that were asked for."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mngr.errors import UNREACHED, MngrError, UsageError
from mngr.files import make_private_dir
from mngr.interrupts import held
from mngr.providers import pipe
from mngr.providers.provider import GONE, QUEUED, RUNNING, HostInfo, HostRequest, Provider
from mngr.remote.channel import Opening
from mngr.waiting import wait_until
from mngr.workspaces.origin import ensure_machine_id

if TYPE_CHECKING:
    from mngr.actions.site import Site

CONNECT_SECONDS = 60.0
MOST_HOSTS = 50
_HELPER = "mngr.providers.ray.helper"
_LONGEST_SOCKET = 90
# A node takes a second or two to start a supervisor.
_LOOKS_BEFORE_WORD = 10
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_NAMES = {"cpus": "CPU", "gpus": "GPU", "memory": "memory"}


class Ray(Provider):
    """`cpus`, `gpus`, `memory` and `resources` are what each host takes of the cluster; `--start-arg KEY=VALUE` changes
    them for one host."""

    def __init__(self, name: str, near: Site, values: Mapping[str, object]) -> None:
        super().__init__(name)
        self._near = near
        self._address = str(values.get("address") or near.environ.get("RAY_ADDRESS") or "auto")
        own = values.get("resources")
        given = {**(own if isinstance(own, dict) else {}), **{key: values[key] for key in _NAMES if key in values}}
        self._amounts = {"cpus": "1", **{str(key): str(value) for key, value in given.items()}}
        limit = values.get("max_hosts")
        self._limit = limit if isinstance(limit, int) else MOST_HOSTS
        self._autoscaling = bool(values.get("autoscaling"))
        seconds = values.get("connect_seconds")
        self._seconds = float(seconds) if isinstance(seconds, int | float) else CONNECT_SECONDS

    def opening(self, host: str) -> Opening:
        argv = [sys.executable, "-m", "mngr.providers.pipe", _HELPER, self._socket(), "run", self._key(host)]
        return Opening(host, argv, self._near.environ, "", self._seconds)

    def hosts(self) -> list[HostInfo]:
        return [
            HostInfo(one["name"], one["state"], True, one["created_at"], {}, _details(one))
            for one in self._ask("hosts", prefix=self._key(""))
        ]

    def check(self, request: HostRequest) -> None:
        given = {"images": request.image, "snapshots": request.snapshot, "build arguments": request.build_args}
        for what, value in {**given, "labels of hosts": request.labels}.items():
            if value:
                raise self._unsupported(what)
        self._wanted(request)

    def create(self, request: HostRequest, progress: Callable[[str], None]) -> HostInfo:
        """Waits while the cluster has no room for the host."""
        name = request.name
        if sum(host.state != GONE for host in self.hosts()) >= self._limit:
            raise MngrError(
                f"{self._limit} hosts of this machine are in the cluster, and `max_hosts` allows no more",
                hint=f"`mngr host list` shows them; `mngr config set providers.{self.name}.max_hosts` changes it",
            )
        key = self._key(name)
        self._ask("create", key=key, wanted=self._wanted(request), env=dict(request.env), elastic=self._autoscaling)
        looks = itertools.count()

        def placed() -> HostInfo | None:
            found = self.host(name)
            if found.state == QUEUED and next(looks) == _LOOKS_BEFORE_WORD:
                progress(f"`{name}` is QUEUED until a node of the Ray cluster has room")
            return None if found.state == QUEUED else found

        try:
            info = wait_until(placed, timeout=math.inf, every=0.3)
            if info is None or info.state != RUNNING:
                why = f": {info.details['error']}" if info and "error" in info.details else ""
                raise MngrError(f"the Ray cluster did not start `{name}`{why}", exit_code=UNREACHED)
        except BaseException:
            with held():
                self._ask("destroy", key=key)
            raise
        return info

    def stop(self, host: str) -> None:
        self._ask("stop", key=self._key(host))

    def start(self, host: str) -> None:
        self._ask("start", key=self._key(host))

    def destroy(self, host: str) -> None:
        self._ask("destroy", key=self._key(host))

    def sweep(self) -> list[str]:
        return list(self._ask("sweep"))

    def _wanted(self, request: HostRequest) -> dict[str, float]:
        amounts = dict(self._amounts)
        for option in request.start_args:
            key, equals, value = option.partition("=")
            if not key or not equals:
                raise UsageError(f"invalid start argument `{option}`", hint="write `cpus=2`, `memory=4g` or `NAME=1`")
            amounts[key] = value
        return {_NAMES.get(key, key): _amount(key, value) for key, value in amounts.items()}

    def _key(self, host: str) -> str:
        self._near.host.prepare()
        return f"{ensure_machine_id(self._near.host)}/{self.name}/{host}"

    def _ask(self, do: str, **details: object) -> Any:
        return pipe.ask(_HELPER, self._socket(), self._near.environ, do, **details)

    def _socket(self) -> str:
        """The helper's place, with the address of its cluster beside it."""
        key = hashlib.sha256(json.dumps([self._address]).encode()).hexdigest()[:12]
        base = os.path.join(self._near.host.dir, "hosts", self.name)
        if len(os.fsencode(base)) > _LONGEST_SOCKET - 20:
            base = os.path.join(tempfile.gettempdir(), f"mngr-ray-{os.getuid()}")
        make_private_dir(base)
        path = os.path.join(base, key)
        if not os.path.exists(f"{path}.address"):
            self._near.host.write(f"{path}.address", self._address.encode())
        return path


def _details(record: Mapping[str, object]) -> dict[str, str]:
    found = {"node": str(record.get("address", "")), "error": str(record["error"])}
    return {key: value for key, value in found.items() if value}


def _amount(key: str, text: str) -> float:
    """A number; of memory also `512m` or `4g`."""
    unit: str = text[-1:].lower() if key == "memory" and not text[-1:].isdigit() else ""
    try:
        return float(text[: len(text) - len(unit)]) * _UNITS[unit]
    except (KeyError, ValueError):
        raise UsageError(f"invalid amount `{text}` of `{key}`") from None
