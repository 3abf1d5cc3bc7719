"""The provider `modal`: a host is a sandbox. Stopping one keeps its files as a snapshot and ends the sandbox."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mngr.actions.site import Site
from mngr.errors import NotFoundError, UsageError
from mngr.providers.keeper import WAITING_MINUTES
from mngr.providers.modal.options import LONGEST_SECONDS, parsed
from mngr.providers.provider import STOPPED, HelperProvider, HostInfo, HostRequest
from mngr.system.files import make_private_dir
from mngr.workspace.origin import ensure_machine_id

MOST_HOSTS = 50
_KEYS = {"image", "host_dir", "options", "connect_seconds", "max_hosts", "max_hours", "idle_stop_minutes"} | {
    "waiting_minutes"
}
# A file for each host that was made here and not destroyed: what it was made with, so that it can be started again.
_MADE = ".made"
_SECONDS_TO_MAKE = 3600.0
IDLE_STOP_MINUTES = 60.0
# What we know our sandboxes by; all other tags are labels of the user.
_TAGS = frozenset({"host", "id", "mngr", "provider"})


class Modal(HelperProvider):
    """`image` is a registry's name, a Dockerfile's path or an id; `options` are `KEY=VALUE`, as for `--start-arg`."""

    helper, variables = "mngr.providers.modal.helper", "MODAL_"

    def __init__(self, name: str, local: Site, values: Mapping[str, object]) -> None:
        super().__init__(name, local, values, _KEYS)

    def hosts(self) -> list[HostInfo]:
        running = [
            HostInfo(one["host"], ours=True, labels=_labels(one), details={"id": one["id"]}) for one in self._list()
        ]
        stopped = {*self._stopped(), *self._kept()} - {host.name for host in running}
        return running + [HostInfo(name, STOPPED, ours=True) for name in sorted(stopped)]

    def check(self, request: HostRequest) -> None:
        if request.build_args:
            raise self._unsupported("build arguments")
        if taken := sorted(_TAGS & request.labels.keys()):
            raise UsageError(f"a host of `{self.name}` has a tag `{taken[0]}` already", hint="use another label")
        self._sandbox_options(request.start_args)
        self._image(request.image)

    def create(self, request: HostRequest, progress: Callable[[str], None]) -> HostInfo:
        name = request.name
        image = request.snapshot or self._image(request.image)
        made = {"image": image, "env": dict(request.env), "start_args": list(request.start_args)}
        made["labels"] = dict(request.labels)
        progress(f"starting a Modal sandbox `{name}`")
        make_private_dir(self._directory())
        self._write(name, made)
        try:
            id = self._make(name, made)
        except BaseException:
            self._forget(name)
            raise
        return HostInfo(name, ours=True, details={"id": id})

    def _make(self, name: str, made: Mapping[str, Any]) -> str:
        """Start a sandbox, with a keeper: Modal ends each after a day, without asking."""
        options = self._sandbox_options(made["start_args"])
        idle = self._number("idle_stop_minutes", IDLE_STOP_MINUTES), self._number("waiting_minutes", WAITING_MINUTES)
        wanted = {key: made[key] for key in ("image", "env", "labels")} | {"options": options}
        wanted |= {"volume": self._volume(), "host_dir": self._text("host_dir"), "seconds": [60 * one for one in idle]}
        most = int(self._number("max_hosts", MOST_HOSTS))
        return str(self._ask("create", name=name, tags=self._tags(), most=most, wanted=wanted))

    def stop(self, host: str) -> None:
        if not any(one["host"] == host for one in self._list()) and host in {*self._stopped(), *self._kept()}:
            return
        made = self._made(host)
        image = self.snapshot(host, host)
        make_private_dir(self._directory())
        self._write(host, {**made, "image": image, "stopped": True})
        self._ask("terminate", name=host)

    def start(self, host: str) -> None:
        if any(one["host"] == host for one in self._list()):
            return
        kept = host in self._kept()
        if not kept and host not in self._stopped():
            raise NotFoundError(f"Modal has no sandbox `{host}`")
        made = {key: value for key, value in self._made(host).items() if key != "stopped"}
        self._make(host, made)
        self._write(host, made)

    def destroy(self, host: str) -> None:
        self._ask("terminate", name=host)
        if host in self._kept():
            self._ask("drop_kept", volume=self._volume(), name=host)
        self._forget(host)

    def sweep(self) -> list[str]:
        """Forgets what hosts were made with that are gone; one that is being made is younger."""
        there = {host.name for host in self.hosts()}
        for name in self._known():
            if name not in there and os.path.getmtime(self._path(name)) < time.time() - _SECONDS_TO_MAKE:
                self._forget(name)
        return []

    def snapshot(self, host: str, name: str) -> str:
        return str(self._ask("snapshot", name=host))

    def _sandbox_options(self, more: Sequence[str]) -> dict[str, Any]:
        """Those of the settings and these. No sandbox lives longer than the settings say."""
        options = parsed([*self._texts("options"), *more])
        hours, idle = self._number("max_hours"), self._number("idle_stop_minutes")
        if hours < 0 or idle < 0 or hours * 3600 > LONGEST_SECONDS:
            raise UsageError(f"invalid limit in `providers.{self.name}`", hint="Modal ends a sandbox after 24 hours")
        longest = int(hours * 3600) or LONGEST_SECONDS
        if options.setdefault("timeout", longest) > longest:
            raise UsageError(
                f"`timeout={options['timeout']}` is longer than `max_hours` allows",
                hint=f"`mngr config set providers.{self.name}.max_hours` changes it",
            )
        return options

    def _image(self, name: str) -> str:
        """The image that is asked for, or that of the settings. The path of a Dockerfile is made absolute."""
        name = name or self._text("image")
        if not name.startswith(("/", "./", "../")):
            return name
        path = os.path.normpath(os.path.join(self._local.cwd, name))
        if not os.path.isfile(path):
            raise UsageError(
                f"there is no Dockerfile `{name}`", hint="the name of an image does not begin with `/` or `.`"
            )
        return path

    def _list(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = self._ask("list", tags=self._tags())
        return found

    def _kept(self) -> list[str]:
        """The hosts that ended at a limit, and whose files are in our volume."""
        found: list[str] = self._ask("kept", volume=self._volume())
        return found

    def _volume(self) -> str:
        return "-".join(["mngr-kept", *self._tags().values()])[:60]

    def _tags(self) -> dict[str, str]:
        self._local.host.prepare()
        return {"mngr": ensure_machine_id(self._local.host), "provider": self.name}

    def _directory(self) -> str:
        return os.path.join(self._local.host.dir, "hosts", self.name)

    def _path(self, host: str) -> str:
        return os.path.join(self._directory(), f"{host}{_MADE}")

    def _made(self, host: str) -> dict[str, Any]:
        """What the host was made with, or would be made with now if another machine made it."""
        try:
            made: dict[str, Any] = json.loads(self._local.host.read(self._path(host)))
        except FileNotFoundError:
            return {"image": self._image(""), "env": {}, "start_args": [], "labels": {}}
        return made

    def _write(self, host: str, made: Mapping[str, Any]) -> None:
        self._local.host.write(self._path(host), json.dumps(made).encode())

    def _forget(self, host: str) -> None:
        self._local.host.remove(self._path(host))

    def _known(self) -> list[str]:
        entries = self._local.host.entries(self._directory())
        return [name.removesuffix(_MADE) for name in entries if name.endswith(_MADE)]

    def _stopped(self) -> list[str]:
        return [name for name in self._known() if self._made(name).get("stopped")]


def _labels(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in tags.items() if key not in _TAGS}
