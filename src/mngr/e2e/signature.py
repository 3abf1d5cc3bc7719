"""The signature of a failure: the same for the same failure in another run or another place, and made to be read."""

from __future__ import annotations

import re

_LONGEST = 300

# In this order: what is inside a longer thing must not be taken first.
_VARYING = (
    (re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]"), ""),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([.,]\d+)?(Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "ID"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "HEX"),
    (re.compile(r"(?<![\w.])~?(/[\w.@%+=:,~-]+){2,}/?"), "PATH"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}\b"), "HEX"),
    (re.compile(r"""(['"`])[^'"`\s]*\b(tmp|temp)[^'"`\s]*\1"""), "TEMP"),
    (re.compile(r"\d+(\.\d+)?"), "N"),
    (re.compile(r"\s+"), " "),
)


def signature(exception: str, message: str, function: str = "") -> str:
    """`exception` is its type's name, `message` its text, of which the first lines count. `function` is the innermost
    one of the tests' own code, left out when it is the test itself: tests that fail alike have one signature."""
    text = message
    for pattern, stand_in in _VARYING:
        text = pattern.sub(stand_in, text)
    text = text.strip()
    if len(text) > _LONGEST:
        text = text[:_LONGEST].rstrip() + "..."
    where = f" in {function}" if function else ""
    return f"{exception}{where}: {text}" if text else f"{exception}{where}"
