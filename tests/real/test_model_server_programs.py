"""The model server before real agent programs: turns with tools, failures, usage, resuming; each program headless."""

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from mngr_testing.model_server import ModelServer
from mngr_testing.model_server.answer import TokenCounts
from tests.support.programs import program
from tests.support.user import Ran, User

pytestmark = pytest.mark.timeout(240)

WORK = """Please do this.
%% say starting
%% run echo one > one.txt; cat one.txt
%% write sub/two.txt <<END
it's `two` "$HOME"
END
%% status 429 times=2 retry-after=1
%% usage input=1000 output=22 cache_read=300 cache_write=44
%% say all finished"""


class Program(NamedTuple):
    """How it is told to do one task, to go on with the last one, and what it says of its usage and its answer."""

    task: Callable[[str], list[str]]
    more: Callable[[str, str], list[str]]
    session: Callable[[list[dict]], str]
    usage: Callable[[list[dict]], TokenCounts]
    text: Callable[[list[dict]], str]


def of_kind(events: list[dict], kind: str) -> Iterator[dict]:
    return (event for event in events if event["type"] == kind)


def claude_usage(events: list[dict]) -> TokenCounts:
    (result,) = of_kind(events, "result")
    used = result["usage"]
    return TokenCounts(
        used["input_tokens"],
        used["output_tokens"],
        used["cache_read_input_tokens"],
        used["cache_creation_input_tokens"],
    )


def codex_usage(events: list[dict]) -> TokenCounts:
    (done,) = of_kind(events, "turn.completed")
    used = done["usage"]
    return TokenCounts(
        used["input_tokens"], used["output_tokens"], used["cached_input_tokens"], used["cache_write_input_tokens"]
    )


def opencode_usage(events: list[dict]) -> TokenCounts:
    """It takes what was cached out of the input, and reads nothing about writing the cache."""
    found = [event["part"]["tokens"] for event in of_kind(events, "step_finish")]
    read = sum(one["cache"]["read"] for one in found)
    return TokenCounts(sum(one["input"] for one in found) + read, sum(one["output"] for one in found), read, 0)


