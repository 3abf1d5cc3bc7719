"""`expect(x)`: says what is expected of a result, text, path or screen; waits for it when told to; fails in words."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mngr.e2e.bounded_text import CUT
from mngr.e2e.command import Ran
from mngr.system.waiting import Deadline

if TYPE_CHECKING:
    from mngr.e2e.session import E2eSession

_SHOWN_LINES = 40
_SHOWN_CHARACTERS = 4000

Pattern = str | re.Pattern[str]

__tracebackhide__ = True  # pytest shows the line of the test that expects, and none of these


class _Verdict(NamedTuple):
    """Whether it is as expected; if not, what was seen instead. `hopeless` when waiting cannot help."""

    passed: bool
    seen: str = ""
    hopeless: bool = False


Check = Callable[[Any], _Verdict]

# The sessions of the tests that run now; more than one only where a test runs pytest inside itself.
_listeners: list[E2eSession] = []


def listen(listener: E2eSession) -> None:
    """From now on, tell this one of every expectation."""
    _listeners.append(listener)


def stop_listening(listener: E2eSession) -> None:
    _listeners.remove(listener)


def expect(value: object) -> Expectation:
    """Of a result, a text, a path, a screen, or a function that gives one of them and is called again while waiting."""
    return Expectation(value)


class Expectation:
    """Each method returns the expectation itself, so that calls chain, or raises AssertionError. `timeout` is how many
    seconds to wait for what can change: paths and screens are read again, functions are called again."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def to_succeed(self, *, timeout: float = 0) -> Expectation:
        """Its exit code is 0."""
        return self._ends("to succeed", lambda code: code == 0, timeout)

    def to_fail(self, *, timeout: float = 0) -> Expectation:
        """Its exit code is not 0."""
        return self._ends("to fail", lambda code: code != 0, timeout)

    def to_have_exit_code(self, code: int, *, timeout: float = 0) -> Expectation:
        return self._ends(f"to have exit code {code}", lambda found: found == code, timeout)

    def to_contain(self, text: str, *, timeout: float = 0) -> Expectation:
        return self._look(f"to contain {text!r}", lambda seen: text in seen, timeout)

    def not_to_contain(self, text: str, *, timeout: float = 0) -> Expectation:
        return self._look(f"not to contain {text!r}", lambda seen: text not in seen, timeout, whole=True)

    def to_match(self, pattern: Pattern, *, timeout: float = 0) -> Expectation:
        """The regular expression is found somewhere; `^` and `$` are the ends of lines."""
        compiled = re.compile(pattern, re.MULTILINE) if isinstance(pattern, str) else pattern
        return self._look(f"to match {_shown(compiled)}", lambda seen: _found(compiled, seen), timeout)

    def not_to_match(self, pattern: Pattern, *, timeout: float = 0) -> Expectation:
        compiled = re.compile(pattern, re.MULTILINE) if isinstance(pattern, str) else pattern
        what = f"not to match {_shown(compiled)}"
        return self._look(what, lambda seen: not _found(compiled, seen), timeout, whole=True)

    def to_equal(self, expected: object, *, timeout: float = 0) -> Expectation:
        """Text, or any other value."""
        return self._check(f"to equal {_clipped(repr(expected), 200)}", lambda seen: _equal(seen, expected), timeout)

    def to_be_empty(self, *, timeout: float = 0) -> Expectation:
        return self._look("to be empty", lambda seen: not seen, timeout)

    def to_be_json(self, *, timeout: float = 0) -> Expectation:
        return self._check("to be JSON", lambda seen: _json(seen)[1], timeout)

    def to_match_json(self, subset: object, *, timeout: float = 0) -> Expectation:
        """JSON that has at least this: keys that are not named may be there. A list has as many items, unless it ends
        in `...`; `...` is any value, and a compiled regular expression any text it is found in."""
        return self._check(f"to match the JSON {_clipped(str(subset), 300)}", lambda v: _json_like(v, subset), timeout)

    def to_exist(self, *, timeout: float = 0) -> Expectation:
        return self._check("to exist", lambda path: _exists(path, True), timeout)

    def not_to_exist(self, *, timeout: float = 0) -> Expectation:
        return self._check("not to exist", lambda path: _exists(path, False), timeout)

    def to_have_content(self, content: Pattern, *, timeout: float = 0) -> Expectation:
        """The file is this text exactly, or a compiled regular expression is found in it."""
        if isinstance(content, re.Pattern):
            return self._look(f"to have content like {_shown(content)}", lambda seen: _found(content, seen), timeout)
        what = f"to have the content {_clipped(repr(content), 200)}"
        return self._check(what, lambda path: _equal(_text_of(path), content), timeout)

    def to_show(self, content: Pattern, *, timeout: float = 0) -> Expectation:
        """A screen has this text, or a compiled regular expression is found on it."""
        return self._look(f"to show {_shown(content)}", lambda seen: _found(content, seen), timeout)

    def not_to_show(self, content: Pattern, *, timeout: float = 0) -> Expectation:
        return self._look(f"not to show {_shown(content)}", lambda seen: not _found(content, seen), timeout)

    def _ends(self, what: str, fits: Callable[[int], bool], timeout: float) -> Expectation:
        """Check the exit code of a result."""

        def check(ran: object) -> _Verdict:
            if not isinstance(ran, Ran):
                raise TypeError(f"this needs a result of `run`, not {type(ran).__name__}")
            streams = (("stdout", ran.stdout), ("stderr", ran.stderr))
            printed = "".join(f"\n{stream}:\n{_indented(text)}" for stream, text in streams if text)
            seen = f"it ended with exit code {ran.exit_code}{printed or ', without a word'}"
            return _Verdict(fits(ran.exit_code), seen)

        return self._check(what, check, timeout)

    def _look(self, what: str, found: Callable[[str], bool], timeout: float, whole: bool = False) -> Expectation:
        """Check the text of whatever this is. `whole`: text with a part left out cannot answer."""

        def check(value: object) -> _Verdict:
            over = _is_screen(value) and bool(getattr(value, "over", False))  # asked first: all it wrote is there
            text = _text_of(value)
            if text is None:
                return _Verdict(False, "it does not exist")
            if whole and CUT in text:
                return _Verdict(False, "a part of it was left out, so this cannot be known", hopeless=True)
            ended = "its program has ended, and " if over else ""
            return _Verdict(found(text), ended + _quoted(text), hopeless=over)

        return self._check(what, check, timeout)

    def _check(self, what: str, check: Check, timeout: float) -> Expectation:
        value = self._value
        if timeout and not _can_change(value):
            raise TypeError(
                f"{_name_of(value)} cannot change, so there is nothing to wait for: "
                "give a function, as in `expect(lambda: ...)`, or leave `timeout` out"
            )
        deadline = Deadline(timeout)
        pause = 0.02
        while True:
            now = value() if callable(value) and not _is_screen(value) else value
            last = deadline.passed
            verdict = check(now)
            if verdict.passed or verdict.hopeless or last:
                break
            deadline.pause(pause)
            pause = min(pause * 1.5, 0.5 if callable(value) else 0.05)
        text = f"{_name_of(now)} {what}"
        for listener in _listeners[-1:]:
            listener.note_expectation(now, text, verdict.passed)
        if verdict.passed:
            return self
        waited = f" within {timeout:g} s" if timeout else ""
        raise AssertionError(f"expected {text}{waited}, but {verdict.seen}")


