"""Values as JSON and bytes: what a verb takes and returns, records and errors included.

Only record and error classes of our own modules are made from what another machine sends: plain data, whatever their
fields hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mngr.errors import FAILED, MngrError
from mngr.remote import shapes
from mngr.remote.frames import BadStream

# The packages whose records and errors travel, without the name of ours: all that also runs on an agent's host.
_PACKAGES = ("actions", "agent", "programs", "remote", "settings", "system", "workspace")
_DEEPEST = 60


class Encoder:
    """Turns values into JSON values; all bytes go to `body`. A function becomes a number, by which the other end can
    call it: see `functions`."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.functions: list[Callable[..., object]] = []

    def encode(self, value: object) -> Any:
        match value:
            case None | bool() | int() | float() | str():
                return value
            case bytes() | bytearray() | memoryview():
                self.body += value
                return {"$bytes": len(value)}
            case dict():
                if all(isinstance(key, str) and not key.startswith("$") for key in value):
                    return {key: self.encode(item) for key, item in value.items()}
                return {"$dict": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
            case list():
                return [self.encode(item) for item in value]
            case tuple():
                if hasattr(value, "_fields"):
                    return {"$record": _travelling(type(value)), "values": [self.encode(item) for item in value]}
                return {"$tuple": [self.encode(item) for item in value]}
            case set() | frozenset():
                kind = "$set" if isinstance(value, set) else "$frozenset"
                return {kind: [self.encode(item) for item in sorted(value, key=repr)]}
            case MngrError():
                fields = {"exit_code": value.exit_code, **vars(value)}
                classes = [_name(one) for one in type(value).__mro__ if issubclass(one, MngrError)]
                return {"$error": [name for name in classes if name], "fields": self.encode(fields)}
            case Mapping():
                return self.encode(dict(value))
        if callable(value):
            self.functions.append(value)
            return {"$function": len(self.functions) - 1}
        raise TypeError(f"a {type(value).__name__} cannot be sent to another machine")


class Decoder:
    """The inverse. `function` makes what stands for a function of the other end."""

    def __init__(self, body: bytes, function: Callable[[int], Callable[..., object]] | None = None) -> None:
        self._body = memoryview(body)
        self._at = 0
        self._function = function

    def decode(self, value: Any, depth: int = 0) -> Any:
        """Raises BadStream for what no encoder of this version makes."""
        if depth > _DEEPEST:
            raise BadStream("a value is nested too deeply")
        if isinstance(value, list):
            return [self.decode(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        kind = next((key for key in value if key.startswith("$")), "")
        if not kind:
            return {key: self.decode(item, depth + 1) for key, item in value.items()}
        try:
            return self._special(kind, value, depth + 1)
        except (TypeError, ValueError, KeyError, AttributeError, ImportError) as error:
            raise BadStream(f"a value cannot be read: {error}") from None

    def _special(self, kind: str, value: dict[str, Any], depth: int) -> Any:
        inner = value[kind]
        if kind == "$bytes":
            start, self._at = self._at, self._at + int(inner)
            if inner < 0 or self._at > len(self._body):
                raise ValueError("its bytes are missing")
            return bytes(self._body[start : self._at])
        if kind == "$record":
            return _record(_class(inner, tuple)(*(self.decode(item, depth) for item in value["values"])))
        if kind == "$error":
            return _error(inner, self.decode(value["fields"], depth))
        if kind == "$dict":
            return {self.decode(key, depth): self.decode(item, depth) for key, item in inner}
        if kind == "$function" and self._function is not None:
            return self._function(int(inner))
        made: dict[str, Callable[[list[Any]], Any]] = {"$tuple": tuple, "$set": set, "$frozenset": frozenset}
        return made[kind]([self.decode(item, depth) for item in inner])


def _name(found: type) -> str:
    return f"{found.__module__.removeprefix('mngr.')}:{found.__name__}"


def _travelling(found: type) -> str:
    """The name of a record's class. Raises here what the other end would refuse."""
    name = _name(found)
    if not _travels(name.partition(":")[0]):
        raise TypeError(f"`{name}` is not a class that travels")
    return name


def _class(name: str, base: type) -> Any:
    module, _, word = name.partition(":")
    if not _travels(module) or not word.isidentifier():
        raise ValueError(f"`{name[:80]}` is not a class that travels")
    import importlib

    found = getattr(importlib.import_module(f"mngr.{module}"), word)
    if not (isinstance(found, type) and issubclass(found, base) and found.__module__ == f"mngr.{module}"):
        raise ValueError(f"`{name[:80]}` is not a class that travels")
    return found


def _record(made: Any) -> Any:
    """Raises when a field is not what the class says: whoever uses a record has not to ask."""
    if not shapes.fields_fit(made) or not getattr(made, "sound", True):
        raise ValueError(f"a `{type(made).__name__}` has a field that makes no sense")
    return made


def _travels(module: str) -> bool:
    parts = module.split(".")
    plain = all(part.isidentifier() and not part.startswith("_") for part in parts)
    return plain and (len(parts) == 1 or parts[0] in _PACKAGES)


def _known_error(name: str) -> Any:
    try:
        return _class(name, MngrError)
    except (ValueError, ImportError, AttributeError):
        return None


def _error(names: list[str], fields: dict[str, Any]) -> MngrError:
    """An error of the first class that is known here, with its message, hint, details and exit code as they were."""
    found = next((known for name in names if (known := _known_error(name))), MngrError)
    error: MngrError = found.__new__(found)
    MngrError.__init__(
        error,
        str(fields.pop("message", "")),
        hint=str(fields.pop("hint", "")),
        details=str(fields.pop("details", "")),
        exit_code=max(FAILED, int(fields.pop("exit_code", FAILED))) & 0xFF or FAILED,
    )
    for key, item in fields.items():
        if key.isidentifier() and not key.startswith("_") and not callable(getattr(found, key, None)):
            setattr(error, key, item)
    return error


def as_error(value: object) -> MngrError:
    """A decoded error. Raises BadStream for anything else."""
    if isinstance(value, MngrError):
        return value
    raise BadStream("an error is not an error")


def call_back(functions: Sequence[Callable[..., object]], value: object) -> None:
    """Call one of the functions that were sent. They report progress: they take a text or a number."""
    match value:
        case [int() as at, [str() | int() as told]] if 0 <= at < len(functions):
            functions[at](told)
        case _:
            raise BadStream("a function is called that was not sent, or with what it does not take")
