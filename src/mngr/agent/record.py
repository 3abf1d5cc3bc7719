"""The record of one agent, as stored in `agent.json`. Versioned; keys of newer versions are kept and ignored."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping

from mngr.errors import MngrError
from mngr.named_tuples import NamedTuple
from mngr.names import is_id, is_name
from mngr.system.files import json_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 2
# A later moment is the mistake of a program, and not every function of the system takes it.
_LAST_YEAR = 5000


class AgentSpec(NamedTuple):
    """What an agent is and what it runs: all that a copy of it takes over.

    `windows` are commands beside the agent's own, by name. `command_shown` is its command with secrets hidden, if it
    holds any. `driver` names what knows its program (`mngr.programs.driver`); `allowed_commands` are shell lines
    that it may run with the permissions `tests`; `rules` are what settings say about a program that no driver of its
    own knows. `sandbox` is empty, `on` or `no-network`."""

    kind: str
    command: str
    command_shown: str = ""
    project: str = ""
    labels: Mapping[str, str] = {}
    windows: Mapping[str, str] = {}
    reports: bool = False
    recorded: bool = False
    limits: Mapping[str, Any] = {}
    driver: str = ""
    permissions: str = ""
    allowed_commands: tuple[str, ...] = ()
    one_shot: bool = False
    rules: Mapping[str, str] = {}
    sandbox: str = ""


class AgentWorkspace(NamedTuple):
    """Where the agent's copy of the code is, and what it came from.

    `origin` is where the code of an agent on another machine came from: the `machine` and its `repo`. `shared_paths`
    are what its work dir uses of its source, which the sandbox has to show."""

    work_dir: str
    transfer: str
    source: str = ""
    repo: str | None = None
    branch: str | None = None
    created_branch: bool = False
    base_branch: str | None = None
    base_commit: str | None = None
    origin: Mapping[str, str] = {}
    shared_paths: tuple[str, ...] = ()


class AgentLife(NamedTuple):
    """What happened to this very agent on this very machine: no copy of it takes this over. `machine` and `boot_id` say
    where its process, or its creator, was started."""

    session: str
    created_at: str
    host: str = "local"
    number: int = 0
    machine: str = ""
    boot_id: str = ""
    creator: tuple[int, str] | None = None
    started_at: str | None = None
    stopped_at: str | None = None
    stop_reason: str = ""
    archived_at: str | None = None


class Record(NamedTuple):
    """`extra` holds the keys of newer versions, which are kept."""

    id: str
    name: str
    spec: AgentSpec
    workspace: AgentWorkspace
    life: AgentLife
    extra: Mapping[str, Any] = {}

    @property
    def short_id(self) -> str:
        return self.id[6:14]

    @property
    def sound(self) -> bool:
        """Whether fields of the right types also say what can be: for a record that was not read from a file."""
        values = {"id": self.id, "name": self.name}
        for part in (self.spec, self.workspace, self.life):
            values |= part._asdict()
        return all(check(values[name]) for name, check in _BY_NAME.items())

    @property
    def git(self) -> bool:
        """Whether its work is in a git repository of which `workspace.repo` is the source."""
        return self.workspace.repo is not None

    def changed(self, **fields: Any) -> Record:
        """The record with other values of these fields, each of which is in one of its parts, or the part itself."""
        parts: dict[str, Any] = {}
        for part, kind in _PARTS.items():
            inner = {name: fields.pop(name) for name in kind._fields if name in fields}
            whole = fields.get(part, getattr(self, part))
            parts[part] = whole._replace(**inner) if inner else whole
        return self._replace(**{**fields, **parts})


_PARTS: Mapping[str, Any] = {"spec": AgentSpec, "workspace": AgentWorkspace, "life": AgentLife}


class CorruptRecord(MngrError):
    """An `agent.json` that cannot be read. Its agent is shown as an error, never guessed at, never removed."""


def dump(record: Record) -> bytes:
    return json_bytes(as_json(record), indent=1)


def as_json(record: Record) -> dict[str, Any]:
    """What `agent.json` holds."""
    value = {"version": VERSION, **record.extra, "id": record.id, "name": record.name}
    for part in _PARTS:
        value[part] = {**record.extra.get(part, {}), **getattr(record, part)._asdict()}
    return value


def parse(data: bytes, path: str) -> Record:
    """Raises CorruptRecord, which names the file."""
    try:
        value = json.loads(data.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise CorruptRecord(f"`{path}` is not JSON: {error}", hint=CORRUPT_HINT) from None
    if not isinstance(value, dict):
        raise CorruptRecord(f"`{path}` is not a JSON object", hint=CORRUPT_HINT)
    version = value.pop("version", None)
    if version not in (1, VERSION):
        raise CorruptRecord(f"`{path}` has version {version!r}, this mngr knows {VERSION}", hint="upgrade mngr")
    if version == 1:  # all fields were in one list
        for part, kind in _PARTS.items():
            value[part] = {name: value.pop(name) for name in kind._fields if name in value}
    top = _fields(value, Record, ("id", "name"), path)
    parts: dict[str, Any] = {}
    for part, kind in _PARTS.items():
        inner = value.pop(part, None)
        if not isinstance(inner, dict):
            raise CorruptRecord(f"`{path}` lacks `{part}`", hint=CORRUPT_HINT)
        parts[part] = kind(**_fields(inner, kind, kind._fields, path))
        if inner:
            value[part] = inner
    return Record(**top, **parts, extra=value)


def _fields(value: dict[str, Any], kind: Any, names: Iterable[str], path: str) -> dict[str, Any]:
    """Take these fields of a class out of `value`. Raises for one that is missing or of another type."""
    found: dict[str, Any] = {}
    for name in names:
        if name not in value:
            if name not in kind._field_defaults:
                raise CorruptRecord(f"`{path}` lacks `{name}`", hint=CORRUPT_HINT)
            continue
        field = value.pop(name)
        if not (_BY_NAME.get(name) or _BY_TYPE[kind.__annotations__[name]])(field):
            raise CorruptRecord(f"`{path}` has an invalid value for `{name}`: {field!r}", hint=CORRUPT_HINT)
        found[name] = tuple(field) if isinstance(field, list) else field
    return found


def parse_spec(value: Mapping[str, Any], path: str) -> AgentSpec:
    """The same of one part."""
    return AgentSpec(**_fields(dict(value), AgentSpec, AgentSpec._fields, path))


def timestamp(at: float | None = None) -> str:
    """UTC, ISO 8601 with microseconds: sorts as text."""
    moment = time.time() if at is None else at
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1e6):06d}Z"


def seconds_of(text: str) -> float:
    """The inverse of `timestamp`, or ValueError. By hand, since importing `strptime` takes 5 ms."""
    whole, _, rest = text.removesuffix("Z").partition(".")
    day, _, clock = whole.partition("T")
    year, month, date = map(int, day.split("-"))
    hour, minute, second = map(int, clock.split(":"))
    if len(day) != 10 or not (rest or "0").isdecimal() or not 1970 <= year <= _LAST_YEAR:
        raise ValueError(f"{text!r} is not a point in time")
    if not (1 <= month <= 12 and 1 <= date <= 31 and 0 <= hour < 24 and 0 <= minute < 60 and 0 <= second <= 60):
        raise ValueError(f"{text!r} is not a point in time")
    # Days since 1970, counting years from March so that the leap day comes last.
    shifted = year - (month < 3)
    era_days = 365 * shifted + shifted // 4 - shifted // 100 + shifted // 400
    days = era_days + (153 * ((month + 9) % 12) + 2) // 5 + date - 719469
    return days * 86400 + hour * 3600 + minute * 60 + second + float(f"0.{rest or 0}")


CORRUPT_HINT = "repair the file, or move its directory out of the way; nothing in it was changed"


def _limits(value: object) -> bool:
    """See `mngr.agent.limits`; not imported here, since most agents have none."""
    seconds = [value.get("idle_seconds"), value.get("run_seconds")] if isinstance(value, dict) else [""]
    return all(item is None or (isinstance(item, int | float) and item > 0) for item in seconds)


def is_moment(value: object) -> bool:
    try:
        return isinstance(value, str) and seconds_of(value) >= 0
    except ValueError:
        return False


# What JSON has for each type of a field.
_BY_TYPE: Mapping[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "str | None": lambda value: value is None or isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int),
    "tuple[str, ...]": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "tuple[int, str] | None": lambda value: (
        value is None or (isinstance(value, list) and [type(item) for item in value] == [int, str])
    ),
    "Mapping[str, str]": lambda value: (
        isinstance(value, dict) and all(isinstance(item, str) for item in (*value, *value.values()))
    ),
}
# Where more is known of a field than its type.
_BY_NAME: Mapping[str, Callable[[Any], bool]] = {
    "id": lambda value: isinstance(value, str) and is_id(value),
    "name": lambda value: isinstance(value, str) and is_name(value),
    "work_dir": lambda value: isinstance(value, str) and value.startswith("/"),
    "created_at": is_moment,
    **dict.fromkeys(("started_at", "stopped_at", "archived_at"), lambda value: value is None or is_moment(value)),
    "limits": _limits,
}