def _can_change(value: object) -> bool:
    return callable(value) or isinstance(value, os.PathLike) or _is_screen(value)


def _is_screen(value: object) -> bool:
    return hasattr(value, "press") and hasattr(value, "text")


def _name_of(value: object) -> str:
    if isinstance(value, Ran):
        return f"`{_clipped(value.command, 200)}`"
    if isinstance(value, os.PathLike):
        return f"`{os.fspath(value)!s}`"
    if _is_screen(value):
        return f"the screen of `{getattr(value, 'title', 'a program')}`"
    named = _listeners[-1].origin(value)[0] if _listeners else ""
    return _clipped(named, 200) or ("the text" if isinstance(value, str) else f"the {type(value).__name__}")


def _text_of(value: object) -> str | None:
    """The text to look at; None for a file that is not there."""
    if isinstance(value, str):
        return value
    if isinstance(value, Ran):
        return value.output
    if isinstance(value, os.PathLike):
        try:
            with open(value, "rb") as file:
                return file.read().decode(errors="backslashreplace")
        except FileNotFoundError:
            return None
    if _is_screen(value):
        return str(getattr(value, "text", ""))
    raise TypeError(f"this needs a text, a path, a screen or a result, not {type(value).__name__}")


def _exists(path: object, expected: bool) -> _Verdict:
    if not isinstance(path, os.PathLike):
        raise TypeError(f"this needs a path, as in `expect(e2e.cwd / 'file')`, not {type(path).__name__}")
    found = os.path.lexists(path)
    if found or not expected:
        return _Verdict(found == expected, "it is there")
    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(parent):
        return _Verdict(False, f"not even `{parent}` is there")
    names = sorted(os.listdir(parent))
    listed = ", ".join(f"`{name}`" for name in names[:20]) + (", ..." if len(names) > 20 else "")
    return _Verdict(False, f"`{parent}` has {listed or 'nothing in it'}")


