"""Compares a JSON value with the part of it that somebody cares about. Pure."""

from __future__ import annotations

import re


def difference(expected: object, found: object, where: str = "") -> str:
    """The first place where `found` lacks what `expected` has, in words; empty when it lacks nothing."""
    at = f"`{where}`" if where else "the value"
    if expected is ...:
        return ""
    if isinstance(expected, re.Pattern):
        fits = isinstance(found, str) and expected.search(found)
        return "" if fits else f"{at} is {found!r} and does not match `{expected.pattern}`"
    if isinstance(expected, dict):
        return _in_object(expected, found, where, at)
    if isinstance(expected, list | tuple):
        return _in_list(list(expected), found, where, at)
    # In Python `True == 1`; in JSON they differ.
    same = expected == found and isinstance(expected, bool) == isinstance(found, bool)
    return "" if same else f"{at} is {found!r} and not {expected!r}"


def _in_object(expected: dict[str, object], found: object, where: str, at: str) -> str:
    if not isinstance(found, dict):
        return f"{at} is {found!r}, not an object"
    for key, value in expected.items():
        path = f"{where}.{key}" if where else str(key)
        if key not in found:
            return f"`{path}` is missing"
        different = difference(value, found[key], path)
        if different:
            return different
    return ""


def _in_list(expected: list[object], found: object, where: str, at: str) -> str:
    if not isinstance(found, list):
        return f"{at} is {found!r}, not a list"
    open_ended = bool(expected) and expected[-1] is ...
    items = expected[:-1] if open_ended else expected
    if len(found) < len(items) or (len(found) > len(items) and not open_ended):
        return f"{at} has {len(found)} items and not {len(items)}{' or more' if open_ended else ''}"
    for number, (item, other) in enumerate(zip(items, found, strict=False)):
        different = difference(item, other, f"{where}[{number}]")
        if different:
            return different
    return ""
