"""Keys by tmux's names, as the bytes that a terminal of the xterm family sends for them."""

from __future__ import annotations

import difflib

from mngr.errors import UsageError

# What moves the cursor: `CSI x`, or `SS3 x` when the program asked for application cursor keys.
_CURSOR = {"Up": "A", "Down": "B", "Right": "C", "Left": "D", "Home": "H", "End": "F"}
_SS3 = {"F1": "P", "F2": "Q", "F3": "R", "F4": "S"}
_EDITING = {"IC": 2, "Insert": 2, "DC": 3, "Delete": 3}
_PAGING = {"PageUp": 5, "PgUp": 5, "PPage": 5, "PageDown": 6, "PgDn": 6, "NPage": 6}
_FUNCTION = {"F5": 15, "F6": 17, "F7": 18, "F8": 19, "F9": 20, "F10": 21, "F11": 23, "F12": 24}
_TILDE = {**_EDITING, **_PAGING, **_FUNCTION}
_PLAIN = {"Enter": "\r", "Escape": "\x1b", "Tab": "\t", "BSpace": "\x7f", "Space": " ", "BTab": "\x1b[Z"}
_MODIFIERS = {"S-": 1, "M-": 2, "C-": 4}
_SHIFT, _META, _CONTROL = 1, 2, 4
# Beyond the letters: what a terminal makes of Control with them.
_CONTROLLED = {" ": 0, "@": 0, "[": 27, "\\": 28, "]": 29, "^": 30, "_": 31, "/": 31, "?": 127}
NAMES = (*_PLAIN, *_CURSOR, *_SS3, *_TILDE)


def encoded(key: str, *, application_cursor: bool = False) -> bytes:
    """The bytes of one key: `Enter`, `C-c`, `M-x`, `S-Up`, `F5`, or a character. A name that does not exist is an
    error, and so is a combination for which terminals have no bytes: nothing is sent in its place."""
    name, modifiers = _split(key)
    if name in _PLAIN:
        text = _plain(key, name, modifiers)
    elif name in _CURSOR:
        text = _special(_CURSOR[name], modifiers, "\x1bO" if application_cursor else "\x1b[")
    elif name in _SS3:
        text = _special(_SS3[name], modifiers, "\x1bO")
    elif name in _TILDE:
        text = f"\x1b[{_TILDE[name]};{modifiers + 1}~" if modifiers else f"\x1b[{_TILDE[name]}~"
    elif len(name) == 1:
        text = _character(key, name, modifiers)
    else:
        raise _unknown(key, name)
    return text.encode()


def typed(text: str) -> bytes:
    """Text as a person types it: the end of a line is the Enter key."""
    return text.replace("\r\n", "\r").replace("\n", "\r").encode("utf-8", "surrogateescape")


def _split(key: str) -> tuple[str, int]:
    name, modifiers = key, 0
    if len(name) == 2 and name[0] == "^":
        name, modifiers = name[1], _CONTROL
    while len(name) > 2 and name[:2] in _MODIFIERS:
        modifiers |= _MODIFIERS[name[:2]]
        name = name[2:]
    return name, modifiers


def _plain(key: str, name: str, modifiers: int) -> str:
    if (name, modifiers) == ("Tab", _SHIFT):
        return _PLAIN["BTab"]
    if name == "Space":
        return _character(key, " ", modifiers & ~_SHIFT)
    if modifiers & ~_META:
        raise UsageError(f"a terminal cannot send `{key}`", hint=f"it has bytes for `{name}` and `M-{name}`")
    return ("\x1b" if modifiers else "") + _PLAIN[name]


def _special(final: str, modifiers: int, start: str) -> str:
    return f"\x1b[1;{modifiers + 1}{final}" if modifiers else f"{start}{final}"


def _character(key: str, character: str, modifiers: int) -> str:
    if modifiers & _SHIFT:
        character = character.upper()
    if modifiers & _CONTROL:
        if character.isascii() and character.isalpha():
            character = chr(ord(character.upper()) - 64)
        elif character in _CONTROLLED:
            character = chr(_CONTROLLED[character])
        else:
            raise UsageError(f"a terminal cannot send `{key}`", hint="`C-` goes with letters and with @ [ \\ ] ^ _ / ?")
    return ("\x1b" if modifiers & _META else "") + character


def _unknown(key: str, name: str) -> UsageError:
    close = difflib.get_close_matches(name.lower(), [known.lower() for known in NAMES], n=1)
    meant = next((known for known in NAMES if close and known.lower() == close[0]), "")
    if not name:
        return UsageError("an empty text is no key", hint="a blank is `Space`")
    hint = f"the closest name is `{meant}`" if meant else "text is typed with `.type(...)`; keys have tmux's names"
    return UsageError(f"there is no key `{key}`", hint=hint)
