"""Why an agent is BLOCKED, in classes that others act on: the first words of its reason say which. Pure."""

from __future__ import annotations

import re

RATE_LIMIT = "rate limit"  # time helps: the agent continues later, see `retry_time`
LOGIN = "login"  # a person has to log in again
CREDIT = "credit"  # a person has to pay, or raise a limit on spending
MODEL = "model"  # the model does not exist, or is not for this account
_ACCOUNT = (LOGIN, CREDIT, MODEL)


def is_rate_limit(reason: str) -> bool:
    return _is(reason, RATE_LIMIT)


def without_time(reason: str) -> str:
    """The reason, for a text that shows the time beside it."""
    return re.sub(r": retry at [0-9TZ:-]+(?=:|$)", "", reason)


def is_account(reason: str) -> bool:
    """Whether nothing but a change of the account or the settings helps: all agents of this type share it."""
    return any(_is(reason, word) for word in _ACCOUNT)


def _is(reason: str, word: str) -> bool:
    return reason == word or reason.startswith((f"{word}:", f"{word} "))
