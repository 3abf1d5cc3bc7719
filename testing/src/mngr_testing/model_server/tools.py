"""From what a step wants to a call of a tool that the request itself offers. Pure."""

from __future__ import annotations

import json
import os.path
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mngr.json_values import string, table
from mngr_testing.model_server.request import Tool
from mngr_testing.model_server.script import BadDirective, Call

SHELLS = (
    "Bash",
    "bash",
    "exec_command",
    "shell_command",
    "shell",
    "run_shell_command",
    "local_shell",
    "container.exec",
)
# A tool of Codex that runs JavaScript, and from there its other tools.
ORCHESTRATOR = "exec"
LONGEST_MILLISECONDS = 30000
WAITER = "write_stdin"
WRITERS = ("Write", "write", "write_file", "create_file")


class ToolCall(NamedTuple):
    """`input` is the arguments as JSON, or the free text of a custom tool."""

    name: str
    input: str
    custom: bool = False
    namespace: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        found = json.loads(self.input) if not self.custom else {"input": self.input}
        return found if isinstance(found, dict) else {}


def tool_call(call: Call, tools: Sequence[Tool], cwd: str) -> ToolCall:
    """The call that does it. Raises BadDirective when no tool of the request can."""
    if call.kind == "tool":
        return _named(call, tools)
    if call.kind == "write":
        writer = _first(WRITERS, tools)
        if writer:
            return _write(writer, call, cwd)
        return _run(_here_document(call.subject, call.content), tools)
    return _run(call.subject, tools)


def wait_call(running: str, tools: Sequence[Tool]) -> ToolCall:
    """Codex gives a command 30 s and then goes on without it; this waits for more of it."""
    wanted = {"session_id": int(running), "chars": "", "yield_time_ms": LONGEST_MILLISECONDS}
    return tool_call(Call("tool", WAITER, arguments=wanted), tools, "")


def _named(call: Call, tools: Sequence[Tool]) -> ToolCall:
    arguments = call.arguments or {}
    found = _first((call.subject,), tools)
    if found is None:
        freely = list(arguments) == ["input"]
        orchestrated = _orchestrated(call.subject, arguments["input"] if freely else arguments, tools)
        if orchestrated:
            return orchestrated
        found = Tool(call.subject, {})
    text = string(arguments.get("input")) if found.custom else json.dumps(arguments)
    return ToolCall(found.name, text, found.custom, found.namespace)


def _run(command: str, tools: Sequence[Tool]) -> ToolCall:
    shell = _first(SHELLS, tools)
    if shell is None:
        wanted = {"cmd": command, "yield_time_ms": LONGEST_MILLISECONDS}
        orchestrated = _orchestrated("exec_command", wanted, tools)
        if orchestrated:
            return orchestrated
        offered = ", ".join(tool.name for tool in tools) or "none"
        raise BadDirective(f"the request offers no shell tool, only: {offered}")
    properties = table(shell.schema.get("properties"))
    name = "cmd" if "cmd" in properties else "command"
    wants_words = table(properties.get(name)).get("type") == "array"
    arguments: dict[str, Any] = {name: ["bash", "-lc", command] if wants_words else command}
    if "yield_time_ms" in properties:
        arguments["yield_time_ms"] = LONGEST_MILLISECONDS
    return ToolCall(shell.name, json.dumps(_filled(arguments, shell.schema)), namespace=shell.namespace)


def _orchestrated(name: str, argument: Any, tools: Sequence[Tool]) -> ToolCall | None:
    found = _first((ORCHESTRATOR,), tools)
    if found is None or not found.custom:
        return None
    return ToolCall(found.name, f"text(await tools.{name}({json.dumps(argument)}));", True, found.namespace)


def _write(writer: Tool, call: Call, cwd: str) -> ToolCall:
    properties = table(writer.schema.get("properties"))
    path = os.path.join(cwd, call.subject) if cwd else call.subject
    name = next((one for one in ("file_path", "filePath", "path") if one in properties), "path")
    return ToolCall(writer.name, json.dumps(_filled({name: path, "content": call.content}, writer.schema)))


def _filled(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the plainest values for what the schema requires besides."""
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in arguments:
            arguments[name] = plainest(table(table(schema.get("properties")).get(name)))
    return arguments


def plainest(schema: Mapping[str, Any], depth: int = 0) -> Any:
    """The simplest value that fits a JSON schema of the kinds that agents use."""
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    kind = schema.get("type")
    if kind == "object":
        named = table(schema.get("properties"))
        return {name: plainest(table(one), depth + 1) for name, one in named.items()} if depth < 20 else {}
    return {"array": [], "boolean": False, "integer": 0, "number": 0}.get(string(kind), "scripted")


def _first(names: Sequence[str], tools: Sequence[Tool]) -> Tool | None:
    return next((tool for name in names for tool in tools if tool.name == name), None)


def _here_document(path: str, content: str) -> str:
    end = "END"
    while end in content:
        end += "_"
    directory = os.path.dirname(path)
    make = f"mkdir -p {shlex.quote(directory)} && " if directory else ""
    return f"{make}cat > {shlex.quote(path)} <<'{end}'\n{content}{end}"
