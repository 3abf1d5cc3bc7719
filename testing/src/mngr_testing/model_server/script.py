"""What the scripted model was told: directives in the user's text, and rules for texts without them. Pure.

A directive is a line that begins with `%% `. In order they are the steps of a turn; a tool call ends one response.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mngr.errors import MngrError

MARK = "%% "
USAGE_FIELDS = ("input", "output", "cache_read", "cache_write")
ECHO_LENGTH = 200


class BadDirective(MngrError):
    """A directive that cannot be read; the agent gets it as an error of the request."""


class Rule(NamedTuple):
    """Directives for every user text in which the regular expression is found; `\\1` is its first group."""

    when: str
    do: str


class TextPart(NamedTuple):
    """Text, and the seconds over which it is streamed."""

    text: str
    seconds: float = 0.0


class Call(NamedTuple):
    """What a response asks the agent to do: `run` a command, `write` a file, or a `tool` by its name."""

    kind: str
    subject: str
    content: str = ""
    arguments: dict[str, Any] | None = None


class ScriptedFailure(NamedTuple):
    """`status`, `drop` or `garbage` in place of an answer, `times` times. `text` is the message of a status, or its
    whole body, if that is a JSON object; empty for the usual one."""

    kind: str
    status: int = 200
    times: int = 1
    headers: tuple[tuple[str, str], ...] = ()
    text: str = ""


class Response(NamedTuple):
    """One step of a turn: what may fail before it, and what is answered then."""

    parts: tuple[TextPart, ...] = ()
    call: Call | None = None
    think_seconds: float = 0.0
    failures: tuple[ScriptedFailure, ...] = ()
    usage: dict[str, int] | None = None

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts)


def turn(text: str, rules: Iterable[Rule] = ()) -> list[Response]:
    """All responses to one user text. The last one is a text."""
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        text = _unquoted(text)
    if not _has_directives(text):
        text = _ruled(text, rules) or f"{MARK}say you said: {_cut(text)}"
    return _responses(text.split("\n"))


def response(text: str, step: int, rules: Iterable[Rule] = ()) -> Response:
    """The response to a user text after `step` tool calls; beyond its end the turn is done."""
    found = turn(text, rules)
    return found[step] if step < len(found) else Response((TextPart("done"),))


def failure(failures: Sequence[ScriptedFailure], attempt: int) -> ScriptedFailure | None:
    """What goes wrong in this attempt, counted from 0; None when it succeeds."""
    for one in failures:
        if attempt < one.times:
            return one
        attempt -= one.times
    return None


def load_rules(path: str) -> tuple[Rule, ...]:
    """The `[[rule]]` tables of a TOML file, each with `when` and `do`."""
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file).get("rule")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MngrError(f"cannot read the script `{path}`: {error}", hint=RULE_HINT) from None
    if not isinstance(found, list):
        raise MngrError(f"`{path}` has no `[[rule]]`", hint=RULE_HINT)
    rules = []
    for number, table in enumerate(found, 1):
        if not isinstance(table, dict) or not all(isinstance(table.get(key), str) for key in ("when", "do")):
            raise MngrError(f"rule {number} of `{path}` lacks `when` or `do`", hint=RULE_HINT)
        rules.append(Rule(table["when"], table["do"]))
    return check_rules(rules)


RULE_HINT = """a rule is `[[rule]]` with `when = "REGEX"` and `do = "%% say TEXT"`"""


def check_rules(rules: Iterable[Rule | tuple[str, str]]) -> tuple[Rule, ...]:
    """Rules whose expressions compile, so that a mistake is seen before an agent is."""
    checked = tuple(Rule(*rule) for rule in rules)
    for rule in checked:
        try:
            re.compile(rule.when)
        except re.error as error:
            raise MngrError(f"invalid regular expression `{rule.when}`: {error}", hint=RULE_HINT) from None
    return checked


def _unquoted(text: str) -> str:
    """Without the quotes that `opencode run` puts around an argument with blanks, if directives are in them."""
    inner = text[1:-1].replace('\\"', '"')
    return inner if _has_directives(inner) else text


def _has_directives(text: str) -> bool:
    return text.startswith(MARK) or f"\n{MARK}" in text


def _ruled(text: str, rules: Iterable[Rule]) -> str:
    for rule in rules:
        found = re.search(rule.when, text, re.MULTILINE)
        if found:
            return _substituted(rule.do, found)
    return ""


def _substituted(text: str, found: re.Match[str]) -> str:
    groups = {f"\\{number}": value or "" for number, value in enumerate(found.groups(), 1)}
    return re.sub(r"\\[0-9]", lambda group: groups.get(group[0], group[0]), text)


def _cut(text: str) -> str:
    return " ".join(text[:ECHO_LENGTH].split("\n"))


class _Draft:
    """The response that is being put together."""

    def __init__(self) -> None:
        self.parts: list[TextPart] = []
        self.failures: list[ScriptedFailure] = []
        self.think_seconds = 0.0
        self.usage: dict[str, int] | None = None

    def done(self, call: Call | None = None) -> Response:
        return Response(tuple(self.parts), call, self.think_seconds, tuple(self.failures), self.usage)


def _responses(lines: list[str]) -> list[Response]:
    found: list[Response] = []
    draft = _Draft()
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line.startswith(MARK):
            continue
        word, _, rest = line[len(MARK) :].strip().partition(" ")
        rest = rest.strip()
        if word == "write":
            path, content, at = _here_document(rest, lines, at)
            call: Call | None = Call("write", path, content)
        else:
            if word in ("say", "run") and rest.startswith("<<"):
                _, rest, at = _here_document(f"{word} {rest}", lines, at)
            call = _read(word, rest.removesuffix("\n"), draft)
        if call:
            found.append(draft.done(call))
            draft = _Draft()
    if not draft.parts:
        draft.parts.append(TextPart("done"))
    return [*found, draft.done()]


def _read(word: str, rest: str, draft: _Draft) -> Call | None:
    """Put one directive into the draft, or give the call that ends it."""
    if word == "say":
        draft.parts.append(TextPart(rest))
    elif word == "slow":
        seconds, _, text = rest.partition(" ")
        draft.parts.append(TextPart(text, _seconds(seconds)))
    elif word == "think":
        draft.think_seconds += _seconds(rest)
    elif word == "usage":
        draft.usage = {**(draft.usage or {}), **_options(rest.split(), USAGE_FIELDS)}
    elif word in ("status", "drop", "garbage"):
        draft.failures.append(_failure(word, rest))
    elif word == "run" and rest:
        return Call("run", rest)
    elif word == "tool" and rest:
        name, _, arguments = rest.partition(" ")
        return Call("tool", name, arguments=_object(arguments or "{}"))
    else:
        raise BadDirective(
            f"cannot read the directive `{MARK}{word}`",
            hint="known are say, run, write, tool, think, slow, status, drop, garbage and usage",
        )
    return None


def _here_document(rest: str, lines: list[str], at: int) -> tuple[str, str, int]:
    path, found, end = rest.rpartition("<<")
    path, end = path.strip(), end.strip().strip("'\"")
    if not (found and path and end):
        raise BadDirective(f"`{MARK}write {rest}` has no text", hint=f"such as `{MARK}write PATH <<END`, lines, `END`")
    content = []
    while at < len(lines) and lines[at].rstrip() != end:
        content.append(lines[at] + "\n")
        at += 1
    if at == len(lines):
        raise BadDirective(f"the text after `<<{end}` has no end", hint=f"end it with a line `{end}`")
    return path, "".join(content), at + 1


def _failure(word: str, rest: str) -> ScriptedFailure:
    if word != "status":
        return ScriptedFailure(word, times=_options(rest.split(), ("times",)).get("times", 1))
    found = re.fullmatch(r"([45][0-9][0-9])((?:\s+[a-z0-9-]+=\S*)*)(?:\s+(.+))?", rest)
    if not found:
        raise BadDirective(f"`{MARK}status {rest}` has no code", hint=f"such as `{MARK}status 429 times=2`")
    words, text = found[2].split(), found[3] or ""
    options = _options([word for word in words if "-" not in word.partition("=")[0]], ("times",))
    headers = [word.partition("=") for word in words if "-" in word.partition("=")[0]]
    if text.startswith("{"):
        _object(text)
    pairs = tuple((name, value) for name, _, value in headers)
    return ScriptedFailure(word, int(found[1]), options.get("times", 1), pairs, text)


def _options(words: list[str], known: Sequence[str]) -> dict[str, int]:
    found = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in known or not re.fullmatch("[0-9]{1,12}", value):
            raise BadDirective(f"cannot read `{word}` in a directive", hint=f"known are {', '.join(known)}, each =N")
        found[name] = int(value)
    return found


def _seconds(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]+)?", text):
        raise BadDirective(f"invalid number of seconds `{text}`", hint=f"such as `{MARK}think 1.5`")
    return float(text)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadDirective(f"this is not a JSON object: `{text[:80]}`")
    return found
