"""The record of one agent, as stored in `agent.json`. Versioned; keys of newer versions are kept and ignored."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mngr.errors import MngrError
from mngr.names import is_id, is_name
from mngr.system.files import json_bytes

VERSION = 1


class Record(NamedTuple):
    """`windows` are commands beside the agent's own, by name. `command_shown` is its command with secrets hidden, if it
    holds any. `driver` names what knows its program (`mngr.programs.driver`); `allowed_commands` are shell lines
    that it may run with the permissions `tests`; `rules` are what settings say about a program that no driver of its
    own knows. `origin` is where the code of an agent on another machine came from: the `machine` and its `repo`.
    `sandbox` is empty, `on` or `no-network`; `shared_paths` are what its work dir uses of its source, which the sandbox
    has to show."""

    id: str
    name: str
    kind: str
    command: str
    work_dir: str
    transfer: str
    session: str
    created_at: str
    project: str = ""
    labels: Mapping[str, str] = {}
    source: str = ""
    repo: str | None = None
    branch: str | None = None
    created_branch: bool = False
    base_branch: str | None = None
    base_commit: str | None = None
    host: str = "local"
    number: int = 0
    reports: bool = False
    recorded: bool = False
    boot_id: str = ""
    creator: tuple[int, str] | None = None
    started_at: str | None = None
    stopped_at: str | None = None
    stop_reason: str = ""
    archived_at: str | None = None
    limits: Mapping[str, Any] = {}
    windows: Mapping[str, str] = {}
    command_shown: str = ""
    driver: str = ""
    permissions: str = ""
    allowed_commands: tuple[str, ...] = ()
    one_shot: bool = False
    rules: Mapping[str, str] = {}
    origin: Mapping[str, str] = {}
    sandbox: str = ""
    shared_paths: tuple[str, ...] = ()
    extra: Mapping[str, Any] = {}

    @property
    def short_id(self) -> str:
        return self.id[6:14]

    @property
    def sound(self) -> bool:
        """Whether fields of the right types also say what can be: for a record that was not read from a file."""
        return all(check(getattr(self, name)) for name, check in _BY_NAME.items())

    @property
    def git(self) -> bool:
        """Whether its work is in a git repository of which `repo` is the source."""
        return self.repo is not None


class CorruptRecord(MngrError):
    """An `agent.json` that cannot be read. Its agent is shown as an error, never guessed at, never removed."""


def dump(record: Record) -> bytes:
    return json_bytes(as_json(record), indent=1)


def as_json(record: Record) -> dict[str, Any]:
    """What `agent.json` holds."""
    value = {"version": VERSION, **record.extra}
    value.update({name: field for name, field in zip(record._fields, record, strict=True) if name != "extra"})
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
    if version != VERSION:
        raise CorruptRecord(f"`{path}` has version {version!r}, this mngr knows {VERSION}", hint="upgrade mngr")
    known = {name: value.pop(name) for name in Record._fields if name in value and name != "extra"}
    for name in Record._fields:
        if name not in known:
            if name not in Record._field_defaults:
                raise CorruptRecord(f"`{path}` lacks `{name}`", hint=CORRUPT_HINT)
        elif not (_BY_NAME.get(name) or _BY_TYPE[Record.__annotations__[name].__forward_arg__])(known[name]):
            raise CorruptRecord(f"`{path}` has a `{name}` that makes no sense: {known[name]!r}", hint=CORRUPT_HINT)
    for name in ("allowed_commands", "shared_paths"):
        known[name] = tuple(known.get(name, ()))
    if known.get("creator"):
        known["creator"] = tuple(known["creator"])
    return Record(**known, extra=value)


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
    if len(day) != 10 or not (rest or "0").isdecimal() or year < 1970:
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


def _moment(value: object) -> bool:
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
    "created_at": _moment,
    **dict.fromkeys(("started_at", "stopped_at", "archived_at"), lambda value: value is None or _moment(value)),
    "limits": _limits,
}
