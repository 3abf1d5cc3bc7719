"""Keys by tmux's names, as the words that `tmux send-keys` takes for them."""

from __future__ import annotations

from collections.abc import Iterator

from mngr.errors import UsageError
from mngr.names import nearest

# These have one code each, with or without Meta; terminals have none for them with Control or Shift.
_PLAIN = ("Enter", "Escape", "Tab", "BTab", "BSpace")
_NAMES = (
    *_PLAIN,
    *("Space", "Up", "Down", "Left", "Right", "Home", "End", "IC", "Insert", "DC", "Delete"),
    *("PageUp", "PgUp", "PPage", "PageDown", "PgDn", "NPage"),
    *(f"F{number}" for number in range(1, 13)),
)
_MODIFIERS = ("S-", "M-", "C-")
# Beyond the letters: what a terminal makes of Control with them.
_CONTROLLED = {" ": 0, "@": 0, "[": 27, "\\": 28, "]": 29, "^": 30, "_": 31, "/": 31, "?": 127}
_BYTES_AT_ONCE = 4000  # tmux takes commands of up to 16 kB


def pressed(key: str) -> list[str]:
    """One key: `Enter`, `C-c`, `M-x`, `S-Up`, `F5`, or a character. A name that does not exist is an error, and so is a
    combination for which terminals have no code."""
    name, modifiers = key, set[str]()
    if len(name) == 2 and name[0] == "^":
        name, modifiers = name[1], {"C-"}
    while len(name) > 2 and name[:2] in _MODIFIERS:
        modifiers.add(name[:2])
        name = name[2:]
    if name == "Space":
        name = " "
    if len(name) == 1:
        return _literal(_character(key, name, modifiers))
    if name not in _NAMES:
        raise _unknown(key, name)
    if name in _PLAIN and modifiers - {"M-"}:
        if (name, modifiers) == ("Tab", {"S-"}):
            return ["BTab"]
        raise UsageError(f"a terminal cannot send `{key}`", hint=f"use `{name}` or `M-{name}`")
    return [key]


def typed(text: str) -> Iterator[list[str]]:
    """Text as a person types it: the end of a line is the Enter key."""
    data = text.replace("\r\n", "\r").replace("\n", "\r").encode("utf-8", "surrogateescape")
    for start in range(0, len(data), _BYTES_AT_ONCE):
        yield _literal(data[start : start + _BYTES_AT_ONCE])


def _literal(data: bytes) -> list[str]:
    return ["-H", *(f"{byte:02x}" for byte in data)]


def _character(key: str, character: str, modifiers: set[str]) -> bytes:
    if "S-" in modifiers:
        character = character.upper()
    if "C-" in modifiers:
        if character.isascii() and character.isalpha():
            character = chr(ord(character.upper()) - 64)
        elif character in _CONTROLLED:
            character = chr(_CONTROLLED[character])
        else:
            raise UsageError(f"a terminal cannot send `{key}`", hint="use `C-` with a letter or @ [ \\ ] ^ _ / ?")
    return (("\x1b" if "M-" in modifiers else "") + character).encode()


def _unknown(key: str, name: str) -> UsageError:
    if not name:
        return UsageError("the name of the key is empty", hint="a blank is `Space`")
    known = {each.lower(): each for each in _NAMES}
    meant = nearest(name.lower(), [*known])
    hint = f"the closest name is `{known[meant]}`" if meant else "type text with `.type(...)`; keys have tmux's names"
    return UsageError(f"unknown key `{key}`", hint=hint)