def _equal(seen: object, expected: object) -> _Verdict:
    if isinstance(expected, str) and not isinstance(seen, str):
        seen = _text_of(seen)
        if seen is None:
            return _Verdict(False, "it does not exist")
    if seen == expected:
        return _Verdict(True)
    if isinstance(seen, str) and isinstance(expected, str) and "\n" in seen + expected:
        return _Verdict(False, f"it differs:\n{_indented(_diff(seen, expected))}" if seen else "it is empty")
    return _Verdict(False, f"it is {_clipped(repr(seen), 500)}")


def _diff(seen: str, expected: str) -> str:
    """Line by line; where only the ends of lines differ, as Python writes them."""
    if seen.splitlines() != expected.splitlines():
        before, after = expected.splitlines(), seen.splitlines()
    else:
        before, after = (list(map(repr, text.splitlines(keepends=True))) for text in (expected, seen))
    return "\n".join(difflib.unified_diff(before, after, "expected", "seen", lineterm=""))


def _json(value: object) -> tuple[object, _Verdict]:
    text = _text_of(value)
    if text is None:
        return None, _Verdict(False, "it does not exist")
    try:
        return json.loads(text), _Verdict(True)
    except (ValueError, RecursionError) as error:
        return None, _Verdict(False, f"{error}: {_quoted(text)}")


def _json_like(value: object, subset: object) -> _Verdict:
    found, verdict = _json(value) if not isinstance(value, dict | list) else (value, _Verdict(True))
    if not verdict.passed:
        return verdict
    different = difference(subset, found)
    return _Verdict(not different, f"{different} in\n{_indented(json.dumps(found, indent=1, default=str))}")


def _shown(content: Pattern) -> str:
    return repr(content) if isinstance(content, str) else f"`{content.pattern}`"


def _found(content: Pattern, text: str) -> bool:
    return content in text if isinstance(content, str) else content.search(text) is not None


def _quoted(text: str) -> str:
    return f"it is:\n{_indented(text)}" if text else "it is empty"


def _indented(text: str) -> str:
    lines = _clipped(text, _SHOWN_CHARACTERS).rstrip("\n").split("\n")
    if len(lines) > _SHOWN_LINES:
        half = _SHOWN_LINES // 2
        lines = [*lines[:half], f"[{len(lines) - 2 * half} lines left out]", *lines[-half:]]
    return "\n".join(f"  {line}" for line in lines)


def _clipped(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} [{len(text) - 2 * half:,} characters left out] {text[-half:]}"


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
        different = difference(value, found[key], path) if key in found else f"`{path}` is missing"
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
    different = (
        difference(item, other, f"{where}[{at}]") for at, (item, other) in enumerate(zip(items, found, strict=False))
    )
    return next(filter(None, different), "")