CLAUDE = ("claude", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions", "-p")
CODEX = ("exec", "--json", "--dangerously-bypass-approvals-and-sandbox")
OPENCODE = ("opencode", "run", "--format", "json")

PROGRAMS = {
    "claude": Program(
        task=lambda text: [*CLAUDE, text],
        more=lambda session, text: [*CLAUDE, text, "--resume", session],
        session=lambda events: str(events[0]["session_id"]),
        usage=claude_usage,
        text=lambda events: str(events[-1]["result"]),
    ),
    "codex": Program(
        task=lambda text: ["codex", *CODEX, text],
        more=lambda session, text: ["codex", *CODEX, "resume", session, text],
        session=lambda events: str(events[0]["thread_id"]),
        usage=codex_usage,
        text=lambda events: str([event["item"] for event in of_kind(events, "item.completed")][-1]["text"]),
    ),
    "opencode": Program(
        task=lambda text: [*OPENCODE, text],
        more=lambda session, text: [*OPENCODE, "--session", session, text],
        session=lambda events: str(events[0]["sessionID"]),
        usage=opencode_usage,
        text=lambda events: str([event["part"] for event in of_kind(events, "text")][-1]["text"]),
    ),
}


class Headless:
    """One program in a world of its own, against one server."""

    def __init__(self, name: str, user: User, model: str) -> None:
        self.kind = PROGRAMS[name]
        self._name, self._user, self._model = name, user, model
        self._path = program(name)
        user.env.update({"CLAUDE_CONFIG_DIR": str(user.home / "c"), "CODEX_HOME": str(user.home / "c")})
        user.env.update({"IS_SANDBOX": "1", "XDG_CACHE_HOME": str(user.home / "x")})
        user.env["PWD"] = str(user.repo)  # OpenCode takes it for the directory it is in
        (user.home / "c").mkdir()

    def __call__(self, server: ModelServer, argv: list[str]) -> Ran:
        own = ["-c", "features.plugins=false", "-c", "analytics.enabled=false"] if self._name == "codex" else []
        words = [self._path, *server.args(self._name, self._model), *own, *argv[1:]]
        return self._user.run(words, env={**self._user.env, **server.env(self._name)}, timeout=200)

    def events(self, server: ModelServer, argv: list[str]) -> list[dict]:
        return [json.loads(line) for line in self(server, argv).ok().stdout.splitlines()]


# The model is one that Codex does not know, or one for which it offers JavaScript in place of a shell.
KINDS = {
    "claude": ("claude", ""),
    "codex": ("codex", "scripted"),
    "codex-with-javascript": ("codex", "gpt-6.1-terra"),
    "opencode": ("opencode", ""),
}


# OpenCode takes many seconds to start.
@pytest.fixture(params=[pytest.param(kind, marks=[pytest.mark.soak] * (kind == "opencode")) for kind in KINDS])
def headless(request: pytest.FixtureRequest, user: User) -> Headless:
    name, model = KINDS[request.param]
    return Headless(name, user, model)


def test_a_turn_with_tools_and_a_rate_limit_is_done_and_counted(headless: Headless, user: User) -> None:
    with ModelServer() as server:
        events = headless.events(server, headless.kind.task(WORK))
        turns = [entry for entry in server.log if entry.user_text and not entry.side]
    assert (user.repo / "one.txt").read_text() == "one\n"
    assert (user.repo / "sub/two.txt").read_text() == 'it\'s `two` "$HOME"\n'
    assert headless.kind.text(events) == "all finished"
    assert [(entry.step, entry.answer, entry.status) for entry in turns] == [
        (0, "tool", 200),
        (1, "tool", 200),
        (2, "status", 429),
        (2, "status", 429),
        (2, "text", 200),
    ]
    assert turns[0].text == "starting"
    waits = [turns[number + 1].arrived_at - (turns[number].ended_at or 0) for number in (2, 3)]
    if turns[0].program != "codex":  # which has its own mind about when to try again
        assert min(waits) >= 0.9, "it waits as long as it was told to"
    assert turns[-1].usage == TokenCounts(1000, 22, 300, 44)
    reported = headless.kind.usage(events)
    assert reported == server.usage().turns._replace(cache_write=reported.cache_write)


def test_a_conversation_goes_on_with_another_server(headless: Headless, user: User) -> None:
    with ModelServer() as server:
        first = headless.events(server, headless.kind.task("%% run echo a >> log.txt\n%% say first"))
    with ModelServer() as server:
        session = headless.kind.session(first)
        again = headless.events(server, headless.kind.more(session, "%% run echo b >> log.txt\n%% say second"))
        turns = [entry for entry in server.log if entry.user_text and not entry.side]
    assert headless.kind.text(again) == "second"
    assert headless.kind.session(again) == session
    assert [entry.step for entry in turns] == [0, 1]
    assert (user.repo / "log.txt").read_text() == "a\nb\n"


@pytest.mark.parametrize("failure", ["drop", "garbage", "status 500"])
@pytest.mark.parametrize("headless", ["claude", "codex"], indirect=True)
def test_a_failure_is_overcome(headless: Headless, failure: str) -> None:
    with ModelServer() as server:
        events = headless.events(server, headless.kind.task(f"%% {failure}\n%% say got over it"))
        turns = [entry for entry in server.log if entry.user_text and not entry.side]
    assert headless.kind.text(events) == "got over it"
    assert [entry.answer for entry in turns] == [failure.split(maxsplit=1)[0], "text"]


@pytest.mark.parametrize("headless", ["claude", "codex"], indirect=True)
def test_a_refused_request_is_shown_with_the_words_of_the_server(headless: Headless) -> None:
    with ModelServer() as server:
        ran = headless(server, headless.kind.task("please\n%% sing a song"))
    assert "cannot read the directive `%% sing`" in ran.stdout + ran.stderr
