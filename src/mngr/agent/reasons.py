"""Why an agent is BLOCKED, in classes that others act on: the first words of its reason say which. A limit names the
time at which it ends. Pure."""

from __future__ import annotations

import math
import re
import time

RATE_LIMIT = "rate limit"  # time helps: the agent continues later, see `retry_time`
LOGIN = "login"  # a person has to log in again
CREDIT = "credit"  # a person has to pay, or raise a limit on spending
MODEL = "model"  # the model does not exist, or is not for this account

_LONGEST = 300
_LIMITED = (429, 529)
_REFUSED = (401, 403)
_UNPAID = 402
_CREDIT = (
    r"credit balance|(?:out of|no|insufficient) credits?|insufficient.?(?:quota|funds|balance)"
    r"|payment required|billing (?:hard )?limit|spend(?:ing)? limit"
)
_MODEL = (
    r"selected model|model[_ ]not[_ ]found|\bmodel\b[^.]{0,80}(?:not exist|not found|not supported|no longer|retired"
    r"|deprecated|not available|no access)"
)
_LIMIT = (
    r"rate.?limit|usage limit|hit your [\w ]{0,20}limit|limit (?:was )?(?:reached|exceeded)|too.?many.?requests"
    r"|quota|exhausted|overloaded"
)


def is_rate_limit(reason: str) -> bool:
    return _is(reason, RATE_LIMIT)


def is_account(reason: str) -> bool:
    """Whether nothing but a change of the account or the settings helps: all agents of this type share it."""
    return _is(reason, LOGIN, CREDIT, MODEL)


def _is(reason: str, *words: str) -> bool:
    return any(reason == word or reason.startswith((f"{word}:", f"{word} ")) for word in words)


def without_time(reason: str) -> str:
    """The reason, for a text that shows the time beside it."""
    return re.sub(r": retry at [0-9TZ:-]+(?=:|$)", "", reason)


def of_error(text: str, said_at: float, status: int | None = None, kind: str = "") -> str:
    """The reason why a turn failed with this text and this HTTP status; `kind` is the class, if the program knows it.
    Empty when the text names nothing that a person or time could fix."""
    from mngr.agent import retry_time  # rarely needed

    def names(pattern: str) -> bool:
        return re.search(pattern, text, re.IGNORECASE) is not None

    text = shortened(text)
    until = retry_time.until(text, said_at)
    if kind == CREDIT or status == _UNPAID or (until is None and names(_CREDIT)):
        return f"{CREDIT}: {text}"
    if kind == MODEL or (status not in _LIMITED and names(_MODEL)):
        return f"{MODEL}: {text}"
    if kind == RATE_LIMIT or status in _LIMITED or (status is None and not kind and names(_LIMIT)):
        return limited(text, until)
    return f"{LOGIN}: {text}" if kind == LOGIN or status in _REFUSED else ""


def limited(text: str, until: float | None) -> str:
    """`rate limit: retry at 2026-11-18T03:00:00Z: TEXT`, which `retry_time` reads."""
    return ": ".join(filter(None, (RATE_LIMIT, retry_at(until) if until is not None else "", text)))


def retry_at(moment: float) -> str:
    return f"retry at {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(math.ceil(moment)))}"


def shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
