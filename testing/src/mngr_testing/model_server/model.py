"""The scripted model: decides what a request gets. All its memory is how often a step has failed so far."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mngr.json_values import table
from mngr_testing.model_server import anthropic, openai_chat, openai_responses
from mngr_testing.model_server.answer import ModelAnswer, StreamPiece, answer, side_answer, wait_answer
from mngr_testing.model_server.request import ModelRequest
from mngr_testing.model_server.script import BadDirective, Rule, ScriptedFailure, failure, response


class Api(NamedTuple):
    name: str
    parse: Callable[[Mapping[str, Any]], ModelRequest]
    whole: Callable[[ModelAnswer], dict[str, Any]]
    stream: Callable[[ModelAnswer], list[StreamPiece]]
    error: Callable[[int, str, str], dict[str, Any]]


MESSAGES = Api("messages", anthropic.parse, anthropic.whole, anthropic.stream, anthropic.error)
RESPONSES = Api(
    "responses", openai_responses.parse, openai_responses.whole, openai_responses.stream, openai_responses.error
)
CHAT = Api("chat", openai_chat.parse, openai_chat.whole, openai_chat.stream, openai_chat.error)
APIS = {"/messages": MESSAGES, "/responses": RESPONSES, "/chat/completions": CHAT}

# Programs whose requests without tools are not turns of the user but titles, summaries and probes.
PROGRAMS = {"claude-cli": "claude", "codex": "codex", "opencode": "opencode", "geminicli": "gemini", "pi": "pi"}


class ModelDecision(NamedTuple):
    """What happens: a failure, or an answer after some thinking."""

    asked: ModelRequest
    attempt: int
    think_seconds: float
    failure: ScriptedFailure | None
    answer: ModelAnswer


class RequestRefused(Exception):
    """The request is answered with this status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class ScriptedModel:
    """Same request, same answer, but for the failures that a step still owes."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self._attempts: dict[str, int] = {}
        self._lock = threading.Lock()

    def decide(self, asked: ModelRequest, *, side: bool, id: str, size: int) -> ModelDecision:
        """What the request gets; `size` is that of its body. Raises RequestRefused for a script that is wrong."""
        if side:
            return ModelDecision(asked, 0, 0.0, None, side_answer(id, asked, size))
        if asked.running:
            return ModelDecision(asked, 0, 0.0, None, wait_answer(id, asked, size))
        try:
            step = response(asked.text, asked.step, self._rules)
            answered = answer(id, asked, step, size)
        except BadDirective as error:
            raise RequestRefused(400, f"{error.message}{'; ' if error.hint else ''}{error.hint}") from None
        attempt = self._attempt(asked) if step.failures else 0
        fails = failure(step.failures, attempt)
        return ModelDecision(asked, attempt, step.think_seconds, fails, answered)

    def _attempt(self, asked: ModelRequest) -> int:
        """How often this step of this conversation was asked before."""
        key = json.dumps([asked.session or asked.system, asked.texts, asked.step])
        name = hashlib.sha256(key.encode()).hexdigest()
        with self._lock:
            count = self._attempts.get(name, 0)
            self._attempts[name] = count + 1
        return count


def is_side(asked: ModelRequest, program: str) -> bool:
    """Whether the program asks for itself: without tools, or for a title. Who is not known here has no such habit."""
    wants_title = list(table((asked.schema or {}).get("properties"))) == ["title"]
    return program in PROGRAMS.values() and (wants_title or not asked.tools)


def program_of(user_agent: str) -> str:
    """The agent program by its User-Agent; an unknown one by the name it gives."""
    first = user_agent.split("/", maxsplit=1)[0].strip().lower()
    for prefix, name in PROGRAMS.items():
        if first == prefix or first.startswith((f"{prefix}_", f"{prefix}-", f"{prefix} ")):
            return name
    return first[:40]


def read_body(raw: bytes) -> dict[str, Any]:
    """The JSON object of a request. Raises RequestRefused for anything else."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "the body is not JSON") from None
    if not isinstance(found, dict):
        raise RequestRefused(400, "the body is not a JSON object")
    return found


def models() -> dict[str, Any]:
    """The list of models in one shape that clients of both makers read."""
    one = {
        "id": "scripted",
        "type": "model",
        "object": "model",
        "display_name": "Scripted",
        "created": 0,
        "created_at": "1970-01-01T00:00:00Z",
        "owned_by": "mngr",
    }
    return {"object": "list", "data": [one], "has_more": False, "first_id": "scripted", "last_id": "scripted"}
