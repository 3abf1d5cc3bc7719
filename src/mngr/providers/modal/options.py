"""What a sandbox is made with: `KEY=VALUE` of the settings and of `--start-arg`, checked before anybody is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mngr.errors import UsageError
from mngr.names import suggest

# Modal ends a sandbox after this time at the latest.
LONGEST_SECONDS = 24 * 3600
_LISTS = ("cidr", "secret", "volume")


def parsed(options: Sequence[str]) -> dict[str, Any]:
    """The options by name; later ones win, those that are lists add up."""
    found: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if key not in _CHECKS or not equals:
            raise UsageError(f"Modal has no option `{option}`", hint=suggest(key, tuple(_CHECKS), "option"))
        try:
            checked = _CHECKS[key](value)
        except ValueError as error:
            raise UsageError(f"invalid option of Modal: `{option}`", hint=f"`{key}` is {error}") from None
        if key in _LISTS:
            found.setdefault(key, []).append(checked)
        else:
            found[key] = checked
    if found.get("block_network") and found.get("cidr"):
        raise UsageError("`block_network=yes` and `cidr` exclude each other", hint="`cidr` alone blocks all the rest")
    return found


def _number(kind: type[int] | type[float], what: str, most: float) -> Callable[[str], float]:
    def check(value: str) -> float:
        try:
            number = kind(value)
        except ValueError:
            raise ValueError(what) from None
        if not 0 < number <= most:
            raise ValueError(what)
        return number

    return check


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("a name")
    return value


def _yes_or_no(value: str) -> bool:
    if value not in ("yes", "no"):
        raise ValueError("`yes` or `no`")
    return value == "yes"


def _network(value: str) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_network(value))
    except ValueError as error:
        raise ValueError(f"a range of addresses such as 10.0.0.0/8: {error}") from None


def _volume(value: str) -> str:
    name, _, path = value.partition(":")
    if not name or not path.startswith("/") or path == "/":
        raise ValueError("`NAME:PATH` with an absolute path")
    return value


_CHECKS: dict[str, Callable[[str], Any]] = {
    "cpu": _number(float, "a number of cores", 1024),
    "memory": _number(int, "a number of MiB", 1 << 24),
    "timeout": _number(int, f"a number of seconds, at most {LONGEST_SECONDS}", LONGEST_SECONDS),
    "gpu": _text,
    "region": _text,
    "block_network": _yes_or_no,
    "cidr": _network,
    "secret": _text,
    "volume": _volume,
}
