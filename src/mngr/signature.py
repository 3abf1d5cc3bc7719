"""The signature of a failure: its text without what differs from run to run, so that equal failures can be grouped."""

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
_QUOTED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")


def signature(text: str, *, any_name: bool = False) -> str:
    """The text with stand-ins for times, ids, paths and numbers, and at most 300 characters long. With `any_name`,
    quoted names are replaced too: the same failure of different tasks is then one."""
    if any_name:
        text = _QUOTED.sub("NAME", text)
    for pattern, stand_in in _VARYING:
        text = pattern.sub(stand_in, text)
    text = text.strip()
    return text[:_LONGEST].rstrip() + "..." if len(text) > _LONGEST else text
