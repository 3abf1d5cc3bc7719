"""What a sandbox is made with: `KEY=VALUE` of the settings and of `--start-arg`, checked before anybody is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mngr.errors import UsageError
from mngr.names import suggest

# Modal ends a sandbox after this time at the latest.
LONGEST_SECONDS = 24 * 3600
_LISTS = ("cidr", "domain", "secret", "volume")


def parsed(options: Sequence[str]) -> dict[str, Any]:
    """The options by name; later ones win, those that are lists add up."""
    found: dict[str, Any] = {}
    for option in options:
        key, equals, text = option.partition("=")
        if key not in _OPTIONS or not equals:
            raise UsageError(f"Modal has no option `{option}`", hint=suggest(key, tuple(_OPTIONS), "option"))
        read, what = _OPTIONS[key]
        try:
            value = read(text)
        except (ValueError, KeyError) as error:
            why = f": {error}" if key == "cidr" else ""
            raise UsageError(f"invalid option of Modal: `{option}`", hint=f"`{key}` is {what}{why}") from None
        found[key] = [*found.get(key, ()), value] if key in _LISTS else value
    for key in ("cidr", "domain"):
        if found.get("block_network") and found.get(key):
            hint = f"`{key}` alone blocks all the rest"
            raise UsageError(f"`block_network=yes` and `{key}` exclude each other", hint=hint)
    return found


def _within(number: float, most: float) -> float:
    if not 0 < number <= most:
        raise ValueError
    return number


def _name(text: str) -> str:
    if not text.strip():
        raise ValueError
    return text


def _network(text: str) -> str:
    import ipaddress

    return str(ipaddress.ip_network(text))


def _volume(text: str) -> str:
    name, _, path = text.partition(":")
    if not name or not path.startswith("/") or path == "/":
        raise ValueError
    return text


_OPTIONS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "cpu": (lambda text: _within(float(text), 1024), "a number of cores"),
    "memory": (lambda text: _within(int(text), 1 << 24), "a number of MiB"),
    "timeout": (lambda text: _within(int(text), LONGEST_SECONDS), f"a number of seconds, at most {LONGEST_SECONDS}"),
    "gpu": (_name, "a name"),
    "region": (_name, "a name"),
    "block_network": ({"yes": True, "no": False}.__getitem__, "`yes` or `no`"),
    "cidr": (_network, "a range of addresses such as 10.0.0.0/8"),
    "domain": (_name, "a name such as api.example.com"),
    "secret": (_name, "a name"),
    "volume": (_volume, "`NAME:PATH` with an absolute path"),
}
