"""Reads JSON that other programs wrote, where a value of the wrong shape counts as missing; and turns values of ours
into JSON and back. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T", bound=tuple[Any, ...])

_MOST_BYTES = 1 << 24


def loads(data: bytes | str) -> dict[str, Any]:
    """The JSON object in this text; empty when the text is something else."""
    import json

    try:
        return table(json.loads(data))
    except (ValueError, RecursionError):
        return {}


def file(path: str) -> dict[str, Any]:
    """The JSON object in this file; empty when there is no such file, or it is huge or not a regular one."""
    import os
    import stat

    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            return loads(stream.read(_MOST_BYTES)) if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) else {}
    except OSError:
        return {}


def table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def string(value: object) -> str:
    return value if isinstance(value, str) else ""


def objects(value: object) -> Iterator[dict[str, Any]]:
    """The objects in a list."""
    return (one for one in (value if isinstance(value, list) else ()) if isinstance(one, dict))


def count(value: object) -> int:
    """A whole number that is not negative; 0 for anything else."""
    return max(0, int(value)) if isinstance(value, int | float) and value == value and abs(value) < 1e15 else 0


def plain(value: Any) -> Any:
    """A value as JSON has it: each NamedTuple in it is an object, each tuple a list."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def typed(kind: type[T], value: Mapping[str, Any]) -> T:
    """The NamedTuple that `plain` made this of: lists are tuples again. Keys that it does not have are passed over, and
    what an older version did not write has its default."""
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]  # of every NamedTuple
    return kind(**{name: _tuples(value[name]) for name in names if name in value})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
