"""What settings say about an agent program that no driver of its own knows: read and checked when the type is used."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mngr.errors import UsageError
from mngr.process import join

READY, BUSY, BLOCKED, REFUSED = "ready", "busy", "blocked", "refused"
FIRST_PROMPT, RESUME, ONE_SHOT = "first_prompt", "resume", "one_shot"
HOME_ENV, HOME_LINKS, RECORD = "home_env", "home_links", "record"

PATTERNS = (READY, BUSY, BLOCKED, REFUSED)
_LINES = (FIRST_PROMPT, RESUME, ONE_SHOT)
_LISTS = (HOME_ENV, HOME_LINKS)
KEYS = (*PATTERNS, *_LINES, *_LISTS, RECORD)


def read(name: str, values: Mapping[str, object], inherited: Mapping[str, str]) -> dict[str, str]:
    """The rules of a type: its own over those of its parent; an empty one takes a parent's away. Raises UsageError."""
    found = dict(inherited)
    for key in KEYS:
        if key in values:
            value = values[key]
            found[key] = join([*map(str, value)]) if isinstance(value, list | tuple) else str(value)
    found = {key: value for key, value in found.items() if value}
    _check(name, found)
    return found


def _check(name: str, found: Mapping[str, str]) -> None:
    for key in PATTERNS:
        try:
            re.compile(found.get(key, ""), re.MULTILINE)
        except re.error as error:
            raise UsageError(
                f"`agent_types.{name}.{key}` is no regular expression: {error}",
                hint="in TOML, write it in single quotes, which leave backslashes alone",
            ) from None
    for key in (BUSY, BLOCKED):
        if key in found and READY not in found:
            raise UsageError(
                f"`agent_types.{name}` has `{key}` but no `ready`",
                hint=f"`agent_types.{name}.ready` is a regular expression for its screen while it waits for a prompt",
            )
    for key in (FIRST_PROMPT, ONE_SHOT):
        if key in found and "{prompt}" not in found[key] and "{prompt_file}" not in found[key]:
            raise UsageError(
                f"`agent_types.{name}.{key}` does not say where the prompt goes",
                hint='such as "{command} {prompt}": `{prompt}` is one quoted word, `{prompt_file}` a file with it',
            )
