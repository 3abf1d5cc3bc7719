"""Why a model does not answer: texts of real programs, as the reason that others act on."""

from datetime import UTC, datetime

import pytest

from mngr.agent import reasons, retry_time
from mngr.agent.reasons import is_account, is_rate_limit
from mngr.agent.state import BLOCKED, WAITING
from mngr.programs.claude import record as claude_record
from mngr.programs.codex import record as codex_record

SAID = datetime(2026, 11, 18, 1, 0, 0, tzinfo=UTC).timestamp()
WRITTEN = "2026-11-18T01:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "status", "kind", "wanted"),
    [
        ("Try again in 90 seconds", 429, "", "rate limit: retry at 2026-11-18T01:01:30Z: Try again in 90 seconds"),
        ("exceeded retry limit, last status: 429", 429, "", "rate limit: exceeded retry limit, last status: 429"),
        ("You exceeded your current quota: insufficient_quota", 429, "", "credit: "),
        ("Your credit balance is too low", 400, "", "credit: "),
        ("The model `x` does not exist or you do not have access to it.", 404, "", "model: "),
        ("The 'x' model is not supported when using Codex with a ChatGPT account.", 400, "", "model: "),
        ("invalid x-api-key", 401, "", "login: "),
        ("Not Found", 404, "", ""),
        ("server error", 500, "", ""),
        ("Rate limit reached for requests", None, "", "rate limit: "),
    ],
)
def test_each_cause_has_its_own_first_words(text: str, status: int | None, kind: str, wanted: str) -> None:
    reason = reasons.of_error(text, SAID, status, kind)
    assert reason.startswith(wanted) and bool(reason) == bool(wanted)
    assert is_account(reason) or is_rate_limit(reason) or not reason


def test_a_usage_limit_of_claude_says_when_it_is_over_whenever_it_is_read() -> None:
    told = {"error": "rate_limit", "last_assistant_message": "You've hit your limit · resets 3am (Europe/Berlin)"}
    blocked, reason = claude_record.failure(told, SAID)
    assert blocked and reason.startswith("rate limit: retry at 2026-11-18T02:00:00Z: You've hit your limit")
    assert retry_time.until(reason, SAID + 1800) == SAID + 3600
    told = {"error": "model_not_found", "last_assistant_message": "There's an issue with the selected model (x)."}
    assert claude_record.failure(told, SAID)[1].startswith("model: ")
    told = {"error": "unknown", "last_assistant_message": "API Error: 402 pay"}
    assert claude_record.failure(told, SAID) == (True, "credit: API Error: 402 pay")


def test_a_usage_limit_of_codex_says_when_it_is_over() -> None:
    text = (
        "You've hit your usage limit. Visit the page to purchase more credits or try again at Nov 20th, 2026 3:14 AM."
    )
    state, reason = codex_record.ending({"message": text, "codex_error_info": "usage_limit_exceeded"}, WRITTEN)
    assert state == BLOCKED and reason.startswith("rate limit: retry at 2026-11-20T")
    later = text.partition(" at ")[0] + " later."  # without the point in time, as it is told when nobody knows it
    state, reason = codex_record.ending({"message": later, "codex_error_info": "usage_limit_exceeded"}, WRITTEN)
    assert (state, reason) == (BLOCKED, f"rate limit: {later}")
    about = {"http_connection_failed": {"http_status_code": 404}}
    assert codex_record.ending({"message": "Not Found", "codex_error_info": about}, WRITTEN)[0] == WAITING


def test_a_login_that_is_refused_again_is_told_before_the_last_retry() -> None:
    line = {"data": {"error_kind": "auth_error", "response": {"status": 401}, "attempt": 1, "delay_ms": 600}}
    assert claude_record.retry(line) == (0.6, "auth error")
    line["data"]["attempt"] = 2
    assert claude_record.retry(line) == (0.6, "login: the model's server refuses it (HTTP 401)")
