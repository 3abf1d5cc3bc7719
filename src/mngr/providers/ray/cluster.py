"""What we do with Ray's own package: hosts of a cluster, each with a record in the cluster's own store.

The record outlives the actor and its node. A host without a record does not exist; one whose node is dead is GONE."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from mngr.errors import UNREACHED, MngrError
from mngr.providers.provider import GONE, QUEUED, RUNNING
from mngr.providers.ray import supervisor
from mngr.providers.ray.supervisor import CLUSTER, HOST, NAMESPACE

JOIN_SECONDS = 60.0
START_SECONDS = 60.0
_REACH_SECONDS = 5.0
_RESOURCES = {"CPU": "cpus", "GPU": "gpus"}


class Cluster:
    """The hosts of all users of one Ray cluster, by key: `OWNER/PROVIDER/NAME`. Joins it at the first use."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.RLock()
        self._joined: Future[Any] | None = None
        self._starting: dict[str, Any] = {}

    def _ray(self) -> Any:
        """Ray's package, as a part of the cluster."""
        import ray

        with self._lock:
            if self._joined is None or (self._joined.done() and self._joined.exception() is not None):
                _check_reachable(self._address)
                self._joined = ThreadPoolExecutor(1).submit(self._join)
        try:
            self._joined.result(JOIN_SECONDS)
        except TimeoutError:
            raise _no_cluster(self._address, f"it did not answer within {JOIN_SECONDS:g} s") from None
        return ray

    def _join(self) -> None:
        import ray
        from ray.experimental import internal_kv

        self._kv: Any = internal_kv
        ray.init(address=self._address, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
        ray.cloudpickle.register_pickle_by_value(supervisor)
        self._kv._internal_kv_put(CLUSTER, os.urandom(4).hex(), overwrite=False, namespace=NAMESPACE)

    def create(self, key: str, wanted: Mapping[str, float], env: Mapping[str, str], elastic: bool) -> None:
        """Ask the cluster for a host. It is QUEUED until a node has the resources free."""
        ray = self._ray()
        if not elastic:
            _check_possible(wanted, [node["Resources"] for node in ray.nodes() if node["Alive"]])
        record = {"wanted": dict(wanted), "env": dict(env), "created_at": time.time()}
        if self._put(key, record, overwrite=False):
            raise MngrError(f"the cluster has a host `{_name(key)}` already", hint="`mngr host list` shows it")
        try:
            self._place(key, record, "")
        except BaseException:
            self._forget(key)
            raise

    def hosts(self, prefix: str) -> list[dict[str, Any]]:
        ray = self._ray()
        alive = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
        actors = {found["name"] for found in ray.util.list_named_actors(True) if found["namespace"] == NAMESPACE}
        keys = [key.decode()[len(HOST) :] for key in self._kv._internal_kv_list(HOST + prefix, namespace=NAMESPACE)]
        found = []
        for key in sorted(keys):
            if (record := self._get(key)) is not None:
                error = self._failure(key, record)
                state = GONE if error else _state(record, key in actors, alive)
                found.append({"name": _name(key), "state": state, "error": error, **record})
        return found

    def destroy(self, key: str) -> None:
        """Twice is safe. What is on a node that cannot be asked is removed by the next supervisor there."""
        self._ray()
        record = self._get(key)
        if record is None:
            return
        self._kill(key)
        self._forget(key)
        try:
            node = self._node(key, record) if record.get("node") else ""
        except MngrError:
            return
        if node:
            self._end(key, node)

    def sweep(self) -> list[str]:
        """Remove what destroyed hosts left on nodes; the names of those hosts."""
        ray = self._ray()
        nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
        refs = [self._task(supervisor.sweep, node).remote() for node in nodes]
        done, _ = ray.wait(refs, num_returns=len(refs), timeout=START_SECONDS) if refs else ([], [])
        return sorted({_name(key) for keys in ray.get(done) for key in keys})

    def actor(self, key: str) -> Any:
        """The supervisor of a host; a new one on the same node when it ended."""
        ray = self._ray()
        record = self._known(key)
        if not record.get("node"):
            raise MngrError(
                f"`{_name(key)}` is queued: no node has {shown(record['wanted'])} free", exit_code=UNREACHED
            )
        node = self._node(key, record)
        with self._lock:
            try:
                found = ray.get_actor(key, namespace=NAMESPACE)
                if record["node"] == node:
                    return found
                self._kill(key)
            except ValueError:
                pass
            found = self._place(key, record, node)
        self._wait_for_start(key, found)
        return found

    def _place(self, key: str, record: Mapping[str, Any], node: str) -> Any:
        ray = self._ray()
        wanted = dict(record["wanted"])
        options = {"num_cpus": wanted.pop("CPU", 0), "num_gpus": wanted.pop("GPU", 0)}
        if "memory" in wanted:
            options["memory"] = wanted.pop("memory")
        actor = (
            ray.remote(supervisor.Supervisor)
            .options(
                name=key,
                namespace=NAMESPACE,
                lifetime="detached",
                max_concurrency=64,
                resources=wanted,
                **options,
                **_on(node),
            )
            .remote(key, record["env"], bool(node))
        )
        self._starting[key] = actor.ready.remote()
        return actor

    def _wait_for_start(self, key: str, actor: Any) -> None:
        ray = self._ray()
        try:
            ray.get(actor.ready.remote(), timeout=START_SECONDS)
        except ray.exceptions.GetTimeoutError:
            raise MngrError(f"the node of `{_name(key)}` has no room for it now", exit_code=UNREACHED) from None

    def _failure(self, key: str, record: Mapping[str, Any]) -> str:
        """Why a host that this process asked for did not start. Several threads may ask for the same host."""
        ray = self._ray()
        ref = self._starting.get(key)
        if ref is None or record.get("node") or not ray.wait([ref], timeout=0)[0]:
            return ""
        try:
            ray.get(ref)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is why there is no host)
            return explained(error, self._address).message
        return ""

    def _end(self, key: str, node: str) -> None:
        ray = self._ray()
        left = ray.get(self._task(supervisor.end, node).remote(key), timeout=START_SECONDS)
        if left:
            raise MngrError(f"processes of `{_name(key)}` did not end: {', '.join(map(str, left))}")

    def _task(self, function: Any, node: str) -> Any:
        ray = self._ray()
        return ray.remote(function).options(num_cpus=0, max_retries=0, **_on(node))

    def _kill(self, key: str) -> None:
        ray = self._ray()
        with suppress(ValueError):
            ray.kill(ray.get_actor(key, namespace=NAMESPACE))
        self._starting.pop(key, None)

    def _node(self, key: str, record: Mapping[str, Any]) -> str:
        """The host's node, or the one that was started on the same machine after it."""
        ray = self._ray()
        alive = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
        if record["node"] in alive:
            return str(record["node"])
        for node, address in alive.items():
            if address == record["address"]:
                return str(node)
        raise MngrError(
            f"the node of `{_name(key)}`, {record['address']}, is lost",
            hint="`mngr gc` forgets hosts that are gone",
            exit_code=UNREACHED,
        )

    def _known(self, key: str) -> dict[str, Any]:
        self._ray()
        record = self._get(key)
        if record is None:
            raise MngrError(f"the Ray cluster has no host `{_name(key)}`", exit_code=UNREACHED)
        return record

    def _get(self, key: str) -> dict[str, Any] | None:
        value = self._kv._internal_kv_get(HOST + key, namespace=NAMESPACE)
        record: dict[str, Any] | None = None if value is None else json.loads(value)
        return record

    def _put(self, key: str, record: Mapping[str, Any], *, overwrite: bool = True) -> bool:
        """Whether there was one already."""
        text = json.dumps(dict(record))
        return bool(self._kv._internal_kv_put(HOST + key, text, overwrite=overwrite, namespace=NAMESPACE))

    def _forget(self, key: str) -> None:
        self._kv._internal_kv_del(HOST + key, namespace=NAMESPACE)


