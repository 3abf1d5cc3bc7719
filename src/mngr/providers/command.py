"""Providers that are command lines: what to run to open a shell on a host, and to create, list, stop, start, snapshot
and destroy hosts. The words of a line are arguments of a program, never a shell's: no value needs quoting."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from mngr.actions.site import Site
from mngr.agent.limits import span
from mngr.errors import MngrError, TimedOut, UsageError
from mngr.providers import keeper
from mngr.providers.provider import GONE, RUNNING, STARTING, STOPPED, UNKNOWN, HostInfo, HostRequest, SettingsProvider
from mngr.remote import boot
from mngr.remote.channel import Opening
from mngr.system.interrupts import held
from mngr.system.process import CommandFailed, Result, checked, run
from mngr.system.waiting import Deadline
from mngr.workspace.origin import ensure_machine_id

LINES = ("open", "open_tty", "build", "create", "list", "stop", "start", "snapshot", "destroy")
KEYS = frozenset({*LINES, "image", "install", "hosts", "host_dir", "connect_seconds", "network", "memory", "cpus"}) | {
    *("pids", "max_hours", "idle_stop_minutes", "waiting_minutes", "ready_seconds"),
}
CONNECT_SECONDS = 30.0
# How long a line may take: some download an image.
_SECONDS = 1800.0
_LIST_SECONDS = 30.0
_READY_SECONDS = 300.0
_OPEN_SECONDS = 60.0  # a machine that boots answers some time after it runs
_NO_SHELL = (126, 127)
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_STATES = {
    **dict.fromkeys(("running", "up", "active", "ready"), RUNNING),
    **dict.fromkeys(("exited", "stopped", "created", "configured", "paused", "dead", "succeeded", "failed"), STOPPED),
    **dict.fromkeys(("pending", "starting", "initialized", "restarting", "queued"), STARTING),
}
# Ends with the first process of the host: after `max` seconds, or after `idle` seconds in which nobody used it. The
# agents are stopped as a limit of their own does, with their work saved.
_KEEPER = """\
idle=0; end=$(($(date +%s) + {max})); why="{aged}"
while [ $(date +%s) -lt $end ]; do
  if is_used; then idle=0; else
    idle=$((idle + {step}))
    if [ $idle -gt {idle} ]; then why="{unused}"; break; fi
  fi
  sleep {step}
