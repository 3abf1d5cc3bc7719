"""A request in one form for all APIs: the last text that the user really wrote, and the tools on offer. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from mngr.json_values import objects, string


class Tool(NamedTuple):
    """A tool that the request offers. A `custom` one takes free text in place of JSON arguments."""

    name: str
    schema: Mapping[str, Any]
    custom: bool = False
    namespace: str = ""


class ModelRequest(NamedTuple):
    """`step` counts the tool calls since the last real user text; `texts` are all real user texts so far. `running` is
    the program's name for a command that has not ended, although its call has."""

    model: str
    stream: bool
    tools: tuple[Tool, ...]
    texts: tuple[str, ...]
    step: int
    session: str
    system: str
    schema: Mapping[str, Any] | None = None
    include_usage: bool = True
    running: str = ""

    @property
    def text(self) -> str:
        return self.texts[-1] if self.texts else ""


# Blocks that the programs themselves put into the user's place.
_OPENING = re.compile(
    r"<(system-reminder|environment_context|user_instructions|INSTRUCTIONS|skills_instructions|permissions instructions"
    r"|local-command-[a-z]+|command-[a-z]+|turn_aborted|task-notification|recommended_plugins|user_shell_command"
    r"|subagent_notification|hook_prompt)(?: [^<>]{0,200})?>"
)
_HEADINGS = ("# AGENTS.md instructions",)
# How Claude Code hands over what was typed in the middle of a turn.
_MEANWHILE = re.compile(
    r"The user sent a new message while you were working:\n(.*?)(?:\n\nThis is how Claude Code .*)?", re.DOTALL
)
_INTERRUPTED = "[Request interrupted by user"


def real_text(blocks: list[str]) -> str:
    """What the person wrote in one message; text before an interruption counts no more."""
    found: list[str] = []
    for block in blocks:
        if block.startswith(_INTERRUPTED):
            found.clear()
        elif not block.startswith(_HEADINGS):
            text = _without_inserted(block)
            meanwhile = _MEANWHILE.fullmatch(text.strip())
            text = meanwhile[1] if meanwhile else text
            if text.strip():
                found.append(text.strip("\n"))
    return "\n".join(found)


def _without_inserted(text: str) -> str:
    """In one pass, however many openings lack their end."""
    kept, at, unclosed = [], 0, set()
    for found in _OPENING.finditer(text):
        if found.start() < at or found[1] in unclosed:
            continue
        closing = f"</{found[1]}>"
        end = text.find(closing, found.end())
        if end < 0:
            unclosed.add(found[1])
            continue
        kept.append(text[at : found.start()])
        at = end + len(closing)
    return "".join([*kept, text[at:]])


def blocks(content: Any, types: tuple[str, ...]) -> list[str]:
    """The texts of a message: its content is a string or a list of typed blocks."""
    if isinstance(content, str):
        return [content]
    return [string(block.get("text")) for block in objects(content) if block.get("type") in types]


def working_directory(system: str) -> str:
    """The directory that the program names to its model; empty when it names none."""
    found = re.search(r"(?:[Ww]orking directory: *|<cwd>)(/[^\n<]*)", system)
    return found[1].strip() if found else ""