def _on(node: str) -> dict[str, Any]:
    if not node:
        return {}
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False)}


def _state(record: Mapping[str, Any], has_actor: bool, alive: Mapping[str, str]) -> str:
    if not record.get("node"):
        # Its creator writes the record first and asks for the actor then.
        return QUEUED if has_actor or time.time() - record.get("created_at", 0.0) < START_SECONDS else GONE
    if record["node"] not in alive and record["address"] not in alive.values():
        return GONE
    return RUNNING


def _check_possible(wanted: Mapping[str, float], nodes: Sequence[Mapping[str, float]]) -> None:
    if any(all(node.get(name, 0.0) >= amount for name, amount in wanted.items()) for node in nodes):
        return
    most = {name: max((node.get(name, 0.0) for node in nodes), default=0.0) for name in wanted}
    lacking = {name: amount for name, amount in wanted.items() if most[name] < amount} or dict(wanted)
    raise MngrError(
        f"no node of the Ray cluster can ever have {shown(lacking)}",
        hint=f"the most that one node has is {shown({name: most[name] for name in lacking})}; where an autoscaler adds "
        "nodes, set `providers.ray.autoscaling = true`",
    )


def shown(resources: Mapping[str, float]) -> str:
    return ", ".join(f"{_RESOURCES.get(name, name)}={amount:g}" for name, amount in sorted(resources.items()))


def _name(key: str) -> str:
    return key.rpartition("/")[2]


def _check_reachable(address: str) -> None:
    """Ray itself tries for ten minutes to reach a cluster that is not there."""
    import socket

    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS).close()
    except OSError as error:
        raise _no_cluster(address, str(error.strerror or error)) from None


def _no_cluster(address: str, why: str) -> MngrError:
    return MngrError(
        f"no Ray cluster at `{address}`: {why}",
        hint="`ray status --address ADDRESS` shows a cluster; set `providers.ray.address`",
        exit_code=UNREACHED,
    )


def explained(error: Exception, address: str) -> MngrError:
    """An error of Ray's package in our words."""
    if isinstance(error, MngrError):
        return error
    if isinstance(error, ModuleNotFoundError):
        return MngrError("the Python package `ray` is not installed", hint="`pip install 'mngr[ray]'`")
    kind, text = type(error).__name__, str(error).strip()
    if isinstance(error, ConnectionError):
        return _no_cluster(address, text)
    if "Actor" in kind:
        return MngrError(f"the supervisor of the host ended: {text}", exit_code=UNREACHED)
    return MngrError(f"Ray failed: {kind}: {text}", exit_code=UNREACHED)