done
ask end_all "$why"
"""
_FOR_EVER = 100 * 365 * 86400
_FIELDS = {
    "build arguments": "build_arg",
    "start arguments": "start_arg",
    "labels of hosts": "label",
    "variables of hosts": "env",
}


class CommandProvider(SettingsProvider):
    """A provider by its settings. Only `open` is required; a verb without a line is refused."""

    def __init__(self, name: str, local: Site, values: Mapping[str, object]) -> None:
        super().__init__(name, local, values, KEYS)
        self._lines = {key: self._texts(key) for key in LINES}
        if not self._lines["open"]:
            raise UsageError(
                f"provider `{name}` does not say how to open a shell on a host",
                hint=f"set `providers.{name}.open`, for example to `ssh {{host}}`; `mngr help providers` explains it",
            )
        if (self._number("max_hours") or self._number("idle_stop_minutes")) and not self._uses("create", "keeper"):
            raise UsageError(f"provider `{name}` has limits for hosts, but its `create` does not use `{{keeper}}`")

    def opening(self, host: str) -> Opening:
        argv, terminal = (expand(self._lines[line], {"host": host}) for line in ("open", "open_tty"))
        state_dir = self._text("host_dir").replace("{host}", host)
        seconds = self._number("connect_seconds", CONNECT_SECONDS)
        opening = Opening(host, argv, self._local.environ, state_dir, seconds, terminal)
        return opening._replace(recover=lambda error: self._recover(opening, error))

    def hosts(self) -> list[HostInfo]:
        """Those that `list` prints, and those that the settings name. What is listed by our mark is ours: a line that
        does not ask for `{owner}` prints also what others made."""
        found = {name: HostInfo(name, UNKNOWN) for name in self._texts("hosts")}
        marked = self._uses("list", "owner")
        if self._lines["list"]:
            for line in self._run("list", {}, seconds=_LIST_SECONDS).text.splitlines():
                name, word, *_ = [*line.lower().split(), "", ""]
                if name:
                    name = line.split()[0]
                    ours = marked and name not in found
                    found[name] = HostInfo(name, _STATES.get(word, UNKNOWN) if word else RUNNING, ours)
        return list(found.values())

    def host(self, name: str) -> HostInfo:
        if not self._lines["list"]:
            return HostInfo(name, UNKNOWN)
        return super().host(name)

    def pool(self) -> list[str]:
        return [] if self._lines["create"] else self._texts("hosts")

    def check(self, request: HostRequest) -> None:
        self.require("create")
        values = self._of_request(request)
        for what, placeholder in _FIELDS.items():
            line = "build" if placeholder == "build_arg" else "create"
            used = self._uses(line, placeholder) or (placeholder == "env" and self._uses(line, "env_name"))
            if values[placeholder] and not used:
                raise self._unsupported(what)
        if request.snapshot and not (self._lines["snapshot"] and self._uses("create", "image")):
            raise self._unsupported("snapshots of hosts")
        if request.build_args and (request.image or request.snapshot):
            raise UsageError("an image is built, or one is given: not both", hint="leave out `--build-arg`")

    def require(self, verb: str) -> None:
        if not self._lines[verb]:
            raise self._unsupported(f"`{verb}`: its settings have no such line")

    def create(self, request: HostRequest, progress: Callable[[str], None]) -> HostInfo:
        self.check(request)
        values = self._of_request(request)
        if request.build_args:
            progress(f"building an image for {request.name}")
            values["image"] = _last_line(self._run("build", values)) or request.image
        progress(f"creating {request.name}")
        if any(info.name == request.name for info in self.hosts()):
            raise MngrError(f"provider `{self.name}` already has a host `{request.name}`", hint="`mngr host list`")
        try:
            self._run("create", values, {**self._local.environ, **request.env})
            return self._ready(request.name)._replace(labels=request.labels, details={"image": str(values["image"])})
        except BaseException:
            with held(), suppress(MngrError):  # `mngr gc` finds it; the error that led here is the one to report
                self.destroy(request.name)
            raise

    def start(self, host: str) -> None:
        if self.host(host).state != RUNNING:
            self._run("start", {"host": host})
            self._ready(host)

    def stop(self, host: str) -> None:
        if self.host(host).state != STOPPED:
            self._run("stop", {"host": host})

    def destroy(self, host: str) -> None:
        if self.host(host).state != GONE:
            self._run("destroy", {"host": host})

    def snapshot(self, host: str, name: str) -> str:
        return _last_line(self._run("snapshot", {"host": host, "snapshot": name})) or name

    def _ready(self, host: str) -> HostInfo:
        """The host, once the provider says that it runs."""
        deadline = Deadline(_READY_SECONDS)
        while (info := self.host(host)).state == STARTING and not deadline.passed:
            deadline.pause(0.3)
        if info.state in (RUNNING, UNKNOWN) and not (info.state == UNKNOWN and self._lines["list"]):
            self._wait_for_shell(host)
            return info._replace(ours=True)
        raise MngrError(f"`{host}` was created but is {info.state}", hint="its image may end at once: `sh` must run")

    def _wait_for_shell(self, host: str) -> None:
        """Until commands run there. One on which none ever does is told by whoever uses it first, who can say why."""
        deadline = Deadline(self._number("ready_seconds", _OPEN_SECONDS))
        argv = [*self.opening(host).argv, "true"]
        while not deadline.passed:
            with suppress(TimedOut):  # it may hang while the machine boots
                result = run(argv, timeout=10.0, env=self._local.environ, cwd="/")
                if result.ok or result.exit_code in _NO_SHELL or self.host(host).state not in (RUNNING, UNKNOWN):
                    return
            deadline.pause(0.5)

    def _recover(self, opening: Opening, error: MngrError) -> None:
        """Install what a host lacks. Raises what is wrong with the host otherwise."""
        if isinstance(error, boot.Missing):
            if not self._values.get("install") or not error.install:
                raise error
            result = run([*opening.argv, error.install], timeout=_SECONDS, env=opening.env, cwd="/")
            checked(result, f"what mngr needs could not be installed on `{opening.host}`")
            return
        self.explain(opening.host, error)

    def _of_request(self, request: HostRequest) -> dict[str, str | Sequence[str]]:
        build = [*request.build_args, *(["."] if request.build_args and request.build_args[-1][:1] == "-" else [])]
        return {
            "host": request.name,
            "image": request.snapshot or request.image or self._text("image"),
            "build_arg": build,
            "start_arg": request.start_args,
            "label": [f"{key}={value}" for key, value in request.labels.items()],
            "env": [f"{key}={value}" for key, value in request.env.items()],
            "env_name": list(request.env),
            "keeper": self._keeper(),
            **{key: self._text(key) for key in ("network", "memory", "cpus", "pids")},
        }

    def _keeper(self) -> str:
        longest, idle = self._number("max_hours") * 3600, self._number("idle_stop_minutes") * 60
        if not idle and not longest:
            return f"exec sleep {_FOR_EVER}"
        waiting = self._number("waiting_minutes", keeper.WAITING_MINUTES) * 60
        aged = f"its host ran for {span(longest)} (limit max_hours)"
        functions = keeper.functions(self._text("host_dir"), waiting)
        if not idle:
            return f'{functions}sleep {longest:.0f}\nask end_all "{aged}"\n'
        step = max(1, min(30, round(idle / 4)))
        unused = f"its host was not used for {span(idle)} (limit idle_stop_minutes)"
        ages = {"max": round(longest or _FOR_EVER), "idle": round(idle), "step": step}
        return functions + _KEEPER.format(aged=aged, unused=unused, **ages)

    def _run(
        self,
        line: str,
        values: Mapping[str, str | Sequence[str]],
        env: Mapping[str, str] | None = None,
        seconds: float = _SECONDS,
    ) -> Result:
        self.require(line)
        if self._uses(line, "owner"):
            self._local.host.prepare()
            values = {**values, "owner": ensure_machine_id(self._local.host)}
        argv = expand(self._lines[line], values)
        result = run(argv, timeout=seconds, env=env or self._local.environ, cwd=self._local.cwd)
        if not result.ok:
            raise CommandFailed(result, f"provider `{self.name}`: `{' '.join(argv[:2])}` failed")
        return result

    def _uses(self, line: str, placeholder: str) -> bool:
        return any(f"{{{placeholder}}}" in word for word in self._lines[line])


def expand(words: Sequence[str], values: Mapping[str, str | Sequence[str]]) -> list[str]:
    """The words with their placeholders filled in. A word is left out when its value is empty, and repeated for each
    item of a list. Braces around anything else stay."""
    found: list[str] = []
    for word in words:
        names = [name for name in _PLACEHOLDER.findall(word) if name in values]
        lists = [name for name in names if not isinstance(values[name], str)]
        rounds = [{lists[0]: item} for item in values[lists[0]]] if lists else [{}]
        for more in rounds:
            filled = {name: more.get(name, values[name]) for name in names}
            if all(filled.values()):
                found.append(_PLACEHOLDER.sub(lambda m, f=filled: str(f.get(m[1], m[0])), word))  # type: ignore[misc]
    return found


def packaged() -> dict[str, Mapping[str, object]]:
    """The providers of `packaged.toml`, by name."""
    import shlex
    import tomllib

    with open(os.path.join(os.path.dirname(__file__), "packaged.toml"), "rb") as file:
        tables = tomllib.load(file)
    for table in tables.values():
        table.update({key: shlex.split(table[key]) for key in LINES if key in table})
    return tables


def _last_line(result: Result) -> str:
    lines = result.text.strip().splitlines()
    return lines[-1].strip() if lines else ""
