"""The provider `ray`: a host is a place on a node of a Ray cluster, with the resources that were asked for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

from mngr.actions.site import Site
from mngr.errors import UNREACHED, MngrError, UsageError
from mngr.providers.provider import GONE, QUEUED, RUNNING, HelperProvider, HostInfo, HostRequest
from mngr.remote.channel import Opening
from mngr.system.interrupts import held
from mngr.system.waiting import wait_until
from mngr.workspace.origin import ensure_machine_id

MOST_HOSTS = 50
# A node takes a second or two to start a supervisor.
_LOOKS_BEFORE_WORD = 10
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_NAMES = {"cpus": "CPU", "gpus": "GPU", "memory": "memory"}
_KEYS = {*_NAMES, "address", "resources", "max_hosts", "autoscaling", "connect_seconds"}


class Ray(HelperProvider):
    """`cpus`, `gpus`, `memory` and `resources` are what each host takes of the cluster; `--start-arg KEY=VALUE` changes
    them for one host."""

    helper, variables = "mngr.providers.ray.helper", "RAY_ADDRESS"

    def __init__(self, name: str, local: Site, values: Mapping[str, object]) -> None:
        super().__init__(name, local, values, _KEYS)
        self._address = self._text("address") or local.environ.get("RAY_ADDRESS") or "auto"
        own = values.get("resources")
        given = {**(own if isinstance(own, dict) else {}), **{key: values[key] for key in _NAMES if key in values}}
        self._amounts = {"cpus": "1", **{str(key): str(value) for key, value in given.items()}}

    @property
    def environ(self) -> Mapping[str, str]:
        return {**self._local.environ, "RAY_ADDRESS": self._address}

    def opening(self, host: str) -> Opening:
        found = super().opening(host)
        return found._replace(argv=["env", f"RAY_ADDRESS={self._address}", *found.argv])

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
        most = int(self._number("max_hosts", MOST_HOSTS))
        if sum(host.state != GONE for host in self.hosts()) >= most:
            raise MngrError(
                f"{most} hosts of this machine are in the cluster, and `max_hosts` allows no more",
                hint=f"`mngr host list` shows them; `mngr config set providers.{self.name}.max_hosts` changes it",
            )
        key = self._key(name)
        elastic = bool(self._values.get("autoscaling"))
        self._ask("create", key=key, wanted=self._wanted(request), env=dict(request.env), elastic=elastic)
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
        self._local.host.prepare()
        return f"{ensure_machine_id(self._local.host)}/{self.name}/{host}"


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
